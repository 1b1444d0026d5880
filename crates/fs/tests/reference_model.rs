//! The file system compared with a reference model that knows only which pages programs made dirty, the places of
//! files, and the requests of the device.
//!
//! The reference model counts a version of each page, increased by one whenever the page becomes dirty. A write request
//! carries the current version of each of its pages, and the block holds it once the request is done. Then: when an
//! fsync ends, each page of the file holds at least the version from before the call; after the final sync each page of
//! each file holds its newest; a page is read only while the device holds its newest version. All in small memory on a
//! small device, so that throttling, eviction, full journals and waits for freed blocks are common.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

use crate::support::{Device, in_blocks, play};
use flashwright_block::{Bytes, Nanos, Request, RequestKind, Rng, Seed, below};
use flashwright_fs::{Application, Call, FileSystem, JournalMode, Layout, RequestUnit, Settings, System};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// (file, page, version).
type Content = (u32, u32, u64);

#[derive(Default)]
struct Books {
    listened: usize,
    /// The count continues over a file's deletion, so that an older file's block is never mistaken for a newer one's.
    versions: BTreeMap<(u32, u32), u64>,
    blocks: BTreeMap<u64, Content>,
    /// By first block and number of requests before it.
    in_flight: BTreeMap<u64, VecDeque<Vec<(u64, Content)>>>,
    fsyncs: u64,
    checked_pages: u64,
    reads: u64,
}

const FILES: u32 = 24;

impl Books {
    fn listen(&mut self, fs: &FileSystem) {
        for page in &fs.dirtied()[self.listened..] {
            *self.versions.entry(*page).or_default() += 1;
        }
        self.listened = fs.dirtied().len();
    }

    fn owner(fs: &FileSystem, block: u64) -> Option<(u32, u32)> {
        (0..FILES).find_map(|file| {
            let run = fs
                .runs(file)
                .iter()
                .find(|run| (u64::from(run.physical)..u64::from(run.physical + run.blocks)).contains(&block))?;
            Some((file, run.logical + u32::try_from(block - u64::from(run.physical)).unwrap()))
        })
    }

    fn request(&mut self, fs: &FileSystem, request: &Request, done: bool) {
        self.listen(fs);
        let (kind, first, blocks) = in_blocks(request);
        let range = first..first + u64::from(blocks);
        match (kind, done) {
            (RequestKind::Write, false) => {
                let content = range
                    .filter_map(|block| {
                        let page = Self::owner(fs, block)?;
                        Some((block, (page.0, page.1, self.versions.get(&page).copied().unwrap_or(0))))
                    })
                    .collect();
                self.in_flight.entry(first).or_default().push_back(content);
            }
            (RequestKind::Write, true) => {
                let content = self.in_flight.get_mut(&first).unwrap().pop_front().unwrap();
                self.blocks.extend(content);
            }
            (RequestKind::Read, false) => {
                for block in range {
                    if let Some(page) = Self::owner(fs, block) {
                        let newest = self.versions.get(&page).copied().unwrap_or(0);
                        let held = self.blocks.get(&block);
                        assert_eq!(held, Some(&(page.0, page.1, newest)), "read of {page:?} at {block}");
                        self.reads += 1;
                    }
                }
            }
            _ => {}
        }
    }

    /// Each page of `file` is on the device with the version in `least`.
    fn check(&mut self, fs: &FileSystem, file: u32, least: &BTreeMap<u32, u64>) {
        for run in fs.runs(file) {
            for i in 0..run.blocks {
                let page = run.logical + i;
                let Some(least) = least.get(&page) else { continue };
                let held = self.blocks.get(&u64::from(run.physical + i));
                let right = held.is_some_and(|held| (held.0, held.1) == (file, page) && held.2 >= *least);
                assert!(right, "page {page} of file {file} should hold version {least}, the device holds {held:?}");
                self.checked_pages += 1;
            }
        }
        let placed: u32 = fs.runs(file).iter().map(|run| run.blocks).sum();
        assert!(least.len() <= placed as usize, "file {file}: {} pages written, {placed} placed", least.len());
    }

