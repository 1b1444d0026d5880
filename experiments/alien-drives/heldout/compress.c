/* Make "compress": a controller that compresses and packs what is left, byte by byte.
 *
 * The seam says how much of the data is noise, which does not shrink, and whether blocks repeat. How much of the rest the
 * engine finds is drawn, with some noise for each write of a unit; half of the drives also find blocks that repeat, and only
 * change the map. A unit is a record of so many bytes in a log; valid bytes of each block are counted, and cleaning
 * moves records. So the room to spare depends on the data.
 */
#include "../alien.h"

#define DIES_MAX 32
#define UNIT 4096u

typedef struct {
    drive head;
    u32 units, blocks, block_bytes, dies, page_bytes;
    /* Of each unit: the block that has its record, where in it (pages), and its bytes. */
    u32 *block_of;
    uint16_t *page_of, *size;
    u32 *valid, *filled;
    u8 *state;
    /* Records of a block: units in the order of their writes, a list through them. */
    u32 *first_in, *next, *prior;
    u32 open[2], empties, hand;
    double finds, finds_noise;
    int dedupes;
    double read_ns, program_ns, erase_ns, overhead_ns, byte_ns, engine_byte_ns, buffer_bytes;
    double in_ram, backlog_ns;
    u64 as_of, die_free[DIES_MAX], link_free, programmed, waiting_bytes;
} compress_drive;

static void draw(drive *d)
{
    compress_drive *s = (compress_drive *)d;
    rng *r = &d->random;
    d->capacity_bytes = PICK(r, 2048, 3072) * MIB;
    d->noise = rng_between(r, 0.01, 0.05);
    s->units = (u32)(d->capacity_bytes / UNIT);
    s->dies = (u32)PICK(r, 8, 16);
    s->page_bytes = (u32)(PICK(r, 8, 16, 32) * KIB);
    /* MLC of the time of such controllers and TLC of today's: 40 to 90 us, 300 to 900 us. */
    s->read_ns = rng_between(r, 40e3, 90e3);
    s->program_ns = rng_between(r, 300e3, 900e3);
    s->erase_ns = rng_between(r, 2e6, 8e6);
    s->byte_ns = 1e9 / (double)PICK(r, 270000000, 540000000, 3300000000);
    s->overhead_ns = rng_between(r, 8e3, 25e3);
    /* The engine keeps up with the link, or nearly. */
    s->engine_byte_ns = s->byte_ns * rng_between(r, 0.5, 1.2);
    /* From engines that find half of what could be saved, such as short windows, to those that find nearly all. */
    s->finds = rng_between(r, 0.5, 1.0);
    s->finds_noise = rng_between(r, 0.02, 0.2);
    s->dedupes = rng_unit(r) < 0.5;
    s->buffer_bytes = (double)(PICK(r, 256, 512, 1024, 2048) * KIB);
    s->block_bytes = s->dies * s->page_bytes * (u32)PICK(r, 16, 32);
    s->blocks = (u32)ceil((double)d->capacity_bytes * rng_between(r, 1.07, 1.28) / s->block_bytes) + 6;
    s->block_of = array(s->units, sizeof(u32));
    s->page_of = array(s->units, sizeof(uint16_t));
    s->size = array(s->units, sizeof(uint16_t));
    s->next = array(s->units, sizeof(u32));
    s->prior = array(s->units, sizeof(u32));
    s->valid = array(s->blocks, sizeof(u32));
    s->filled = array(s->blocks, sizeof(u32));
    s->state = array(s->blocks, 1);
    s->first_in = array(s->blocks, sizeof(u32));
    fact(d, "dies", s->dies);
    fact(d, "unit", UNIT);
    fact(d, "page", s->page_bytes);
    fact(d, "block", s->block_bytes);
    fact(d, "finds", s->finds);
    fact(d, "dedupes", s->dedupes);
    fact(d, "buffer", s->buffer_bytes);
    fact(d, "drain_rate", s->dies * s->page_bytes / s->program_ns * 1e9);
    fact(d, "link_rate", 1e9 / fmax(s->byte_ns, s->engine_byte_ns));
    fact(d, "spare", (double)(s->blocks - 4) * s->block_bytes / (double)d->capacity_bytes - 1);
    fact(d, "flush_ns", s->overhead_ns);
}

