//! What a model's figures must be, so that playing it can't fail: each in its range, and none against another.

use super::chances::Choice;
use super::file::{Direction, Footprint, Model, ModelError, VERSION, list};
use super::gaps::Arrivals;
use super::kinds::LEVEL_COUNT;
use super::runs::{LENGTHS, WINDOW};
use super::sequence;
use super::sizes::{ROWS, SizeRow};
use super::tree::{CLASSES, EXTENTS, FAN, STATES};

type Checked = Result<(), ModelError>;

pub(super) fn wrong(place: &str, found: impl std::fmt::Display, expected: &str) -> ModelError {
    ModelError { place: place.to_owned(), found: found.to_string(), expected: expected.to_owned() }
}

fn share(place: &str, value: f64) -> Checked {
    if (0.0..=1.0).contains(&value) { Ok(()) } else { Err(wrong(place, value, "a share from 0 to 1")) }
}

fn length<T>(place: &str, values: &[T], expected: usize) -> Checked {
    if values.len() == expected {
        return Ok(());
    }
    Err(wrong(place, format!("{} entries", values.len()), &format!("{expected}")))
}

/// A list of shares that add up to 1.
fn shares(place: &str, values: &[f64], expected: usize) -> Checked {
    length(place, values, expected)?;
    values.iter().try_for_each(|value| share(place, *value))?;
    let sum: f64 = values.iter().sum();
    if (sum - 1.0).abs() < 0.01 {
        Ok(())
    } else {
        Err(wrong(place, format!("a sum of {sum:.3}"), "shares that add up to 1"))
    }
}

fn check_curve(place: &str, points: &[(u64, f64)]) -> Checked {
    let mut last = (0, 0.0);
    for (end, value) in points {
        share(place, *value)?;
        if *end <= last.0 || *value < last.1 || *end > 1 << 40 {
            return Err(wrong(place, format!("[{end}, {value}] after [{}, {}]", last.0, last.1), "a curve that rises"));
        }
        last = (*end, *value);
    }
    Ok(())
}

fn check_choice(place: &str, choice: &Choice) -> Checked {
    share(&format!("{place}.other"), choice.other)?;
    check_curve(&format!("{place}.own"), &choice.own)?;
    check_curve(&format!("{place}.cross"), &choice.cross)
}

fn check_sizes(place: &str, rows: &[SizeRow]) -> Checked {
    if rows.is_empty() {
        return Ok(());
    }
    if rows.len() > ROWS {
        return Err(wrong(place, format!("{} sizes", rows.len()), &format!("at most {ROWS}")));
    }
    for SizeRow { from, to, offset, align, .. } in rows {
        let whole = from.is_multiple_of(512) && to.is_multiple_of(512) && *from >= 512 && from <= to && *to < 1 << 41;
        if !whole {
            return Err(wrong(place, format!("from {from} to {to}"), "multiples of 512 B in rising order"));
        }
        if !offset.is_multiple_of(512) || *offset >= 4096 {
            return Err(wrong(place, format!("offset {offset}"), "a multiple of 512 B below 4096"));
        }
        if !align.is_power_of_two() || !(4096..=65_536).contains(align) {
            return Err(wrong(place, format!("align {align}"), "4096, 8192, 16384, 32768 or 65536"));
        }
    }
    shares(place, &rows.iter().map(|row| row.share).collect::<Vec<_>>(), rows.len())
}

pub(super) fn check_version(version: u32) -> Checked {
    if version == VERSION {
        return Ok(());
    }
    Err(wrong("version", version, &format!("{VERSION} or {}: fit the model again", sequence::VERSION)))
}

