//! The driver's queue before a device that accepts a limited number of requests at once.

use crate::{Fifo, Request, RequestKind};
use serde::{Deserialize, Serialize};

/// A waiting request, with its owner's number for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// The owner's number: a tag, or a table index.
    pub id: u64,
    /// The request.
    pub request: Request,
}

/// Decides which of the waiting requests goes next: first in, first out, or taking turns between submission queues
/// ([`Request::queue`]). It must not lose a request, nor hold
/// back one that may go while it has no other.
pub trait Arbiter {
    /// Adds a request to the waiting ones.
    fn push(&mut self, waiting: Waiting);

    /// Removes the next request that `may_go`. None if there is none, or if the arbiter's order keeps all others behind
    /// one that may not go.
    fn pick(&mut self, may_go: impl Fn(&Request) -> bool) -> Option<Waiting>;

    /// Requests that wait.
    fn len(&self) -> usize;

    /// Whether no request waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Which requests share places. This is a type, so that the common case costs nothing.
pub trait Places {
    /// Number of taken places among those that a request of this kind can have.
    fn taken(&self, kind: RequestKind) -> u32;
    /// The same, mutable.
    fn taken_mut(&mut self, kind: RequestKind) -> &mut u32;
    /// Number of taken places in total.
    fn all(&self) -> u32;
    /// Whether none of `depth` places is left for requests of any kind.
    fn are_full(&self, depth: u32) -> bool;
}

/// All requests share all places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shared(u32);

impl Places for Shared {
    #[inline(always)]
    fn taken(&self, _: RequestKind) -> u32 {
        self.0
    }
    #[inline(always)]
    fn taken_mut(&mut self, _: RequestKind) -> &mut u32 {
        &mut self.0
    }
    #[inline(always)]
    fn all(&self) -> u32 {
        self.0
    }
    #[inline(always)]
    fn are_full(&self, depth: u32) -> bool {
        self.0 >= depth
    }
}

/// Reads share places among themselves, and all other requests as many, as in Linux's request queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByDirection([u32; 2]);

impl Places for ByDirection {
    #[inline(always)]
    fn taken(&self, kind: RequestKind) -> u32 {
        self.0[usize::from(kind != RequestKind::Read)]
    }
    #[inline(always)]
    fn taken_mut(&mut self, kind: RequestKind) -> &mut u32 {
        &mut self.0[usize::from(kind != RequestKind::Read)]
    }
    #[inline(always)]
    fn all(&self) -> u32 {
        self.0[0] + self.0[1]
    }
    #[inline(always)]
    fn are_full(&self, depth: u32) -> bool {
        self.0[0] >= depth && self.0[1] >= depth
    }
}

/// A number of places, and the requests that wait for one.
///
/// Its owner calls [`goes_at_once`](Self::goes_at_once) for a new request, [`take`](Self::take)s its place when it
/// starts and [`release`](Self::release)s it when it ends; then [`pick`](Self::pick) returns the next waiting request,
/// if any.
///
/// ```
/// # use flashwright_block::{DriverQueue, Request};
/// let mut queue: DriverQueue = DriverQueue::new(1);
/// let request = Request { sectors: 8, ..Request::default() };
/// assert!(queue.goes_at_once(&request));
/// queue.take(request.kind, 1);
/// assert!(!queue.goes_at_once(&request));
/// queue.push(7, request);
/// assert_eq!(queue.pick(), None);
/// queue.release(request.kind, 1);
/// assert_eq!(queue.pick().map(|waiting| waiting.id), Some(7));
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DriverQueue<A = Fifo, P = Shared> {
    depth: u32,
    /// Places that may be given now: `depth`, or none while the queue is closed.
    open: u32,
    /// Requests with the arbiter, so that nobody asks it while none waits.
    waiting: usize,
    places: P,
    arbiter: A,
}

impl<P: Places + Default> DriverQueue<Fifo, P> {
    /// `depth` places, given to waiting requests in order of arrival.
    #[must_use]
    pub fn new(depth: u32) -> Self {
        Self::with_arbiter(depth, Fifo::default())
    }
}

impl<A: Arbiter, P: Places + Default> DriverQueue<A, P> {
    /// `depth` places, given to waiting requests in the order of `arbiter`.
    #[must_use]
    pub fn with_arbiter(depth: u32, arbiter: A) -> Self {
        Self { depth, open: depth, waiting: 0, places: P::default(), arbiter }
    }
}

impl<A: Arbiter, P: Places> DriverQueue<A, P> {
    /// Number of places; with places by direction, those of one direction.
    #[inline(always)]
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Changes the number of places. Requests that have places keep them.
    pub fn set_depth(&mut self, depth: u32) {
        self.open = if self.is_closed() { 0 } else { depth };
        self.depth = depth;
    }

