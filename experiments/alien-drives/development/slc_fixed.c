/* Make "slc-fixed": a consumer TLC drive whose SLC cache has a fixed size.
 *
 * Host writes go through a small RAM buffer to SLC while it has room, then straight to TLC. Nothing is folded under
 * load; after a pause the drive folds at a steady rate. The cache is a ring of slots, TLC a page-mapped log.
 */
#include "../alien.h"
#include "../store.h"

#define DIES_MAX 64
#define SLOTS_MAX 256
#define UNIT (4 * KIB)
/* Units of a plane's page, which is programmed as a whole. */
#define PAD 4

typedef struct {
    drive head;
    store tlc;
    u32 *ring, *ring_slot_of, ring_slots, ring_first, ring_used;
    u32 dies, page_units, buffer_pages;
    double read_slc_ns, read_tlc_ns, program_slc_ns, program_tlc_ns, erase_ns, overhead_ns, byte_ns;
    u64 fold_after, write_out_after;
    double fold_unit_ns;
    int outlives_power;
    u64 die_free[DIES_MAX], ends[SLOTS_MAX], last_program, link_free, last_end;
    u32 at;
    /* Units taken into RAM and not yet programmed, where they go, and when what they need was read. */
    u32 pending, pending_die;
    int pending_slc;
    u64 pending_ready;
} slc_fixed;

static void draw(drive *d)
{
    slc_fixed *s = (slc_fixed *)d;
    rng *r = &d->random;
    /* 2 GiB and more stand for a drive of some hundred: blocks and cache are scaled with it. */
    d->capacity_bytes = PICK(r, 2048, 2304, 2560) * MIB;
    /* SATA and NVMe drives format to 512 B as a rule. Service times scatter by a few per cent. */
    d->noise = rng_between(r, 0.005, 0.05);
    /* One to four packages of up to four dies. */
    s->dies = (u32)PICK(r, 4, 8, 16);
    /* 16 KiB a plane, two or four planes a die. */
    s->page_units = (u32)PICK(r, 8, 16);
    /* Of today's TLC, drawn from the usual range: reads 40 to 90 us, in SLC mode 20 to 35; programs of SLC 120 to 250
     * us, of TLC 400 to 900 us a page (one-shot time by three); erases 3 to 10 ms. */
    s->read_slc_ns = rng_between(r, 20e3, 35e3);
    s->read_tlc_ns = rng_between(r, 45e3, 90e3);
    s->program_slc_ns = rng_between(r, 120e3, 250e3);
    s->program_tlc_ns = rng_between(r, 400e3, 900e3);
    s->erase_ns = rng_between(r, 3e6, 10e6);
    /* SATA at 540 MB/s, or two to four lanes of PCI Express 3 at 1.7 to 3.4 GB/s. */
    s->byte_ns = 1e9 / (double)PICK(r, 540000000, 1700000000, 3400000000);
    s->overhead_ns = rng_between(r, 4e3, 20e3);
    s->buffer_pages = (u32)PICK(r, 8, 16, 32, 64);
    /* Fixed caches take 3 to 10 % of a drive. */
    s->ring_slots = (u32)(rng_between(r, 0.03, 0.10) * (double)(d->capacity_bytes / UNIT)) / s->page_units * s->page_units;
    /* Folding starts after 50 ms to 2 s without requests. */
    s->fold_after = (u64)rng_log(r, 50e6, 2e9);
    s->fold_unit_ns = s->program_tlc_ns / s->page_units / s->dies * rng_between(r, 1.0, 2.0);
    s->write_out_after = (u64)rng_log(r, 1e6, 20e6);
    s->outlives_power = rng_unit(r) < 0.25;
    u64 block_units = (u64)s->dies * s->page_units * PICK(r, 8, 16, 24);
    store_new(&s->tlc, d->capacity_bytes / UNIT, block_units, rng_between(r, 0.07, 0.12));
    s->ring = array(s->ring_slots, sizeof(u32));
    s->ring_slot_of = array(s->tlc.units, sizeof(u32));
    fact(d, "dies", s->dies);
    fact(d, "unit", (double)UNIT);
    fact(d, "page", (double)(s->page_units * UNIT));
    fact(d, "block", (double)(block_units * UNIT));
    fact(d, "buffer", (double)(s->buffer_pages * s->page_units * UNIT));
    fact(d, "drain_rate", s->dies * s->page_units * (double)UNIT / s->program_slc_ns * 1e9);
    fact(d, "drain_rate_tlc", s->dies * s->page_units * (double)UNIT / s->program_tlc_ns * 1e9);
    fact(d, "link_rate", 1e9 / s->byte_ns);
    fact(d, "slc", (double)s->ring_slots * UNIT);
    fact(d, "spare", store_spare(&s->tlc, 4) + (double)s->ring_slots / s->tlc.units);
    fact(d, "outlives_power", s->outlives_power);
    fact(d, "flush_ns", s->overhead_ns);
}

