/* Make "slc-dynamic": a TLC drive whose SLC cache is whatever is free, a third of it.
 *
 * Where units lie is kept for each (die; the number of its write, if to SLC), but not in which block: what cleaning costs
 * follows from counts. TLC slots are valid, stale or free, SLC units take three of them, and victims hold what a
 * mean-field says of a drive that is so full, less so the more of the writes are in order. SLC is folded in the order in
 * which it was written, in pauses, and unit by unit where the cache is full.
 */
#include "../alien.h"

#define DIES_MAX 32
#define PAGES_MAX 128
#define UNIT (4 * KIB)
#define NOWHERE 0xff
#define CHUNK 1024

typedef struct {
    drive head;
    u32 units, dies, page_units, buffer_pages, block_units, at;
    /* Of each unit: its die, and the number of its write to SLC, or NONE. */
    u8 *die_of;
    u32 *number;
    /* SLC by chunks of writes: how many units of each are valid. Those below `folded` are TLC. */
    u32 *chunk_valid, chunks, next_number, folded;
    double fold_credit;
    /* In TLC slots: all, valid, stale. */
    double slots, valid, stale, reserve;
    double read_slc_ns, read_tlc_ns, program_slc_ns, program_tlc_ns, erase_ns, overhead_ns, byte_ns, fold_unit_ns;
    /* Share of what was written lately that did not follow what came before it. */
    double disorder;
    u64 fold_after, link_free, last_end, next_sector, written, ends[PAGES_MAX], die_free[DIES_MAX], last_program;
    u32 pending, pending_die;
    int pending_slc;
    u64 pending_ready;
} slc_dynamic;

static void draw(drive *d)
{
    slc_dynamic *s = (slc_dynamic *)d;
    rng *r = &d->random;
    d->capacity_bytes = PICK(r, 2048, 3072, 4096) * MIB;
    d->noise = rng_between(r, 0.005, 0.05);
    s->units = (u32)(d->capacity_bytes / UNIT);
    s->dies = (u32)PICK(r, 4, 8, 16, 32);
    s->page_units = (u32)PICK(r, 8, 16);
    /* TLC of today, from the usual range: see slc_fixed.c; the drives with a whole free area as cache are NVMe. */
    s->read_slc_ns = rng_between(r, 20e3, 30e3);
    s->read_tlc_ns = rng_between(r, 40e3, 80e3);
    s->program_slc_ns = rng_between(r, 120e3, 220e3);
    s->program_tlc_ns = rng_between(r, 350e3, 800e3);
    s->erase_ns = rng_between(r, 3e6, 10e6);
    s->byte_ns = 1e9 / (double)PICK(r, 1700000000, 3400000000, 6600000000);
    s->overhead_ns = rng_between(r, 3e3, 10e3);
    s->buffer_pages = (u32)PICK(r, 8, 16, 32, 64, 128);
    double spare = s->units * rng_between(r, 0.07, 0.15);
    u32 rows = (u32)PICK(r, 8, 16, 32);
    /* The blocks kept empty are to be a part of the spare space, as in drives of full size. */
    while (rows > 1 && 12.0 * s->dies * s->page_units * rows > spare)
        rows /= 2;
    s->block_units = s->dies * s->page_units * rows;
    s->slots = ceil((s->units + spare) / s->block_units) * s->block_units;
    s->reserve = 3.0 * s->block_units;
    s->fold_after = (u64)rng_log(r, 100e6, 3e9);
    s->fold_unit_ns = s->program_tlc_ns / s->page_units / s->dies * rng_between(r, 1, 3);
    s->die_of = array(s->units, 1);
    s->number = array(s->units, sizeof(u32));
    s->chunks = (u32)(s->slots / CHUNK) + 2;
    s->chunk_valid = array(s->chunks, sizeof(u32));
    fact(d, "dies", s->dies);
    fact(d, "unit", (double)UNIT);
    fact(d, "page", (double)(s->page_units * UNIT));
    fact(d, "block", (double)(s->block_units * UNIT));
    fact(d, "buffer", (double)(s->buffer_pages * s->page_units * UNIT));
    fact(d, "drain_rate", s->dies * s->page_units * (double)UNIT / s->program_slc_ns * 1e9);
    fact(d, "drain_rate_tlc", s->dies * s->page_units * (double)UNIT / s->program_tlc_ns * 1e9);
    fact(d, "link_rate", 1e9 / s->byte_ns);
    fact(d, "spare", (s->slots - s->reserve) / s->units - 1);
    fact(d, "flush_ns", s->overhead_ns);
}

