/* Make "volume": a volume of a cloud, reached over the network.
 *
 * Times are log-normal with a long tail. Rates are limited by two token buckets, requests and bytes, with credits for
 * bursts. Nothing depends on what was read or written before: the servers behind it are many.
 */
#include "../alien.h"

typedef struct {
    drive head;
    double read_ns, write_ns, spread, tail_share, tail_ns, byte_ns;
    double iops, bytes_per_s, credits_max, bytes_max, chunk_bytes;
    double credits, bytes;
    u64 as_of, link_free;
} volume;

static void draw(drive *d)
{
    volume *s = (volume *)d;
    rng *r = &d->random;
    d->capacity_bytes = PICK(r, 4, 6, 8) * GIB;
    d->block_bytes = (u32)PICK(r, 512, 4096);
    /* Published for volumes on flash: 0.3 to 1 ms for small requests, writes to three copies somewhat more. */
    s->read_ns = rng_log(r, 250e3, 900e3);
    s->write_ns = s->read_ns * rng_between(r, 1.0, 1.8);
    s->spread = rng_between(r, 0.08, 0.35);
    /* One request in a hundred to a thousand takes some times as long. */
    s->tail_share = rng_log(r, 0.001, 0.02);
    s->tail_ns = rng_log(r, 2e6, 20e6);
    /* Instances reach 5 to 25 Gbit/s of network. */
    s->byte_ns = 8 / rng_between(r, 5, 25);
    /* Provisioned 3,000 to 16,000 requests and 125 to 1,000 MB a second; credits for a burst of up to a minute. */
    s->iops = (double)PICK(r, 3000, 6000, 12000, 16000);
    s->bytes_per_s = (double)PICK(r, 125, 250, 500, 1000) * 1e6;
    s->credits_max = s->iops * rng_log(r, 0.05, 60);
    s->bytes_max = s->bytes_per_s * rng_log(r, 0.05, 60);
    /* One request counts as one for each 16 or 256 KiB. */
    s->chunk_bytes = (double)(PICK(r, 16, 256) * KIB);
    fact(d, "iops", s->iops);
    fact(d, "rate", s->bytes_per_s);
    fact(d, "flush_ns", s->write_ns / 2);
}

/* Discards are taken, and change nothing that a host could time. */
static int renew(drive *d)
{
    volume *s = (volume *)d;
    if (!s->as_of) {
        s->credits = s->credits_max;
        s->bytes = s->bytes_max;
    }
    return 1;
}

static void release(drive *d)
{
    (void)d;
}

/* Takes tokens; how long until they are there. */
static double take(double *bucket, double tokens, double rate)
{
    *bucket -= tokens;
    return *bucket >= 0 ? 0 : -*bucket / rate * 1e9;
}

static u64 serve(drive *d, int kind, u64 first, u32 sectors, u64 now)
{
    volume *s = (volume *)d;
    (void)first;
    if (now > s->as_of) {
        double seconds = (double)(now - s->as_of) * 1e-9;
        s->credits = fmin(s->credits_max, s->credits + seconds * s->iops);
        s->bytes = fmin(s->bytes_max, s->bytes + seconds * s->bytes_per_s);
        s->as_of = now;
    }
    double bytes = (double)(sectors * SECTOR);
    double service = exp(s->spread * rng_normal(&d->random));
    if (kind == FLUSH || kind == TRIM)
        /* Writes are on several machines once they end; a flush goes there and back. */
        return now + (u64)(service * s->write_ns / 2);
    service *= kind == READ ? s->read_ns : s->write_ns;
    if (rng_unit(&d->random) < s->tail_share)
        service += s->tail_ns * rng_exponential(&d->random);
    double wait = fmax(take(&s->credits, ceil(bytes / s->chunk_bytes), s->iops), take(&s->bytes, bytes, s->bytes_per_s));
    s->link_free = later(now, s->link_free) + (u64)(bytes * s->byte_ns);
    return later(now + (u64)(wait + service), s->link_free + (u64)service);
}

const make VOLUME = {"volume", sizeof(volume), draw, renew, serve, release, nothing_to_audit};
