//! `[chips]`: what the dies of a drive can do beyond a page at a time.

use crate::problems::Problems;
use crate::schema::{Config, GeometryConfig};
use crate::values::Rate;
use flashwright_block::registry::text_schema;
use flashwright_block::{Bytes, Nanos};
use flashwright_ftl::AllocationOrder;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::fmt;
use std::str::FromStr;

/// `[chips]`: commands of the dies beyond reading, programming and erasing a page at a time. The defaults switch all of
/// them off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ChipsConfig {
    /// How the pages that share cells are programmed.
    pub programming: Programming,
    /// Array times of reading a page, one for each page of a cell, lowest page first, such as `"50 us, 70 us, 95 us"`.
    /// Empty: all take `timing.read`.
    pub read_times: PageTimes,
    /// With `chips.programming = "page"`: array times of programming a page, one for each page of a cell. Empty: all take
    /// `timing.program`.
    pub program_times: PageTimes,
    /// With `chips.programming = "two-pass"`: array time of the first pass. The second takes `timing.program`.
    #[schemars(extend("x-maximum" = "10 s"))]
    pub first_pass: Nanos,
    /// Which operations a die suspends to serve reads of the host.
    pub suspends: Suspends,
    /// Time from the command to suspend until the die can read.
    #[schemars(extend("x-maximum" = "10 s"))]
    pub suspend: Nanos,
    /// Extra array time after each suspension.
    #[schemars(extend("x-maximum" = "10 s"))]
    pub resume: Nanos,
    /// Suspensions of one operation; after the last one, reads wait for its end.
    #[schemars(range(min = 1))]
    pub suspensions_max: u32,
    /// Time that an operation runs at least before it is suspended, from its start or from when it was resumed.
    #[schemars(extend("x-maximum" = "10 s"))]
    pub run_least: Nanos,
    /// Whether the data of a program can cross the bus while the die executes the program before it (cache program).
    pub cache_program: bool,
    /// Whether a die can read the next page from its array while the one before crosses the bus (cache read).
    pub cache_read: bool,
    /// Whether cleaning copies a page within a plane without the bus (copyback). Works on single pages only.
    pub copyback: bool,
    /// RAM that holds written data until a die has programmed them. A write is done as soon as its data have room there;
    /// it survives a power cut, and reads find it. A write that has no room is not programmed either. `"0 B"`: a write is done when its pages are programmed.
    #[schemars(extend("x-maximum" = "1 TiB", "x-multiple-of" = "512 B", "x-expected" = "a multiple of 512 B, at most {max}"))]
    pub write_ram: Bytes,
    /// Controller RAM for pages that cleaning moves, each from before it is read until it is programmed. It bounds how many
    /// are under way: the next page is read once there is room. `"0 B"`: no bound.
    #[schemars(extend("x-maximum" = "1 TiB", "x-multiple-of" = "512 B", "x-expected" = "a multiple of 512 B, at most {max}"))]
    pub copy_ram: Bytes,
    /// Firmware time for each mapping unit that cleaning moves: one processor looks up the owner and prepares read and program, one page after
    /// the other. Copies within a plane (`chips.copyback`) take none.
    #[schemars(extend("x-maximum" = "10 s"))]
    pub copy_overhead: Nanos,
    /// Rate at which the firmware clears the map of what a trim covers, in bytes of addresses, since it visits every mapping unit. The
    /// processor that does so is the one that gives dies their commands: until it is done, they start no new ones. `"none"`: a trim takes
    /// no time.
    pub trim_rate: Rate,
}

impl Default for ChipsConfig {
    fn default() -> Self {
        Self {
            programming: Programming::Page,
            read_times: PageTimes::default(),
            program_times: PageTimes::default(),
            first_pass: Nanos(0),
            suspends: Suspends::Nothing,
            suspend: Nanos(50_000),
            resume: Nanos(50_000),
            suspensions_max: 8,
            run_least: Nanos(0),
            cache_program: false,
            cache_read: false,
            copyback: false,
            write_ram: Bytes(0),
            copy_ram: Bytes(0),
            copy_overhead: Nanos(0),
            trim_rate: Rate(None),
        }
    }
}

/// How the pages that share cells are programmed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Programming {
    /// One after the other, each by an operation of its own.
    #[default]
    Page,
    /// All at once.
    OneShot,
    /// All at once and coarsely, and again exactly once the next word line has been programmed coarsely (foggy-fine).
    TwoPass,
}

/// Which operations a die suspends to serve reads of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Suspends {
    /// None.
    #[default]
    Nothing,
    /// Erases.
    Erases,
    /// Programs and erases.
    ProgramsAndErases,
}

