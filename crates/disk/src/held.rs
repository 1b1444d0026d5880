//! Data of clients: what writes bring while they wait for a slot, and what reads found until it is taken.

use crate::ring::{Buffer, Ring};
use flashwright_block::Tag;
use std::collections::HashMap;

/// What a request has to do with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load<'a> {
    /// Nothing; a write is one of zeros.
    None,
    /// It brings these bytes.
    Brings(&'a [u8]),
    /// What it reads will be taken.
    Wanted,
}

impl Load<'_> {
    /// Puts the bytes of a write into a buffer that is long enough.
    pub fn put(self, buffer: &mut [u8], bytes: usize) {
        match self {
            Self::Brings(data) => buffer[..bytes].copy_from_slice(data),
            _ => buffer[..bytes].fill(0),
        }
    }
}

/// A load that waits for a slot.
#[derive(Debug)]
pub(crate) enum Waited {
    Brings(Vec<u8>),
    Wanted,
}

impl Waited {
    pub fn load(&self) -> Load<'_> {
        match self {
            Self::Brings(data) => Load::Brings(data),
            Self::Wanted => Load::Wanted,
        }
    }
}

/// Buffers longer than this are given back once their request has ended, so that a few long requests do not keep the memory
/// of all slots.
const BUFFER_BYTES_KEPT: usize = 1 << 20;

/// The data of a disk that keeps them.
pub(crate) struct Held {
    waiting: HashMap<Tag, Waited>,
    /// Reads whose data have not been taken: few, since they are taken when the read has ended.
    reads: Vec<(Tag, Buffer)>,
    spare: Vec<Buffer>,
    /// Bytes of a fresh buffer.
    bytes: usize,
}

impl Held {
    pub fn new(bytes: usize) -> Self {
        Self { waiting: HashMap::new(), reads: Vec::new(), spare: Vec::new(), bytes }
    }

    /// A request waits for a slot.
    pub fn waits(&mut self, tag: Tag, load: Load<'_>) {
        let waited = match load {
            Load::None => return,
            Load::Brings(data) => Waited::Brings(data.to_vec()),
            Load::Wanted => Waited::Wanted,
        };
        self.waiting.insert(tag, waited);
    }

    /// It waits no more.
    pub fn goes(&mut self, tag: Tag) -> Option<Waited> {
        self.waiting.remove(&tag)
    }

    /// A request in a slot has ended; its data are kept if it is named.
    pub fn ended(&mut self, ring: &mut Ring, slot: u32, read: Option<Tag>) {
        if let Some(tag) = read {
            let fresh = self.spare.pop().unwrap_or_else(|| Buffer::new(self.bytes));
            self.reads.push((tag, ring.exchange(slot, fresh)));
        } else if ring.buffer(slot, 0).len() > BUFFER_BYTES_KEPT {
            ring.exchange(slot, Buffer::new(self.bytes));
        }
    }

    /// See [`flashwright_block::HoldsData::take_data`].
    pub fn take(&mut self, tag: Tag, data: &mut [u8]) -> bool {
        let Some(at) = self.reads.iter().position(|(other, _)| *other == tag) else { return false };
        let (_, buffer) = self.reads.swap_remove(at);
        data.copy_from_slice(&buffer.bytes()[..data.len()]);
        if buffer.len() <= BUFFER_BYTES_KEPT {
            self.spare.push(buffer);
        }
        true
    }
}
