/* Make "coarse": a large server drive of QLC with mapping units of 16 to 64 KiB and programs of another size.
 *
 * The RAM outlives a loss of power, so a flush is free. Writing a part of a unit reads the unit first. A die programs
 * two or three flash pages of all its planes at once: 96 to 384 KiB, no multiple of the unit.
 */
#include "../alien.h"
#include "../store.h"

#define DIES_MAX 64
#define SLOTS_MAX 512

typedef struct {
    drive head;
    store log;
    u64 unit, program;
    u32 dies, buffer_programs, at;
    double read_ns, program_ns, erase_ns, overhead_ns, byte_ns, suspend_ns;
    int reads_first;
    /* Reads wait for reads of the same die, and otherwise suspend what it does. */
    u64 die_free[DIES_MAX], read_free[DIES_MAX], ends[SLOTS_MAX], filled, link_free;
} coarse;

static void draw(drive *d)
{
    coarse *s = (coarse *)d;
    rng *r = &d->random;
    d->capacity_bytes = PICK(r, 3072, 4096) * MIB;
    d->block_bytes = (u32)PICK(r, 512, 4096);
    d->noise = rng_between(r, 0.005, 0.04);
    /* Indirection units of large QLC drives. */
    s->unit = PICK(r, 16, 32, 64) * KIB;
    /* Two to four planes of 16 KiB, by two (paired pages) or three or four bits a cell. */
    s->program = PICK(r, 96, 128, 192, 256, 384) * KIB;
    s->dies = (u32)PICK(r, 8, 16, 32);
    /* QLC: reads of 60 to 140 us, whole word lines in 1.5 to 6 ms; erases of 5 to 15 ms. */
    s->read_ns = rng_between(r, 60e3, 140e3);
    s->program_ns = rng_log(r, 1.5e6, 6e6);
    s->erase_ns = rng_between(r, 5e6, 15e6);
    s->suspend_ns = rng_between(r, 20e3, 100e3);
    /* PCI Express 3 or 4, four lanes. */
    s->byte_ns = 1e9 / (double)PICK(r, 3300000000, 6600000000);
    s->overhead_ns = rng_between(r, 4e3, 12e3);
    /* Capacitors carry some MiB to some tens of MiB. */
    u64 buffer = PICK(r, 4, 8, 16, 32) * MIB;
    s->buffer_programs = (u32)earlier(buffer / s->program, SLOTS_MAX);
    /* Whether the host waits for the read before a part of a unit is written. */
    s->reads_first = rng_unit(r) < 0.5;
    u64 row = s->dies * s->program;
    u64 per_block = row * PICK(r, 1, 2, 4) / s->unit;
    store_new(&s->log, d->capacity_bytes / s->unit, per_block, rng_between(r, 0.07, 0.28));
    fact(d, "dies", s->dies);
    fact(d, "unit", (double)s->unit);
    fact(d, "page", (double)s->program);
    fact(d, "block", (double)(per_block * s->unit));
    fact(d, "buffer", (double)(s->buffer_programs * s->program));
    fact(d, "drain_rate", s->dies * (double)s->program / s->program_ns * 1e9);
    fact(d, "link_rate", 1e9 / s->byte_ns);
    fact(d, "reads_first", s->reads_first);
    fact(d, "spare", store_spare(&s->log, 3));
    fact(d, "flush_ns", s->overhead_ns);
}

static int renew(drive *d)
{
    coarse *s = (coarse *)d;
    store_renew(&s->log);
    s->filled = 0;
    return 1;
}

static void release(drive *d)
{
    store_free(&((coarse *)d)->log);
}

static u32 die_of(const coarse *s, u32 slot)
{
    return (u32)(slot * s->unit / s->program % s->dies);
}

/* Reads suspend programs, so they wait no longer than that takes. */
static u64 sense(coarse *s, u32 slot, u64 now)
{
    u32 die = die_of(s, slot);
    u64 wait = s->die_free[die] > now ? (u64)s->suspend_ns : 0;
    return s->read_free[die] = later(s->read_free[die], now + wait) + noisy(&s->head, s->read_ns);
}

static void clean(coarse *s, u64 now)
{
    while (s->log.empties < 3) {
        u32 moved = store_clean(&s->log, store_emptiest(&s->log));
        s->head.copied_units += moved;
        double programs = (double)(moved * s->unit) / (double)s->program / s->dies;
        double cost = programs * (s->read_ns + s->program_ns) + s->erase_ns;
        for (u32 i = 0; i < s->dies; i++)
            s->die_free[i] = later(now, s->die_free[i]) + (u64)cost;
        stalled(&s->head, (u64)cost);
    }
}

/* A unit into RAM at `now`; when there was room for it. */
static u64 put(coarse *s, u32 unit, u64 now)
{
    now = later(now, s->ends[s->at]);
    clean(s, now);
    u32 slot = store_put(&s->log, unit, HOST);
    s->head.host_units++;
    s->filled += s->unit;
    if (s->filled >= s->program) {
        s->filled -= s->program;
        u32 die = die_of(s, slot);
        s->die_free[die] = later(now, s->die_free[die]) + noisy(&s->head, s->program_ns);
        s->ends[s->at] = s->die_free[die];
        s->at = (s->at + 1) % s->buffer_programs;
    }
    return now;
}

static u64 serve(drive *d, int kind, u64 first, u32 sectors, u64 now)
{
    coarse *s = (coarse *)d;
    u64 t = now + noisy(d, s->overhead_ns), end = t;
    u64 from = first * SECTOR, to = from + sectors * SECTOR;
    u32 unit = (u32)(from / s->unit), units_end = (u32)((to + s->unit - 1) / s->unit);
    if (kind == READ) {
        u64 last = UINT64_MAX;
        for (; unit < units_end; unit++) {
            u32 slot = s->log.slot_of[unit];
            if (slot == NONE)
                continue;
            /* Units of a die's program are sensed together. */
            if (slot * s->unit / s->program != last)
                end = later(end, sense(s, slot, t));
            last = slot * s->unit / s->program;
        }
        end = s->link_free = later(end, s->link_free) + (u64)((double)(to - from) * s->byte_ns);
    } else if (kind == WRITE) {
        end = s->link_free = later(t, s->link_free) + (u64)((double)(to - from) * s->byte_ns);
        for (; unit < units_end; unit++) {
            u64 start = unit * s->unit;
            u32 slot = s->log.slot_of[unit];
            u64 ready = end;
            if ((from > start || to < start + s->unit) && slot != NONE) {
                ready = sense(s, slot, t);
                if (s->reads_first)
                    end = later(end, ready);
            }
            end = later(end, put(s, unit, end));
        }
    } else if (kind == TRIM) {
        for (unit = (u32)((from + s->unit - 1) / s->unit); unit < to / s->unit; unit++)
            store_drop(&s->log, unit);
    }
    return end;
}

static u64 audit(const drive *d)
{
    return store_audit(&((const coarse *)d)->log);
}

const make COARSE = {"coarse", sizeof(coarse), draw, renew, serve, release, audit};