/// Which blocks the translation layer treats as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Superblock {
    /// Every block of a plane by itself.
    #[default]
    Block,
    /// The blocks at the same position in the planes of a die. Pages at the same position of theirs are programmed and read
    /// together, blocks erased together (multi-plane commands).
    Die,
    /// The blocks at the same position in all planes of all dies, or of the dies of a reclaim group (`placement.fdp.groups`). Data fill them die
    /// after die.
    Drive,
}

/// Times, one for each page of a cell; empty if all pages are alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageTimes(pub Vec<Nanos>);

impl FromStr for PageTimes {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let times = parts.map(|part| part.parse::<Nanos>().map_err(|error| error.to_string()));
        times.collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for PageTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, time) in self.0.iter().enumerate() {
            write!(f, "{}{time}", if at > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

text_schema!(
    PageTimes,
    { "type": "string", "x-takes": "times separated by commas, one for each page of a cell, or nothing" }
);

impl Serialize for PageTimes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PageTimes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// How the pages of a block, as the translation layer counts them, lie on the dies.
///
/// ```text
///   block ─ units, one program each: mapping units of a page, times planes, times bits of a cell if programmed at once
///         ─ units follow each other over the dies; then the next page or word line
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockLayout {
    /// Mapping units in a page of a plane.
    pub per_page: u32,
    /// Planes that are read and programmed together.
    pub planes: u32,
    /// Pages of a cell that are programmed together.
    pub bits_together: u32,
    /// Dies that a block lies on.
    pub dies: u32,
    /// Of so many dies, one holds parity; 0 for none.
    pub parity_dies: u32,
}

impl BlockLayout {
    /// Mapping units that one command programs.
    ///
    /// ```
    /// # use flashwright_config::Config;
    /// let drive = Config::default().with_settings(&[
    ///     "geometry.superblock=drive", "geometry.planes-per-die=4", "geometry.page-size=16 KiB", "geometry.mapping-unit=4 KiB",
    ///     "geometry.pages-per-block=12", "geometry.bits-per-cell=3", "chips.programming=one-shot", "chips.write-ram=4 MiB",
    /// ])?;
    /// let layout = drive.block_layout();
    /// assert_eq!((layout.unit(), layout.dies), (4 * 4 * 3, 8));
    /// assert_eq!(drive.layout().pages_per_block(), 48 * 8 * (12 / 3));
    /// # Ok::<(), flashwright_config::ConfigError>(())
    /// ```
    #[must_use]
    pub fn unit(&self) -> u32 {
        self.per_page.saturating_mul(self.planes).saturating_mul(self.bits_together)
    }

    /// Units of data in a row of units over the dies; parity takes the rest.
    #[must_use]
    pub fn units_in_row(&self) -> u32 {
        match self.parity_dies {
            0 => self.dies,
            of => self.dies / of * (of - 1),
        }
    }

    pub(crate) fn of(config: &Config) -> Self {
        let g = &config.geometry;
        let together = g.superblock != Superblock::Block;
        let bits_together = if config.chips.programming == Programming::Page { 1 } else { g.bits_per_cell };
        Self {
            per_page: g.units_per_page(),
            planes: if together { g.planes_per_die } else { 1 },
            bits_together,
            // Too many are told by those who check the geometry.
            dies: if g.superblock == Superblock::Drive { g.dies() / config.placement.groups() } else { 1 },
            parity_dies: g.parity_dies,
        }
    }

    /// Pages of a block as the translation layer counts them; none if they exceed 64 bits.
    pub(crate) fn pages_per_block(&self, g: &GeometryConfig) -> Option<u64> {
        let rows = u64::from(g.pages_per_block / self.bits_together.max(1));
        let in_row = u64::from(self.units_in_row());
        rows.checked_mul(in_row)?
            .checked_mul(u64::from(self.per_page))?
            .checked_mul(u64::from(self.planes) * u64::from(self.bits_together))
    }
}

impl GeometryConfig {
    /// Dies of all channels.
    pub(crate) fn dies(&self) -> u32 {
        self.channels.saturating_mul(self.dies_per_channel)
    }

    /// Mapping units in a page.
    pub(crate) fn units_per_page(&self) -> u32 {
        let unit = if self.mapping_unit.0 == 0 { self.page_size.0 } else { self.mapping_unit.0 };
        u32::try_from(self.page_size.0 / unit.max(1)).unwrap_or(u32::MAX)
    }
}

impl Config {
    /// Whether a drive needs the engine of chip commands.
    #[must_use]
    pub fn commands_chips(&self) -> bool {
        let g = &self.geometry;
        let plain = ChipsConfig::default();
        g.superblock != Superblock::Block
            || g.units_per_page() > 1
            || self.chips.programming != plain.programming
            || self.chips.suspends != plain.suspends
            || self.chips.cache_program
            || self.chips.cache_read
            || self.chips.copyback
            || self.chips.write_ram != plain.write_ram
            || self.chips.copy_ram != plain.copy_ram
            || self.chips.copy_overhead != plain.copy_overhead
            || self.chips.trim_rate != plain.trim_rate
            || !self.chips.read_times.0.is_empty()
            || !self.chips.program_times.0.is_empty()
            || self.energy.limit_mw > 0.0
            || self.errors.law != flashwright_nand::ErrorLaw::None
    }

    pub(crate) fn chips_problems(&self, problems: &mut Problems) {
        let (g, chips) = (&self.geometry, &self.chips);
        problems.unless(
            g.mapping_unit.0 == 0 || g.page_size.0.is_multiple_of(g.mapping_unit.0),
            "geometry.mapping-unit",
            g.mapping_unit,
            &format!("a divisor of geometry.page-size = {}, or 0 B for whole pages", g.page_size),
        );
        let together = g.superblock != Superblock::Block;
        let plain_clusters = g.cluster_channels == 1 && g.cluster_dies == 1;
        problems.unless(
            plain_clusters || !self.commands_chips(),
            "geometry.cluster-dies",
            "clustered pages beside settings of [chips], geometry.superblock or geometry.mapping-unit",
            "geometry.cluster-channels = 1 and geometry.cluster-dies = 1 with them; geometry.superblock = \"drive\" spans all dies",
        );
        for (key, times) in [("chips.read-times", &chips.read_times), ("chips.program-times", &chips.program_times)] {
            problems.unless(
                times.0.is_empty() || times.0.len() == g.bits_per_cell as usize,
                key,
                format!("{} times", times.0.len()),
                &format!("{}, one for each page of a cell (geometry.bits-per-cell), or none", g.bits_per_cell),
            );
            problems.unless(
                times.0.iter().all(|time| time.0 <= 10_000_000_000),
                key,
                format!("{times}"),
                "times of at most 10 s",
            );
        }
        let at_once = chips.programming != Programming::Page;
        problems.unless(
            !at_once || g.bits_per_cell > 1,
            "chips.programming",
            "the pages of a cell programmed together",
            "geometry.bits-per-cell of 2 or more with it: a cell has but one page",
        );
        problems.unless(
            !at_once || chips.program_times.0.is_empty(),
            "chips.program-times",
            format!("{}", chips.program_times),
            "none unless chips.programming = \"page\": pages programmed together take timing.program",
        );
        problems.unless(
            !at_once || g.pages_per_block.is_multiple_of(g.bits_per_cell.max(1)),
            "geometry.pages-per-block",
            g.pages_per_block,
            &format!(
                "a multiple of geometry.bits-per-cell = {}: pages of a cell are programmed together",
                g.bits_per_cell
            ),
        );
        let (order, plain_order) = (self.placement.order, AllocationOrder::default());
        problems.unless(
            g.superblock != Superblock::Drive || order == plain_order,
            "placement.order",
            order,
            &format!(
                "{plain_order}, the default, with geometry.superblock = \"drive\": its blocks span all dies, so that no planes take turns, and \
                 reclaim groups get their dies over channels first"
            ),
        );
        let groups = self.placement.groups();
        let dies = g.dies() / g.cluster_channels.max(1) / g.cluster_dies.max(1);
        problems.unless(
            dies.is_multiple_of(groups),
            "placement.fdp.groups",
            groups,
            &format!("a divisor of the {dies} dies, so that all groups have as many"),
        );
        let dies = g.dies() / groups;
        problems.unless(
            g.parity_dies == 0
                || g.superblock == Superblock::Drive && g.parity_dies >= 2 && dies.is_multiple_of(g.parity_dies),
            "geometry.parity-dies",
            g.parity_dies,
            &format!(
                "0 for none, or a divisor of {dies} dies{}, 2 or more, with geometry.superblock = \"drive\"",
                if groups > 1 { " of a group" } else { "" }
            ),
        );
        if ["geometry.mapping-unit", "geometry.parity-dies", "placement.fdp.groups"]
            .iter()
            .any(|key| problems.concern(key))
        {
            return;
        }
        let layout = BlockLayout::of(self);
        let pages = layout.pages_per_block(g).unwrap_or(u64::MAX);
        problems.unless(
            pages <= 65_535,
            "geometry.pages-per-block",
            format!("blocks of {pages} mapping units"),
            "at most 65,535 (geometry.superblock and geometry.mapping-unit multiply pages); use fewer pages a block, or larger \
             mapping units",
        );
        let at_once = u64::from(layout.planes) * u64::from(layout.bits_together);
        let unit = at_once.saturating_mul(u64::from(layout.per_page));
        let unit_bytes = unit.saturating_mul(self.mapped_page().0);
        let two_units = unit_bytes.saturating_mul(2);
        problems.unless(
            unit <= 1 || chips.write_ram.0 >= two_units,
            "chips.write-ram",
            chips.write_ram,
            &format!(
                "at least {}: a die programs {} at once{}, and RAM collects them",
                Bytes(two_units),
                Bytes(unit_bytes),
                if together { " in its planes" } else { "" },
            ),
        );
        for (key, size, least) in [
            ("chips.copy-ram", chips.copy_ram, if unit > 1 { two_units } else { unit_bytes }),
            ("chips.write-ram", chips.write_ram, unit_bytes),
        ] {
            problems.unless(
                unit > 1 && key == "chips.write-ram" || size.0 == 0 || size.0 >= least,
                key,
                size,
                &format!("0 B, or at least {}: a die programs {} at once", Bytes(least), Bytes(unit_bytes)),
            );
        }
        problems.unless(
            !chips.copyback || unit == 1,
            "chips.copyback",
            "true",
            "false where one command programs several mapping units",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(settings: &[&str]) -> String {
        Config::default().with_settings(settings).unwrap_err().to_string()
    }

    #[test]
    fn each_rule_names_its_key_and_what_would_do() {
        for (settings, expected) in [
            (&["geometry.mapping-unit=3 KiB"][..], "geometry.mapping-unit: found 3 KiB, expected a divisor of"),
            (&["chips.read-times=40 us, 60 us"], "chips.read-times: found 2 times, expected 1, one for each page"),
            (&["chips.programming=one-shot"], "expected geometry.bits-per-cell of 2 or more"),
            (&["geometry.parity-dies=3", "geometry.superblock=drive"], "a divisor of 8 dies"),
            (
                &["geometry.superblock=drive", "placement.order=WDCP", "chips.write-ram=1 MiB"],
                "placement.order: found WDCP, expected CWDP, the default, with geometry.superblock = \"drive\": its blocks span all dies",
            ),
            (&["geometry.superblock=drive", "geometry.pages-per-block=60000"], "at most 65,535"),
            (
                &["geometry.superblock=drive", "geometry.channels=65536", "geometry.dies-per-channel=65537"],
                "geometry.channels: found 65536, expected 1 to",
            ),
            (&["geometry.mapping-unit=512 B"], "chips.write-ram: found 0 B, expected at least 8 KiB"),
            (&["geometry.mapping-unit=512 B", "chips.write-ram=1 MiB", "chips.copyback=true"], "chips.copyback"),
            (&["chips.copy-ram=512 B"], "chips.copy-ram: found 512 B, expected 0 B, or at least 4 KiB"),
            (&["chips.write-ram=512 B"], "chips.write-ram: found 512 B, expected 0 B, or at least 4 KiB"),
            (&["geometry.superblock=drive", "geometry.cluster-dies=2"], "geometry.cluster-dies"),
            (
                &["geometry.bits-per-cell=3", "geometry.pages-per-block=128", "chips.programming=one-shot"],
                "a multiple of",
            ),
            (
                &["geometry.bits-per-cell=2", "geometry.page-size=8 EiB", "chips.programming=one-shot"],
                "chips.write-ram",
            ),
        ] {
            let said = refused(settings);
            assert!(said.contains(expected), "{settings:?}: {said}");
        }
    }

    #[test]
    fn parity_takes_its_share_of_a_block() {
        let drive = Config::default().with_settings(&["geometry.superblock=drive", "geometry.parity-dies=4"]).unwrap();
        assert_eq!(drive.layout().pages_per_block(), 128 * 8 * 3 / 4);
        assert_eq!((drive.layout().dies(), drive.block_layout().dies), (1, 8));
    }

    #[test]
    fn page_times_round_trip() {
        for text in ["", "40 us", "40 us, 60 us, 95 us"] {
            assert_eq!(text.parse::<PageTimes>().unwrap().to_string(), text);
        }
        assert!("40".parse::<PageTimes>().is_err());
    }
}
