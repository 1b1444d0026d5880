/* Make "ram-disk": memory behind a block device, with nothing else: a copy, and the way to it.
 *
 * The way is a call in the kernel (about a microsecond) or a virtual machine's queue (tens of them). Nothing is kept, and
 * nothing waits but for the one or few threads that copy.
 */
#include "../alien.h"

#define THREADS_MAX 8

typedef struct {
    drive head;
    u32 threads;
    double overhead_ns, byte_ns, late_share, late_ns;
    u64 thread_free[THREADS_MAX];
} ram_disk;

static void draw(drive *d)
{
    ram_disk *s = (ram_disk *)d;
    rng *r = &d->random;
    d->capacity_bytes = PICK(r, 2048, 4096) * MIB;
    d->block_bytes = (u32)PICK(r, 512, 4096);
    d->noise = rng_between(r, 0.02, 0.15);
    s->threads = (u32)PICK(r, 1, 2, 4, 8);
    /* A block device in RAM takes 1 to 4 us; with a virtual machine's exit and a host's thread 20 to 120 us. */
    s->overhead_ns = rng_unit(r) < 0.5 ? rng_log(r, 1e3, 4e3) : rng_log(r, 20e3, 120e3);
    /* A thread copies 2 to 10 GB/s. */
    s->byte_ns = 1e9 / rng_log(r, 2e9, 10e9);
    /* A processor is taken away now and then. */
    s->late_share = rng_log(r, 1e-4, 1e-2);
    s->late_ns = rng_log(r, 20e3, 500e3);
    fact(d, "threads", s->threads);
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
    ram_disk *s = (ram_disk *)d;
    u64 *earliest = &s->thread_free[0];
    for (u32 i = 1; i < s->threads; i++)
        if (s->thread_free[i] < *earliest)
            earliest = &s->thread_free[i];
    (void)first;
    double bytes = kind == READ || kind == WRITE ? (double)(sectors * SECTOR) : 0;
    u64 cost = noisy(d, s->overhead_ns + bytes * s->byte_ns);
    if (rng_unit(&d->random) < s->late_share)
        cost += (u64)(s->late_ns * rng_exponential(&d->random));
    return *earliest = later(now, *earliest) + cost;
}

const make RAM_DISK = {"ram-disk", sizeof(ram_disk), draw, renew, serve, release, nothing_to_audit};
