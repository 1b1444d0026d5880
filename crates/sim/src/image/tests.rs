//! The format against random changes, kills, crashes of the machine, and damage.
//!
//! A crash of the machine is simulated sector by sector: every sector that was written since the last `fdatasync` is at random as it was
//! then or as it is now.

use super::writer::SYNCED;
use super::{Creating, Header, Image};
use flashwright_block::{Bytes, Rng, Seed, below, chance};
use flashwright_ftl::PageBytes;
use flashwright_ftl::durable::{Medium, MediumBlock, Mirror, PageState, Programmed, Record};
use flashwright_nand::{BlockId, Geometry, Ppn};
use flashwright_ssd::DriveConfig;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const PAGE: usize = 512;

/// A folder that goes with the test.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("flashwright-image-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let memory = Path::new("/dev/shm"); // where a sync costs nothing
        let path = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }.join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub fn file(&self) -> PathBuf {
        self.0.join("drive.img")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// 6 blocks of 8 pages.
fn config() -> DriveConfig {
    DriveConfig::default()
        .with_settings(&[
            "geometry.channels=1",
            "geometry.dies-per-channel=1",
            "geometry.blocks-per-plane=16",
            "geometry.pages-per-block=8",
            "geometry.page-size=512 B",
            "capacity.utilization=0.5",
            "recovery.mount-by=scan",
        ])
        .unwrap()
}

fn geometry() -> Geometry {
    let geometry = config().layout();
    assert_eq!((geometry.blocks(), geometry.pages_per_block(), geometry.page_size()), (16, 8, Bytes(512)));
    geometry
}

fn create(path: &Path, medium: &Medium) -> Image {
    let header = Header::new(&config(), Seed(1));
    Creating::begin(path).unwrap().finish(&header, (&geometry(), medium, &[]), || false).unwrap()
}

fn open(path: &Path) -> Result<(Image, Vec<MediumBlock>), String> {
    let opened = Image::open(path, &config(), Seed(1), || false);
    opened.map(|(image, medium)| (image, trimmed(&medium))).map_err(|error| error.to_string())
}

/// The blocks without erased pages at their ends.
fn trimmed(medium: &Medium) -> Vec<MediumBlock> {
    let mut blocks = medium.blocks().to_vec();
    for block in &mut blocks {
        let used = block.pages.iter().rposition(|(state, _)| *state != PageState::Erased).map_or(0, |last| last + 1);
        block.pages.truncate(used);
    }
    blocks
}

/// From now on keeps what a sync of this thread covers.
pub(super) fn keep_synced(path: &Path) {
    SYNCED.set(Some(std::fs::read(path).unwrap()));
}

/// Makes of a file what a crash of the machine may leave.
pub(super) fn crash(path: &Path, draw: &mut Rng) {
    let then = SYNCED.take().unwrap();
    let mut now = std::fs::read(path).unwrap();
    let share = [0.1, 0.5, 0.9][below(draw, 3) as usize];
    for at in (0..then.len()).step_by(512) {
        let sector = at..(at + 512).min(then.len());
        if now[sector.clone()] != then[sector.clone()] && chance(draw, share) {
            now[sector.clone()].copy_from_slice(&then[sector]);
        }
    }
    std::fs::write(path, &now).unwrap();
}

fn text(blocks: &[MediumBlock]) -> String {
    format!("{blocks:?}")
}

#[derive(Clone, Debug)]
enum Step {
    Program { block: u32, kind: u8 },
    Tear { block: u32 },
    Erase { block: u32, torn: bool },
    Retire { block: u32 },
    Sync,
}

fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let block = 0..6u32;
    let step = prop_oneof![
        12 => (block.clone(), any::<u8>()).prop_map(|(block, kind)| Step::Program { block, kind }),
        1 => block.clone().prop_map(|block| Step::Tear { block }),
        3 => (block.clone(), prop::bool::weighted(0.2)).prop_map(|(block, torn)| Step::Erase { block, torn }),
        1 => block.prop_map(|block| Step::Retire { block }),
        2 => Just(Step::Sync),
    ];
    prop::collection::vec(step, 1..most)
}

/// An image, what the chips hold, and what was ever programmed.
struct Chips {
    image: Image,
    blocks: Vec<MediumBlock>,
    /// Blocks as they were before an erase that no sync has followed.
    dying: BTreeMap<u32, MediumBlock>,
    /// What the last sync covered.
    synced: Vec<MediumBlock>,
    history: BTreeMap<u32, Vec<Programmed>>,
    sequence: u64,
}

impl Chips {
    fn new(path: &Path) -> Self {
        let medium = Medium::new(&geometry());
        let image = create(path, &medium);
        let blocks = trimmed(&medium);
        let (dying, history) = (BTreeMap::new(), BTreeMap::new());
        Self { image, synced: blocks.clone(), blocks, dying, history, sequence: 0 }
    }

