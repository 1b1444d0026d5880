//! Several writers that share a drive: each has its part of the space, its size of request and its order, and names a stream.
//!
//! Which of them makes the next request is drawn, by the share of the bytes that each is given: drives are judged by bytes, and how
//! many requests a real writer gets through depends on the drive. Reads go anywhere in the part of the writer that is drawn.

use super::alias::AliasTable;
use super::common::{Plan, sectors};
use super::error::Fault;
use super::generator::Pattern;
use super::ranks::{Law, Zipfian};
use super::value::Streams;
use flashwright_block::{Bytes, RequestKind, RequestSource, Rng, below};

/// In which order a writer goes to the objects of its part.
pub(crate) enum Order {
    /// From the first to the last, and again.
    Ring,
    /// Any, each as likely as the others.
    Uniform,
    /// By Zipf's law with this exponent, the first the most popular.
    Zipf(f64),
    /// In zones: of the requests, and of the space, a share each. fio's `random_distribution=zoned`.
    Zoned(&'static [(f64, f64)]),
}

/// A writer.
pub(crate) struct Writer {
    /// Where its part begins and ends, as shares of the space.
    pub(crate) part: (f64, f64),
    /// A request.
    pub(crate) size: Bytes,
    /// What is written from its start to its end before the next is chosen; a multiple of `size`. Objects begin at multiples of it,
    /// or of `align` if the workload is given one.
    pub(crate) object: Bytes,
    /// The order of objects.
    pub(crate) order: Order,
    /// Share of the bytes written; all are weighed by their sum.
    pub(crate) bytes: f64,
}

/// A writer on a drive. Sectors throughout, but for slots: places where an object can begin.
struct Place {
    first: u64,
    size: u32,
    object: u64,
    align: u64,
    slots: u64,
    order: Order,
    law: Option<Zipfian>,
    /// The next slot of a ring, and slots from one object to the next.
    turn: u64,
    step: u64,
    /// The next request of the object that is being written, and its end.
    next: u64,
    end: u64,
}

impl Place {
    /// The slot of the next object.
    fn choose(&mut self, rng: &mut Rng) -> u64 {
        match &self.order {
            Order::Ring => {
                let turn = self.turn;
                self.turn = if turn + self.step >= self.slots { 0 } else { turn + self.step };
                turn
            }
            Order::Uniform => below(rng, self.slots),
            Order::Zipf(_) => self.law.as_ref().map_or(0, |law| law.rank(rng)),
            Order::Zoned(zones) => zoned(zones, self.slots, rng),
        }
    }
}

/// A slot of a zone, which is drawn by its share of the requests.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn zoned(zones: &[(f64, f64)], slots: u64, rng: &mut Rng) -> u64 {
    let draw = flashwright_block::unit_interval(rng);
    let (mut requests, mut begins) = (0.0, 0.0);
    for (share, space) in zones {
        requests += share;
        let ends = begins + space;
        if draw < requests {
            let edge = |share: f64| ((share * slots as f64).round() as u64).min(slots);
            let (first, end) = (edge(begins), edge(ends));
            return if end > first { first + below(rng, end - first) } else { first.min(slots - 1) };
        }
        begins = ends;
    }
    slots - 1
}

/// The requests of several writers; with [`Streams::Class`] the first names stream 1, or what `stream_of` says of it.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub(crate) fn source(
    plan: &Plan<'_>,
    writers: Vec<Writer>,
    streams: Streams,
    stream_of: impl Fn(usize) -> u16,
) -> Result<Box<dyn RequestSource + Send>, Fault> {
    let names: Vec<u16> =
        (0..writers.len()).map(|at| if streams == Streams::Class { stream_of(at) } else { 0 }).collect();
    let weights: Vec<f64> = writers.iter().map(|writer| writer.bytes / writer.size.0 as f64).collect();
    let table = AliasTable::new(&weights);
    let places = writers.into_iter().map(|writer| {
        let object = sectors(writer.object);
        let align = plan.common.align.map_or(object, sectors);
        // Parts begin where an object may, so that requests of a page stay in a page.
        let edge = |share: f64| (plan.space_sectors as f64 * share) as u64;
        let (first, end) = (edge(writer.part.0).next_multiple_of(align), edge(writer.part.1));
        let Some(spare) = end.saturating_sub(first).checked_sub(object) else {
            let found = format!("{} for a part of {} sectors", writer.object, end.saturating_sub(first));
            return Err(Fault::new("size", found, "room in the part of each writer"));
        };
        let (slots, step) = (spare / align + 1, object.div_ceil(align));
        let size = u32::try_from(sectors(writer.size)).expect("a size fits 31 bits of sectors");
        let law = if let Order::Zipf(theta) = writer.order { Some(Zipfian::new(slots, theta)) } else { None };
        let (turn, next, end) = (0, 0, 0);
        Ok(Place { first, size, object, align, slots, order: writer.order, law, turn, step, next, end })
    });
    let places = places.collect::<Result<Vec<Place>, Fault>>()?;
    Ok(plan.run(Writers { rng: plan.addresses(), table, places, names, last: 0 }))
}

struct Writers {
    rng: Rng,
    table: AliasTable,
    places: Vec<Place>,
    /// The streams that they name.
    names: Vec<u16>,
    /// Who made the last request.
    last: usize,
}

impl Pattern for Writers {
    #[inline]
    fn next(&mut self, kind: RequestKind) -> u64 {
        self.last = self.table.draw(&mut self.rng);
        let place = &mut self.places[self.last];
        if kind == RequestKind::Read {
            let pieces = place.object / u64::from(place.size);
            let piece = below(&mut self.rng, place.slots * pieces);
            return place.first + piece / pieces * place.align + piece % pieces * u64::from(place.size);
        }
        if place.next == place.end {
            place.next = place.first + place.choose(&mut self.rng) * place.align;
            place.end = place.next + place.object;
        }
        let here = place.next;
        place.next += u64::from(place.size);
        here
    }
    #[inline]
    fn stream(&self) -> u16 {
        self.names[self.last]
    }
    #[inline]
    fn sectors(&self, _: u32) -> u32 {
        self.places[self.last].size
    }
}
