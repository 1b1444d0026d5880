/* What every make of drive shares: the calls behind the seam, random numbers, and facts about what was drawn.
 *
 * A make gives each request the time of its end from its own state. There are no events: requests come in the order of
 * their submission, and a make keeps the times at which its parts are free again.
 *
 *   alien_play (seam.c): closed loop  ->  make.serve(kind, first sector, sectors, now)  ->  end of the request
 *
 * Times are nanoseconds, places and lengths sectors of 512 B.
 */
#ifndef ALIEN_H
#define ALIEN_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;

#define KIB ((u64)1 << 10)
#define MIB ((u64)1 << 20)
#define GIB ((u64)1 << 30)
#define US ((u64)1000)
#define MS ((u64)1000000)
#define SECTOR ((u64)512)
#define NONE UINT32_MAX
#define FACTS_MAX 48

enum kind { READ, WRITE, TRIM, FLUSH };

/* Random numbers: splitmix64, one stream for each drive. */
typedef struct {
    u64 state;
} rng;

static inline u64 rng_next(rng *r)
{
    u64 z = (r->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* From 0 to below 1. */
static inline double rng_unit(rng *r)
{
    return (double)(rng_next(r) >> 11) * 0x1p-53;
}

static inline double rng_between(rng *r, double low, double high)
{
    return low + (high - low) * rng_unit(r);
}

/* Even on a logarithmic scale. */
static inline double rng_log(rng *r, double low, double high)
{
    return low * exp(rng_unit(r) * log(high / low));
}

/* One of a list. */
static inline u64 rng_pick(rng *r, const u64 *list, u64 count)
{
    return list[rng_next(r) % count];
}
#define PICK(r, ...) \
    rng_pick((r), (const u64[]){__VA_ARGS__}, sizeof((u64[]){__VA_ARGS__}) / sizeof(u64))

/* About normal, mean 0 and deviation 1: a sum of four even ones, so that nothing goes beyond 3.5. */
static inline double rng_normal(rng *r)
{
    double sum = 0;
    for (int i = 0; i < 4; i++)
        sum += rng_unit(r);
    return (sum - 2) * 1.7320508;
}

/* Exponential, mean 1. */
static inline double rng_exponential(rng *r)
{
    return -log(1 - rng_unit(r));
}

static inline u64 mix(u64 x)
{
    rng r = {x};
    return rng_next(&r);
}

static inline u64 later(u64 a, u64 b)
{
    return a > b ? a : b;
}

static inline u64 earlier(u64 a, u64 b)
{
    return a < b ? a : b;
}

struct make;

/* The head of each make's own structure. */
typedef struct drive {
    const struct make *make;
    u64 capacity_bytes;
    u32 block_bytes;
    rng random;
    /* Relative deviation of a service time. */
    double noise;
    u64 now;
    /* What writes carry: the share of their bytes that no compression shrinks, and whether blocks come again. */
    double noise_share;
    int repeats;
    /* Where the clock that is shown begins: a purge restarts that one. */
    u64 epoch;
    /* Writes that waited for cleaning, and how long; what the truth of cleaning is judged by. */
    u64 stalls, stalled_ns, stall_now;
    /* Units that the host wrote and that were copied, where a make has units. */
    u64 host_units, copied_units;
    int facts;
    const char *fact_names[FACTS_MAX];
    double fact_values[FACTS_MAX];
} drive;

typedef struct make {
    const char *name;
    size_t bytes;
    /* Draws the parameters from `random`, and takes memory; once. */
    void (*draw)(drive *);
    /* Makes it new; 0 where a device of this kind takes no discard. */
    int (*renew)(drive *);
    u64 (*serve)(drive *, int kind, u64 first, u32 sectors, u64 now);
    void (*release)(drive *);
    /* How many laws of conservation are broken. */
    u64 (*audit)(const drive *);
} make;

static inline void fact(drive *d, const char *name, double value)
{
    if (d->facts == FACTS_MAX)
        abort();
    d->fact_names[d->facts] = name;
    d->fact_values[d->facts++] = value;
}

/* A time with this drive's noise; never less than a third of it. */
static inline u64 noisy(drive *d, double ns)
{
    double factor = 1 + d->noise * rng_normal(&d->random);
    return (u64)(ns * (factor < 0.33 ? 0.33 : factor));
}

/* The request that is served waits for cleaning; all that one waits for is one stall. */
static inline void stalled(drive *d, u64 ns)
{
    d->stall_now += ns;
}

static inline u64 nothing_to_audit(const drive *d)
{
    (void)d;
    return 0;
}

static inline void *array(size_t count, size_t bytes)
{
    void *memory = calloc(count ? count : 1, bytes);
    if (!memory)
        abort();
    return memory;
}

#endif
