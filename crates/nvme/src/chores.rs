//! What the subsystem has the drive do for itself: to deallocate what namespaces held.
//!
//! A deleted or formatted namespace and a sanitized drive lose their data whether or not the host that asked is still there, the
//! power fails, or the server is killed. So these requests belong to no connection: whoever owns the drive takes them before it
//! begins any further request of a host, and ones that a loss of power failed come again when the power does.

use crate::commands::{Io, Op};
use crate::namespace::Extent;
use crate::wire::identify::RANGE_BYTES_MAX;
use std::collections::VecDeque;

/// Requests that belong to no connection.
#[derive(Debug, Default)]
pub(crate) struct Chores {
    waiting: VecDeque<Io>,
    /// Requests in the drive.
    under_way: usize,
    failed: Vec<Io>,
    /// Of a drive with zones, what these are apart: they are reset.
    zone_bytes: Option<u64>,
    /// Bytes that are deallocated, and those of all since the last time that there was nothing to do.
    bytes: (u64, u64),
}

impl Chores {
    /// Of a drive whose zones are so many bytes apart, if it has any.
    pub fn new(zone_bytes: Option<u64>) -> Self {
        Self { zone_bytes, ..Self::default() }
    }

    /// Has ranges deallocated, durably. On a drive with zones these are whole zones.
    pub fn add(&mut self, extents: &[Extent], page_bytes: u64) {
        for extent in extents {
            if let Some(zone) = self.zone_bytes {
                let starts = (0..extent.bytes / zone).map(|at| extent.first + at * zone);
                self.waiting.extend(starts.map(reset));
            } else {
                let durable = pieces(Op::Deallocate, 0, *extent, page_bytes).map(|io| Io { is_durable: true, ..io });
                self.waiting.extend(durable);
            }
            self.bytes.1 += extent.bytes;
        }
    }

    /// The next request, which is begun now.
    pub fn next(&mut self) -> Option<Io> {
        let io = self.waiting.pop_front()?;
        self.under_way += 1;
        Some(io)
    }

    /// Bytes that a request deallocates.
    pub fn bytes_of(&self, bytes: u32) -> u64 {
        self.zone_bytes.unwrap_or(bytes.into())
    }

    /// A request has ended. Returns true if that was the last one, and there is nothing left to do.
    pub fn ended(&mut self, offset: u64, bytes: u32, is_done: bool) -> bool {
        self.under_way -= 1;
        if is_done {
            self.bytes.0 += self.bytes_of(bytes);
        } else if self.zone_bytes.is_some() {
            self.failed.push(reset(offset));
        } else {
            self.failed.push(Io { op: Op::Deallocate, offset, bytes, is_durable: true, ..Io::FLUSH });
        }
        let is_over = self.waiting.is_empty() && self.under_way == 0 && self.failed.is_empty();
        if is_over {
            self.bytes = (0, 0);
        }
        is_over
    }

    /// The power is back: what it failed is to be done again.
    pub fn retry(&mut self) {
        self.waiting.extend(self.failed.drain(..));
    }

    /// The share of the bytes that is deallocated, in units of 1/65,536.
    pub fn progress(&self) -> u16 {
        let (done, all) = self.bytes;
        u16::try_from(u128::from(done) * 65_536 / u128::from(all.max(1))).unwrap_or(u16::MAX - 1)
    }
}

/// The reset of the zone that begins at a byte, which is durable once it has ended.
fn reset(offset: u64) -> Io {
    Io { op: Op::ResetZone, offset, ..Io::FLUSH }
}

/// Cuts a range into pieces that the drive takes at once, between pages of the flash.
pub(crate) fn pieces(op: Op, namespace: u32, extent: Extent, page_bytes: u64) -> impl Iterator<Item = Io> {
    let page = page_bytes.clamp(1, RANGE_BYTES_MAX);
    let most = RANGE_BYTES_MAX - RANGE_BYTES_MAX % page;
    let end = extent.first + extent.bytes;
    let step = usize::try_from(most).expect("a GiB at most");
    (extent.first..end).step_by(step).map(move |at| {
        let bytes = u32::try_from((end - at).min(most)).expect("a GiB at most");
        Io { op, namespace, offset: at, bytes, ..Io::FLUSH }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_loss_of_power_fails_comes_again() {
        let mut chores = Chores::default();
        chores.add(&[Extent { first: 4096, bytes: RANGE_BYTES_MAX + 8192 }], 4096);
        let [one, two] = [chores.next().unwrap(), chores.next().unwrap()];
        assert_eq!((one.offset, u64::from(one.bytes), two.offset), (4096, RANGE_BYTES_MAX, 4096 + RANGE_BYTES_MAX));
        assert_eq!((chores.next(), two.bytes, two.is_durable), (None, 8192, true));
        assert!(!chores.ended(two.offset, two.bytes, true));
        assert!(!chores.ended(one.offset, one.bytes, false), "it failed");
        assert_eq!(chores.next(), None);
        assert_eq!(chores.progress(), 0);
        chores.retry();
        assert_eq!(chores.next(), Some(one));
        assert!(chores.ended(one.offset, one.bytes, true));
    }
}
