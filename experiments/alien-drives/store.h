/* A log of units over blocks, with a map: what page-mapped makes keep their units in.
 *
 * Mapped units are conserved: each has one slot, each block knows how many of its slots are valid, and cleaning costs
 * what its victim still holds. Time is the business of the make.
 */
#ifndef STORE_H
#define STORE_H

#include "alien.h"

#define STREAMS 2

enum stream { HOST, MOVED };
enum state { EMPTY, OPEN, FULL };

typedef struct {
    u32 units, blocks, per_block;
    u32 mapped;
    u32 *slot_of, *unit_at;
    u32 *valid;
    u8 *state;
    /* Empty blocks, taken in the order in which they became empty. */
    u32 *empty, empty_first, empties;
    u32 open[STREAMS], used[STREAMS];
    /* Full blocks by what they hold: a list for each number of valid slots, and a number below which there is none. */
    u32 *first_with, *next, *before, least;
} store;

static inline void store_list(store *s, u32 b)
{
    u32 held = s->valid[b], first = s->first_with[held];
    s->next[b] = first;
    s->before[b] = NONE;
    if (first != NONE)
        s->before[first] = b;
    s->first_with[held] = b;
    if (held < s->least)
        s->least = held;
}

static inline void store_unlist(store *s, u32 b)
{
    if (s->before[b] == NONE)
        s->first_with[s->valid[b]] = s->next[b];
    else
        s->next[s->before[b]] = s->next[b];
    if (s->next[b] != NONE)
        s->before[s->next[b]] = s->before[b];
}

static inline void store_renew(store *s)
{
    memset(s->slot_of, 0xff, s->units * sizeof(u32));
    memset(s->unit_at, 0xff, (size_t)s->blocks * s->per_block * sizeof(u32));
    memset(s->valid, 0, s->blocks * sizeof(u32));
    memset(s->state, EMPTY, s->blocks);
    for (u32 b = 0; b < s->blocks; b++)
        s->empty[b] = b;
    s->empty_first = 0;
    s->empties = s->blocks;
    s->mapped = 0;
    memset(s->first_with, 0xff, (s->per_block + 1) * sizeof(u32));
    s->least = s->per_block;
    for (int i = 0; i < STREAMS; i++) {
        s->open[i] = NONE;
        s->used[i] = 0;
    }
}

/* Room for `units` and a share of spare, in whole blocks. */
static inline void store_new(store *s, u64 units, u64 per_block, double spare)
{
    s->units = (u32)units;
    s->per_block = (u32)per_block;
    s->blocks = (u32)ceil((double)units * (1 + spare) / (double)per_block) + 4;
    s->slot_of = array(s->units, sizeof(u32));
    s->unit_at = array((size_t)s->blocks * s->per_block, sizeof(u32));
    s->valid = array(s->blocks, sizeof(u32));
    s->state = array(s->blocks, 1);
    s->empty = array(s->blocks, sizeof(u32));
    s->first_with = array(s->per_block + 1, sizeof(u32));
    s->next = array(s->blocks, sizeof(u32));
    s->before = array(s->blocks, sizeof(u32));
}

static inline void store_free(store *s)
{
    free(s->slot_of);
    free(s->unit_at);
    free(s->valid);
    free(s->state);
    free(s->empty);
    free(s->first_with);
    free(s->next);
    free(s->before);
}

static inline void store_drop(store *s, u32 unit)
{
    u32 slot = s->slot_of[unit];
    if (slot == NONE)
        return;
    s->slot_of[unit] = NONE;
    s->unit_at[slot] = NONE;
    u32 b = slot / s->per_block;
    int listed = s->state[b] == FULL;
    if (listed)
        store_unlist(s, b);
    s->valid[b]--;
    if (listed)
        store_list(s, b);
    s->mapped--;
}

/* The next slot of a stream. The caller keeps some blocks empty. */
static inline u32 store_next(store *s, int stream)
{
    if (s->open[stream] == NONE || s->used[stream] == s->per_block) {
        if (s->open[stream] != NONE) {
            s->state[s->open[stream]] = FULL;
            store_list(s, s->open[stream]);
        }
        if (!s->empties)
            abort();
        u32 b = s->empty[s->empty_first];
        s->empty_first = (s->empty_first + 1) % s->blocks;
        s->empties--;
        s->state[b] = OPEN;
        s->open[stream] = b;
        s->used[stream] = 0;
    }
    return s->open[stream] * s->per_block + s->used[stream]++;
}

/* Writes a unit; its slot. */
static inline u32 store_put(store *s, u32 unit, int stream)
{
    u32 slot = store_next(s, stream);
    store_drop(s, unit);
    s->slot_of[unit] = slot;
    s->unit_at[slot] = unit;
    s->valid[slot / s->per_block]++;
    s->mapped++;
    return slot;
}

/* The full block that holds least, the last of those that came to hold so little; or NONE. */
static inline u32 store_emptiest(store *s)
{
    for (; s->least <= s->per_block; s->least++)
        if (s->first_with[s->least] != NONE)
            return s->first_with[s->least];
    s->least = s->per_block;
    return NONE;
}

/* The emptier of a few full blocks drawn at random. */
static inline u32 store_sampled(store *s, rng *r, int draws)
{
    u32 best = NONE;
    for (int i = 0; i < draws; i++) {
        u32 b = (u32)(rng_next(r) % s->blocks);
        if (s->state[b] == FULL && (best == NONE || s->valid[b] < s->valid[best]))
            best = b;
    }
    return best == NONE ? store_emptiest(s) : best;
}

/* Moves what a block holds and empties it; units moved. */
static inline u32 store_clean(store *s, u32 victim)
{
    u32 moved = 0;
    for (u32 at = victim * s->per_block; s->valid[victim]; at++)
        if (s->unit_at[at] != NONE) {
            store_put(s, s->unit_at[at], MOVED);
            moved++;
        }
    store_unlist(s, victim);
    s->state[victim] = EMPTY;
    s->empty[(s->empty_first + s->empties) % s->blocks] = victim;
    s->empties++;
    return moved;
}

/* Share of the capacity that can be written beyond it before `kept` blocks are empty. */
static inline double store_spare(const store *s, u32 kept)
{
    return ((double)(s->blocks - kept) * s->per_block - s->units) / s->units;
}

static inline u64 store_audit(const store *s)
{
    u64 wrong = 0, held = 0, full_or_open = 0, mapped = 0;
    for (u32 u = 0; u < s->units; u++)
        if (s->slot_of[u] != NONE) {
            mapped++;
            wrong += s->unit_at[s->slot_of[u]] != u;
        }
    for (u32 b = 0; b < s->blocks; b++) {
        held += s->valid[b];
        full_or_open += s->state[b] != EMPTY;
        wrong += s->state[b] == EMPTY && s->valid[b];
    }
    return wrong + (held != mapped) + (mapped != s->mapped) + (full_or_open + s->empties != s->blocks);
}

#endif