static int renew(drive *d)
{
    compress_drive *s = (compress_drive *)d;
    memset(s->block_of, 0xff, s->units * sizeof(u32));
    memset(s->first_in, 0xff, s->blocks * sizeof(u32));
    memset(s->valid, 0, s->blocks * sizeof(u32));
    memset(s->filled, 0, s->blocks * sizeof(u32));
    memset(s->state, 0, s->blocks);
    s->open[0] = s->open[1] = NONE;
    s->empties = s->blocks;
    s->in_ram = s->backlog_ns = 0;
    s->waiting_bytes = 0;
    s->as_of = s->programmed = d->now;
    return 1;
}

static void release(drive *d)
{
    compress_drive *s = (compress_drive *)d;
    free(s->block_of);
    free(s->page_of);
    free(s->size);
    free(s->next);
    free(s->prior);
    free(s->valid);
    free(s->filled);
    free(s->state);
    free(s->first_in);
}

static void drop(compress_drive *s, u32 unit)
{
    u32 b = s->block_of[unit];
    if (b == NONE)
        return;
    s->valid[b] -= s->size[unit];
    if (s->prior[unit] == NONE)
        s->first_in[b] = s->next[unit];
    else
        s->next[s->prior[unit]] = s->next[unit];
    if (s->next[unit] != NONE)
        s->prior[s->next[unit]] = s->prior[unit];
    s->block_of[unit] = NONE;
}

/* Appends a record; stream 1 has what cleaning moves. */
static void append(compress_drive *s, u32 unit, u32 bytes, int stream)
{
    u32 b = s->open[stream];
    if (b == NONE || s->filled[b] + bytes > s->block_bytes) {
        if (b != NONE)
            s->state[b] = 2;
        /* The next empty one of a round. */
        while (s->state[s->hand])
            s->hand = (s->hand + 1) % s->blocks;
        b = s->open[stream] = s->hand;
        s->state[b] = 1;
        s->filled[b] = 0;
        s->empties--;
    }
    drop(s, unit);
    s->block_of[unit] = b;
    s->page_of[unit] = (uint16_t)(s->filled[b] / s->page_bytes);
    s->size[unit] = (uint16_t)bytes;
    s->next[unit] = s->first_in[b];
    s->prior[unit] = NONE;
    if (s->next[unit] != NONE)
        s->prior[s->next[unit]] = unit;
    s->first_in[b] = unit;
    s->filled[b] += bytes;
    s->valid[b] += bytes;
}

/* Victims are the emptiest of some that are drawn; how long their moving keeps all dies. */
static double clean(compress_drive *s)
{
    double cost = 0;
    while (s->empties < 4) {
        u32 victim = NONE;
        for (int tries = 0; tries < 64 || victim == NONE; tries++) {
            u32 b = (u32)(rng_next(&s->head.random) % s->blocks);
            if (s->state[b] == 2 && (victim == NONE || s->valid[b] < s->valid[victim]))
                victim = b;
        }
        u32 bytes = s->valid[victim];
        while (s->first_in[victim] != NONE) {
            u32 unit = s->first_in[victim];
            append(s, unit, s->size[unit], 1);
            s->head.copied_units++;
        }
        s->state[victim] = 0;
        s->filled[victim] = 0;
        s->empties++;
        cost += bytes / (double)s->page_bytes / s->dies * (s->read_ns + s->program_ns) + s->erase_ns;
    }
    return cost;
}

static void drain(compress_drive *s, u64 now)
{
    if (now <= s->as_of)
        return;
    double left = fmax(0, s->backlog_ns - (double)(now - s->as_of));
    s->in_ram = left > 0 ? s->in_ram * left / s->backlog_ns : 0;
    s->backlog_ns = left;
    s->as_of = now;
}