impl Model {
    /// Checks what types can't.
    pub(super) fn check(&self) -> Checked {
        check_version(self.version)?;
        let Footprint { regions, blocks, pages, most_regions, most_blocks, most_pages } = self.footprint;
        for (name, used, most, ends) in [
            ("regions", regions, most_regions, (1 << 28, "2^28")),
            ("blocks", blocks, most_blocks, (most_regions * 64, "64 for each of most-regions")),
            ("pages", pages, most_pages, (most_blocks * 16, "16 for each of most-blocks")),
        ] {
            if used < 1 || used > most {
                return Err(wrong(&format!("footprint.{name}"), used, &format!("1 up to most-{name} ({most})")));
            }
            if most > ends.0 {
                return Err(wrong(&format!("footprint.most-{name}"), most, &format!("at most {}", ends.1)));
            }
        }
        if !(self.fitted.span_s >= 0.0 && self.fitted.span_s.is_finite()) {
            return Err(wrong("fitted.span-s", self.fitted.span_s, "seconds, 0 or more"));
        }
        self.check_mix()?;
        if let Some(arrivals) = &self.arrivals {
            check_arrivals(arrivals)?;
        }
        for (name, direction) in [("read", &self.read), ("write", &self.write), ("trim", &self.trim)] {
            if let Some(direction) = direction {
                check_direction(name, direction)?;
            }
        }
        if self.read.is_none() && self.write.is_none() && self.trim.is_none() {
            return Err(wrong("read, write, trim", "none of the sections", "one of them at least"));
        }
        for (name, missing, used) in [
            ("write", self.write.is_none(), self.mix.write > 0.0),
            ("read", self.read.is_none(), self.mix.write < 1.0 && (self.write.is_some() || self.trim.is_none())),
            ("trim", self.trim.is_none(), self.mix.trim_after.iter().any(|share| *share > 0.0)),
        ] {
            if missing && used {
                return Err(wrong(name, "no such section", &format!("one, since [mix] has {name}s")));
            }
        }
        Ok(())
    }

    fn check_mix(&self) -> Checked {
        let mix = &self.mix;
        share("mix.write", mix.write)?;
        share("mix.forced", mix.forced)?;
        for (place, rows, columns) in
            [("mix.next-level", &mix.next_level, LEVEL_COUNT), ("mix.write-after", &mix.write_after, 4)]
        {
            length(place, rows, LEVEL_COUNT)?;
            for row in rows {
                length(place, row, columns)?;
                row.iter().try_for_each(|value| share(place, *value))?;
            }
        }
        length("mix.levels", &mix.levels, LEVEL_COUNT)?;
        mix.levels.iter().try_for_each(|value| share("mix.levels", *value))?;
        for (place, values) in [("mix.trim-after", &mix.trim_after), ("mix.flush-after", &mix.flush_after)] {
            length(place, values, 4)?;
            values.iter().try_for_each(|value| share(place, *value))?;
        }
        for (trim, flush) in mix.trim_after.iter().zip(&mix.flush_after) {
            if trim + flush > 1.0 + 1e-4 {
                return Err(wrong(
                    "mix.trim-after",
                    format!("{trim} beside {flush} of flush-after"),
                    "a sum of at most 1",
                ));
            }
        }
        Ok(())
    }
}

fn check_arrivals(arrivals: &Arrivals) -> Checked {
    if !(1e-6..=1e12).contains(&arrivals.rate) {
        return Err(wrong("arrivals.rate", arrivals.rate, "requests a second, 1e-6 to 1e12"));
    }
    share("arrivals.short", arrivals.short)?;
    if !(11..=60).contains(&arrivals.longest) {
        return Err(wrong("arrivals.longest", arrivals.longest, "11 to 60"));
    }
    let sum: f64 = arrivals.counts.iter().sum();
    if arrivals.counts.iter().any(|count| !(0.0..=1e9).contains(count)) || sum <= 0.0 {
        return Err(wrong("arrivals.counts", list(&arrivals.counts), "numbers of 0 or more, one at least above 0"));
    }
    length("arrivals.divide", &arrivals.divide, (arrivals.longest as usize - 10).div_ceil(2))?;
    for group in &arrivals.divide {
        length("arrivals.divide", group, 5)?;
        group.iter().try_for_each(|row| shares("arrivals.divide", row, 9))?;
    }
    Ok(())
}

