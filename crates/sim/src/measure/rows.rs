//! One row per request, kept on demand.

use flashwright_block::{Completion, Effects};
use serde::{Deserialize, Serialize};
use std::collections::TryReserveError;

/// One row per request, stored by column.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct RequestColumns {
    pub arrival_ns: Vec<u64>,
    pub start_ns: Vec<u64>,
    pub completion_ns: Vec<u64>,
    /// [`flashwright_block::RequestKind`] as a number: 0 read, 1 write, 2 trim, 3 flush.
    pub kind: Vec<u8>,
    pub lpn: Vec<u32>,
    pub pages: Vec<u32>,
    /// What the request caused: a column for each of [`Effects::NAMES`].
    pub effects: [Vec<u32>; Effects::NAMES.len()],
}

impl RequestColumns {
    /// Memory that a copy needs, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let row = 3 * size_of::<u64>() + size_of::<u8>() + (2 + self.effects.len()) * size_of::<u32>();
        self.kind.len() * row
    }

    /// Finds memory for this many rows more.
    fn try_reserve(&mut self, more: usize) -> Result<(), TryReserveError> {
        for column in [&mut self.arrival_ns, &mut self.start_ns, &mut self.completion_ns] {
            column.try_reserve(more)?;
        }
        for column in [&mut self.lpn, &mut self.pages].into_iter().chain(&mut self.effects) {
            column.try_reserve(more)?;
        }
        self.kind.try_reserve(more)
    }

    fn push(&mut self, completion: &Completion, (first, pages): (u32, u32)) {
        self.arrival_ns.push(completion.request.arrival.0);
        self.start_ns.push(completion.start.0);
        self.completion_ns.push(completion.end.0);
        self.kind.push(completion.request.kind as u8);
        self.lpn.push(first);
        self.pages.push(pages);
        for (column, count) in self.effects.iter_mut().zip(completion.effects.counts()) {
            column.push(count);
        }
    }
}

/// Rows of consecutive requests, in order of completion.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Closeup {
    /// The numbers of the requests in order of submission, counted from 0 at the start of measuring.
    pub request: Vec<u64>,
    /// The other columns.
    pub rows: RequestColumns,
}

/// The rows that the caller requested.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Kept {
    pub all: Option<RequestColumns>,
    pub closeup: Option<Closeup>,
    /// Whether rows were taken, so that `all` has only those since.
    pub taken: bool,
    /// Tags of the requests in the selected stretch.
    tags: std::ops::Range<u64>,
    first_tag: u64,
}

impl Kept {
    /// `first_tag`: the tag of the host's next request; `closeup`: the first request of the selected stretch, and its
    /// length.
    pub fn new(first_tag: u64, all: bool, closeup: Option<(u64, u64)>) -> Self {
        let (first, count) = closeup.unwrap_or_default();
        let start = first_tag.saturating_add(first);
        Self {
            all: all.then(RequestColumns::default),
            closeup: closeup.map(|_| Closeup::default()),
            taken: false,
            tags: start..start.saturating_add(count),
            first_tag,
        }
    }

    /// Finds memory for the rows of this many requests more. Those of a selected stretch are few.
    pub fn try_reserve(&mut self, more: usize) -> Result<(), TryReserveError> {
        self.all.as_mut().map_or(Ok(()), |all| all.try_reserve(more))
    }

    /// Hands over the rows since the last time, if rows are kept, and keeps none of them.
    pub fn take(&mut self) -> Option<RequestColumns> {
        let taken = std::mem::take(self.all.as_mut()?);
        self.taken = true;
        Some(taken)
    }

    pub fn keep(&mut self, completion: &Completion, pages: (u32, u32)) {
        if let Some(all) = &mut self.all {
            all.push(completion, pages);
        }
        if let Some(closeup) = &mut self.closeup
            && self.tags.contains(&completion.tag.0)
        {
            closeup.request.push(completion.tag.0 - self.first_tag);
            closeup.rows.push(completion, pages);
        }
    }
}
