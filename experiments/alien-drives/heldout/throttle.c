/* Make "throttle": a drive that gets hot, and that pauses for itself every so often.
 *
 * Heat rises with each byte and falls with time; above a limit everything runs at a fraction until it has cooled. Besides,
 * the drive keeps house by its clock: every so many milliseconds it answers nobody for a while. Cleaning is spread over
 * writes. So what recurs here recurs in time, not in bytes.
 */
#include "../alien.h"
#include "../store.h"

#define DIES_MAX 32
#define UNIT (4 * KIB)

typedef struct {
    drive head;
    store log;
    u32 dies, page_units;
    double read_ns, program_ns, unit_ns, overhead_ns, byte_ns, buffer_units;
    /* Heat: per byte, lost per second as a share, where throttling begins and ends, and how slow it is then. */
    double heat, heat_a_byte, cooling_s, hot, cooled, slow;
    int throttled, protected;
    double pause_every_ns, pause_ns;
    double in_ram, backlog, debt, pace;
    u64 as_of, die_free[DIES_MAX], link_free, heat_as_of;
    u32 waiting;
    u64 waits_since, programmed;
} throttle;

static void draw(drive *d)
{
    throttle *s = (throttle *)d;
    rng *r = &d->random;
    d->capacity_bytes = PICK(r, 2048, 3072, 4096) * MIB;
    d->noise = rng_between(r, 0.01, 0.05);
    s->dies = (u32)PICK(r, 8, 16, 32);
    s->page_units = (u32)PICK(r, 4, 8);
    /* TLC of NVMe drives. */
    s->read_ns = rng_between(r, 45e3, 80e3);
    s->program_ns = rng_between(r, 350e3, 800e3);
    s->unit_ns = s->program_ns / s->page_units / s->dies;
    s->byte_ns = 1e9 / (double)PICK(r, 3300000000, 6600000000);
    s->overhead_ns = rng_between(r, 4e3, 12e3);
    s->buffer_units = (double)PICK(r, 512, 1024, 4096, 8192) * KIB / UNIT;
    /* A controller without a heat sink is hot after some seconds to a minute at full speed (shorter here, as the drive is
     * smaller), and runs at a half to an eighth then. Heat is counted in bytes at full speed. */
    s->heat_a_byte = 1;
    s->cooling_s = rng_between(r, 2, 10);
    s->hot = rng_log(r, 0.5, 4) * (double)GIB;
    s->cooled = s->hot * rng_between(r, 0.5, 0.8);
    s->slow = rng_between(r, 2, 8);
    /* Refresh, statistics, wear leveling: every 50 ms to 2 s, for 0.5 to 10 ms. */
    s->pause_every_ns = rng_log(r, 50e6, 2e9);
    s->pause_ns = rng_log(r, 0.5e6, 10e6);
    s->protected = rng_unit(r) < 0.4;
    u64 per_block = (u64)s->dies * s->page_units * PICK(r, 16, 32);
    store_new(&s->log, d->capacity_bytes / UNIT, per_block, rng_between(r, 0.07, 0.25));
    fact(d, "dies", s->dies);
    fact(d, "unit", (double)UNIT);
    fact(d, "page", (double)(s->page_units * UNIT));
    fact(d, "block", (double)(per_block * UNIT));
    fact(d, "buffer", s->buffer_units * UNIT);
    fact(d, "drain_rate", UNIT / s->unit_ns * 1e9);
    fact(d, "link_rate", 1e9 / s->byte_ns);
    fact(d, "outlives_power", s->protected);
    fact(d, "pause_every_ns", s->pause_every_ns);
    fact(d, "pause_ns", s->pause_ns);
    fact(d, "slow", s->slow);
    fact(d, "spare", store_spare(&s->log, 4));
    fact(d, "flush_ns", s->overhead_ns);
}

static int renew(drive *d)
{
    throttle *s = (throttle *)d;
    store_renew(&s->log);
    /* A discard does not cool. */
    s->in_ram = s->backlog = s->debt = s->pace = 0;
    s->waiting = 0;
    s->as_of = s->programmed = d->now;
    return 1;
}

static void release(drive *d)
{
    store_free(&((throttle *)d)->log);
}

