//! What a power cut leaves of the writes that it interrupts.
//!
//! Writes of all sizes are in flight to a few pages when the power fails, thousands of times, on drives of every make. Then each
//! write that is seen at all must be seen in all its sectors, unless a later write is there instead, if it is no longer than what
//! [`LiveRun::untorn_bytes`] tells and crosses no multiple of it. Longer ones may be torn, and some are, or the test would see
//! nothing.

use flashwright_block::{
    BlockDevice, Completion, HoldsData, Nanos, Request, RequestKind, Rng, SECTOR_BYTES, Seed, below,
};
use flashwright_sim::{LiveRun, Precondition};
use flashwright_ssd::{Config, DriveConfig};

const SMALL: &str = "[geometry]\nchannels = 2\ndies-per-channel = 2\nblocks-per-plane = 32\npages-per-block = 16\n\
                     [capacity]\nutilization = 0.7\n[recovery]\nmount-by = \"scan\"\n";
/// Sectors that are written: few, so that writes meet.
const SECTORS: u64 = 2048;
/// The longest write, in sectors: what a command of NVMe moves at most.
const LONGEST: u64 = 2048;

struct CutDrive {
    drive: LiveRun,
    rng: Rng,
    /// The number of the last write, which all its sectors hold.
    stamp: u64,
}

/// What was found after cuts.
#[derive(Debug, Default)]
struct Found {
    /// Writes that must not be torn, and those among them of which a part is missing.
    guarded: [u32; 2],
    /// Others.
    others: [u32; 2],
}

impl CutDrive {
    fn new(config: &DriveConfig) -> Self {
        let drive = LiveRun::new(config, Seed(1), Precondition::Sequential, || false).unwrap();
        let mut drive = Self { drive, rng: Seed(7).stream("cuts"), stamp: 0 };
        drive.write(0, SECTORS);
        drive.wait(Nanos(u64::MAX));
        drive
    }

    fn write(&mut self, first: u64, sectors: u64) {
        self.stamp += 1;
        let data: Vec<u8> = self.stamp.to_le_bytes().repeat((sectors * SECTOR_BYTES / 8) as usize);
        let fua = below(&mut self.rng, 8) == 0;
        let request = Request { fua, ..self.request(RequestKind::Write, first, sectors) };
        self.drive.submit_with(request, &data).unwrap();
    }

    fn request(&self, kind: RequestKind, first_sector: u64, sectors: u64) -> Request {
        let (sectors, arrival) = (u32::try_from(sectors).unwrap(), self.drive.now());
        Request { kind, first_sector, sectors, arrival, ..Request::default() }
    }

    fn wait(&mut self, until: Nanos) {
        let mut completion = Completion::default();
        while self.drive.wait(until, &mut completion).unwrap() {}
    }

    /// Writes, cuts the power in their midst, mounts the drive and looks at all sectors.
    fn cut(&mut self, found: &mut Found) {
        let unit = self.drive.untorn_bytes().map_or(LONGEST, |bytes| bytes / SECTOR_BYTES);
        let mut given = Vec::new();
        for _ in 0..1 + below(&mut self.rng, 24) {
            let sectors = match below(&mut self.rng, 6) {
                0 => 1 + below(&mut self.rng, LONGEST),
                1 => 1 + below(&mut self.rng, 64),
                _ => 1 + below(&mut self.rng, unit.min(32)),
            };
            // A third of them begin where many do.
            let room = if below(&mut self.rng, 3) == 0 { 64 } else { SECTORS };
            let first = below(&mut self.rng, room).min(SECTORS - sectors);
            self.write(first, sectors);
            given.push((self.stamp, first, sectors));
        }
        let until = self.drive.now() + Nanos(below(&mut self.rng, 4_000_000));
        self.wait(until);
        self.drive.cut().unwrap();
        self.wait(Nanos(u64::MAX));
        self.drive.mount().unwrap();
        let held = self.read();
        for (stamp, first, sectors) in given {
            let own = &held[first as usize..(first + sectors) as usize];
            let is_torn = own.contains(&stamp) && own.iter().any(|held| *held < stamp);
            let is_guarded = match self.drive.untorn_bytes() {
                Some(_) => first / unit == (first + sectors - 1) / unit,
                None => true,
            };
            let counts = if is_guarded { &mut found.guarded } else { &mut found.others };
            counts[0] += 1;
            counts[1] += u32::from(is_torn);
        }
    }

