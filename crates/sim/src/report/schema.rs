//! The schema of a run's JSON, derived from the types of the report.

use super::Report;
use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::transform_subschemas;
use serde_json::Value;

/// The JSON Schema of a [`Report`]: every figure with its meaning, and with its `unit` where it is a number.
///
/// ```
/// let schema = flashwright_sim::schema();
/// assert_eq!(schema["$defs"]["Measured"]["properties"]["duration_ns"]["unit"], "ns");
/// ```
#[must_use]
#[inline] // cold and large: compiled where it is called, once and small
pub fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let settings = settings.with_transform(closed).with_transform(|schema: &mut Schema| with_units(schema, ""));
    settings.into_generator().into_root_schema_for::<Report>().to_value()
}

/// Forbids figures that a section does not have; otherwise a misspelt figure would pass as an absent one.
fn closed(schema: &mut Schema) {
    if let Some(object) = schema.as_object_mut()
        && object.contains_key("properties")
    {
        object.entry("additionalProperties").or_insert(Value::Bool(false));
    }
    transform_subschemas(&mut closed, schema);
}

fn with_units(schema: &mut Schema, section: &str) {
    let object = schema.as_object_mut();
    if let Some(Value::Object(properties)) = object.and_then(|object| object.get_mut("properties")) {
        for (name, figure) in properties {
            if is_number(figure)
                && let Some(unit) = unit_of(section, name)
            {
                figure["unit"] = unit.into();
            }
        }
    }
    if let Some(Value::Object(sections)) = schema.as_object_mut().and_then(|object| object.get_mut("$defs")) {
        for (name, section) in sections {
            if let Ok(section) = section.try_into() {
                let section: &mut Schema = section;
                with_units(section, name);
            }
        }
    }
}

/// Whether a figure is a number, or a list of them.
fn is_number(figure: &Value) -> bool {
    let is = |found: &Value| match found {
        Value::String(one) => one == "number" || one == "integer",
        Value::Array(any) => any.iter().any(|one| one == "number" || one == "integer"),
        _ => false,
    };
    is(&figure["type"]) || is(&figure["items"]["type"])
}

/// The unit that a name ends in, or that the figures of a section have; none for counts of requests, merges and the
/// like, whose meaning states what they count.
fn unit_of(section: &str, name: &str) -> Option<&'static str> {
    const RATIOS: [&str; 11] = [
        "efficiency",
        "endurance_efficiency",
        "block_utilization",
        "coefficient_of_variation",
        "capacities",
        "times_smaller",
        "confidence",
        "drift",
        "interval",
        "hit_ratio",
        "prefetch_accuracy",
    ];
    let word = |word: &str| name.split('_').any(|part| part == word);
    let unit = if name.ends_with("_per_s") {
        if word("bytes") { "bytes/s" } else { "1/s" }
    } else if name == "iops" || name == "requests_per_cpu_s" {
        "1/s"
    } else if name.ends_with("_ns") || (section == "LatencySummary" && name != "count") {
        "ns"
    } else if name.ends_with("_s") {
        "s"
    } else if name.ends_with("_j") {
        "J"
    } else if name == "mean_w" {
        "W"
    } else if name == "mj_per_mb" {
        "mJ/MB"
    } else if RATIOS.contains(&name)
        || name.starts_with("write_amplification")
        || name.ends_with("_ratio")
        || section == "Busy"
    {
        "1"
    } else if word("bytes") {
        "bytes"
    } else if word("pages") || (section == "Causes") {
        if section == "Causes" { "operations" } else { "pages" }
    } else if section == "Buffer" && (word("writes") || word("reads") || word("hits")) {
        "pages"
    } else if section == "ErasesPerBlock" || name == "erases_per_block" || name == "erases" {
        "erases"
    } else if section == "Group" && word("units") {
        "reclaim units"
    } else {
        return None;
    };
    Some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every figure of every section, with its name.
    fn figures(schema: &Value) -> Vec<(String, &Value)> {
        let sections = schema["$defs"].as_object().expect("sections");
        let all = sections.iter().map(|(name, section)| (name.as_str(), section)).chain([("", schema)]);
        all.flat_map(|(name, section)| {
            let figures = section["properties"].as_object().into_iter().flatten();
            figures.map(move |(figure, said)| (format!("{name}.{figure}"), said))
        })
        .collect()
    }

    #[test]
    fn every_figure_has_a_meaning_and_every_fraction_a_unit() {
        let schema = schema();
        let all = figures(&schema);
        assert!(all.len() > 150, "{}", all.len());
        for (name, said) in all {
            assert!(said["description"].is_string(), "{name} has no meaning");
            let kinds = format!("{} {}", said["type"], said["items"]["type"]);
            // A pace is a setting: its time scale is what `--time-scale` takes.
            if kinds.contains("number") && !name.ends_with("time_scale") {
                assert!(said["unit"].is_string(), "{name} has no unit");
            }
            let is_null = |kinds: &Value| kinds.as_array().is_some_and(|all| all.iter().any(|kind| kind == "null"));
            if is_null(&said["type"]) || said["anyOf"].is_array() {
                let meaning = said["description"].as_str().unwrap_or_default();
                assert!(
                    meaning.replace('\n', " ").contains(". Null "),
                    "the meaning of {name} does not state when it is null"
                );
            }
        }
    }

    #[test]
    fn every_figure_is_there_and_nothing_else() {
        for (name, section) in schema()["$defs"].as_object().expect("sections") {
            if let Some(figures) = section["properties"].as_object() {
                assert_eq!(section["required"].as_array().map(Vec::len), Some(figures.len()), "{name}");
                assert_eq!(section["additionalProperties"], Value::Bool(false), "{name}");
            }
        }
    }
}