/* Exponential cooling since the last look, then the heat of some bytes; how slow the drive is. */
static double warmed(throttle *s, u64 now, double bytes)
{
    if (now > s->heat_as_of) {
        s->heat *= exp(-(double)(now - s->heat_as_of) * 1e-9 / s->cooling_s);
        s->heat_as_of = now;
    }
    s->heat += bytes * s->heat_a_byte;
    if (s->heat > s->hot)
        s->throttled = 1;
    else if (s->heat < s->cooled)
        s->throttled = 0;
    return s->throttled ? s->slow : 1;
}

/* When a command that comes now is looked at: after the pause, if there is one. */
static u64 awake(const throttle *s, u64 now)
{
    double phase = fmod((double)now, s->pause_every_ns);
    return phase < s->pause_ns ? now + (u64)(s->pause_ns - phase) : now;
}

static void write_out(throttle *s, u64 now)
{
    s->waiting = 0;
    s->programmed = later(s->programmed, now + (u64)(s->backlog * s->unit_ns + s->program_ns));
}

static void drain(throttle *s, u64 now)
{
    if (s->waiting && now > s->waits_since + 3 * MS)
        write_out(s, s->waits_since + 3 * MS);
    if (now <= s->as_of)
        return;
    double left = fmax(0, s->backlog - (double)(now - s->as_of) / s->unit_ns);
    s->in_ram = left > 0 ? s->in_ram * left / s->backlog : 0;
    s->backlog = left;
    s->as_of = now;
}

static u64 sense(throttle *s, u32 slot, double slow, u64 now)
{
    u32 die = slot / s->page_units % s->dies;
    return s->die_free[die] = later(now, s->die_free[die]) + noisy(&s->head, s->read_ns * slow);
}

static void put(throttle *s, u32 unit, double slow, u64 now)
{
    if (s->log.empties < 4) {
        u32 moved = store_clean(&s->log, store_sampled(&s->log, &s->head.random, 32));
        s->head.copied_units += moved;
        s->debt += moved;
        s->pace = s->debt / fmax(1, 0.9 * (s->log.per_block - moved));
    }
    store_put(&s->log, unit, HOST);
    double pays = fmin(s->pace, s->debt);
    s->debt -= pays;
    s->in_ram += 1;
    s->backlog += slow * (1 + pays * (1 + s->read_ns / s->program_ns));
    s->head.host_units++;
    s->waits_since = now;
    if (++s->waiting == s->page_units)
        write_out(s, now);
}

static u64 serve(drive *d, int kind, u64 first, u32 sectors, u64 now)
{
    throttle *s = (throttle *)d;
    u64 from = first * SECTOR, to = from + sectors * SECTOR;
    double slow = warmed(s, now, kind == READ || kind == WRITE ? (double)(to - from) : 0);
    u64 t = awake(s, now);
    drain(s, t);
    t += noisy(d, s->overhead_ns * slow);
    u64 end = t;
    u32 unit = (u32)(from / UNIT), units_end = (u32)((to + UNIT - 1) / UNIT);
    u64 transfer = (u64)((double)(to - from) * s->byte_ns * slow);
    if (kind == READ) {
        u32 page = NONE;
        for (; unit < units_end; unit++) {
            u32 slot = s->log.slot_of[unit];
            if (slot != NONE && slot / s->page_units != page)
                end = later(end, sense(s, slot, slow, t));
            page = slot == NONE ? NONE : slot / s->page_units;
        }
        end = s->link_free = later(end, s->link_free) + transfer;
    } else if (kind == WRITE) {
        end = s->link_free = later(t, s->link_free) + transfer;
        for (; unit < units_end; unit++) {
            u64 start = (u64)unit * UNIT;
            u32 slot = s->log.slot_of[unit];
            if ((from > start || to < start + UNIT) && slot != NONE)
                end = later(end, sense(s, slot, slow, t));
            put(s, unit, slow, end);
        }
        drain(s, end);
        if (s->in_ram > s->buffer_units)
            end = later(end, s->as_of + (u64)((1 - s->buffer_units / s->in_ram) * s->backlog * s->unit_ns));
    } else if (kind == TRIM) {
        for (unit = (u32)((from + UNIT - 1) / UNIT); unit < to / UNIT; unit++)
            store_drop(&s->log, unit);
    } else if (!s->protected) {
        if (s->waiting)
            write_out(s, t);
        end = later(t, s->programmed);
    }
    return end;
}

static u64 audit(const drive *d)
{
    const throttle *s = (const throttle *)d;
    return store_audit(&s->log) + (s->heat < 0) + (s->debt < 0);
}

const make THROTTLE = {"throttle", sizeof(throttle), draw, renew, serve, release, audit};