    fn content(&mut self, kind: u8) -> Programmed {
        self.sequence += 1;
        let sequence = self.sequence;
        let mut page = Programmed { owner: u32::from(kind), sequence, version: sequence, ..Programmed::default() };
        match kind % 4 {
            0 => {}
            1 => page.record = Some(Box::new(Record::Trims(vec![(7, 9, sequence); 20]))),
            _ => {
                let bytes: Vec<u8> =
                    (0..PAGE).map(|at| (at as u8).wrapping_mul(kind).wrapping_add(sequence as u8)).collect();
                page.bytes = PageBytes::of(&bytes);
            }
        }
        page
    }

    /// Carries out a step, unless the chip forbids it.
    fn step(&mut self, step: &Step) {
        let (before, epoch) = (self.blocks.clone(), self.image.epoch);
        match *step {
            Step::Program { block, .. } | Step::Tear { block } => {
                let at = self.blocks[block as usize].pages.len();
                if at == 8 {
                    return;
                }
                let ppn = Ppn(block * 8 + at as u32);
                let (state, page) = match *step {
                    Step::Program { kind, .. } => (PageState::Programmed, self.content(kind)),
                    _ => (PageState::Torn, Programmed::default()),
                };
                self.history.entry(ppn.0).or_default().push(page.clone());
                self.image.programmed(ppn, state, &page);
                self.blocks[block as usize].pages.push((state, page));
            }
            Step::Erase { block, torn } => {
                self.image.erased(BlockId(block), torn);
                if self.image.epoch != epoch {
                    self.dying.clear(); // an erase syncs what was programmed before it
                }
                self.dying.entry(block).or_insert_with(|| before[block as usize].clone());
                let held = &mut self.blocks[block as usize];
                held.erases += 1;
                held.pages.clear();
                if torn {
                    held.pages.resize(8, (PageState::Torn, Programmed::default()));
                }
            }
            Step::Retire { block } => {
                self.image.retired(BlockId(block));
                self.blocks[block as usize].is_retired = true;
                self.dying.entry(block).and_modify(|held| held.is_retired = true);
            }
            Step::Sync => self.image.sync().unwrap(),
        }
        if self.image.epoch != epoch {
            // A program that finds its block dying syncs before it is done.
            self.synced = if matches!(step, Step::Sync) { self.blocks.clone() } else { before };
            if !matches!(step, Step::Erase { .. }) {
                self.dying.clear();
            }
        }
        assert_eq!(self.image.failure(), None);
    }

    /// What a kill now leaves.
    fn killed(&self) -> Vec<MediumBlock> {
        let mut blocks = self.blocks.clone();
        for (block, before) in &self.dying {
            blocks[*block as usize] = before.clone();
        }
        blocks
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_was_done_is_there_after_a_kill(rounds in prop::collection::vec(steps(40), 1..4)) {
        let folder = Folder::new();
        let mut chips = Chips::new(&folder.file());
        for steps in rounds {
            steps.iter().for_each(|step| chips.step(step));
            let expected = chips.killed();
            drop(chips.image);
            let (image, found) = open(&folder.file()).unwrap();
            prop_assert_eq!(text(&found), text(&expected));
            chips = Chips { image, blocks: found.clone(), synced: found, dying: BTreeMap::new(), ..chips };
        }
    }

    #[test]
    fn what_was_synced_is_there_after_a_crash_of_the_machine(steps in steps(60), seed in any::<u64>()) {
        let folder = Folder::new();
        let mut chips = Chips::new(&folder.file());
        keep_synced(&folder.file());
        steps.iter().for_each(|step| chips.step(step));
        let Chips { image, synced, history, .. } = chips;
        drop(image);
        crash(&folder.file(), &mut Seed(seed).stream("crash"));
        for _ in 0..2 {
            // The second time, what was torn is so for good.
            let (image, found) = open(&folder.file()).unwrap();
            drop(image);
            for (number, (found, synced)) in (0..).zip(found.iter().zip(&synced)) {
                prop_assert!(found.erases <= synced.erases);
                for (page, (state, held)) in (0..).zip(&found.pages) {
                    let of_page = history.get(&(number * 8 + page));
                    let was_written = *state != PageState::Programmed || of_page.is_some_and(|all| all.contains(held));
                    prop_assert!(was_written, "block {} page {}: never written", number, page);
                }
                if found.erases == synced.erases {
                    let kept = found.pages.get(..synced.pages.len()).unwrap_or_default();
                    prop_assert_eq!(format!("{:?}", kept), format!("{:?}", synced.pages), "block {}", number);
                }
            }
        }
    }

    #[test]
    fn damage_is_refused_or_hits_what_nothing_needs(
        steps in steps(60),
        at in any::<prop::sample::Index>(),
        length in 1usize..600,
        kind in 0..3u8,
    ) {
        let folder = Folder::new();
        let mut chips = Chips::new(&folder.file());
        steps.iter().for_each(|step| chips.step(step));
        chips.step(&Step::Sync);
        let expected = text(&chips.blocks);
        drop(chips);
        let whole = std::fs::read(folder.file()).unwrap();
        let used: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] != 0).collect();
        let at = used[at.index(used.len())];
        let mut damaged = whole.clone();
        match kind {
            0 => damaged[at] ^= 1 << (length % 8),
            1 => damaged[at..whole.len().min(at + length)].fill(0),
            _ => damaged.truncate(at),
        }
        std::fs::write(folder.file(), &damaged).unwrap();
        match open(&folder.file()) {
            Err(why) => {
                prop_assert!(why.contains("drive.img: damaged: ") || why.contains("another kind of file"), "{}", why);
                prop_assert!(!why.contains('\n'), "{}", why);
            }
            Ok((_, found)) => prop_assert_eq!(text(&found), expected),
        }
    }
}