    fn read(&mut self) -> Vec<u64> {
        let request = self.request(RequestKind::Read, 0, SECTORS);
        let tag = self.drive.submit_with(request, &[]).unwrap();
        let mut completion = Completion::default();
        assert!(self.drive.wait(Nanos(u64::MAX), &mut completion).unwrap());
        let mut data = vec![0; request.data_bytes()];
        assert!(self.drive.take_data(tag, &mut data));
        data.chunks(512).map(|sector| u64::from_le_bytes(sector[..8].try_into().unwrap())).collect()
    }
}

#[test]
fn no_write_is_torn_that_the_drive_says_is_not() {
    const PAGES: &str = "geometry.page-size=16 KiB";
    const BUFFER: &str = "controller.write-buffer.size=256 KiB";
    const LITTLE: &str = "controller.write-buffer.size=16 KiB";
    const ENTRIES: &str = "controller.write-buffer.entry=4 KiB";
    const STREAM: &str = "controller.write-buffer.oversized=stream";
    const LINK: &str = "controller.interface-rate=500 MB/s";
    const RAM: [&str; 2] = ["ram.manager=lru", "ram.size=512 KiB"];
    const PROTECTED: &str = "ram.power-protected=true";
    let with_ram = |settings: &[&'static str]| [&RAM[..], settings].concat();
    // What the drive says in KiB, 0 for any length; and whether longer writes are torn sooner or later.
    let makes: [(&str, Vec<&str>, u64, bool); 17] = [
        ("plain", vec![], 4, true),
        ("in order", vec!["timing.model=serial"], 4, false),
        ("large pages", vec![PAGES], 16, true),
        ("link", vec![LINK, PAGES], 16, true),
        ("buffer", vec![BUFFER], 4, true),
        ("buffer, large pages", vec![BUFFER, PAGES], 16, true),
        ("entries", vec![BUFFER, ENTRIES], 4, true),
        ("entries of a part of a page", vec![BUFFER, ENTRIES, PAGES], 4, true),
        ("stream", vec![LITTLE, STREAM, PAGES], 16, true),
        ("RAM", with_ram(&[]), 4, true),
        ("RAM, large pages", with_ram(&[PAGES]), 16, true),
        ("protected RAM", with_ram(&[PROTECTED]), 0, false),
        ("protected RAM behind a link", with_ram(&[PROTECTED, LINK]), 4, false),
        ("protected RAM behind a buffer", with_ram(&[PROTECTED, BUFFER]), 4, false),
        ("RAM in the chips", vec!["chips.write-ram=1 MiB"], 0, false),
        ("mapping in part in RAM", vec!["ftl.scheme=dftl"], 4, true),
        ("log blocks", vec!["ftl.scheme=bast"], 4, true),
    ];
    for (name, settings, kib, tears) in makes {
        let config = Config::from_toml(SMALL, "test").unwrap().with_settings(&settings).unwrap();
        let mut drive = CutDrive::new(&config);
        assert_eq!(drive.drive.untorn_bytes(), (kib > 0).then_some(kib << 10), "{name}");
        let mut found = Found::default();
        (0..250).for_each(|_| drive.cut(&mut found));
        println!("{name}: {found:?}");
        assert_eq!(found.guarded[1], 0, "{name}: {found:?}");
        assert!(found.guarded[0] > 1000, "{name}: {found:?}");
        assert!(!tears || found.others[1] > 20, "{name}: {found:?}");
    }
}
