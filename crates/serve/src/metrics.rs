//! The figures in the text format of Prometheus.

use crate::served::Served;
use crate::server::stats;
use crate::shared::Shared;
use serde_json::Value;
use std::fmt::Write as _;

/// A figure: its name, type and help, the labels of each sample, and where it is in the statistics.
struct Figure {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    /// Labels, JSON pointer, and the number by which the value is divided.
    samples: &'static [(&'static str, &'static str, f64)],
}

const fn counter(
    name: &'static str,
    help: &'static str,
    samples: &'static [(&'static str, &'static str, f64)],
) -> Figure {
    Figure { name, kind: "counter", help, samples }
}

const fn gauge(
    name: &'static str,
    help: &'static str,
    samples: &'static [(&'static str, &'static str, f64)],
) -> Figure {
    Figure { name, kind: "gauge", help, samples }
}

const FIGURES: &[Figure] = &[
    counter(
        "requests_total",
        "Requests that the drive completed.",
        &[
            ("kind=\"read\"", "/requests/read", 1.0),
            ("kind=\"write\"", "/requests/write", 1.0),
            ("kind=\"trim\"", "/requests/trim", 1.0),
            ("kind=\"flush\"", "/requests/flush", 1.0),
        ],
    ),
    counter(
        "host_bytes_total",
        "Bytes that the host read and wrote.",
        &[("kind=\"read\"", "/requests/bytes_read", 1.0), ("kind=\"write\"", "/requests/bytes_written", 1.0)],
    ),
    counter("host_pages_written_total", "Pages that the host asked to write.", &[("", "/host/pages_written", 1.0)]),
    counter(
        "flash_pages_programmed_total",
        "Pages programmed, by cause.",
        &[
            ("cause=\"host\"", "/flash/programs/host", 1.0),
            ("cause=\"gc\"", "/flash/programs/gc", 1.0),
            ("cause=\"merge\"", "/flash/programs/merge", 1.0),
            ("cause=\"padding\"", "/flash/programs/padding", 1.0),
            ("cause=\"translation\"", "/flash/programs/translation", 1.0),
            ("cause=\"wear\"", "/flash/programs/wear", 1.0),
        ],
    ),
    counter("flash_pages_read_total", "Pages read from flash.", &[("", "/flash/reads/total", 1.0)]),
    counter("flash_blocks_erased_total", "Blocks erased.", &[("", "/flash/erases/total", 1.0)]),
    gauge(
        "write_amplification",
        "Pages programmed per page that the host asked to write.",
        &[("", "/write_amplification", 1.0)],
    ),
    gauge(
        "write_amplification_bytes",
        "Bytes programmed per byte that the host wrote: what drives count.",
        &[("", "/write_amplification_bytes", 1.0)],
    ),
    gauge("logical_pages", "Pages that the host can address.", &[("", "/logical_pages", 1.0)]),
    gauge(
        "logical_pages_with_data",
        "Logical pages that hold data: fewer after trims.",
        &[("", "/logical_pages_with_data", 1.0)],
    ),
    gauge("blocks_free", "Erased good blocks.", &[("", "/blocks_free", 1.0)]),
    gauge("blocks_worn_out", "Blocks that wore out.", &[("", "/blocks_worn_out", 1.0)]),
    gauge(
        "response_time_seconds",
        "Response times on the drive's clock since the start, by quantile.",
        &[
            ("kind=\"read\",quantile=\"0.5\"", "/response_time_ns/read/p50", 1e9),
            ("kind=\"read\",quantile=\"0.99\"", "/response_time_ns/read/p99", 1e9),
            ("kind=\"read\",quantile=\"0.999\"", "/response_time_ns/read/p99_9", 1e9),
            ("kind=\"write\",quantile=\"0.5\"", "/response_time_ns/write/p50", 1e9),
            ("kind=\"write\",quantile=\"0.99\"", "/response_time_ns/write/p99", 1e9),
            ("kind=\"write\",quantile=\"0.999\"", "/response_time_ns/write/p99_9", 1e9),
        ],
    ),
    gauge(
        "lateness_seconds",
        "How much later than the model says replies left, by quantile.",
        &[("quantile=\"0.5\"", "/served/lateness_ns/p50", 1e9), ("quantile=\"0.99\"", "/served/lateness_ns/p99", 1e9)],
    ),
    counter("drive_time_seconds_total", "The drive's clock.", &[("", "/time_ns", 1e9)]),
    gauge("connections", "Connections that are open.", &[("", "/served/connections/open", 1.0)]),
    counter("connections_total", "Connections since the start.", &[("", "/served/connections/total", 1.0)]),
    counter("commands_failed_total", "Commands that failed in the drive.", &[("", "/served/commands_failed", 1.0)]),
];