static int renew(drive *d)
{
    slc_fixed *s = (slc_fixed *)d;
    store_renew(&s->tlc);
    memset(s->ring, 0xff, s->ring_slots * sizeof(u32));
    memset(s->ring_slot_of, 0xff, s->tlc.units * sizeof(u32));
    s->ring_first = s->ring_used = s->pending = 0;
    s->last_end = s->last_program = d->now;
    return 1;
}

static void release(drive *d)
{
    slc_fixed *s = (slc_fixed *)d;
    store_free(&s->tlc);
    free(s->ring);
    free(s->ring_slot_of);
}

/* All that is pending goes to its die; the RAM is free again at the end. */
static void program(slc_fixed *s, u64 now)
{
    if (!s->pending)
        return;
    /* The rest of a plane's page stays empty. */
    for (; s->pending % PAD && s->pending_slc && s->ring_used < s->ring_slots; s->pending++)
        s->ring[(s->ring_first + s->ring_used++) % s->ring_slots] = NONE;
    for (; s->pending % PAD && !s->pending_slc; s->pending++)
        store_next(&s->tlc, HOST);
    u64 start = later(later(now, s->pending_ready), s->die_free[s->pending_die]);
    u64 end = start + noisy(&s->head, s->pending_slc ? s->program_slc_ns : s->program_tlc_ns);
    s->die_free[s->pending_die] = end;
    s->ends[s->at] = end;
    s->at = (s->at + 1) % s->buffer_pages;
    s->last_program = later(s->last_program, end);
    s->pending = 0;
    s->pending_ready = 0;
}

/* Empties TLC blocks until some are there; all dies copy. */
static void clean(slc_fixed *s, u64 now, int counts)
{
    while (s->tlc.empties < 3) {
        u32 moved = store_clean(&s->tlc, store_emptiest(&s->tlc));
        s->head.copied_units += moved;
        if (!counts)
            continue;
        double pages = (double)moved / s->page_units / s->dies;
        double cost = pages * (s->read_tlc_ns + s->program_tlc_ns) + s->erase_ns;
        for (u32 i = 0; i < s->dies; i++)
            s->die_free[i] = later(now, s->die_free[i]) + (u64)cost;
        stalled(&s->head, (u64)cost);
    }
}

static void forget_in_ring(slc_fixed *s, u32 unit)
{
    if (s->ring_slot_of[unit] != NONE) {
        s->ring[s->ring_slot_of[unit]] = NONE;
        s->ring_slot_of[unit] = NONE;
    }
}

/* What the pause since the last request gave time for. */
static void pause_ended(slc_fixed *s, u64 now)
{
    if (s->pending && now > s->last_end + s->write_out_after)
        program(s, s->last_end + s->write_out_after);
    if (now <= s->last_end + s->fold_after)
        return;
    double units = (double)(now - s->last_end - s->fold_after) / s->fold_unit_ns;
    for (; units >= 1 && s->ring_used; units -= 1) {
        u32 unit = s->ring[s->ring_first];
        if (unit != NONE) {
            clean(s, now, 0);
            forget_in_ring(s, unit);
            store_put(&s->tlc, unit, MOVED);
            s->head.copied_units++;
        }
        s->ring_first = (s->ring_first + 1) % s->ring_slots;
        s->ring_used--;
    }
}

