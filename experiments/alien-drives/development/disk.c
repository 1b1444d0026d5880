/* Make "disk": a rotating disk.
 *
 * Tracks lie in zones, shorter ones inside. A request costs a seek by a square-root curve, the wait for the sector by
 * the phase of the rotation, and the transfer. Reads keep a few segments of what followed them; writes go to a cache
 * that is written out in the elevator's order, as a backlog of arms' ways, and a flush waits for it.
 */
#include "../alien.h"

#define SEGMENTS_MAX 32
#define PHYSICAL (4 * KIB)

typedef struct {
    drive head;
    u64 tracks, zones, track_outer, track_inner, rotation_ns;
    double settle_ns, full_seek_ns, overhead_ns, byte_ns, write_out_ns;
    u64 segment_bytes, cache_bytes;
    u32 segments, at;
    u64 from[SEGMENTS_MAX], to[SEGMENTS_MAX];
    int caches_writes;
    u64 track_now, free_at, link_free, last_write_end, dirty_bytes, written_out_at;
} disk;

static void draw(drive *d)
{
    disk *s = (disk *)d;
    rng *r = &d->random;
    /* The outer edge of a larger disk, as a partition would be. */
    d->capacity_bytes = PICK(r, 4, 6, 8) * GIB;
    d->noise = 0.01;
    /* 5,400, 7,200 and 10,000 turns a minute. */
    s->rotation_ns = PICK(r, 11111111, 8333333, 6000000);
    /* 1 to 2 MiB a track outside; inner tracks have 45 to 60 % of it. */
    s->track_outer = (u64)rng_between(r, 1.0, 2.0) * MIB + PICK(r, 0, 64, 128, 256) * KIB;
    s->track_inner = (u64)((double)s->track_outer * rng_between(r, 0.45, 0.6)) / PHYSICAL * PHYSICAL;
    s->zones = PICK(r, 12, 16, 24);
    /* Head settling 0.5 to 1.5 ms; a way over all of the tracks here 8 to 18 ms. */
    s->settle_ns = rng_between(r, 0.5e6, 1.5e6);
    s->full_seek_ns = rng_between(r, 8e6, 18e6);
    s->byte_ns = 1e9 / 540e6;
    s->overhead_ns = rng_between(r, 30e3, 150e3);
    /* 16 to 256 MiB of RAM in segments of some hundred KiB to 2 MiB for reads; some of it for writes. */
    s->segments = (u32)PICK(r, 8, 16, 32);
    s->segment_bytes = PICK(r, 256, 512, 1024, 2048) * KIB;
    s->cache_bytes = PICK(r, 4, 8, 16, 32) * MIB;
    /* Disks of arrays run with their write cache off. */
    s->caches_writes = rng_unit(r) < 0.7;
    u64 mean = (s->track_outer + s->track_inner) / 2;
    s->tracks = d->capacity_bytes / mean + 1;
    fact(d, "dies", 1);
    fact(d, "unit", (double)PHYSICAL);
    fact(d, "buffer", s->caches_writes ? (double)s->cache_bytes : 0);
    fact(d, "read_segment", (double)s->segment_bytes);
    fact(d, "read_cache", (double)(s->segment_bytes * s->segments));
    fact(d, "flush_ns", s->overhead_ns);
}

/* A disk that can't discard: it keeps what it has. */
static int renew(drive *d)
{
    disk *s = (disk *)d;
    for (u32 i = 0; i < s->segments; i++)
        s->from[i] = s->to[i] = 0;
    return 0;
}

static void release(drive *d)
{
    (void)d;
}

/* The track of a place; its zones are equally long in bytes. */
static u64 track_of(const disk *s, u64 byte, u64 *track_bytes)
{
    u64 zone_bytes = s->head.capacity_bytes / s->zones + 1;
    u64 zone = byte / zone_bytes, before = 0;
    for (u64 z = 0; z <= zone; z++) {
        *track_bytes = s->track_outer - (s->track_outer - s->track_inner) * z / (s->zones - 1);
        if (z < zone)
            before += zone_bytes / *track_bytes + 1;
    }
    return before + byte % zone_bytes / *track_bytes;
}

