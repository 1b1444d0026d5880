/* Make "map-cache": a drive without DRAM, whose map does not fit in the RAM it has.
 *
 * The map is cut into segments of 4 MiB of addresses. Some of them are cached; a request for another first reads the
 * segment from flash, and may push out a changed one, which is programmed. Programs are a flow: what was taken into RAM
 * drains at the rate of all dies. A flush programs the page that is not full yet into a journal beside the log. Cleaning
 * is paid in small parts by the writes that follow, so nothing ever stalls.
 */
#include "../alien.h"
#include "../store.h"

#define DIES_MAX 64
#define UNIT (4 * KIB)

typedef struct {
    drive head;
    store log;
    u32 dies, page_units, segment_units, segments, cached, cached_max;
    /* Least recently used segments: a list through arrays, the latest first; index `segments` is its head. */
    u32 *next, *before;
    u8 *here, *changed;
    double read_ns, program_ns, unit_ns, overhead_ns, byte_ns, suspend_ns, buffer_units;
    /* Host units in RAM; the work before them, in programs of a unit; copies that are owed, and owed by each write. */
    double in_ram, backlog, debt, pace;
    u64 as_of, die_free[DIES_MAX], link_free;
    /* Units of the page that is not full, when the last one came, and when all full pages are programmed. */
    u32 waiting;
    u64 waits_since, write_out_after, programmed;
} map_cache;

static void draw(drive *d)
{
    map_cache *s = (map_cache *)d;
    rng *r = &d->random;
    d->capacity_bytes = PICK(r, 2048, 2560, 3072) * MIB;
    d->noise = rng_between(r, 0.01, 0.06);
    /* Small controllers: one to four channels with a few dies each. */
    s->dies = (u32)PICK(r, 2, 4, 8);
    s->page_units = (u32)PICK(r, 4, 8);
    /* TLC and QLC: reads 50 to 110 us, programs 500 us to 2 ms. */
    s->read_ns = rng_between(r, 50e3, 110e3);
    s->program_ns = rng_log(r, 500e3, 2e6);
    /* PCI Express 3, two lanes or four; or SATA. */
    s->byte_ns = 1e9 / (double)PICK(r, 540000000, 1700000000, 3400000000);
    s->overhead_ns = rng_between(r, 5e3, 15e3);
    s->suspend_ns = rng_between(r, 10e3, 50e3);
    s->buffer_units = (double)PICK(r, 256, 512, 1024, 4096) * KIB / UNIT;
    s->unit_ns = s->program_ns / s->page_units / s->dies;
    s->write_out_after = (u64)rng_log(r, 1e6, 20e6);
    s->segment_units = 1024;
    store_new(&s->log, d->capacity_bytes / UNIT, (u64)s->dies * s->page_units * PICK(r, 32, 48, 64),
              rng_between(r, 0.07, 0.15));
    s->segments = s->log.units / s->segment_units;
    /* Host memory buffers and on-chip RAM hold the map of a twentieth to a third of a drive. */
    s->cached_max = (u32)(rng_log(r, 0.05, 0.33) * s->segments);
    s->next = array(s->segments + 1, sizeof(u32));
    s->before = array(s->segments + 1, sizeof(u32));
    s->here = array(s->segments, 1);
    s->changed = array(s->segments, 1);
    fact(d, "dies", s->dies);
    fact(d, "unit", (double)UNIT);
    fact(d, "page", (double)(s->page_units * UNIT));
    fact(d, "block", (double)s->log.per_block * UNIT);
    fact(d, "buffer", s->buffer_units * UNIT);
    fact(d, "drain_rate", UNIT / s->unit_ns * 1e9);
    fact(d, "link_rate", 1e9 / s->byte_ns);
    fact(d, "cached_share", (double)s->cached_max / s->segments);
    fact(d, "spare", store_spare(&s->log, 4));
    fact(d, "flush_ns", s->overhead_ns);
}

static int renew(drive *d)
{
    map_cache *s = (map_cache *)d;
    store_renew(&s->log);
    memset(s->here, 0, s->segments);
    memset(s->changed, 0, s->segments);
    s->next[s->segments] = s->before[s->segments] = s->segments;
    s->cached = 0;
    s->in_ram = s->backlog = s->debt = s->pace = 0;
    s->waiting = 0;
    s->as_of = s->programmed = d->now;
    return 1;
}

static void release(drive *d)
{
    map_cache *s = (map_cache *)d;
    store_free(&s->log);
    free(s->next);
    free(s->before);
    free(s->here);
    free(s->changed);
}

/* What waits for the rest of its page is programmed. */
static void write_out(map_cache *s, u64 now)
{
    s->waiting = 0;
    s->programmed = later(s->programmed, now + (u64)(s->backlog * s->unit_ns + s->program_ns));
}

static void drain(map_cache *s, u64 now)
{
    if (s->waiting && now > s->waits_since + s->write_out_after)
        write_out(s, s->waits_since + s->write_out_after);
    if (now <= s->as_of)
        return;
    double left = fmax(0, s->backlog - (double)(now - s->as_of) / s->unit_ns);
    s->in_ram = left > 0 ? s->in_ram * left / s->backlog : 0;
    s->backlog = left;
    s->as_of = now;
}

