/* Make "raid": two to four simple drives behind a stripe, or three to five behind a stripe with parity.
 *
 * A member is a page-mapped log whose programs drain as a flow; its cleaning adds to the flow in lumps. With parity, a
 * write that does not cover a row reads old data and old parity before it writes both.
 */
#include "../alien.h"
#include "../store.h"

#define MEMBERS_MAX 5
#define DIES_MAX 16
#define UNIT (4 * KIB)
/* A page that is not full is written out after 5 ms. */
#define WRITE_OUT (5 * MS)

typedef struct {
    store log;
    /* Host units in RAM, and the work before them, in programs of a unit. */
    double in_ram, backlog;
    u64 as_of, die_free[DIES_MAX], link_free;
    /* Units of the page that is not full, when the last one came, and when all full pages are programmed. */
    u32 waiting;
    u64 waits_since, programmed;
} member;

typedef struct {
    drive head;
    member member[MEMBERS_MAX];
    u32 members, data, dies, page_units;
    u64 chunk;
    double read_ns, program_ns, erase_ns, unit_ns, overhead_ns, byte_ns, buffer_units;
} raid;

static void draw(drive *d)
{
    raid *s = (raid *)d;
    rng *r = &d->random;
    d->noise = rng_between(r, 0.005, 0.05);
    int parity = rng_unit(r) < 0.5;
    s->members = (u32)(parity ? PICK(r, 3, 4, 5) : PICK(r, 2, 3, 4));
    s->data = s->members - (u32)parity;
    /* The usual chunks of software and of controllers. */
    s->chunk = PICK(r, 16, 32, 64, 128, 256) * KIB;
    /* Members are SATA drives of MLC or TLC, four or eight dies, pages of 16 KiB. */
    s->dies = (u32)PICK(r, 4, 8);
    s->page_units = 4;
    s->read_ns = rng_between(r, 50e3, 90e3);
    s->program_ns = rng_between(r, 300e3, 900e3);
    s->erase_ns = rng_between(r, 3e6, 8e6);
    s->byte_ns = 1e9 / 540e6;
    /* SATA, and the RAID layer above it. */
    s->overhead_ns = rng_between(r, 15e3, 40e3);
    s->unit_ns = s->program_ns / s->page_units / s->dies;
    s->buffer_units = (double)(PICK(r, 1, 2, 4) * MIB / UNIT);
    u64 each = PICK(r, 768, 1024) * MIB;
    d->capacity_bytes = each / s->chunk * s->chunk * s->data;
    u64 per_block = s->dies * s->page_units * PICK(r, 16, 32);
    double spare = rng_between(r, 0.07, 0.2);
    for (u32 i = 0; i < s->members; i++)
        store_new(&s->member[i].log, each / UNIT, per_block, spare);
    fact(d, "parity", parity);
    fact(d, "members", s->members);
    fact(d, "data", s->data);
    fact(d, "chunk", (double)s->chunk);
    fact(d, "dies", s->dies * s->members);
    fact(d, "unit", (double)UNIT);
    fact(d, "page", (double)(s->page_units * UNIT));
    fact(d, "block", (double)(per_block * UNIT));
    fact(d, "buffer", s->buffer_units * UNIT);
    fact(d, "drain_rate", UNIT / s->unit_ns * 1e9);
    fact(d, "link_rate", 1e9 / s->byte_ns);
    fact(d, "spare", store_spare(&s->member[0].log, 3));
    fact(d, "flush_ns", s->overhead_ns);
}

static int renew(drive *d)
{
    raid *s = (raid *)d;
    for (u32 i = 0; i < s->members; i++) {
        store_renew(&s->member[i].log);
        s->member[i].in_ram = s->member[i].backlog = 0;
        s->member[i].waiting = 0;
        s->member[i].programmed = d->now;
    }
    return 1;
}

static void release(drive *d)
{
    raid *s = (raid *)d;
    for (u32 i = 0; i < s->members; i++)
        store_free(&s->member[i].log);
}

static void write_out(raid *s, member *m, u64 now)
{
    m->waiting = 0;
    m->programmed = later(m->programmed, now + (u64)(m->backlog * s->unit_ns + s->program_ns));
}

static void drain(raid *s, member *m, u64 now)
{
    if (m->waiting && now > m->waits_since + WRITE_OUT)
        write_out(s, m, m->waits_since + WRITE_OUT);
    if (now <= m->as_of)
        return;
    double left = fmax(0, m->backlog - (double)(now - m->as_of) / s->unit_ns);
    m->in_ram = left > 0 ? m->in_ram * left / m->backlog : 0;
    m->backlog = left;
    m->as_of = now;
}

static u64 sense(raid *s, member *m, u32 slot, u64 now)
{
    u32 die = slot / s->page_units % s->dies;
    /* One die in so many is programming what is on its way. */
    double busy = m->backlog > 0 ? 0.5 * rng_unit(&s->head.random) * s->program_ns : 0;
    return m->die_free[die] = later(now, m->die_free[die]) + noisy(&s->head, s->read_ns + busy);
}

static u64 carry(raid *s, member *m, u64 now, u64 bytes)
{
    return m->link_free = later(now, m->link_free) + (u64)((double)bytes * s->byte_ns);
}