static int renew(drive *d)
{
    slc_dynamic *s = (slc_dynamic *)d;
    memset(s->die_of, NOWHERE, s->units);
    memset(s->number, 0xff, s->units * sizeof(u32));
    memset(s->chunk_valid, 0, s->chunks * sizeof(u32));
    s->next_number = s->folded = 0;
    s->valid = s->stale = s->disorder = s->fold_credit = 0;
    s->pending = 0;
    s->last_end = s->last_program = d->now;
    return 1;
}

static void release(drive *d)
{
    slc_dynamic *s = (slc_dynamic *)d;
    free(s->die_of);
    free(s->number);
    free(s->chunk_valid);
}

/* Units that SLC holds, valid or not. */
static u32 taken(const slc_dynamic *s)
{
    return s->next_number - s->folded;
}

static double free_slots(const slc_dynamic *s)
{
    return s->slots - s->valid - s->stale - 3.0 * taken(s);
}

/* What a victim still holds: the root of (v - 1) / ln v = occupancy, for uniform writes and victims in turn. */
static double victim_share(double occupancy)
{
    double low = 1e-6, high = 0.9999;
    for (int i = 0; i < 30; i++) {
        double v = (low + high) / 2;
        if ((v - 1) / log(v) < occupancy)
            low = v;
        else
            high = v;
    }
    return low;
}

/* Makes room in lumps of a block of victims; what the host waits for. */
static void clean(slc_dynamic *s, u64 now)
{
    while (free_slots(s) < s->reserve) {
        double share = s->disorder * victim_share(s->valid / (s->valid + s->stale));
        /* A victim can't have more stale slots than there are. */
        double won = fmin((1 - share) * s->block_units, s->stale);
        if (won < 1)
            break;
        s->stale -= won;
        double moved = s->block_units - won;
        s->head.copied_units += (u64)moved;
        double cost = moved / s->page_units / s->dies * (s->read_tlc_ns + s->program_tlc_ns) + s->erase_ns;
        for (u32 i = 0; i < s->dies; i++)
            s->die_free[i] = later(now, s->die_free[i]) + (u64)cost;
        stalled(&s->head, (u64)cost);
    }
}

/* Folds so many units of SLC, in chunks: what is valid goes to TLC. */
static void fold(slc_dynamic *s, double units)
{
    for (s->fold_credit += units; s->fold_credit >= CHUNK && taken(s) >= CHUNK; s->fold_credit -= CHUNK) {
        u32 *held = &s->chunk_valid[s->folded / CHUNK % s->chunks];
        s->valid += *held;
        s->head.copied_units += *held;
        *held = 0;
        s->folded += CHUNK;
    }
    s->fold_credit = fmin(s->fold_credit, CHUNK);
}

static int in_slc(const slc_dynamic *s, u32 unit)
{
    return s->number[unit] != NONE && s->number[unit] >= s->folded;
}

static void forget(slc_dynamic *s, u32 unit)
{
    if (s->die_of[unit] == NOWHERE)
        return;
    if (in_slc(s, unit)) {
        s->chunk_valid[s->number[unit] / CHUNK % s->chunks]--;
    } else {
        s->valid -= 1;
        s->stale += 1;
    }
    s->die_of[unit] = NOWHERE;
}

static void program(slc_dynamic *s, u64 now)
{
    if (!s->pending)
        return;
    u64 start = later(later(now, s->pending_ready), s->die_free[s->pending_die]);
    double cost = s->pending_slc ? s->program_slc_ns : s->program_tlc_ns;
    s->die_free[s->pending_die] = start + noisy(&s->head, cost);
    s->ends[s->at] = s->die_free[s->pending_die];
    s->at = (s->at + 1) % s->buffer_pages;
    s->last_program = later(s->last_program, s->die_free[s->pending_die]);
    s->pending = 0;
    s->pending_ready = 0;
}