    /// No request is given a place until [`DriverQueue::reopen`]. Requests that have places keep them.
    ///
    /// ```
    /// # use flashwright_block::{DriverQueue, Request};
    /// let mut queue: DriverQueue = DriverQueue::new(1);
    /// queue.close();
    /// queue.push(7, Request::default());
    /// assert_eq!(queue.pick(), None);
    /// queue.reopen();
    /// assert_eq!(queue.pick().map(|waiting| waiting.id), Some(7));
    /// ```
    pub fn close(&mut self) {
        self.open = 0;
    }

    /// Requests are given places again.
    pub fn reopen(&mut self) {
        self.open = self.depth;
    }

    /// Whether it is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.open < self.depth
    }

    /// Whether a new request need not wait: there is a place, and no other request waits for it.
    #[inline(always)]
    #[must_use]
    pub fn goes_at_once(&self, request: &Request) -> bool {
        self.places.taken(request.kind) < self.open && self.waiting == 0
    }

    /// A request has to wait.
    pub fn push(&mut self, id: u64, request: Request) {
        self.waiting += 1;
        self.arbiter.push(Waiting { id, request });
    }

    /// The next waiting request for which there is a place, if any. It leaves the queue, but has not yet taken its
    /// place.
    #[inline(always)]
    pub fn pick(&mut self) -> Option<Waiting> {
        if self.waiting == 0 || self.places.are_full(self.open) { None } else { self.ask() }
    }

    fn ask(&mut self) -> Option<Waiting> {
        let Self { open, places, arbiter, .. } = self;
        let picked = arbiter.pick(|request| places.taken(request.kind) < *open);
        self.waiting -= usize::from(picked.is_some());
        picked
    }

    /// A request of this kind starts and takes this many places: usually one, more if it was cut into pieces.
    #[inline(always)]
    pub fn take(&mut self, kind: RequestKind, places: u32) {
        *self.places.taken_mut(kind) += places;
    }

    /// Releases this many places of requests of this kind.
    #[inline(always)]
    pub fn release(&mut self, kind: RequestKind, places: u32) {
        *self.places.taken_mut(kind) -= places;
    }

    /// Places that are taken.
    #[inline(always)]
    #[must_use]
    pub fn taken(&self) -> u32 {
        self.places.all()
    }

    /// Requests that wait.
    #[inline(always)]
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting
    }

    /// Whether no request waits.
    #[inline(always)]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: RequestKind) -> Request {
        Request { kind, sectors: 8, ..Request::default() }
    }
    const READ: RequestKind = RequestKind::Read;
    const WRITE: RequestKind = RequestKind::Write;

    #[test]
    fn places_are_shared_or_of_a_direction() {
        let mut shared: DriverQueue = DriverQueue::new(2);
        shared.take(READ, 1);
        shared.take(WRITE, 1);
        assert!(!shared.goes_at_once(&of(READ)) && shared.taken() == 2);
        let mut split = DriverQueue::<Fifo, ByDirection>::new(2);
        split.take(READ, 2);
        assert!(!split.goes_at_once(&of(READ)));
        assert!(split.goes_at_once(&of(WRITE)) && split.goes_at_once(&of(RequestKind::Flush)));
        split.release(READ, 1);
        assert!(split.goes_at_once(&of(READ)));
    }

    #[test]
    fn who_waits_goes_first_and_in_order() {
        let mut queue = DriverQueue::<Fifo, ByDirection>::new(1);
        queue.take(READ, 1);
        queue.push(0, of(READ));
        queue.push(1, of(WRITE));
        // There is a place for the write, but it is behind a read that has none.
        assert!(!queue.goes_at_once(&of(WRITE)));
        assert_eq!((queue.pick(), queue.len()), (None, 2));
        queue.release(READ, 1);
        for id in 0..2 {
            let next = queue.pick().expect("there are places");
            assert_eq!(next.id, id);
            queue.take(next.request.kind, 1);
        }
        assert!(queue.is_empty() && queue.taken() == 2);
    }

    #[test]
    fn a_deeper_queue_lets_more_go() {
        let mut queue: DriverQueue = DriverQueue::new(1);
        queue.take(READ, 1);
        queue.push(0, of(READ));
        assert_eq!(queue.pick(), None);
        queue.set_depth(2);
        assert_eq!(queue.pick().map(|next| next.id), Some(0));
    }
}
