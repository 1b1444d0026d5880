//! Validates a whole drive once: settings that pass become a [`DriveConfig`].

use crate::chips::{BlockLayout, Superblock};
use crate::keys;
use crate::problems::{ConfigError, Problems, SettingError};
use crate::read::lookup;
use crate::schema::Config;
use crate::times::{FlashTimes, Times};
use flashwright_block::Bytes;
use flashwright_nand::Geometry;
use std::ops::Deref;

/// Validated settings of a drive, with the values derived from them. Only [`Config::check`] and the text readers
/// construct one. Checks that depend on the drive's layout, such as whether a scheme has enough spare blocks, run when
/// the drive is built.
///
/// ```
/// # use flashwright_config::{Config, QueueDepth};
/// let drive = Config::default().with_settings(&["geometry.channels=2"])?;
/// assert_eq!((drive.geometry.channels, drive.layout().channels()), (2, 2));
///
/// let mut written = drive.into_written();
/// written.geometry.channels = 0;
/// assert_eq!(written.check().unwrap_err().to_string(), ": geometry.channels: found 0, expected 1 to 64");
/// # Ok::<(), flashwright_config::ConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct DriveConfig {
    written: Config,
    layout: Geometry,
    block_layout: BlockLayout,
    logical_pages: u32,
    flash_times: FlashTimes,
}

impl DriveConfig {
    /// The flash as the translation layer sees it: clustered chips count as one die, the blocks of a superblock as one, and
    /// a mapping unit as a page.
    #[must_use]
    pub fn layout(&self) -> Geometry {
        self.layout
    }
    /// How the pages of such a block lie on the dies.
    #[must_use]
    pub fn block_layout(&self) -> BlockLayout {
        self.block_layout
    }
    /// Dies of a channel of [`Self::layout`] that share a package.
    #[must_use]
    pub fn dies_per_way(&self) -> u32 {
        if self.block_layout.dies > 1 { 1 } else { self.geometry.clustered().dies_per_way }
    }
    /// Pages that the host sees.
    #[must_use]
    pub fn logical_pages(&self) -> u32 {
        self.logical_pages
    }
    /// The duration of each operation.
    #[must_use]
    pub fn times(&self) -> Times {
        self.flash_times.by_kind
    }
    /// All durations that follow from the settings.
    #[must_use]
    pub fn flash_times(&self) -> &FlashTimes {
        &self.flash_times
    }
    /// The same drive under another name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.written.name);
        self
    }
    /// The settings as written, so that callers can change them.
    #[must_use]
    pub fn into_written(self) -> Config {
        self.written
    }
}

impl Deref for DriveConfig {
    type Target = Config;
    fn deref(&self) -> &Config {
        &self.written
    }
}

impl Default for DriveConfig {
    fn default() -> Self {
        Config::default().check().expect("the defaults pass the check")
    }
}

impl Config {
    /// Validates settings that were put together in code. Text is validated when it is read.
    ///
    /// # Errors
    /// [`ConfigError`] with every validation error, under the drive's name.
    pub fn check(self) -> Result<DriveConfig, ConfigError> {
        let source_name = self.name.clone();
        self.checked().map_err(|problems| ConfigError { source_name, problems })
    }

    /// The valid drive, or every validation error.
    pub(crate) fn checked(self) -> Result<DriveConfig, Vec<SettingError>> {
        let problems = self.problems();
        if !problems.is_empty() {
            return Err(problems);
        }
        let seen = self.geometry.clustered();
        let block_layout = BlockLayout::of(&self);
        let pages = block_layout.pages_per_block(&seen).and_then(|pages| u32::try_from(pages).ok());
        let (channels, dies_per_channel, planes_per_die) = match seen.superblock {
            Superblock::Block => (seen.channels, seen.dies_per_channel, seen.planes_per_die),
            // A group may be a die.
            Superblock::Drive if block_layout.dies > 1 => (1, self.placement.groups(), 1),
            Superblock::Die | Superblock::Drive => (seen.channels, seen.dies_per_channel, 1),
        };
        let layout = Geometry::new(
            channels,
            dies_per_channel,
            planes_per_die,
            seen.blocks_per_plane,
            pages.expect("the pages of a block were checked"),
            Bytes(seen.page_size.0 / u64::from(block_layout.per_page)),
        );
        let flash_times = FlashTimes::of(&self, layout.page_size())
            .expect("the ranges of times, rates and sizes keep their products within 64 bits");
        Ok(DriveConfig {
            logical_pages: logical_pages(&self, &layout),
            layout,
            block_layout,
            flash_times,
            written: self,
        })
    }