fn check_direction(name: &str, direction: &Direction) -> Checked {
    let at = |key: &str| format!("{name}.{key}");
    check_sizes(&at("jump-sizes"), &direction.jump_sizes)?;
    check_sizes(&at("run-sizes"), &direction.run_sizes)?;
    if direction.jump_sizes.is_empty() {
        return Err(wrong(&at("jump-sizes"), "no size", "one at least"));
    }
    for (key, value) in [
        ("same-size-own", direction.same_size_own),
        ("same-size-other", direction.same_size_other),
        ("same-size-run", direction.same_size_run),
        ("adjacent", direction.adjacent),
    ] {
        share(&at(key), value)?;
    }
    let runs = &direction.runs;
    length(&at("clear"), &direction.clear, EXTENTS)?;
    direction.clear.iter().try_for_each(|value| share(&at("clear"), *value))?;
    for (key, table) in [("runs.go-on", &runs.go_on), ("runs.go-on-used", &runs.go_on_used)] {
        length(&at(key), table, STATES)?;
        for row in table {
            length(&at(key), row, LENGTHS)?;
            row.iter().try_for_each(|value| share(&at(key), *value))?;
        }
    }
    shares(&at("runs.delays"), &runs.delays, WINDOW)?;
    share(&at("runs.same-delay"), runs.same_delay)?;
    if direction.run_sizes.is_empty() && runs.go_on.iter().chain(&runs.go_on_used).flatten().any(|share| *share > 0.0) {
        return Err(wrong(&at("run-sizes"), "no size", "one at least, since runs go on"));
    }
    check_choice(&at("region"), &direction.region)?;
    length(&at("page"), &direction.page, EXTENTS)?;
    direction.page.iter().try_for_each(|choice| check_choice(&at("page"), choice))?;
    length(&at("near"), &direction.near, EXTENTS)?;
    direction.near.iter().try_for_each(|choice| check_choice(&at("near"), choice))?;
    check_choice(&at("block"), &direction.block)?;
    check_choice(&at("in-block"), &direction.in_block)?;
    length(&at("next"), &direction.next, STATES)?;
    for row in &direction.next {
        shares(&at("next"), row, STATES)?;
    }
    length(&at("resized"), &direction.resized, EXTENTS)?;
    for row in &direction.resized {
        length(&at("resized"), row, EXTENTS)?;
        row.iter().try_for_each(|value| share(&at("resized"), *value))?;
        let sum: f64 = row.iter().sum();
        if sum > 1.0 + 1e-3 {
            return Err(wrong(&at("resized"), format!("a sum of {sum:.3}"), "at most 1"));
        }
    }
    check_choice(&at("resized-page"), &direction.resized_page)?;
    length(&at("prefer"), &direction.prefer, 3)?;
    if let Some(prefer) = direction.prefer.iter().find(|prefer| !(1.0..=100.0).contains(*prefer)) {
        return Err(wrong(&at("prefer"), prefer, "1 to 100"));
    }
    let levels = [("block-512k", &direction.block_512k), ("block-64k", &direction.block_64k)];
    for (key, level) in levels {
        length(&at(key), level, CLASSES)?;
        level.iter().try_for_each(|choice| check_choice(&at(key), choice))?;
    }
    let spots = [
        ("new-block-512k", &direction.new_block_512k),
        ("new-block-64k", &direction.new_block_64k),
        ("new-page", &direction.new_page),
    ];
    for ((key, spot), fan) in spots.into_iter().zip(FAN) {
        shares(&at(&format!("{key}.first")), &spot.first, fan)?;
        shares(&at(&format!("{key}.step")), &spot.step, fan)?;
    }
    Ok(())
}
