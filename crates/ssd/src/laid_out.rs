//! What speaks against a drive and only shows once it is laid out: when its flash is there, and it is known what the
//! translation layer is built for.

use crate::cleaning::BackgroundCleaning;
use crate::cleaning_blocks::BlockingSlots;
use crate::ssd::Policies;
use flashwright_config::{DieOrderName, DriveConfig, SettingError, TimingModel};
use flashwright_ftl::policies::placement::PlacementName;
use flashwright_ftl::schemes::SchemeContext;
use flashwright_ftl::{Flash, Foreign, MakeFtl, SchemeName, SlcCacheKind};
use flashwright_nand::ProgramOrder;

/// Validation errors. If power may be cut and nothing speaks against that, `flash` gets what a mount needs first: the
/// translation layer has to do with the blocks that this leaves.
pub(crate) fn problems(
    config: &DriveConfig,
    context: &SchemeContext<'_>,
    flash: &mut Flash,
    policies: &Policies,
) -> Vec<SettingError> {
    let mut problems =
        crate::power_loss::problems(config, !policies.is_empty() || config.ftl.scheme.is_from_outside(), flash);
    if config.recovery.can_mount() && problems.is_empty() {
        flash.track_changes(config.logical_pages());
        crate::power_loss::prepare_checkpoints(config, flash);
    }
    let of_scheme = config.ftl.scheme.problems(context, flash).into_iter();
    problems.extend(of_scheme.map(|what| SettingError { key: String::new(), what }));
    problems.extend(of_settings(config, policies));
    problems.extend(crate::chip_rules::problems(config, config.ftl.scheme.side_by_side(context, flash)));
    problems.extend(of_policies(config, policies));
    problems
}

/// Settings that the translation layer does not take, or that need another model of time.
fn of_settings(config: &DriveConfig, policies: &Policies) -> Vec<SettingError> {
    let scheme = config.ftl.scheme;
    let mut problems = Vec::new();
    if let Some(order) = scheme.needs_order().filter(|needed| *needed != config.geometry.program_order) {
        problems.push(SettingError {
            key: "geometry.program-order".to_owned(),
            what: format!(
                "ftl.scheme = {:?} needs flash with program order {order:?}; set geometry.program-order or choose \
                 another scheme",
                scheme.listed().name
            ),
        });
    }
    let placement = &config.placement;
    let wear = config.wear.policy.map(|policy| format!("{:?}", policy.listed().name));
    type Can = fn(SchemeName) -> bool;
    // A key, its value if it is set, the schemes that take it, and the two parts of the message that differ.
    let of_layers: [(&str, Option<String>, Can, &str, &str); 5] = [
        ("wear.policy", wear, SchemeName::levels_wear, "takes only \"none\"", "a wear policy works"),
        (
            "placement.policy",
            (placement.policy == PlacementName::Fdp).then(|| "\"fdp\"".to_owned()),
            SchemeName::asks_policies,
            "asks no placement policy",
            "handles work",
        ),
        (
            "placement.sets",
            (placement.sets != 1).then(|| placement.sets.to_string()),
            SchemeName::has_sets,
            "takes only 1",
            "sets of dies work",
        ),
        (
            "placement.fdp.groups",
            (placement.groups() != 1).then(|| placement.groups().to_string()),
            SchemeName::has_sets,
            "takes only 1",
            "groups of dies work",
        ),
        (
            "slc.cache",
            (config.slc.cache != SlcCacheKind::None).then(|| "a cache".to_owned()),
            SchemeName::caches_in_slc,
            "takes only \"none\"",
            "an SLC cache works",
        ),
    ];
    for (key, found, can, takes, works) in of_layers {
        if let Some(found) = found.filter(|_| !can(scheme)) {
            let (name, others) = (scheme.listed().name, SchemeName::those(can).join(", "));
            let what = format!("found {found}, but ftl.scheme = {name:?} {takes}; {works} with {others}");
            problems.push(SettingError { key: key.to_owned(), what });
        }
    }
    if scheme.writes_in_order() {
        let name = scheme.listed().name;
        let before = [
            ("ram.manager", config.ram.manager.is_some(), "\"none\"", "chips.write-ram is the RAM of such a drive"),
            ("host.scheduler", !config.host.stack.scheduler.0.is_empty(), "\"none\"", "the host keeps the order"),
            (
                "controller.write-buffer.size",
                config.controller.write_buffer.size.0 > 0,
                "\"0 B\"",
                "chips.write-ram is the RAM of such a drive",
            ),
            (
                "controller.read-buffer.size",
                config.controller.read_buffer.size.0 > 0,
                "\"0 B\"",
                "it would not know what a reset clears",
            ),
            ("controller.command-limit", config.controller.command_limit.0 > 0, "\"0 B\"", "an append is not cut"),
        ];
        for (key, is_there, expected, instead) in before {
            if is_there {
                let what = format!(
                    "found one with ftl.scheme = {name:?}, expected {expected}: zones take writes in order; {instead}"
                );
                problems.push(SettingError { key: key.to_owned(), what });
            }
        }
    }
    problems.extend(BackgroundCleaning::problems(config, policies.ftl.schedule.as_deref()));
    problems.extend(BlockingSlots::problem(config));
    if config.timing.die_order != DieOrderName::Fifo && config.timing.model != TimingModel::Parallel {
        problems.push(SettingError {
            key: "timing.die-order".to_owned(),
            what: format!(
                "found {:?}, expected timing.model = \"parallel\" with it: elsewhere no operation waits for a die",
                if config.timing.die_order == DieOrderName::ByClass { "by-class" } else { "reads-first" }
            ),
        });
    }
    problems
}

/// What the configuration lacks for policies from outside.
fn of_policies(config: &DriveConfig, policies: &Policies) -> Vec<SettingError> {
    let scheme = config.ftl.scheme;
    let takes = |kind: &str| {
        if Foreign::OF_MAP_CACHE.contains(&kind) { SchemeName::caches_map } else { SchemeName::asks_policies }
    };
    let refused = policies.ftl.policies().into_iter().filter(|(kind, _)| !takes(kind)(scheme));
    let any_order = scheme.is_from_outside()
        && config.block_layout().unit() > 1
        && config.geometry.program_order != ProgramOrder::Ascending;
    let any_order = any_order.then(|| SettingError {
        key: "geometry.program-order".to_owned(),
        what: format!(
            "found \"any\" with {}, expected \"ascending\" where one command programs several mapping units",
            policies.ftl.ftl.as_deref().map_or(scheme.listed().name, MakeFtl::name)
        ),
    });
    refused
        .map(|(kind, name)| SettingError {
            key: "ftl.scheme".to_owned(),
            what: format!(
                "found {:?}, which asks no {kind} policy, with the policy {name}; expected {}",
                scheme.listed().name,
                SchemeName::those(takes(kind)).join(" or ")
            ),
        })
        .chain(any_order)
        .collect()
}