    /// Values out of range and rules that span several keys. A key that breaks such a rule is reported once, without
    /// its range.
    pub(crate) fn problems(&self) -> Vec<SettingError> {
        let mut problems = Problems::default();
        self.geometry_problems(&mut problems);
        self.chips_problems(&mut problems);
        self.energy_problems(&mut problems);
        self.wear_problems(&mut problems);
        self.controller.problems(&mut problems);
        for problem in self.host.stack.problems(u64::MAX) {
            problems.0.push(SettingError { key: format!("host.{}", problem.key), what: problem.what });
        }
        let blocks = self.geometry.blocks_per_plane;
        problems.unless(
            self.gc.free_blocks_min >= 1 && self.gc.free_blocks_min < blocks,
            "gc.free-blocks-min",
            self.gc.free_blocks_min,
            &format!("1 or more and less than geometry.blocks-per-plane = {blocks}"),
        );
        self.range_problems(&mut problems);
        // An invalid geometry has no capacity to check.
        let wrong = |problem: &SettingError| problem.key.starts_with("geometry") || problem.key == "capacity.logical";
        if !problems.0.iter().any(wrong) {
            self.capacity_problems(&mut problems);
        }
        // What blocks survive follows from many keys; a wrong one is enough to say.
        let wrong = |problem: &SettingError| problem.key.starts_with("geometry") || problem.key.starts_with("errors.");
        if !problems.0.iter().any(wrong) {
            for problem in self.errors.problems(self.geometry.bits_per_cell, self.mapped_page()) {
                problems.0.push(SettingError { key: format!("errors.{}", problem.key), what: problem.what });
            }
        }
        problems.0
    }

    /// Values outside the range of their key.
    fn range_problems(&self, problems: &mut Problems) {
        let tree = match toml::Table::try_from(self) {
            Ok(tree) => tree,
            Err(error) => return problems.0.push(SettingError { key: String::new(), what: error.to_string() }),
        };
        for key in keys::all() {
            if let Some((found, expected)) = lookup(&tree, &key.path).and_then(|value| key.problem(value))
                && !problems.concern(&key.path)
            {
                problems.unless(false, &key.path, found, &expected);
            }
        }
    }

    fn geometry_problems(&self, problems: &mut Problems) {
        let g = &self.geometry;
        problems.unless(
            g.dies_per_way >= 1 && g.dies_per_channel.is_multiple_of(g.dies_per_way),
            "geometry.dies-per-way",
            g.dies_per_way,
            &format!("a divisor of geometry.dies-per-channel = {}", g.dies_per_channel),
        );
        for (key, found, of, count) in [
            ("geometry.cluster-channels", g.cluster_channels, "geometry.channels", g.channels),
            ("geometry.cluster-dies", g.cluster_dies, "geometry.dies-per-channel", g.dies_per_channel),
        ] {
            let ok = found >= 1 && count.is_multiple_of(found);
            problems.unless(ok, key, found, &format!("a divisor of {of} = {count}"));
        }
        let (clusters, clustered_page) = self.clusters();
        problems.unless(
            clusters == 1 || clustered_page <= 1 << 24,
            "geometry.cluster-channels",
            format!("clustered pages of {}", Bytes(u64::try_from(clustered_page).unwrap_or(u64::MAX))),
            "at most 16 MiB (geometry.page-size x cluster-channels x cluster-dies)",
        );
        problems.unless(
            g.spare_size <= g.page_size,
            "geometry.spare-size",
            g.spare_size,
            &format!("no more than geometry.page-size = {}", g.page_size),
        );
        let pages = self.pages();
        problems.unless(
            pages <= u128::from(Geometry::PAGES_MAX),
            "geometry",
            format!("{pages} pages"),
            "at most 4,294,967,294 pages; use larger pages or fewer blocks",
        );
    }