    fn pages(&self, fs: &FileSystem, file: u32) -> BTreeMap<u32, u64> {
        let pages = fs.size(file).unwrap_or(0).div_ceil(4096);
        let pages = u32::try_from(pages).unwrap();
        self.versions.range((file, 0)..(file, pages)).map(|((_, page), version)| (*page, *version)).collect()
    }
}

/// Four threads with files of their own, and one that all append to.
struct Chaos {
    books: Rc<RefCell<Books>>,
    rng: Rng,
    calls: Vec<VecDeque<Call>>,
    /// An fsync in progress: the file and the versions that it has to hold.
    syncing: Vec<Option<(u32, BTreeMap<u32, u64>)>>,
    live: Vec<bool>,
    left: u32,
}

const THREADS: u32 = 4;
const SHARED: u32 = 0;

impl Chaos {
    fn file_of(&mut self, thread: u32) -> u32 {
        let own = u64::from((FILES - 1) / THREADS);
        1 + thread + THREADS * u32::try_from(below(&mut self.rng, own)).unwrap()
    }

    fn plan(&mut self, thread: u32, fs: &FileSystem) {
        let bytes = 1 + match below(&mut self.rng, 4) {
            0 => below(&mut self.rng, 9_000),
            1 => below(&mut self.rng, 100_000),
            _ => below(&mut self.rng, 1_200_000),
        };
        let unit = 1 + below(&mut self.rng, 70_000);
        let file = self.file_of(thread);
        let size = fs.size(file).unwrap_or(0);
        let choice = below(&mut self.rng, 12);
        let calls = &mut self.calls[thread as usize];
        if !self.live[file as usize] {
            self.live[file as usize] = true;
            let directory = u32::try_from(below(&mut self.rng, 4)).unwrap();
            calls.push_back(Call::Create { file, directory });
            return;
        }
        match choice {
            0 => {
                self.live[file as usize] = false;
                calls.push_back(Call::Delete(file));
            }
            1..=3 if size < 4 << 20 => {
                calls.extend([Call::Open(file), Call::Append { file, bytes, unit }, Call::Close(file)]);
            }
            4 | 5 => {
                let offset = below(&mut self.rng, size + 1);
                let bytes = bytes.min(size - offset);
                calls.extend([Call::Open(file), Call::Write { file, offset, bytes, unit }, Call::Close(file)]);
            }
            6 | 7 => {
                let offset = below(&mut self.rng, size + 1);
                calls.extend([Call::Open(file), Call::Read { file, offset, bytes, unit }, Call::Close(file)]);
            }
            8 => calls.push_back(Call::Fsync { file, data_only: below(&mut self.rng, 2) == 0 }),
            9 => calls.push_back(Call::Fsync { file: SHARED, data_only: true }),
            10 if fs.size(SHARED).unwrap_or(0) < 3 << 20 => {
                calls.push_back(Call::Append { file: SHARED, bytes: bytes.min(50_000), unit });
            }
            _ => {
                let offset = below(&mut self.rng, fs.size(SHARED).unwrap_or(0) + 1);
                calls.push_back(Call::Read { file: SHARED, offset, bytes, unit });
            }
        }
        if below(&mut self.rng, 40) == 0 {
            calls.push_back(Call::Compute(Nanos(below(&mut self.rng, 12_000_000_000))));
        }
    }
}

impl Application for Chaos {
    fn threads(&self) -> u32 {
        THREADS
    }
    fn next(&mut self, thread: u32, _: Nanos, fs: &FileSystem) -> Call {
        let at = thread as usize;
        let mut books = self.books.borrow_mut();
        books.listen(fs);
        if let Some((file, least)) = self.syncing[at].take() {
            books.fsyncs += 1;
            if fs.size(file).is_some() {
                books.check(fs, file, &least);
            }
        }
        drop(books);
        if self.calls[at].is_empty() {
            if self.left == 0 {
                return Call::Exit;
            }
            self.left -= 1;
            self.plan(thread, fs);
        }
        let call = self.calls[at].pop_front().unwrap();
        if let Call::Fsync { file, .. } = call {
            self.syncing[at] = Some((file, self.books.borrow().pages(fs, file)));
        }
        call
    }
    fn figures(&self, _: Nanos) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}

