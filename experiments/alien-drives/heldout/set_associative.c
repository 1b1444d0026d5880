/* Make "set-associative": logical blocks in sets, each set with a few log blocks of its own.
 *
 * Pages of a block have their places in its data block; updates go to any of the set's log blocks, in order. Once these
 * are full, the set is merged: each block that has pages there is written anew from both, and old blocks are erased. A
 * log block that holds all of one logical block in order takes its place at once, and only the old one is erased. Data blocks are programmed upwards only, as
 * flash demands; what comes too late goes to a log block. No RAM: a write ends when flash has it.
 */
#include "../alien.h"

#define DIES_MAX 16
#define WAYS_MAX 8

typedef struct {
    drive head;
    u64 page;
    u32 pages, block_pages, blocks, set_blocks, ways, sets, dies;
    /* Of each page: 0 nowhere, 1 in its data block, 2 and more in a log block of its set. */
    u8 *where;
    /* Of each data block: the first page that can still be programmed. */
    u32 *next_page;
    /* Of each log block of each set: pages written, and the logical block it has in order (or NONE). */
    u32 *used, *in_order;
    u32 *log_valid;
    double read_ns, program_ns, erase_ns, overhead_ns, byte_ns;
    u64 die_free[DIES_MAX], link_free;
} set_associative;

static void draw(drive *d)
{
    set_associative *s = (set_associative *)d;
    rng *r = &d->random;
    d->noise = rng_between(r, 0.005, 0.05);
    /* Controllers of early drives, sticks and industrial modules: MLC pages of 4 to 16 KiB, one to four dies that work as
     * one block, blocks of 64 to 256 pages. */
    s->page = PICK(r, 4, 8, 16) * KIB;
    s->dies = (u32)PICK(r, 1, 2, 4);
    s->block_pages = s->dies * (u32)PICK(r, 64, 128);
    s->set_blocks = (u32)PICK(r, 4, 8, 16);
    s->ways = (u32)PICK(r, 1, 2, 4);
    u64 set_bytes = s->page * s->block_pages * s->set_blocks;
    s->sets = (u32)(2 * GIB / set_bytes);
    d->capacity_bytes = s->sets * set_bytes;
    s->blocks = s->sets * s->set_blocks;
    s->pages = s->blocks * s->block_pages;
    s->read_ns = rng_between(r, 40e3, 100e3);
    s->program_ns = rng_log(r, 250e3, 1.5e6);
    s->erase_ns = rng_between(r, 1.5e6, 6e6);
    s->byte_ns = 1e9 / (double)PICK(r, 133000000, 270000000, 540000000);
    s->overhead_ns = rng_between(r, 10e3, 60e3);
    s->where = array(s->pages, 1);
    s->next_page = array(s->blocks, sizeof(u32));
    s->used = array((size_t)s->sets * s->ways, sizeof(u32));
    s->in_order = array((size_t)s->sets * s->ways, sizeof(u32));
    s->log_valid = array(s->sets, sizeof(u32));
    fact(d, "dies", s->dies);
    fact(d, "unit", (double)s->page);
    fact(d, "page", (double)s->page);
    fact(d, "block", (double)(s->page * s->block_pages));
    fact(d, "ways", s->ways);
    fact(d, "set_blocks", s->set_blocks);
    fact(d, "flush_ns", s->overhead_ns);
}

static int renew(drive *d)
{
    set_associative *s = (set_associative *)d;
    memset(s->where, 0, s->pages);
    memset(s->next_page, 0, s->blocks * sizeof(u32));
    memset(s->used, 0, (size_t)s->sets * s->ways * sizeof(u32));
    memset(s->in_order, 0xff, (size_t)s->sets * s->ways * sizeof(u32));
    memset(s->log_valid, 0, s->sets * sizeof(u32));
    return 1;
}

static void release(drive *d)
{
    set_associative *s = (set_associative *)d;
    free(s->where);
    free(s->next_page);
    free(s->used);
    free(s->in_order);
    free(s->log_valid);
}

/* All dies are kept for some time. */
static void keep(set_associative *s, double ns, u64 now)
{
    for (u32 i = 0; i < s->dies; i++)
        s->die_free[i] = later(now, s->die_free[i]) + (u64)ns;
    stalled(&s->head, (u64)ns);
}

/* Merges a set, and erases its log blocks. */
static void merge(set_associative *s, u32 set, u64 now)
{
    double cost = 0;
    for (u32 b = set * s->set_blocks; b < (set + 1) * s->set_blocks; b++) {
        u8 *where = &s->where[(size_t)b * s->block_pages];
        u32 logged = 0, held = 0;
        for (u32 p = 0; p < s->block_pages; p++) {
            logged += where[p] > 1;
            held += where[p] > 0;
        }
        if (!logged)
            continue;
        cost += held * (s->read_ns + s->program_ns) / s->dies + s->erase_ns;
        s->head.copied_units += held;
        s->next_page[b] = 0;
        for (u32 p = 0; p < s->block_pages; p++) {
            where[p] = where[p] > 0;
            if (where[p])
                s->next_page[b] = p + 1;
        }
    }
    for (u32 w = 0; w < s->ways; w++) {
        s->used[set * s->ways + w] = 0;
        s->in_order[set * s->ways + w] = NONE;
        cost += s->erase_ns / s->ways;
    }
    s->log_valid[set] = 0;
    keep(s, cost, now);
}

