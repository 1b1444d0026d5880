/* Make "phase-change": a drive of phase-change memory, written in place.
 *
 * Media units of 256 B are spread over channels; reads and writes cost nearly the same, whatever was done before. There is
 * no map, nothing to clean, and no RAM for data: a write is on the medium when it ends.
 */
#include "../alien.h"

#define WAYS_MAX 64
#define MEDIA 256

typedef struct {
    drive head;
    u32 channels, ways;
    double read_ns, write_ns, overhead_ns, byte_ns, moved_share;
    u64 way_free[WAYS_MAX], link_free;
} phase_change;

static void draw(drive *d)
{
    phase_change *s = (phase_change *)d;
    rng *r = &d->random;
    d->capacity_bytes = PICK(r, 2048, 4096, 8192) * MIB;
    d->noise = rng_between(r, 0.01, 0.06);
    /* Published for such drives: seven channels and some chips at each, 7 to 12 us for 4 KiB, 2 to 7 GB/s. */
    s->channels = (u32)PICK(r, 5, 7, 14);
    s->ways = s->channels * (u32)PICK(r, 1, 2, 4);
    s->read_ns = rng_between(r, 150, 500);
    s->write_ns = s->read_ns * rng_between(r, 1.0, 2.0);
    s->overhead_ns = rng_between(r, 4e3, 8e3);
    s->byte_ns = 1e9 / (double)PICK(r, 2400000000, 3300000000, 6600000000);
    /* Wear leveling moves a piece now and then. */
    s->moved_share = rng_log(r, 1e-5, 1e-3);
    fact(d, "channels", s->channels);
    fact(d, "ways", s->ways);
    fact(d, "unit", MEDIA);
    fact(d, "flush_ns", s->overhead_ns);
}

static int renew(drive *d)
{
    (void)d;
    return 1;
}

static void release(drive *d)
{
    (void)d;
}

static u64 serve(drive *d, int kind, u64 first, u32 sectors, u64 now)
{
    phase_change *s = (phase_change *)d;
    u64 t = now + noisy(d, s->overhead_ns), end = t, bytes = sectors * SECTOR;
    if (kind == FLUSH || kind == TRIM)
        return t;
    /* 4 KiB lie on one way, its sixteen media units one after the other; the next 4 KiB on the next. */
    double cost = kind == READ ? s->read_ns : s->write_ns;
    for (u64 at = first * SECTOR; at < first * SECTOR + bytes;) {
        u64 until = earlier((at / (4 * KIB) + 1) * 4 * KIB, first * SECTOR + bytes);
        u64 *way = &s->way_free[at / (4 * KIB) % s->ways];
        double units = ceil((double)(until - at) / MEDIA);
        *way = later(t, *way) + noisy(d, units * cost);
        end = later(end, *way);
        at = until;
    }
    if (kind == WRITE && rng_unit(&d->random) < s->moved_share)
        end += 50 * US;
    return s->link_free = later(end, s->link_free) + (u64)((double)bytes * s->byte_ns);
}

const make PHASE_CHANGE = {"phase-change", sizeof(phase_change), draw, renew, serve, release, nothing_to_audit};