static u64 sense(map_cache *s, u32 die, u64 now)
{
    /* A program that is under way is suspended. */
    double wait = s->backlog > 0 ? s->suspend_ns * rng_unit(&s->head.random) : 0;
    u64 start = later(now, s->die_free[die]) + (u64)wait;
    return s->die_free[die] = start + noisy(&s->head, s->read_ns);
}

static void unlink_segment(map_cache *s, u32 i)
{
    s->next[s->before[i]] = s->next[i];
    s->before[s->next[i]] = s->before[i];
}

/* When the map of a segment is in RAM. */
static u64 look_up(map_cache *s, u32 segment, int changes, u64 now)
{
    u64 ready = now;
    if (s->here[segment]) {
        unlink_segment(s, segment);
    } else {
        if (s->cached == s->cached_max) {
            u32 oldest = s->before[s->segments];
            unlink_segment(s, oldest);
            s->here[oldest] = 0;
            /* A page of the map, which shares the way to flash with data. */
            if (s->changed[oldest])
                s->backlog += 1;
        } else {
            s->cached++;
        }
        s->here[segment] = 1;
        s->changed[segment] = 0;
        ready = sense(s, (u32)(mix(segment) % s->dies), now);
    }
    s->changed[segment] |= (u8)changes;
    s->next[segment] = s->next[s->segments];
    s->before[segment] = s->segments;
    s->before[s->next[segment]] = segment;
    s->next[s->segments] = segment;
    return ready;
}

/* A unit goes to flash, with the part of the cleaning that it pays. */
static void put(map_cache *s, u32 unit, u64 now)
{
    if (s->log.empties < 4) {
        u32 moved = store_clean(&s->log, store_sampled(&s->log, &s->head.random, 24));
        s->head.copied_units += moved;
        s->debt += moved;
        /* Paid before the room it made is used up. */
        s->pace = s->debt / fmax(1, 0.9 * (s->log.per_block - moved));
    }
    store_put(&s->log, unit, HOST);
    double pays = fmin(s->pace, s->debt);
    s->debt -= pays;
    s->in_ram += 1;
    s->backlog += 1 + pays * (1 + s->read_ns / s->program_ns);
    s->head.host_units++;
    s->waits_since = now;
    if (++s->waiting == s->page_units)
        write_out(s, now);
}

static u64 carry(map_cache *s, u64 now, u64 bytes)
{
    return s->link_free = later(now, s->link_free) + (u64)((double)bytes * s->byte_ns);
}

static u64 serve(drive *d, int kind, u64 first, u32 sectors, u64 now)
{
    map_cache *s = (map_cache *)d;
    drain(s, now);
    u64 t = now + noisy(d, s->overhead_ns), end = t;
    u64 from = first * SECTOR, to = from + sectors * SECTOR;
    u32 unit = (u32)(from / UNIT), units_end = (u32)((to + UNIT - 1) / UNIT);
    u32 segment = NONE, page = NONE;
    u64 found = t;
    if (kind == READ) {
        for (; unit < units_end; unit++) {
            if (unit / s->segment_units != segment) {
                segment = unit / s->segment_units;
                end = later(end, found = look_up(s, segment, 0, t));
            }
            u32 slot = s->log.slot_of[unit];
            if (slot != NONE && slot / s->page_units != page) {
                page = slot / s->page_units;
                end = later(end, sense(s, page % s->dies, found));
            }
        }
        end = carry(s, end, to - from);
    } else if (kind == WRITE) {
        end = carry(s, t, to - from);
        for (; unit < units_end; unit++) {
            if (unit / s->segment_units != segment) {
                segment = unit / s->segment_units;
                end = later(end, look_up(s, segment, 1, t));
            }
            u64 start = (u64)unit * UNIT;
            u32 slot = s->log.slot_of[unit];
            if ((from > start || to < start + UNIT) && slot != NONE)
                end = later(end, sense(s, slot / s->page_units % s->dies, t));
            put(s, unit, end);
        }
        drain(s, end);
        if (s->in_ram > s->buffer_units)
            end = later(end, s->as_of + (u64)((1 - s->buffer_units / s->in_ram) * s->backlog * s->unit_ns));
    } else if (kind == TRIM) {
        for (unit = (u32)((from + UNIT - 1) / UNIT); unit < to / UNIT; unit++)
            store_drop(&s->log, unit);
    } else {
        if (s->waiting)
            write_out(s, t);
        end = later(t, s->programmed);
    }
    return end;
}

static u64 audit(const drive *d)
{
    const map_cache *s = (const map_cache *)d;
    u64 wrong = store_audit(&s->log), here = 0, listed = 0;
    for (u32 i = 0; i < s->segments; i++)
        here += s->here[i];
    for (u32 i = s->next[s->segments]; i != s->segments && listed <= here; i = s->next[i])
        listed++;
    return wrong + (here != s->cached) + (listed != here) + (s->cached > s->cached_max) + (s->debt < 0);
}

const make MAP_CACHE = {"map-cache", sizeof(map_cache), draw, renew, serve, release, audit};
