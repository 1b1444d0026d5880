//! What chips with commands of their own need of the rest of a drive.

use flashwright_block::Bytes;
use flashwright_config::{DriveConfig, Programming, SettingError, TimingModel};
use flashwright_ftl::{SchemeName, SlcCacheKind};

/// Validation errors; of each plane `streams` blocks are filled side by side.
pub(crate) fn problems(config: &DriveConfig, streams: u32) -> Vec<SettingError> {
    if !config.commands_chips() {
        return Vec::new();
    }
    let mut problems = Vec::new();
    let mut refuse = |key: &str, what: String| problems.push(SettingError { key: key.to_owned(), what });
    let timing = &config.timing;
    if timing.model == TimingModel::Serial {
        let what = "found \"serial\", expected \"parallel\" (or \"none\") with settings of [chips] or [errors], a power limit, \
                    geometry.superblock or geometry.mapping-unit: one operation at a time has no such commands";
        refuse("timing.model", what.to_owned());
    }
    if !timing.pipelined {
        let what = "found false, expected true with settings of [chips], geometry.superblock or geometry.mapping-unit: their \
                    commands hold a channel only for transfers";
        refuse("timing.pipelined", what.to_owned());
    }
    let unit = config.block_layout().unit();
    if unit == 1 {
        return problems;
    }
    let scheme = config.ftl.scheme;
    if !scheme.fills_in_order() {
        refuse(
            "ftl.scheme",
            format!(
                "found {:?}, expected {} where one command programs {unit} mapping units: it fills blocks page by page",
                scheme.listed().name,
                SchemeName::those(SchemeName::fills_in_order).join(" or ")
            ),
        );
    }
    if config.ram.manager.is_some() {
        let what = "found a RAM manager, expected \"none\" where one command programs several mapping units; \
                    chips.write-ram is the RAM of such a drive";
        refuse("ram.manager", what.to_owned());
    }
    let layout = config.layout();
    // Of each stream one open block, with an SLC cache two; and one for the map.
    let streams = if config.slc.cache == SlcCacheKind::None { streams + 1 } else { 2 * streams + 1 };
    // Word lines of the first pass stay in RAM until those of the next row, on the same dies, have had theirs.
    let rows = if config.chips.programming == Programming::TwoPass { config.block_layout().units_in_row() } else { 0 };
    let in_block = u64::from(rows + 1) * u64::from(unit) * layout.page_size().0;
    let needed = u64::from(streams + 1) * u64::from(layout.planes()) * in_block;
    let (write_ram, copy_ram) = (config.chips.write_ram, config.chips.copy_ram);
    for (key, size, may_be_less) in
        [("chips.write-ram", write_ram, false), ("chips.copy-ram", copy_ram, copy_ram == Bytes(0))]
    {
        if size.0 < needed && !may_be_less {
            refuse(
                key,
                format!(
                    "found {size}, expected {}at least {}: each open block of {} planes collects {}, one for each stream and for \
                     the map",
                    if key == "chips.copy-ram" { "0 B, or " } else { "" },
                    Bytes(needed),
                    layout.planes(),
                    Bytes(in_block)
                ),
            );
        }
    }
    problems
}