/// The verdict on write amplification and the warnings: what is true has the value 1.
fn texts(stats: &Value) -> String {
    let said = |value: &Value, name: &str| {
        let text = value.get(name).and_then(Value::as_str).unwrap_or_default();
        text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
    };
    let mut text = String::new();
    if let Some(settled) = stats.get("settled") {
        let verdict = said(settled, "verdict");
        let _ = write!(
            text,
            "# HELP flashwright_settled Whether write amplification is that of a settled drive.\n\
             # TYPE flashwright_settled gauge\nflashwright_settled {}\n\
             # HELP flashwright_settled_info The verdict, with its reason.\n# TYPE flashwright_settled_info gauge\n\
             flashwright_settled_info{{verdict=\"{verdict}\",why=\"{}\"}} 1\n",
            u8::from(verdict == "settled"),
            said(settled, "why"),
        );
    }
    let warnings = stats.get("warnings").and_then(Value::as_array).filter(|all| !all.is_empty());
    if let Some(warnings) = warnings {
        text.push_str(
            "# HELP flashwright_warning_info Where the figures do not mean what they seem to.\n\
             # TYPE flashwright_warning_info gauge\n",
        );
        for each in warnings {
            let (code, what) = (said(each, "code"), said(each, "text"));
            let _ = writeln!(text, "flashwright_warning_info{{code=\"{code}\",text=\"{what}\"}} 1");
        }
    }
    text
}

/// The lines before the samples of a figure.
fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = write!(text, "# HELP flashwright_{name} {help}\n# TYPE flashwright_{name} {kind}\n");
}

/// A figure of each handle or each group: its name, its kind, what it is, and its key.
type Labelled = (&'static str, &'static str, &'static str, &'static str);

/// What each handle and each reclaim group of flexible data placement cost.
fn placed(stats: &Value) -> String {
    const HANDLES: [Labelled; 3] = [
        ("handle_pages_written_total", "counter", "Pages that the host wrote with a handle.", "pages_written"),
        ("handle_pages_moved_total", "counter", "Pages of a handle that cleaning moved.", "pages_moved"),
        (
            "handle_write_amplification",
            "gauge",
            "Pages programmed per page that the host wrote with a handle.",
            "write_amplification",
        ),
    ];
    const GROUPS: [Labelled; 7] = [
        ("group_pages_written_total", "counter", "Pages of the host that a reclaim group took.", "pages_written"),
        ("group_pages_programmed_total", "counter", "Pages that a reclaim group programmed.", "pages_programmed"),
        ("group_pages_moved_total", "counter", "Pages that cleaning moved in a reclaim group.", "pages_moved"),
        ("group_erases_total", "counter", "Reclaim units that a reclaim group erased.", "erases"),
        (
            "group_write_amplification",
            "gauge",
            "Pages that a reclaim group programmed per page of the host that it took.",
            "write_amplification",
        ),
        ("group_units", "gauge", "Reclaim units of a reclaim group that can hold data.", "units"),
        ("group_units_free", "gauge", "Erased reclaim units of a reclaim group.", "units_free"),
    ];
    let mut text = String::new();
    for (section, label, figures) in [("handles", "handle", &HANDLES[..]), ("groups", "group", &GROUPS)] {
        let Some(all) = stats.get(section).and_then(Value::as_array).filter(|all| !all.is_empty()) else { continue };
        for (name, kind, help, key) in figures {
            head(&mut text, name, kind, help);
            for each in all {
                if let (Some(number), Some(value)) = (each[label].as_u64(), each[*key].as_f64()) {
                    let _ = writeln!(text, "flashwright_{name}{{{label}=\"{number}\"}} {value}");
                }
            }
        }
    }
    text
}

