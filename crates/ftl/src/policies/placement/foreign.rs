//! The adapter for placement policies from outside ([`crate::policies::foreign`]).
//!
//! A foreign policy is called once for all pages of a run that the host writes, and once for all pages that a clean
//! moves. The adapter detects the start of a run or block, and returns the answers page by page.

use super::{HostWrite, PlacementContext, Relocation};
use crate::policies::foreign::FaultCell;
use flashwright_nand::Lpn;
use std::sync::Arc;

/// Builds the policy of a drive.
pub trait MakePlacement {
    /// Its name in messages.
    fn name(&self) -> &str;
    /// Streams that it uses, at least 1.
    fn streams(&self) -> u8;
    /// The policy.
    fn make(&self, context: PlacementContext) -> Box<dyn PlacePages>;
}

/// A run of pages that the host writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRun {
    /// The first of them.
    pub first: Lpn,
    /// The number of pages.
    pub pages: u32,
    /// The stream that the workload names; 0 where it names none.
    pub stream: u32,
    /// The clock of ages: host page writes so far, these included.
    pub now: u64,
}

/// Pages that a clean moves out of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MovedPages {
    /// The pages, in the order of their places in the block.
    pub lpns: Vec<u32>,
    /// The stream for which the block was opened.
    pub stream: u8,
    /// The clock of ages.
    pub now: u64,
}

/// Chooses the stream of each page.
pub trait PlacePages: std::fmt::Debug + Send + Sync {
    /// Writes one stream for each page of a run into `streams`, or one for all; `streams` is empty before the call.
    ///
    /// # Errors
    /// The reason why it can't.
    fn host(&mut self, run: &HostRun, streams: &mut Vec<i64>) -> Result<(), String>;
    /// As [`PlacePages::host`], for pages that cleaning moves; may be called twice for the same pages.
    ///
    /// # Errors
    /// The reason why it can't.
    fn moved(&mut self, pages: &MovedPages, streams: &mut Vec<i64>) -> Result<(), String>;
    /// A copy that continues as this one would.
    fn again(&self) -> Box<dyn PlacePages>;
}

impl Clone for Box<dyn PlacePages> {
    fn clone(&self) -> Self {
        self.again()
    }
}

/// Answers that are still to be used.
#[derive(Clone, Debug, Default)]
struct Answers {
    streams: Vec<i64>,
    /// The index of the next page's answer.
    next: usize,
}

impl Answers {
    /// The next answer; a single answer applies to all pages.
    fn take(&mut self) -> i64 {
        let stream = self.streams[if self.streams.len() == 1 { 0 } else { self.next }];
        self.next += 1;
        stream
    }
}

/// A foreign placement policy in use. Its methods are not inlined, so that native policies do not pay for them.
#[derive(Clone, Debug)]
pub struct ForeignPlacement {
    policy: Box<dyn PlacePages>,
    streams: u8,
    name: Arc<str>,
    fault: FaultCell,
    run: Option<HostRun>,
    host: Answers,
    /// The pages that are being moved, physical and logical.
    from: Vec<u32>,
    moving: MovedPages,
    moved: Answers,
}

impl ForeignPlacement {
    pub(crate) fn new(maker: &dyn MakePlacement, context: PlacementContext, fault: FaultCell) -> Self {
        Self {
            policy: maker.make(context),
            streams: maker.streams(),
            name: maker.name().into(),
            fault,
            run: None,
            host: Answers::default(),
            from: Vec::new(),
            moving: MovedPages::default(),
            moved: Answers::default(),
        }
    }

    #[inline(never)]
    pub(super) fn streams(&self) -> u8 {
        self.streams
    }

    #[inline(never)]
    pub(super) fn host(&mut self, write: HostWrite) -> u8 {
        let goes_on = self.run.is_some_and(|run| {
            let next = u32::try_from(self.host.next).unwrap_or(u32::MAX);
            next < run.pages && run.first.0 + next == write.lpn.0 && run.now == write.now()
        });
        if !goes_on && !self.begin_run(write) {
            return 0;
        }
        self.checked(write.now(), "host", |policy| &mut policy.host)
    }

    fn begin_run(&mut self, write: HostWrite) -> bool {
        if self.fault.get().is_some() {
            return false;
        }
        let run = HostRun { first: write.lpn, pages: write.run_pages, stream: write.stream, now: write.now() };
        self.host.next = 0;
        self.host.streams.clear();
        let answer = self.policy.host(&run, &mut self.host.streams);
        self.run = Some(run);
        self.accept(answer, run.pages as usize, self.host.streams.len(), "host", run.now)
    }

    #[inline(never)]
    pub(super) fn relocation(&mut self, page: Relocation) -> u8 {
        let goes_on = self.from.get(self.moved.next) == Some(&page.from.0) && self.moving.now == page.now();
        if !goes_on && !self.begin_move(page) {
            return 0;
        }
        self.checked(page.now(), "moved", |policy| &mut policy.moved)
    }

    fn begin_move(&mut self, page: Relocation) -> bool {
        if self.fault.get().is_some() {
            return false;
        }
        let flash = page.flash;
        let block = flash.geometry().block_of(page.from);
        let (first, spares) = (flash.geometry().first_page(block).0, flash.nand().spares(block));
        self.from.clear();
        self.moving.lpns.clear();
        for ppn in flash.valid_pages(block).skip_while(|ppn| *ppn != page.from) {
            self.from.push(ppn.0);
            self.moving.lpns.push(spares[(ppn.0 - first) as usize]);
        }
        (self.moving.stream, self.moving.now) = (page.old_stream(), page.now());
        self.moved.next = 0;
        self.moved.streams.clear();
        let answer = self.policy.moved(&self.moving, &mut self.moved.streams);
        self.accept(answer, self.from.len(), self.moved.streams.len(), "moved", page.now())
    }

    /// Whether an answer has a stream for each of the pages, or one for all.
    fn accept(&mut self, answer: Result<(), String>, pages: usize, streams: usize, what: &str, now: u64) -> bool {
        let fits = answer.and_then(|()| {
            if streams == pages || streams == 1 {
                Ok(())
            } else {
                Err(format!(
                    "{what} answered {streams} streams, expected one for each of the {pages} pages, or one for all"
                ))
            }
        });
        match fits {
            Ok(()) => true,
            Err(what) => {
                self.refuse(now, &what);
                false
            }
        }
    }

    fn checked(&mut self, now: u64, what: &str, answers: fn(&mut Self) -> &mut Answers) -> u8 {
        let stream = answers(self).take();
        if let Some(stream) = u8::try_from(stream).ok().filter(|stream| *stream < self.streams) {
            return stream;
        }
        self.refuse(now, &format!("{what} answered stream {stream}, expected 0 to {}", self.streams - 1));
        0
    }

    #[cold]
    fn refuse(&mut self, now: u64, what: &str) {
        self.run = None;
        self.from.clear();
        self.fault.set(format!("{}: host page write {now}: {what}", self.name));
    }
}