/* A log block that has all of a block takes its place. */
static void take_place(set_associative *s, u32 set, u32 way, u32 block, u64 now)
{
    u8 *where = &s->where[(size_t)block * s->block_pages];
    for (u32 p = 0; p < s->block_pages; p++)
        if (where[p] != 2 + way)
            return;
    memset(where, 1, s->block_pages);
    s->log_valid[set] -= s->block_pages;
    s->next_page[block] = s->block_pages;
    s->used[set * s->ways + way] = 0;
    s->in_order[set * s->ways + way] = NONE;
    keep(s, s->erase_ns, now);
}

static u64 program(set_associative *s, u32 die, u64 now)
{
    return s->die_free[die] = later(now, s->die_free[die]) + noisy(&s->head, s->program_ns);
}

static u64 put(set_associative *s, u32 page, u64 now)
{
    u32 block = page / s->block_pages, place = page % s->block_pages, set = block / s->set_blocks;
    s->head.host_units++;
    if (!s->where[page] && place >= s->next_page[block]) {
        s->where[page] = 1;
        s->next_page[block] = place + 1;
        return program(s, place % s->dies, now);
    }
    /* The log block that has this block in order so far, or one with room, or an unused one for its first page. */
    u32 chosen = NONE;
    for (u32 w = 0; w < s->ways; w++) {
        u32 i = set * s->ways + w;
        if (s->in_order[i] == block && s->used[i] == place && place < s->block_pages) {
            chosen = w;
            break;
        }
        if (s->used[i] < s->block_pages && (chosen == NONE || (place == 0 && !s->used[i])))
            chosen = w;
    }
    if (chosen == NONE) {
        merge(s, set, now);
        chosen = 0;
    }
    u32 i = set * s->ways + chosen;
    if (!s->used[i])
        s->in_order[i] = place == 0 ? block : NONE;
    else if (s->in_order[i] != block || s->used[i] != place)
        s->in_order[i] = NONE;
    s->log_valid[set] += s->where[page] <= 1;
    s->where[page] = (u8)(2 + chosen);
    u64 end = program(s, s->used[i]++ % s->dies, now);
    if (s->used[i] == s->block_pages && s->in_order[i] == block)
        take_place(s, set, chosen, block, end);
    return end;
}

static u64 sense(set_associative *s, u32 page, u64 now)
{
    u32 die = page % s->block_pages % s->dies;
    return s->die_free[die] = later(now, s->die_free[die]) + noisy(&s->head, s->read_ns);
}

static u64 serve(drive *d, int kind, u64 first, u32 sectors, u64 now)
{
    set_associative *s = (set_associative *)d;
    u64 t = now + noisy(d, s->overhead_ns), end = t;
    u64 from = first * SECTOR, to = from + sectors * SECTOR;
    u32 page = (u32)(from / s->page), pages_end = (u32)((to + s->page - 1) / s->page);
    if (kind == READ) {
        for (; page < pages_end; page++)
            if (s->where[page])
                end = later(end, sense(s, page, t));
        end = s->link_free = later(end, s->link_free) + (u64)((double)(to - from) * s->byte_ns);
    } else if (kind == WRITE) {
        u64 here = s->link_free = later(t, s->link_free) + (u64)((double)(to - from) * s->byte_ns);
        end = here;
        for (; page < pages_end; page++) {
            u64 start = page * s->page, ready = here;
            if ((from > start || to < start + s->page) && s->where[page])
                ready = later(ready, sense(s, page, t));
            end = later(end, put(s, page, ready));
        }
    } else if (kind == TRIM) {
        for (page = (u32)((from + s->page - 1) / s->page); page < to / s->page; page++) {
            s->log_valid[page / s->block_pages / s->set_blocks] -= s->where[page] > 1;
            s->where[page] = 0;
        }
    }
    return end;
}

static u64 audit(const drive *d)
{
    const set_associative *s = (const set_associative *)d;
    u64 wrong = 0;
    for (u32 set = 0; set < s->sets; set++) {
        u32 logged = 0, written = 0;
        u32 set_pages = s->set_blocks * s->block_pages;
        for (u32 p = set * set_pages; p < (set + 1) * set_pages; p++)
            logged += s->where[p] > 1;
        for (u32 w = 0; w < s->ways; w++)
            written += s->used[set * s->ways + w];
        wrong += (logged != s->log_valid[set]) + (logged > written);
    }
    return wrong;
}

const make SET_ASSOCIATIVE = {"set-associative", sizeof(set_associative), draw, renew, serve, release, audit};