fn chaos(settings: Settings, seed: u64, calls: u32) -> (u64, u64, u64, flashwright_fs::Counts) {
    let books = Rc::new(RefCell::new(Books::default()));
    let mut app = Chaos {
        books: books.clone(),
        rng: Seed(seed).stream("chaos"),
        calls: vec![VecDeque::new(); THREADS as usize],
        syncing: vec![None; THREADS as usize],
        live: vec![false; FILES as usize + 4],
        left: calls,
    };
    app.calls[0].extend((0..3).map(|_| Call::MakeDirectory));
    app.calls[0].extend([Call::Create { file: SHARED, directory: 0 }, Call::Release]);
    (1..4).for_each(|thread| app.calls[thread].push_back(Call::Hold));
    let mut system = System::new(app, settings, 96 << 11, Seed(seed)).unwrap();
    system.file_system_mut().keep_dirtied();
    let mut requests = 0;
    play(&mut system, &mut Device::new(400_000), u64::MAX, |system, _, request, done| {
        books.borrow_mut().request(system.file_system(), request, done);
        requests += 1;
        if requests % 500 == 0 {
            assert_eq!(system.file_system().audit(), Vec::<String>::new());
        }
        let (dirty, writeback) = system.file_system().dirty_pages();
        // 10 % of 512 pages, and what each thread may add once it was let through.
        assert!(dirty + writeback <= 51 + THREADS * 32, "{dirty} {writeback}");
    });
    let fs = system.file_system();
    assert_eq!(fs.audit(), Vec::<String>::new());
    assert_eq!(fs.dirty_pages(), (0, 0));
    let mut books = books.borrow_mut();
    books.listen(fs);
    for file in 0..FILES {
        let all = books.pages(fs, file);
        books.check(fs, file, &all);
    }
    (books.fsyncs, books.checked_pages, books.reads, fs.counts().clone())
}

#[test]
fn what_is_durable_lies_where_the_file_does() {
    let mut totals = (0, 0, 0, 0, 0, 0);
    for (i, layout) in [Layout::Ext3, Layout::Extents].into_iter().enumerate() {
        for (j, journal) in [JournalMode::Ordered, JournalMode::Writeback, JournalMode::None].into_iter().enumerate() {
            for (k, request_unit) in [RequestUnit::Block, RequestUnit::Run].into_iter().enumerate() {
                let settings = Settings {
                    layout,
                    journal,
                    request_unit,
                    memory: Bytes(2 << 20),
                    in_flight: Some(40),
                    ..Settings::default()
                };
                let (fsyncs, pages, reads, counts) = chaos(settings, (i * 6 + j * 2 + k) as u64, 600);
                totals.0 += fsyncs;
                totals.1 += pages;
                totals.2 += reads;
                totals.3 += counts.throttled;
                totals.4 += counts.pages_dropped;
                totals.5 += counts.checkpoints;
            }
        }
    }
    let (fsyncs, pages, reads, throttled, dropped, _) = totals;
    assert!(fsyncs > 500 && pages > 20_000 && reads > 20_000 && throttled > 500 && dropped > 50, "{totals:?}");
}

/// The same seed gives the same run, request by request.
#[test]
fn the_same_seed_gives_the_same_run() {
    let settings = || Settings { memory: Bytes(2 << 20), ..Settings::default() };
    let figures = |seed| {
        let (fsyncs, pages, reads, counts) = chaos(settings(), seed, 200);
        format!("{fsyncs} {pages} {reads} {counts:?}")
    };
    assert_eq!(figures(5), figures(5));
    assert_ne!(figures(5), figures(6));
}