static u64 read_member(raid *s, member *m, u64 from, u64 to, u64 now)
{
    u64 end = now;
    u32 page = NONE;
    drain(s, m, now);
    for (u32 unit = (u32)(from / UNIT); unit < (to + UNIT - 1) / UNIT; unit++) {
        u32 slot = m->log.slot_of[unit];
        if (slot != NONE && slot / s->page_units != page)
            end = later(end, sense(s, m, slot, now));
        page = slot == NONE ? NONE : slot / s->page_units;
    }
    return carry(s, m, end, to - from);
}

static void clean(raid *s, member *m)
{
    while (m->log.empties < 3) {
        u32 moved = store_clean(&m->log, store_emptiest(&m->log));
        s->head.copied_units += moved;
        double units = moved * (1 + s->read_ns / s->program_ns) + s->erase_ns / s->unit_ns;
        m->backlog += units;
        stalled(&s->head, (u64)(units * s->unit_ns));
    }
}

static u64 write_member(raid *s, member *m, u64 from, u64 to, u64 now)
{
    drain(s, m, now);
    u64 end = carry(s, m, now, to - from);
    for (u32 unit = (u32)(from / UNIT); unit < (to + UNIT - 1) / UNIT; unit++) {
        u64 start = (u64)unit * UNIT;
        u32 slot = m->log.slot_of[unit];
        if ((from > start || to < start + UNIT) && slot != NONE)
            end = later(end, sense(s, m, slot, now));
        clean(s, m);
        store_put(&m->log, unit, HOST);
        m->in_ram += 1;
        m->backlog += 1;
        s->head.host_units++;
        m->waits_since = end;
        if (++m->waiting == s->page_units)
            write_out(s, m, end);
    }
    drain(s, m, end);
    if (m->in_ram > s->buffer_units)
        end = later(end, m->as_of + (u64)((1 - s->buffer_units / m->in_ram) * m->backlog * s->unit_ns));
    return end;
}

/* The member that has a chunk of a row. */
static u32 holder(const raid *s, u64 row, u64 chunk)
{
    if (s->data == s->members)
        return (u32)chunk;
    return (u32)((row % s->members + 1 + chunk) % s->members);
}

/* A write within one row. */
static u64 write_row(raid *s, u64 row, u64 from, u64 to, u64 now)
{
    u64 base = row * s->chunk, end = now;
    int parity = s->data != s->members;
    int whole = from == 0 && to == s->chunk * s->data;
    u64 low = to - from >= s->chunk || from / s->chunk != (to - 1) / s->chunk ? 0 : from % s->chunk;
    u64 high = low || from / s->chunk == (to - 1) / s->chunk ? (to - 1) % s->chunk + 1 : s->chunk;
    member *check = &s->member[row % s->members];
    u64 ready = now;
    if (parity && !whole) {
        for (u64 at = from; at < to; at = (at / s->chunk + 1) * s->chunk) {
            u64 until = earlier(to, (at / s->chunk + 1) * s->chunk), chunk = at / s->chunk;
            member *m = &s->member[holder(s, row, chunk)];
            ready = later(ready, read_member(s, m, base + at % s->chunk, base + at % s->chunk + until - at, now));
        }
        ready = later(ready, read_member(s, check, base + low, base + high, now));
    }
    for (u64 at = from; at < to; at = (at / s->chunk + 1) * s->chunk) {
        u64 until = earlier(to, (at / s->chunk + 1) * s->chunk), chunk = at / s->chunk;
        member *m = &s->member[holder(s, row, chunk)];
        end = later(end, write_member(s, m, base + at % s->chunk, base + at % s->chunk + until - at, ready));
    }
    if (parity)
        end = later(end, write_member(s, check, base + low, base + high, ready));
    return end;
}

static u64 serve(drive *d, int kind, u64 first, u32 sectors, u64 now)
{
    raid *s = (raid *)d;
    u64 t = now + noisy(d, s->overhead_ns), end = t;
    u64 from = first * SECTOR, to = from + sectors * SECTOR, row_bytes = s->chunk * s->data;
    if (kind == FLUSH) {
        for (u32 i = 0; i < s->members; i++) {
            member *m = &s->member[i];
            drain(s, m, t);
            if (m->waiting)
                write_out(s, m, t);
            end = later(end, m->programmed);
        }
        return end;
    }
    for (u64 at = from; at < to;) {
        u64 row = at / row_bytes;
        u64 until = earlier(to, (row + 1) * row_bytes);
        if (kind == WRITE) {
            end = later(end, write_row(s, row, at % row_bytes, at % row_bytes + until - at, t));
            at = until;
            continue;
        }
        until = earlier(until, (at / s->chunk + 1) * s->chunk);
        member *m = &s->member[holder(s, row, at % row_bytes / s->chunk)];
        u64 place = row * s->chunk + at % s->chunk, length = until - at;
        if (kind == READ)
            end = later(end, read_member(s, m, place, place + length, t));
        else
            for (u64 unit = (place + UNIT - 1) / UNIT; unit < (place + length) / UNIT; unit++)
                store_drop(&m->log, (u32)unit);
        at = until;
    }
    return end;
}

static u64 audit(const drive *d)
{
    const raid *s = (const raid *)d;
    u64 wrong = 0;
    for (u32 i = 0; i < s->members; i++)
        wrong += store_audit(&s->member[i].log);
    return wrong;
}

const make RAID = {"raid", sizeof(raid), draw, renew, serve, release, audit};
