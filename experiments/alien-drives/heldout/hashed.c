/* Make "hashed": pages go to dies by a hash of their address, and each die has a log of its own.
 *
 * Neighbours lie on any dies, so there is no stripe, and each die cleans when its own log is short. A small cache keeps
 * pages that were read. The RAM for writes has slots that are free once their page is programmed.
 */
#include "../alien.h"
#include "../store.h"

#define DIES_MAX 32
#define SLOTS_MAX 4096
#define CACHE_MAX 16384

typedef struct {
    drive head;
    u64 page, salt;
    u32 dies, pages, slots, at, cached;
    store die[DIES_MAX];
    /* Of each page: its die, and its number there. */
    u8 *die_of;
    u32 *index;
    /* Pages read last, direct-mapped by address, page + 1. */
    u32 *cache;
    double read_ns, program_ns, erase_ns, overhead_ns, byte_ns;
    u64 die_free[DIES_MAX], ends[SLOTS_MAX], last_program, link_free;
} hashed;

static void draw(drive *d)
{
    hashed *s = (hashed *)d;
    rng *r = &d->random;
    d->capacity_bytes = PICK(r, 2048, 3072) * MIB;
    d->noise = rng_between(r, 0.005, 0.06);
    s->salt = rng_next(r);
    s->page = PICK(r, 4, 8, 16) * KIB;
    s->pages = (u32)(d->capacity_bytes / s->page);
    /* Some hundred times as many in a drive of some TB. */
    s->dies = (u32)PICK(r, 4, 6, 8, 12, 16);
    /* MLC and TLC: reads 40 to 80 us, programs 250 to 900 us. */
    s->read_ns = rng_between(r, 40e3, 80e3);
    s->program_ns = rng_between(r, 250e3, 900e3);
    s->erase_ns = rng_between(r, 2e6, 6e6);
    s->byte_ns = 1e9 / (double)PICK(r, 540000000, 1700000000, 3300000000);
    s->overhead_ns = rng_between(r, 5e3, 20e3);
    s->slots = (u32)(PICK(r, 512, 1024, 2048, 4096) * KIB / s->page);
    /* Half of them keep what was read: 1 to 16 MiB of RAM beside the map. */
    s->cached = rng_unit(r) < 0.5 ? 0 : (u32)earlier(PICK(r, 1, 2, 4, 8) * MIB / s->page, CACHE_MAX);
    s->die_of = array(s->pages, 1);
    s->index = array(s->pages, sizeof(u32));
    s->cache = array(s->cached, sizeof(u32));
    u32 held[DIES_MAX] = {0};
    for (u32 p = 0; p < s->pages; p++) {
        u32 die = (u32)(mix(s->salt + p) % s->dies);
        s->die_of[p] = (u8)die;
        s->index[p] = held[die]++;
    }
    u64 per_block = PICK(r, 32, 64, 128);
    double spare = rng_between(r, 0.1, 0.25);
    for (u32 i = 0; i < s->dies; i++)
        store_new(&s->die[i], held[i], per_block, spare);
    fact(d, "dies", s->dies);
    fact(d, "unit", (double)s->page);
    fact(d, "page", (double)s->page);
    fact(d, "block", (double)(per_block * s->page));
    fact(d, "buffer", (double)(s->slots * s->page));
    fact(d, "drain_rate", s->dies * (double)s->page / s->program_ns * 1e9);
    fact(d, "link_rate", 1e9 / s->byte_ns);
    fact(d, "read_cache", (double)(s->cached * s->page));
    fact(d, "spare", store_spare(&s->die[0], 3));
    fact(d, "flush_ns", s->overhead_ns);
}

static int renew(drive *d)
{
    hashed *s = (hashed *)d;
    for (u32 i = 0; i < s->dies; i++)
        store_renew(&s->die[i]);
    memset(s->cache, 0, s->cached * sizeof(u32));
    return 1;
}

static void release(drive *d)
{
    hashed *s = (hashed *)d;
    for (u32 i = 0; i < s->dies; i++)
        store_free(&s->die[i]);
    free(s->die_of);
    free(s->index);
    free(s->cache);
}

/* Whether the cache has a page; it has it from now on. */
static int remembers(hashed *s, u32 page)
{
    if (!s->cached)
        return 0;
    u32 *slot = &s->cache[page % s->cached];
    int here = *slot == page + 1;
    *slot = page + 1;
    return here;
}

static u64 sense(hashed *s, u32 page, u64 now)
{
    u32 die = s->die_of[page];
    return s->die_free[die] = later(now, s->die_free[die]) + noisy(&s->head, s->read_ns);
}

static void put(hashed *s, u32 page, u64 ready)
{
    u32 i = s->die_of[page];
    store *die = &s->die[i];
    u64 start = later(ready, s->die_free[i]);
    u64 cost = noisy(&s->head, s->program_ns), waits = 0;
    while (die->empties < 3) {
        u32 moved = store_clean(die, store_emptiest(die));
        s->head.copied_units += moved;
        waits += (u64)(moved * (s->read_ns + s->program_ns) + s->erase_ns);
    }
    if (waits)
        stalled(&s->head, waits);
    store_put(die, s->index[page], HOST);
    s->head.host_units++;
    s->die_free[i] = start + waits + cost;
    s->ends[s->at] = s->die_free[i];
    s->at = (s->at + 1) % s->slots;
    s->last_program = later(s->last_program, s->die_free[i]);
    if (s->cached && s->cache[page % s->cached] == page + 1)
        s->cache[page % s->cached] = 0;
}

static u64 serve(drive *d, int kind, u64 first, u32 sectors, u64 now)
{
    hashed *s = (hashed *)d;
    u64 t = now + noisy(d, s->overhead_ns), end = t;
    u64 from = first * SECTOR, to = from + sectors * SECTOR;
    u32 page = (u32)(from / s->page), pages_end = (u32)((to + s->page - 1) / s->page);
    if (kind == READ) {
        for (; page < pages_end; page++)
            if (s->die[s->die_of[page]].slot_of[s->index[page]] != NONE && !remembers(s, page))
                end = later(end, sense(s, page, t));
        end = s->link_free = later(end, s->link_free) + (u64)((double)(to - from) * s->byte_ns);
    } else if (kind == WRITE) {
        end = s->link_free = later(t, s->link_free) + (u64)((double)(to - from) * s->byte_ns);
        for (; page < pages_end; page++) {
            u64 start = page * s->page, ready = end;
            end = later(end, s->ends[s->at]);
            if ((from > start || to < start + s->page) && s->die[s->die_of[page]].slot_of[s->index[page]] != NONE)
                ready = later(ready, sense(s, page, t));
            put(s, page, ready);
        }
    } else if (kind == TRIM) {
        for (page = (u32)((from + s->page - 1) / s->page); page < to / s->page; page++)
            store_drop(&s->die[s->die_of[page]], s->index[page]);
    } else {
        end = later(t, s->last_program);
    }
    return end;
}

static u64 audit(const drive *d)
{
    const hashed *s = (const hashed *)d;
    u64 wrong = 0;
    for (u32 i = 0; i < s->dies; i++)
        wrong += store_audit(&s->die[i]);
    return wrong;
}

const make HASHED = {"hashed", sizeof(hashed), draw, renew, serve, release, audit};
