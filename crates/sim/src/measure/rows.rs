//! One row per request, kept on demand.

use flashwright_block::{Completion, Effects};
use serde::{Deserialize, Serialize};

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
            tags: start..start.saturating_add(count),
            first_tag,
        }
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
