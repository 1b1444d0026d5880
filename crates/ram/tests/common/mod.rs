//! A drive without time: flash, a scheme and RAM before it.

#![allow(dead_code)] // each test binary uses a part of it

use flashwright_block::{Bytes, Nanos, Rng, Seed, below};
use flashwright_ftl::schemes::{DftlSettings, SchemeContext};
use flashwright_ftl::{
    Cause, Flash, Ftl, FtlSettings, GcSettings, LpnRun, MapCacheName, OpKind, PlacementConfig, Scheme, SchemeName,
    WearSettings,
};
use flashwright_nand::{Geometry, Lpn, Nand, ProgramOrder, WearLimit};
use flashwright_ram::{Ram, RamDrive, RamSettings};

pub const PAGE: u64 = 512;

pub struct Drive {
    pub flash: Flash,
    pub scheme: Scheme,
    pub ram: Ram,
}

pub fn draw(rng: &mut Rng, end: u32) -> u32 {
    u32::try_from(below(rng, u64::from(end))).unwrap()
}

pub fn run(first: u32, pages: u32) -> LpnRun {
    LpnRun { first: Lpn(first), pages, stream: 0 }
}

/// One plane of `blocks` blocks of `pages` pages of 512 B, so 64 entries a page of RAM. A scheme with its table on flash
/// has `entries` of them on a translation page, in groups. Its own check of the configuration is not asked.
pub fn flash(
    scheme: SchemeName,
    blocks: u32,
    pages: u32,
    logical: u32,
    entries: u32,
    gc: &GcSettings,
) -> (Flash, Scheme) {
    let geometry = Geometry::new(1, 1, 1, blocks, pages, Bytes(PAGE));
    let nand = Nand::new(geometry, ProgramOrder::Ascending, WearLimit::Unlimited, &[]);
    let mut flash = Flash::new(nand, logical, false, true);
    let entry_bytes = u32::try_from(PAGE).unwrap() / entries;
    let mut ftl = FtlSettings { scheme, entry_bytes, ..FtlSettings::default() };
    ftl.schemes.dftl = DftlSettings { replacement: MapCacheName::Grouped, ..DftlSettings::default() };
    let (placement, wear) = (PlacementConfig::single_in_turn(), WearSettings::default());
    let context = SchemeContext {
        logical_pages: logical,
        dies_per_way: 1,
        ftl: &ftl,
        gc,
        placement: &placement,
        wear: &wear,
        seed: Seed(1),
        slc: None,
        foreign: None,
    };
    let scheme = scheme.build(&context, &mut flash);
    (flash, scheme)
}

impl Drive {
    pub fn new(
        settings: &RamSettings,
        (mut flash, mut scheme): (Flash, Scheme),
        logical: u32,
    ) -> Result<Self, Vec<String>> {
        let drive = RamDrive { logical_pages: logical, read: Nanos(25_000), program: Nanos(200_000), seed: Seed(1) };
        let ram = Ram::new(settings, drive, &mut scheme, &mut flash)?.expect("a manager is chosen");
        Ok(Self { flash, scheme, ram })
    }
    pub fn write(&mut self, first: u32, pages: u32) {
        self.ram.write(run(first, pages), false, &mut self.scheme, &mut self.flash).unwrap();
    }
    pub fn read(&mut self, first: u32, pages: u32) {
        self.ram.read(run(first, pages), &mut self.scheme, &mut self.flash);
    }
    pub fn trim(&mut self, first: u32, pages: u32) {
        self.ram.trim(run(first, pages), &mut self.scheme, &mut self.flash);
    }
    pub fn flush(&mut self) {
        self.ram.flush(&mut self.scheme, &mut self.flash).unwrap();
    }
    pub fn count(&self, kind: OpKind, cause: Cause) -> u64 {
        self.flash.counters().get(kind, cause)
    }
    /// A figure that only the manager has.
    pub fn extra(&self, name: &str) -> f64 {
        let figures = self.ram.figures().extra;
        figures.iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("{name} in {figures:?}")).1
    }
    pub fn assert_clean(&self, at: &str) {
        let mut violations = Vec::new();
        self.flash.audit(&mut violations);
        self.scheme.audit(&self.flash, &mut violations);
        self.ram.audit(&mut violations);
        violations.extend_from_slice(self.flash.stamps().unwrap().violations().1);
        assert!(violations.is_empty(), "{at}: {violations:?}");
    }
}