/// The zones of a zoned drive.
fn zones(stats: &Value) -> String {
    const FIGURES: [(&str, &str, &str, &str, &str); 5] = [
        ("zones", "gauge", "Zones, by state.", "state", "states"),
        (
            "zone_refusals_total",
            "counter",
            "Requests refused, by the rule of zones that they would have broken.",
            "rule",
            "refusals",
        ),
        ("zone_resets_total", "counter", "Zones reset.", "", "resets"),
        ("zone_finishes_total", "counter", "Zones finished.", "", "finishes"),
        ("zone_pages_padded_total", "counter", "Pages programmed to finish zones.", "", "pages_padded"),
    ];
    let mut text = String::new();
    let Some(zones) = stats.get("zones").filter(|zones| !zones.is_null()) else { return text };
    for (name, kind, help, label, key) in FIGURES {
        head(&mut text, name, kind, help);
        match &zones[key] {
            Value::Object(by_label) => {
                for (value, count) in by_label {
                    let _ = writeln!(text, "flashwright_{name}{{{label}=\"{value}\"}} {count}");
                }
            }
            count => _ = writeln!(text, "flashwright_{name} {count}"),
        }
    }
    text
}

/// All figures that apply.
pub(crate) fn text<S: Served>(shared: &Shared<S>) -> String {
    let stats = stats(shared);
    let mut text = texts(&stats);
    text.push_str(&placed(&stats));
    text.push_str(&zones(&stats));
    for Figure { name, kind, help, samples } in FIGURES {
        let known = |pointer: &str| stats.pointer(pointer).and_then(Value::as_f64);
        if !samples.iter().any(|(_, pointer, _)| known(pointer).is_some()) {
            continue;
        }
        head(&mut text, name, kind, help);
        for (labels, pointer, unit) in *samples {
            if let Some(value) = known(pointer) {
                let braces = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
                let _ = writeln!(text, "flashwright_{name}{braces} {}", value / unit);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_told_by_state_and_rule() {
        let zones_of = serde_json::json!({"zones": {
            "states": {"empty": 3, "full": 1}, "refusals": {"boundary": 2}, "resets": 4, "finishes": 0, "pages_padded": 7,
        }});
        let text = zones(&zones_of);
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            samples,
            [
                "flashwright_zones{state=\"empty\"} 3",
                "flashwright_zones{state=\"full\"} 1",
                "flashwright_zone_refusals_total{rule=\"boundary\"} 2",
                "flashwright_zone_resets_total 4",
                "flashwright_zone_finishes_total 0",
                "flashwright_zone_pages_padded_total 7",
            ]
        );
        assert_eq!(zones(&serde_json::json!({"zones": null})), "");
    }

    #[test]
    fn groups_are_told_where_there_are_several() {
        let group = |group: u64, amplification: Value| {
            serde_json::json!({
                "group": group, "pages_written": 4, "pages_programmed": 6, "pages_moved": 2, "erases": 1,
                "write_amplification": amplification, "units": 8, "units_free": 3,
            })
        };
        let text = placed(&serde_json::json!({"handles": [], "groups": [group(0, 1.5.into()), group(1, Value::Null)]}));
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(samples.len(), 6 * 2 + 1, "{text}");
        assert!(samples.contains(&"flashwright_group_pages_programmed_total{group=\"1\"} 6"), "{text}");
        assert!(samples.contains(&"flashwright_group_write_amplification{group=\"0\"} 1.5"), "{text}");
        assert!(!text.contains("handle"), "{text}");
        assert_eq!(placed(&serde_json::json!({"handles": [], "groups": []})), "");
    }
}