/* The page of flash where a unit lies: 0 if nowhere; SLC pages have odd numbers. */
static u64 page_of(const slc_fixed *s, u32 unit)
{
    if (s->ring_slot_of[unit] != NONE)
        return 2 * ((u64)s->ring_slot_of[unit] / s->page_units) + 1;
    if (s->tlc.slot_of[unit] != NONE)
        return 2 * ((u64)s->tlc.slot_of[unit] / s->page_units) + 2;
    return 0;
}

static u64 sense(slc_fixed *s, u64 page, u64 now)
{
    u32 die = (u32)((page - 1) / 2 % s->dies);
    u64 start = later(now, s->die_free[die]);
    return s->die_free[die] = start + noisy(&s->head, page & 1 ? s->read_slc_ns : s->read_tlc_ns);
}

static void place(slc_fixed *s, u32 unit, u64 now)
{
    int slc = s->ring_used < s->ring_slots;
    if (s->pending && slc != s->pending_slc)
        program(s, now);
    forget_in_ring(s, unit);
    u32 slot;
    if (slc) {
        slot = (s->ring_first + s->ring_used++) % s->ring_slots;
        store_drop(&s->tlc, unit);
        s->ring[slot] = unit;
        s->ring_slot_of[unit] = slot;
    } else {
        clean(s, now, 1);
        slot = store_put(&s->tlc, unit, HOST);
    }
    s->head.host_units++;
    s->pending++;
    s->pending_slc = slc;
    s->pending_die = slot / s->page_units % s->dies;
    if (slot % s->page_units == s->page_units - 1)
        program(s, now);
}

static u64 carry(slc_fixed *s, u64 now, u64 bytes)
{
    return s->link_free = later(now, s->link_free) + (u64)((double)bytes * s->byte_ns);
}

static u64 serve(drive *d, int kind, u64 first, u32 sectors, u64 now)
{
    slc_fixed *s = (slc_fixed *)d;
    pause_ended(s, now);
    u64 t = now + noisy(d, s->overhead_ns), end = t;
    u64 from = first * SECTOR, to = from + sectors * SECTOR;
    u32 unit = (u32)(from / UNIT), units_end = (u32)((to + UNIT - 1) / UNIT);
    if (kind == READ) {
        u64 last = 0;
        for (; unit < units_end; unit++) {
            u64 page = page_of(s, unit);
            if (page && page != last)
                end = later(end, sense(s, page, t));
            last = page;
        }
        end = carry(s, end, to - from);
    } else if (kind == WRITE) {
        end = carry(s, t, to - from);
        for (; unit < units_end; unit++) {
            u64 start = (u64)unit * UNIT;
            if (!s->pending)
                end = later(end, s->ends[s->at]);
            /* A part of a unit: the rest of it is read before it is programmed. */
            if ((from > start || to < start + UNIT) && page_of(s, unit))
                s->pending_ready = later(s->pending_ready, sense(s, page_of(s, unit), t));
            place(s, unit, end);
        }
    } else if (kind == TRIM) {
        for (unit = (u32)((from + UNIT - 1) / UNIT); unit < to / UNIT; unit++) {
            forget_in_ring(s, unit);
            store_drop(&s->tlc, unit);
        }
    } else if (!s->outlives_power) {
        program(s, t);
        end = later(t, s->last_program);
    }
    return s->last_end = end;
}

static u64 audit(const drive *d)
{
    const slc_fixed *s = (const slc_fixed *)d;
    u64 wrong = store_audit(&s->tlc), held = 0, mapped = 0;
    for (u32 i = 0; i < s->ring_slots; i++)
        held += s->ring[i] != NONE;
    for (u32 u = 0; u < s->tlc.units; u++) {
        mapped += s->ring_slot_of[u] != NONE;
        wrong += s->ring_slot_of[u] != NONE && s->tlc.slot_of[u] != NONE;
    }
    return wrong + (held != mapped) + (s->ring_used > s->ring_slots);
}

const make SLC_FIXED = {"slc-fixed", sizeof(slc_fixed), draw, renew, serve, release, audit};
