/* Make "card": a memory card, stick or eMMC with few open allocation units.
 *
 * An allocation unit (AU) of some MiB is mapped as a whole. A few of them are open, each with a fresh AU that is
 * written in order. A write that goes back, or to an AU that is not open, closes one: pages that were not written anew
 * are copied from the old AU, and the old one is erased. One request at a time; what is smaller than a page is read,
 * changed and written.
 */
#include "../alien.h"

#define OPEN_MAX 16

typedef struct {
    u32 au;
    /* Pages written so far, all below this are in the fresh AU. */
    u32 upto;
    u64 used_at;
} open_au;

typedef struct {
    drive head;
    u64 au_bytes, page_bytes;
    u32 aus, au_pages, opens, planes;
    /* For each page whether it holds data, and for each AU how many do. */
    u8 *holds;
    u32 *held;
    open_au open[OPEN_MAX];
    double read_ns, program_ns, erase_ns, overhead_ns, byte_ns;
    u64 free_at, uses;
} card;

static void draw(drive *d)
{
    card *s = (card *)d;
    rng *r = &d->random;
    d->capacity_bytes = PICK(r, 2048, 3072) * MIB;
    d->noise = rng_between(r, 0.005, 0.05);
    /* The SD specification has AUs of up to 4 MiB for such sizes; sticks and eMMC are alike. */
    s->au_bytes = PICK(r, 1, 2, 4, 8) * MIB;
    /* Two planes of 4 to 16 KiB. */
    s->page_bytes = PICK(r, 8, 16, 32) * KIB;
    /* Class A1 has random writes to some AUs, cheap cards one to three. */
    s->opens = (u32)PICK(r, 1, 2, 3, 5, 8);
    /* One or two dies of TLC behind a small controller: reads 60 to 150 us with its firmware, pages in 400 us to 1.5 ms. */
    s->read_ns = rng_between(r, 60e3, 150e3);
    s->program_ns = rng_log(r, 400e3, 1.5e6);
    s->erase_ns = rng_between(r, 3e6, 10e6);
    s->overhead_ns = rng_between(r, 50e3, 250e3);
    /* UHS-I at 50 to 104 MB/s, eMMC at 200 to 400. */
    s->byte_ns = 1e9 / (double)PICK(r, 50000000, 104000000, 200000000, 400000000);
    s->aus = (u32)(d->capacity_bytes / s->au_bytes);
    s->au_pages = (u32)(s->au_bytes / s->page_bytes);
    s->holds = array((size_t)s->aus * s->au_pages, 1);
    s->held = array(s->aus, sizeof(u32));
    fact(d, "dies", 1);
    fact(d, "unit", (double)s->page_bytes);
    fact(d, "page", (double)s->page_bytes);
    fact(d, "block", (double)s->au_bytes);
    fact(d, "opens", s->opens);
    fact(d, "flush_ns", s->overhead_ns);
}

static int renew(drive *d)
{
    card *s = (card *)d;
    memset(s->holds, 0, (size_t)s->aus * s->au_pages);
    memset(s->held, 0, s->aus * sizeof(u32));
    for (u32 i = 0; i < s->opens; i++)
        s->open[i] = (open_au){NONE, 0, 0};
    return 1;
}

static void release(drive *d)
{
    free(((card *)d)->holds);
    free(((card *)d)->held);
}

static u8 *page_at(card *s, u32 au, u32 page)
{
    return &s->holds[(size_t)au * s->au_pages + page];
}

/* Copies pages of the old AU to the fresh one, up to a page; what it takes. */
static double catch_up(card *s, open_au *o, u32 upto)
{
    double cost = 0;
    for (; o->upto < upto; o->upto++)
        if (*page_at(s, o->au, o->upto)) {
            cost += s->read_ns + s->program_ns;
            s->head.copied_units++;
        }
    return cost;
}

/* The rest is copied, and the old AU erased. */
static double close_au(card *s, open_au *o)
{
    if (o->au == NONE)
        return 0;
    double cost = catch_up(s, o, s->au_pages) + s->erase_ns;
    o->au = NONE;
    stalled(&s->head, (u64)cost);
    return cost;
}

/* The fresh AU for a write at a page, and what it costs to have it. */
static open_au *opened(card *s, u32 au, u32 page, double *cost)
{
    open_au *oldest = &s->open[0];
    for (u32 i = 0; i < s->opens; i++) {
        open_au *o = &s->open[i];
        if (o->au == au && o->upto <= page)
            return o;
        if (o->au == au) {
            /* It goes back: this one has to be closed, whichever is oldest. */
            oldest = o;
            break;
        }
        if (o->used_at < oldest->used_at)
            oldest = o;
    }
    *cost += close_au(s, oldest);
    *oldest = (open_au){au, 0, 0};
    return oldest;
}

static double write_page(card *s, u32 au, u32 page, int whole)
{
    double cost = 0;
    open_au *o = opened(s, au, page, &cost);
    o->used_at = ++s->uses;
    cost += catch_up(s, o, page);
    u8 *holds = page_at(s, au, page);
    if (!whole && *holds)
        cost += s->read_ns;
    s->held[au] += !*holds;
    *holds = 1;
    o->upto = page + 1;
    s->head.host_units++;
    cost += s->program_ns;
    if (o->upto == s->au_pages)
        /* All of it is new: the old one is erased, nothing is copied. */
        cost += close_au(s, o);
    return cost;
}

static u64 serve(drive *d, int kind, u64 first, u32 sectors, u64 now)
{
    card *s = (card *)d;
    double cost = s->overhead_ns;
    u64 from = first * SECTOR, to = from + sectors * SECTOR;
    u64 page = from / s->page_bytes, pages_end = (to + s->page_bytes - 1) / s->page_bytes;
    if (kind == READ) {
        for (; page < pages_end; page++)
            cost += s->holds[page] ? s->read_ns : 0;
        cost += (double)(to - from) * s->byte_ns;
    } else if (kind == WRITE) {
        cost += (double)(to - from) * s->byte_ns;
        for (; page < pages_end; page++) {
            int whole = from <= page * s->page_bytes && to >= (page + 1) * s->page_bytes;
            cost += write_page(s, (u32)(page / s->au_pages), (u32)(page % s->au_pages), whole);
        }
    } else if (kind == TRIM) {
        for (page = (from + s->page_bytes - 1) / s->page_bytes; page < to / s->page_bytes; page++) {
            s->held[page / s->au_pages] -= s->holds[page];
            s->holds[page] = 0;
        }
    }
    return s->free_at = later(now, s->free_at) + noisy(d, cost);
}

static u64 audit(const drive *d)
{
    const card *s = (const card *)d;
    u64 wrong = 0;
    for (u32 au = 0; au < s->aus; au++) {
        u32 held = 0;
        for (u32 p = 0; p < s->au_pages; p++)
            held += s->holds[(size_t)au * s->au_pages + p];
        wrong += held != s->held[au];
    }
    for (u32 i = 0; i < s->opens; i++)
        for (u32 j = 0; j < i; j++)
            wrong += s->open[i].au != NONE && s->open[i].au == s->open[j].au;
    return wrong;
}

const make CARD = {"card", sizeof(card), draw, renew, serve, release, audit};