    /// Clustered chips, and the bytes of their clustered page. At least 1, so that a 0 does not hide other errors.
    fn clusters(&self) -> (u128, u128) {
        let g = &self.geometry;
        let clusters = u128::from(g.cluster_channels.max(1)) * u128::from(g.cluster_dies.max(1));
        (clusters, u128::from(g.page_size.0) * clusters)
    }

    /// Pages of the flash; a clustered page counts once.
    fn pages(&self) -> u128 {
        let g = &self.geometry;
        let factors = [g.channels, g.dies_per_channel, g.planes_per_die, g.blocks_per_plane, g.pages_per_block];
        let (clusters, _) = self.clusters();
        // Five factors of 32 bits may exceed 128 bits. Saturation is harmless: such a product is far beyond the limit
        // anyway.
        let units = u128::from(g.units_per_page());
        factors.iter().fold(units, |product, factor| product.saturating_mul(u128::from(*factor))) / clusters
    }

    /// The bytes that have an entry of their own in the map.
    pub(crate) fn mapped_page(&self) -> Bytes {
        Bytes(self.geometry.page_size.0 / u64::from(self.geometry.units_per_page().max(1)))
    }

    fn capacity_problems(&self, problems: &mut Problems) {
        let (_, clustered_page) = self.clusters();
        let physical = self.pages().saturating_mul(clustered_page) / u128::from(self.geometry.units_per_page().max(1));
        let logical = self.capacity.logical;
        problems.unless(
            logical.0 == 0 || u128::from(logical.0) < physical,
            "capacity.logical",
            logical,
            &format!("less than the flash, which has {}", Bytes(u64::try_from(physical).unwrap_or(u64::MAX))),
        );
        problems.unless(
            logical.0 == 0 || u128::from(logical.0) >= clustered_page,
            "capacity.logical",
            logical,
            "at least one page",
        );
    }

    fn wear_problems(&self, problems: &mut Problems) {
        let wear = &self.wear;
        let (limited, spread, weibull) = (wear.pe_cycles_max > 0, wear.pe_cycles_spread, wear.pe_cycles_weibull);
        problems.unless(
            !(weibull > 0.0 && weibull < 1.0),
            "wear.pe-cycles-weibull",
            weibull,
            "a shape of 1 to 100, or 0 for none",
        );
        problems.unless(
            spread == 0.0 || weibull == 0.0,
            "wear.pe-cycles-weibull",
            weibull,
            "0 beside wear.pe-cycles-spread: budgets are normal or Weibull, not both",
        );
        problems.unless(
            limited || (spread == 0.0 && weibull == 0.0),
            "wear.pe-cycles-max",
            "0 (no limit)",
            "the mean number of erases, which wear.pe-cycles-spread and wear.pe-cycles-weibull need",
        );
        if let Some(policy) = wear.policy.filter(|policy| policy.needs_limit()) {
            let what = format!(
                "the number of erases that a block survives: wear.policy = {:?} needs it",
                policy.listed().name
            );
            problems.unless(limited, "wear.pe-cycles-max", "0 (no limit)", &what);
        }
    }
}

/// Pages that the host sees.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // utilisation lies in (0, 1)
fn logical_pages(config: &Config, layout: &Geometry) -> u32 {
    let room = match config.capacity.logical {
        Bytes(0) => ((f64::from(layout.pages()) * config.capacity.utilization) as u32).max(1),
        Bytes(bytes) => u32::try_from(bytes / layout.page_size().0).unwrap_or(u32::MAX).min(layout.pages()),
    };
    config.ftl.scheme.addresses(&config.ftl.schemes, room, layout)
}