static u64 seek(const disk *s, u64 track)
{
    u64 way = track > s->track_now ? track - s->track_now : s->track_now - track;
    if (!way)
        return 0;
    return (u64)(s->settle_ns + (s->full_seek_ns - s->settle_ns) * sqrt((double)way / (double)s->tracks));
}

/* Arm, rotation and transfer of a piece; when the head has passed it. */
static u64 access(disk *s, u64 byte, u64 bytes, u64 now)
{
    u64 track_bytes, track = track_of(s, byte, &track_bytes);
    u64 t = later(now, s->free_at) + seek(s, track);
    u64 angle = (u64)((double)(byte % track_bytes) / (double)track_bytes * (double)s->rotation_ns);
    u64 phase = t % s->rotation_ns;
    t += angle >= phase ? angle - phase : s->rotation_ns - phase + angle;
    /* Following tracks are skewed by the time of settling, which adds to each. */
    double tracks = (double)bytes / (double)track_bytes;
    t += (u64)(tracks * (double)s->rotation_ns + floor(tracks) * s->settle_ns);
    s->track_now = track + (u64)tracks;
    return s->free_at = t;
}

static int cached(const disk *s, u64 from, u64 to)
{
    for (u32 i = 0; i < s->segments; i++)
        if (s->from[i] <= from && to <= s->to[i])
            return 1;
    return 0;
}

static u64 serve(drive *d, int kind, u64 first, u32 sectors, u64 now)
{
    disk *s = (disk *)d;
    u64 t = now + noisy(d, s->overhead_ns), end = t;
    u64 from = first * SECTOR, to = from + sectors * SECTOR;
    u64 transfer = (u64)((double)(to - from) * s->byte_ns);
    if (kind == READ) {
        if (!cached(s, from, to)) {
            u64 over = access(s, from, to - from, t);
            /* The head stays and reads on until the segment is full. */
            s->from[s->at] = to - from > s->segment_bytes ? to - s->segment_bytes : from;
            s->to[s->at] = earlier(later(to, s->from[s->at] + s->segment_bytes), d->capacity_bytes);
            s->at = (s->at + 1) % s->segments;
            end = over;
        }
        end = s->link_free = later(end, s->link_free) + transfer;
    } else if (kind == WRITE) {
        /* What a write covers is no longer as it was read. */
        for (u32 i = 0; i < s->segments; i++)
            if (s->from[i] < to && from < s->to[i])
                s->from[i] = s->to[i] = 0;
        end = s->link_free = later(t, s->link_free) + transfer;
        u64 parts = (from % PHYSICAL != 0) + (to % PHYSICAL != 0);
        u64 before = later(end, s->free_at);
        u64 over = access(s, from / PHYSICAL * PHYSICAL, to - from, end);
        if (s->caches_writes) {
            /* In the elevator's order, with many to choose from, a write costs about a third of a lone one. */
            over = s->free_at = before + (u64)((double)(over - before) / (s->dirty_bytes > MIB ? 3 : 1));
        }
        /* A part of a physical sector is read, and written a turn later. */
        if (parts)
            over = s->free_at = over + s->rotation_ns;
        if (!s->caches_writes)
            return over;
        /* What is dirty goes out at the pace of the arm. */
        if (end >= s->written_out_at)
            s->dirty_bytes = 0;
        s->dirty_bytes += to - from;
        s->written_out_at = over;
        if (s->dirty_bytes > s->cache_bytes) {
            u64 left = over - end;
            u64 wait = (u64)((double)left * (double)(s->dirty_bytes - s->cache_bytes) / (double)s->dirty_bytes);
            end += wait;
            s->dirty_bytes = s->cache_bytes;
        }
    } else if (kind == FLUSH) {
        end = later(t, s->caches_writes ? s->written_out_at : 0);
    }
    return end;
}

const make DISK = {"disk", sizeof(disk), draw, renew, serve, release, nothing_to_audit};