static u64 sense(compress_drive *s, u32 unit, u64 now)
{
    u64 *die = &s->die_free[(s->block_of[unit] + s->page_of[unit]) % s->dies];
    return *die = later(now, *die) + noisy(&s->head, s->read_ns);
}

static void put(compress_drive *s, u32 unit, u64 now)
{
    s->head.host_units++;
    if (s->dedupes && s->head.repeats && rng_unit(&s->head.random) < 0.98) {
        /* The map points to what is there; it reads as a record of no bytes of its own. */
        drop(s, unit);
        return;
    }
    double cost = clean(s);
    if (cost > 0)
        stalled(&s->head, (u64)cost);
    double saved = s->finds * (1 - s->head.noise_share);
    double bytes = UNIT * (1 - saved * (1 + s->finds_noise * rng_normal(&s->head.random)));
    u32 kept = (u32)fmin(UNIT, fmax(64, bytes));
    append(s, unit, kept, 0);
    s->in_ram += kept;
    s->backlog_ns += cost + kept / (double)s->page_bytes / s->dies * s->program_ns;
    s->waiting_bytes += kept;
    if (s->waiting_bytes >= s->page_bytes) {
        s->waiting_bytes -= s->page_bytes;
        s->programmed = later(s->programmed, now + (u64)(s->backlog_ns + s->program_ns));
    }
}

static u64 serve(drive *d, int kind, u64 first, u32 sectors, u64 now)
{
    compress_drive *s = (compress_drive *)d;
    drain(s, now);
    u64 t = now + noisy(d, s->overhead_ns), end = t;
    u64 from = first * SECTOR, to = from + sectors * SECTOR;
    u32 unit = (u32)(from / UNIT), units_end = (u32)((to + UNIT - 1) / UNIT);
    u64 transfer = (u64)((double)(to - from) * fmax(s->byte_ns, s->engine_byte_ns));
    if (kind == READ) {
        u64 last = UINT64_MAX;
        for (; unit < units_end; unit++) {
            u64 place = (u64)s->block_of[unit] << 16 | s->page_of[unit];
            if (s->block_of[unit] != NONE && place != last)
                end = later(end, sense(s, unit, t));
            last = place;
        }
        end = s->link_free = later(end, s->link_free) + transfer;
    } else if (kind == WRITE) {
        end = s->link_free = later(t, s->link_free) + transfer;
        for (; unit < units_end; unit++) {
            u64 start = (u64)unit * UNIT;
            if ((from > start || to < start + UNIT) && s->block_of[unit] != NONE)
                end = later(end, sense(s, unit, t));
            put(s, unit, end);
        }
        drain(s, end);
        if (s->in_ram > s->buffer_bytes)
            end = later(end, s->as_of + (u64)((1 - s->buffer_bytes / s->in_ram) * s->backlog_ns));
    } else if (kind == TRIM) {
        for (unit = (u32)((from + UNIT - 1) / UNIT); unit < to / UNIT; unit++)
            drop(s, unit);
    } else {
        if (s->waiting_bytes) {
            s->waiting_bytes = 0;
            s->programmed = later(s->programmed, t + (u64)(s->backlog_ns + s->program_ns));
        }
        end = later(t, s->programmed);
    }
    return end;
}

static u64 audit(const drive *d)
{
    const compress_drive *s = (const compress_drive *)d;
    u64 held = 0, listed = 0, full = 0, empty = 0, wrong = 0;
    for (u32 u = 0; u < s->units; u++)
        held += s->block_of[u] == NONE ? 0 : s->size[u];
    for (u32 b = 0; b < s->blocks; b++) {
        listed += s->valid[b];
        full += s->state[b] != 0;
        empty += s->state[b] == 0;
        wrong += s->valid[b] > s->filled[b] || s->filled[b] > s->block_bytes;
    }
    return wrong + (held != listed) + (empty != s->empties);
}

const make COMPRESS = {"compress", sizeof(compress_drive), draw, renew, serve, release, audit};