/// An image with one page of data, one of zeros and one of the journal, synced.
fn small(folder: &Folder) -> Chips {
    let mut chips = Chips::new(&folder.file());
    for kind in [2, 4, 1] {
        chips.step(&Step::Program { block: 3, kind });
    }
    chips.step(&Step::Sync);
    chips
}

#[test]
fn every_part_is_named_when_it_is_damaged() {
    let folder = Folder::new();
    let chips = small(&folder);
    let layout = chips.image.layout;
    drop(chips);
    let whole = std::fs::read(folder.file()).unwrap();
    let refused = |at: u64, part: &str| {
        let mut damaged = whole.clone();
        damaged[at as usize] ^= 4;
        std::fs::write(folder.file(), damaged).unwrap();
        let why = open(&folder.file()).unwrap_err();
        assert!(why.contains(part), "{part}: {why}");
    };
    refused(30, "its header");
    refused(layout.block_slot(BlockId(3)) + 5, "block 3: its erases");
    refused(layout.block_slot(BlockId(15)) + 63, "block 15: its erases");
    refused(layout.page_slot(Ppn(25)) + 9, "block 3: page 1: its spare area");
    refused(layout.content(Ppn(24)) + 511, "block 3: page 0: the data of logical page 2");
    refused(layout.content(Ppn(26)) + 3, "block 3: page 2: a page of the drive's journal");
    let mut damaged = whole.clone();
    damaged[layout.page_slot(Ppn(25)) as usize..][..128].fill(0);
    std::fs::write(folder.file(), damaged).unwrap();
    assert!(open(&folder.file()).unwrap_err().contains("block 3: found 2 of the 3 spare areas"));
    std::fs::write(folder.file(), &whole[..whole.len() - 1]).unwrap();
    assert!(open(&folder.file()).unwrap_err().contains("its end is lost"));
    std::fs::write(folder.file(), &whole).unwrap();
    assert!(open(&folder.file()).is_ok());
}

#[test]
fn a_page_that_no_sync_covered_may_be_torn() {
    let folder = Folder::new();
    let mut chips = small(&folder);
    chips.step(&Step::Program { block: 3, kind: 6 });
    let at = chips.image.layout.content(Ppn(27)) as usize;
    drop(chips);
    let mut file = std::fs::read(folder.file()).unwrap();
    file[at] ^= 1;
    std::fs::write(folder.file(), file).unwrap();
    for _ in 0..2 {
        let (_, found) = open(&folder.file()).unwrap();
        assert_eq!(found[3].pages[3].0, PageState::Torn, "the second time a sync has covered that it is torn");
        assert_eq!(found[3].pages[2].0, PageState::Programmed);
    }
}

