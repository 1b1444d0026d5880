/* The calls that Python makes: a closed loop of `depth` requests over any make. */
#define _POSIX_C_SOURCE 200809L
#include "alien.h"
#include <time.h>

extern const make *const MAKES[];
extern const int MAKES_COUNT;

int alien_makes(void);
const char *alien_make_name(int index);
drive *alien_new(int index, u64 seed);
void alien_free(drive *d);
u64 alien_capacity(const drive *d);
u32 alien_block(const drive *d);
u64 alien_now(const drive *d);
void alien_idle(drive *d, u64 ns);
void alien_carry(drive *d, double noise_share, int repeats);
int alien_purge(drive *d);
u64 alien_audit(const drive *d);
int alien_facts(const drive *d);
const char *alien_fact_name(const drive *d, int index);
double alien_fact_value(const drive *d, int index);
void alien_counters(const drive *d, u64 counters[4]);
u64 alien_play(drive *d, const u8 *kinds, const u64 *first, const u32 *sectors, u64 count, u64 depth, double seconds,
               u64 *submitted, u64 *ended);

/* Requests between two looks at the clock on the wall. */
#define LOOK 4096

int alien_makes(void)
{
    return MAKES_COUNT;
}

const char *alien_make_name(int index)
{
    return MAKES[index]->name;
}

drive *alien_new(int index, u64 seed)
{
    drive *d = array(1, MAKES[index]->bytes);
    d->make = MAKES[index];
    /* Neighbouring seeds get streams that have nothing to do with each other, and so do makes, whatever their order. */
    d->random.state = mix(seed);
    for (const char *c = d->make->name; *c; c++)
        d->random.state = mix(d->random.state + (u8)*c);
    d->block_bytes = 512;
    d->noise_share = 1;
    d->make->draw(d);
    d->make->renew(d);
    return d;
}

void alien_free(drive *d)
{
    d->make->release(d);
    free(d);
}

u64 alien_capacity(const drive *d)
{
    return d->capacity_bytes;
}

u32 alien_block(const drive *d)
{
    return d->block_bytes;
}

u64 alien_now(const drive *d)
{
    return d->now - d->epoch;
}

void alien_idle(drive *d, u64 ns)
{
    d->now += ns;
}

void alien_carry(drive *d, double noise_share, int repeats)
{
    d->noise_share = noise_share;
    d->repeats = repeats;
}

int alien_purge(drive *d)
{
    d->epoch = d->now;
    return d->make->renew(d);
}

u64 alien_audit(const drive *d)
{
    return d->make->audit(d);
}

int alien_facts(const drive *d)
{
    return d->facts;
}

const char *alien_fact_name(const drive *d, int index)
{
    return d->fact_names[index];
}

double alien_fact_value(const drive *d, int index)
{
    return d->fact_values[index];
}

void alien_counters(const drive *d, u64 counters[4])
{
    counters[0] = d->stalls;
    counters[1] = d->stalled_ns;
    counters[2] = d->host_units;
    counters[3] = d->copied_units;
}

static double wall(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A heap of ends, the earliest on top: replaces the top. */
static void sink(u64 *heap, u64 size, u64 end)
{
    u64 at = 0;
    for (;;) {
        u64 child = 2 * at + 1;
        if (child >= size)
            break;
        if (child + 1 < size && heap[child + 1] < heap[child])
            child++;
        if (heap[child] >= end)
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = end;
}

static void rise(u64 *heap, u64 at, u64 end)
{
    while (at && heap[(at - 1) / 2] > end) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = end;
}

/* How many were played: fewer than `count` where `seconds` of the wall's clock (if above 0) are over. */
u64 alien_play(drive *d, const u8 *kinds, const u64 *first, const u32 *sectors, u64 count, u64 depth, double seconds,
               u64 *submitted, u64 *ended)
{
    u64 room = depth < count ? depth : count;
    u64 *heap = array(room, sizeof(u64));
    u64 outstanding = 0, last = d->now, done = 0;
    double until = seconds > 0 ? wall() + seconds : 0;
    for (; done < count; done++) {
        if (until > 0 && done % LOOK == LOOK - 1 && wall() > until)
            break;
        u64 now = outstanding == room ? heap[0] : d->now;
        u64 end = d->make->serve(d, kinds[done], first[done], sectors[done], now);
        if (end <= now)
            end = now + 1;
        if (d->stall_now) {
            d->stalls++;
            d->stalled_ns += d->stall_now;
            d->stall_now = 0;
        }
        submitted[done] = now - d->epoch;
        ended[done] = end - d->epoch;
        if (outstanding == room)
            sink(heap, room, end);
        else
            rise(heap, outstanding++, end);
        last = later(last, end);
    }
    d->now = last;
    free(heap);
    return done;
}