static u64 sense(slc_dynamic *s, u32 unit, u64 now)
{
    u64 *die = &s->die_free[s->die_of[unit]];
    return *die = later(now, *die) + noisy(&s->head, in_slc(s, unit) ? s->read_slc_ns : s->read_tlc_ns);
}

static void put(slc_dynamic *s, u32 unit, u64 now)
{
    int slc = free_slots(s) >= s->reserve + 2.0 * s->block_units;
    if (s->pending && slc != s->pending_slc)
        program(s, now);
    forget(s, unit);
    if (!slc) {
        /* The cache gives way by as much as comes in. */
        if (taken(s) >= CHUNK) {
            fold(s, 1);
            s->die_free[s->written / s->page_units % s->dies] += (u64)(s->program_tlc_ns / s->page_units);
        }
        clean(s, now);
    }
    u32 die = (u32)(s->written / s->page_units % s->dies);
    s->die_of[unit] = (u8)die;
    s->number[unit] = slc ? s->next_number : NONE;
    if (slc)
        s->chunk_valid[s->next_number++ / CHUNK % s->chunks]++;
    else
        s->valid += 1;
    s->pending++;
    s->pending_die = die;
    s->pending_slc = slc;
    s->head.host_units++;
    if (++s->written % s->page_units == 0)
        program(s, now);
}

static u64 serve(drive *d, int kind, u64 first, u32 sectors, u64 now)
{
    slc_dynamic *s = (slc_dynamic *)d;
    if (s->pending && now > s->last_end + 5 * MS)
        program(s, s->last_end + 5 * MS);
    if (now > s->last_end + s->fold_after)
        fold(s, (double)(now - s->last_end - s->fold_after) / s->fold_unit_ns);
    u64 t = now + noisy(d, s->overhead_ns), end = t;
    u64 from = first * SECTOR, to = from + sectors * SECTOR;
    u32 unit = (u32)(from / UNIT), units_end = (u32)((to + UNIT - 1) / UNIT);
    if (kind == READ) {
        u8 last = NOWHERE;
        u32 run = 0;
        for (; unit < units_end; unit++) {
            /* Units that follow each other on a die share a page. */
            run = s->die_of[unit] == last ? run + 1 : 0;
            last = s->die_of[unit];
            if (last != NOWHERE && run % s->page_units == 0)
                end = later(end, sense(s, unit, t));
        }
        end = s->link_free = later(end, s->link_free) + (u64)((double)(to - from) * s->byte_ns);
    } else if (kind == WRITE) {
        s->disorder += ((first != s->next_sector) - s->disorder) * fmin(1, (double)(to - from) / (16.0 * MIB));
        s->next_sector = first + sectors;
        end = s->link_free = later(t, s->link_free) + (u64)((double)(to - from) * s->byte_ns);
        for (; unit < units_end; unit++) {
            u64 start = (u64)unit * UNIT;
            if (!s->pending)
                end = later(end, s->ends[s->at]);
            if ((from > start || to < start + UNIT) && s->die_of[unit] != NOWHERE)
                s->pending_ready = later(s->pending_ready, sense(s, unit, t));
            put(s, unit, end);
        }
    } else if (kind == TRIM) {
        for (unit = (u32)((from + UNIT - 1) / UNIT); unit < to / UNIT; unit++)
            forget(s, unit);
    } else {
        program(s, t);
        end = later(t, s->last_program);
    }
    return s->last_end = end;
}

static u64 audit(const drive *d)
{
    const slc_dynamic *s = (const slc_dynamic *)d;
    u64 mapped = 0, cached = 0, counted = 0;
    for (u32 u = 0; u < s->units; u++) {
        mapped += s->die_of[u] != NOWHERE;
        cached += s->die_of[u] != NOWHERE && in_slc(s, u);
    }
    for (u32 i = 0; i < s->chunks; i++)
        counted += s->chunk_valid[i];
    return (u64)(cached != counted) + (u64)((double)mapped != s->valid + (double)counted) + (u64)(counted > taken(s)) +
           (u64)(free_slots(s) < 0) + (u64)(s->stale < 0);
}

const make SLC_DYNAMIC = {"slc-dynamic", sizeof(slc_dynamic), draw, renew, serve, release, audit};