#[test]
fn what_is_kept_is_there_again_whole_or_as_before() {
    let folder = Folder::new();
    let header = Header::new(&config(), Seed(1));
    let make = |kept: &[u8]| {
        let _ = std::fs::remove_file(folder.file());
        let creating = Creating::begin(&folder.file()).unwrap();
        creating.finish(&header, (&geometry(), &Medium::new(&geometry()), kept), || false).unwrap()
    };
    let kept = || {
        let (image, _) = Image::open(&folder.file(), &config(), Seed(1), || false).map_err(|error| error.what)?;
        Ok::<_, String>(image.kept().to_vec())
    };
    drop(make(&[]));
    assert_eq!(kept(), Ok(Vec::new()));
    let mut image = make(&[1; 3000]);
    let before = std::fs::read(folder.file()).unwrap();
    image.keep(&[2; 9000]).unwrap();
    drop(image);
    let after = std::fs::read(folder.file()).unwrap();
    assert_eq!(kept(), Ok(vec![2; 9000]));
    // The machine fails before the sync: each sector is as before or as after.
    let mut rng = Seed(5).stream("sectors");
    let mut older = 0;
    for _ in 0..200 {
        let mut mixed = after.clone();
        for (now, then) in mixed.chunks_mut(512).zip(before.chunks(512)) {
            if chance(&mut rng, 0.05) {
                now.copy_from_slice(then);
            }
        }
        std::fs::write(folder.file(), &mixed).unwrap();
        let found = kept().unwrap();
        assert!(found == [1; 3000] || found == [2; 9000]);
        older += u32::from(found == [1; 3000]);
    }
    assert!((20..180).contains(&older), "{older}");
    let mut damaged = after;
    [(192 << 10) + 100, (224 << 10) + 100].into_iter().for_each(|at: usize| damaged[at] ^= 1);
    std::fs::write(folder.file(), &damaged).unwrap();
    assert!(kept().unwrap_err().contains("what is kept with the drive"));
    assert!(make(&[]).keep(&[3; 33 << 10]).is_err(), "more than fits");
}

#[test]
fn an_image_serves_one_at_a_time_and_appears_whole() {
    let folder = Folder::new();
    let creating = Creating::begin(&folder.file()).unwrap();
    assert!(!folder.file().exists(), "nothing is there yet");
    let header = Header::new(&config(), Seed(1));
    let image = creating.finish(&header, (&geometry(), &Medium::new(&geometry()), &[]), || false).unwrap();
    assert!(open(&folder.file()).unwrap_err().ends_with("in use by another server"));
    assert!(Creating::begin(&folder.file()).unwrap_err().to_string().ends_with("exists already"));
    drop(image);
    assert!(open(&folder.file()).is_ok());
    let given_up = Creating::begin(&folder.0.join("other.img")).unwrap();
    let why = given_up.finish(&header, (&geometry(), &Medium::new(&geometry()), &[]), || true).unwrap_err();
    assert!(why.to_string().contains("given up"));
    let left: Vec<_> = std::fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["drive.img"], "nothing half-written is left");
}

#[test]
fn where_files_have_a_name_at_once_nobody_can_guess_it_and_nothing_is_written_over() {
    let folder = Folder::new();
    let header = Header::new(&config(), Seed(1));
    let names = || {
        let mut found: Vec<_> = std::fs::read_dir(&folder.0)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        found.sort();
        found
    };
    let begin = || Creating::begin_with(&folder.file(), Err(rustix::io::Errno::OPNOTSUPP)).unwrap();
    let finish = |creating: Creating| {
        creating.finish(&header, (&geometry(), &Medium::new(&geometry()), &[]), || false).map_err(|error| error.what)
    };
    let (one, other) = (begin(), begin());
    let parts = names();
    assert_eq!(parts.len(), 2);
    for part in &parts {
        let random = part.strip_prefix(".drive.img.").and_then(|rest| rest.strip_suffix(".partial")).unwrap();
        assert!(u64::from_str_radix(random, 16).is_ok() && random.len() == 16, "{part}");
        let mode = std::os::unix::fs::PermissionsExt::mode(&folder.0.join(part).metadata().unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
    }
    drop(finish(one).unwrap());
    let whole = std::fs::read(folder.file()).unwrap();
    assert!(finish(other).unwrap_err().ends_with("exists already"));
    assert_eq!(names(), ["drive.img"]);
    assert!(std::fs::read(folder.file()).unwrap() == whole && open(&folder.file()).is_ok());
    // A link that somebody lays there meanwhile is not followed.
    std::fs::remove_file(folder.file()).unwrap();
    let creating = begin();
    std::os::unix::fs::symlink(folder.0.join("elsewhere"), folder.file()).unwrap();
    assert!(finish(creating).unwrap_err().ends_with("exists already"));
    assert_eq!(names(), ["drive.img"], "and nothing is elsewhere");
}

#[test]
fn a_block_that_stays_erased_gives_its_space_back() {
    use std::os::unix::fs::MetadataExt;
    let folder = Folder::new();
    let mut chips = Chips::new(&folder.file());
    for _ in 0..8 {
        chips.step(&Step::Program { block: 2, kind: 6 });
    }
    let space = |chips: &mut Chips, block: u32| {
        chips.step(&Step::Program { block, kind: 4 });
        chips.step(&Step::Sync);
        std::fs::metadata(folder.file()).unwrap().blocks() * 512
    };
    let full = space(&mut chips, 0);
    chips.step(&Step::Erase { block: 2, torn: false });
    let marked = space(&mut chips, 0);
    let punched = space(&mut chips, 0);
    assert!(marked == full && punched < full, "{full} {marked} {punched}");
}
