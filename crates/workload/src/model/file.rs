//! A model as text: TOML with a comment on each figure. Reading checks every figure, so that playing can't fail.

use super::chances::{Choice, Spot};
use super::gaps::Arrivals;
use super::kinds::{LEVEL_COUNT, Mix};
use super::runs::{LENGTHS, RunLaw, WINDOW};
use super::sizes::{ROWS, SizeRow};
use super::tree::{CLASSES, CLASS_NAMES, FAN};
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// The version of files that this code writes and reads.
pub(super) const VERSION: u32 = 1;

/// What a trace's requests do to a drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Model {
    /// Version of the form of this file.
    pub version: u32,
    /// What it was fitted to.
    pub fitted: Fitted,
    /// Bounds of the footprint.
    pub footprint: Footprint,
    /// Reads, writes, trims and flushes.
    pub mix: Mix,
    /// Arrivals; absent if the trace has no times.
    pub arrivals: Option<Arrivals>,
    /// Sizes and places of reads.
    pub read: Option<Direction>,
    /// Sizes and places of writes.
    pub write: Option<Direction>,
    /// Sizes and places of trims.
    pub trim: Option<Direction>,
}

/// What a model was fitted to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Fitted {
    /// All requests.
    pub requests: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Trims.
    pub trims: u64,
    /// Flushes.
    pub flushes: u64,
    /// From the first arrival to the last, in seconds.
    pub span_s: f64,
    /// Figures that the trace was too short for, and what stands in their place.
    pub borrowed: Vec<String>,
}

/// Bounds of the footprint: beyond them, requests that would use something new use something old.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Footprint {
    /// Regions of 4 MiB that the trace's requests use.
    pub regions: u64,
    /// Blocks of 64 KiB that they use.
    pub blocks: u64,
    /// Pages of 4 KiB that they start at.
    pub pages: u64,
    /// Bound of the regions.
    pub most_regions: u64,
    /// Bound of the blocks.
    pub most_blocks: u64,
    /// Bound of the pages.
    pub most_pages: u64,
}

/// Sizes and places of reads, of writes or of trims.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Direction {
    /// Sizes of requests that do not continue a run.
    pub jump_sizes: Vec<SizeRow>,
    /// Sizes of those that do.
    pub run_sizes: Vec<SizeRow>,
    /// Share of requests with the size of the last one that started at the same page, if that went the same way.
    pub same_size_own: f64,
    /// The same if that went the other way.
    pub same_size_other: f64,
    /// Share of continuing requests with the size of the one that they continue.
    pub same_size_run: f64,
    /// How runs go on.
    pub runs: RunLaw,
    /// Which page, among all at which requests started.
    pub page: Choice,
    /// How many pages about as far back are compared, of which the one used most often is taken: for pages below 64, below
    /// 1024 and more others ago. 1 or more, no unit; 1 prefers none.
    pub prefer: Vec<f64>,
    /// Share of jumps that go as far back among the pages as the last one did, if that was two pages or more.
    pub again: f64,
    /// Which region a new page is in.
    pub region: Choice,
    /// Share of new regions that follow the region used last.
    pub adjacent: f64,
    /// Which block of 512 KiB of the region, by the region's age.
    pub block_512k: Vec<Choice>,
    /// Which block of 64 KiB of that, by its age.
    pub block_64k: Vec<Choice>,
    /// Where a new block of 512 KiB lies.
    pub new_block_512k: Spot,
    /// Where a new block of 64 KiB lies.
    pub new_block_64k: Spot,
    /// Where a new page lies.
    pub new_page: Spot,
}

/// Why a text is not a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: found {found}, expected {expected}")]
pub struct ModelError {
    /// Key or line.
    pub place: String,
    /// What is there.
    pub found: String,
    /// What should be.
    pub expected: String,
}

impl std::str::FromStr for Model {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<Self, ModelError> {
        let model: Model = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            let found = error.message().lines().next().unwrap_or("no TOML").to_owned();
            let expected = "a model as `flashwright trace fit` writes it".to_owned();
            ModelError { place: format!("line {line}"), found, expected }
        })?;
        model.check()?;
        Ok(model)
    }
}

/// A number with five significant digits.
fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    let digits = (4 - libm::floor(libm::log10(value.abs())) as i32).clamp(0, 12) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn list(values: &[f64]) -> String {
    format!("[{}]", values.iter().map(|value| number(*value)).collect::<Vec<_>>().join(", "))
}

fn curve(points: &[(u64, f64)]) -> String {
    let rows: Vec<String> = points.iter().map(|(end, share)| format!("[{end}, {}]", number(*share))).collect();
    format!("[{}]", rows.join(", "))
}

fn choice(choice: &Choice) -> String {
    let Choice { other, own, cross } = choice;
    format!("{{ other = {}, own = {}, cross = {} }}", number(*other), curve(own), curve(cross))
}

/// Appends `name = [` rows `]`.
fn rows(out: &mut String, name: &str, rows: impl Iterator<Item = String>) {
    let _ = writeln!(out, "{name} = [");
    rows.for_each(|row| {
        let _ = writeln!(out, "  {row},");
    });
    out.push_str("]\n");
}

const HEAD: &str = "\
# A workload model: what the requests of a trace do to a drive, without its addresses.
# Play it with --workload model:FILE. Shares are from 0 to 1, sizes in bytes. A hit curve lists [n, share]: this share
# of accesses goes to one of the n entries used last; the rest goes to something new.
";

impl Model {
    /// The file's text.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut out = format!("{HEAD}version = {}\n", self.version);
        let Fitted { requests, reads, writes, trims, flushes, span_s, borrowed } = &self.fitted;
        let quoted: Vec<String> = borrowed.iter().map(|line| format!("  {line:?},\n")).collect();
        let borrowed = if quoted.is_empty() { "[]".to_owned() } else { format!("[\n{}]", quoted.concat()) };
        let _ = write!(
            out,
            "\n[fitted]\nrequests = {requests}\nreads = {reads}\nwrites = {writes}\ntrims = {trims}\nflushes = {flushes}\n\
             # From the first arrival to the last, in seconds.\nspan-s = {}\n\
             # What the trace was too short for.\nborrowed = {borrowed}\n",
            number(*span_s)
        );
        let Footprint { regions, blocks, pages, most_regions, most_blocks, most_pages } = self.footprint;
        let _ = write!(
            out,
            "\n# Regions of 4 MiB, blocks of 64 KiB, and pages of 4 KiB at which requests start, in the trace. The hit curves decide\n\
             # how the footprint grows, up to the bounds: by default what the trace would reach in ten times its length, if it went\n\
             # on as in its second half, and no more regions than lie between its first and its last. What would be new beyond\n\
             # the bounds is old.\n[footprint]\n\
             regions = {regions}\nblocks = {blocks}\npages = {pages}\n\
             most-regions = {most_regions}\nmost-blocks = {most_blocks}\nmost-pages = {most_pages}\n"
        );
        self.write_mix(&mut out);
        if let Some(arrivals) = &self.arrivals {
            write_arrivals(&mut out, arrivals);
        }
        for (name, direction) in [("read", &self.read), ("write", &self.write), ("trim", &self.trim)] {
            if let Some(direction) = direction {
                write_direction(&mut out, name, direction);
            }
        }
        out
    }

    fn write_mix(&self, out: &mut String) {
        let mix = &self.mix;
        let _ = write!(
            out,
            "\n[mix]\n# Share of writes among reads and writes.\nwrite = {}\n\
             # Share of windows of 256 requests whose share of writes is below 0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98, more.\n\
             levels = {}\n# For each level, the shares of the levels of the next window.\n",
            number(mix.write),
            list(&mix.levels)
        );
        rows(out, "next-level", mix.next_level.iter().map(|row| list(row)));
        out.push_str("# For each level: share of writes after a read and a gap below 1 ms, a read and a longer one, a write and a\n# short one, a write and a longer one.\n");
        rows(out, "write-after", mix.write_after.iter().map(|row| list(row)));
        let _ = write!(
            out,
            "# Shares of trims and of flushes after a read, a write, a trim, a flush.\ntrim-after = {}\nflush-after = {}\n\
             # Share of writes with forced unit access.\nforced = {}\n",
            list(&mix.trim_after),
            list(&mix.flush_after),
            number(mix.forced)
        );
    }
}

fn write_arrivals(out: &mut String, arrivals: &Arrivals) {
    let Arrivals { rate, short, longest, counts, divide } = arrivals;
    let _ = write!(
        out,
        "\n[arrivals]\n# Requests a second.\nrate = {}\n# Share of gaps below 1 ms.\nshort = {}\n\
         # The longest intervals have 2^longest ns; counts are requests in each of the trace's, over their mean.\n\
         longest = {longest}\ncounts = {}\n\
         # How requests divide among the halves of an interval, from 2^10 ns up, two doublings a group. Rows: 2, 3-4, 5-16,\n\
         # 17-128 and more requests. Columns: share of intervals whose smaller half has none, up to 1/16, 2/16 ... 8/16.\n",
        number(*rate),
        number(*short),
        list(counts)
    );
    rows(out, "divide", divide.iter().map(|group| {
        format!("[{}]", group.iter().map(|row| list(row)).collect::<Vec<_>>().join(", "))
    }));
}

fn write_direction(out: &mut String, name: &str, direction: &Direction) {
    let _ = writeln!(out, "\n[{name}]\n# Sizes; where in a page they start; what their starts are multiples of. Jumps, then continued runs.");
    for (key, sizes) in [("jump-sizes", &direction.jump_sizes), ("run-sizes", &direction.run_sizes)] {
        rows(out, key, sizes.iter().map(|SizeRow { from, to, offset, align, share }| {
            format!("{{ from = {from}, to = {to}, offset = {offset}, align = {align}, share = {} }}", number(*share))
        }));
    }
    let _ = write!(
        out,
        "# Share with the size of the last request at the same page (the same way, the other way), or of the same run.\n\
         same-size-own = {}\nsame-size-other = {}\nsame-size-run = {}\n\
         # Share of runs that go on after 1, 2, ... 32, up to 64, 128, 256 and more requests; after how many requests of\n\
         # their direction, 1 to 32; share of these delays that are as the run's last one.\n\
         runs = {{ go-on = {}, delays = {}, same-delay = {} }}\n",
        number(direction.same_size_own),
        number(direction.same_size_other),
        number(direction.same_size_run),
        list(&direction.runs.go_on),
        list(&direction.runs.delays),
        number(direction.runs.same_delay)
    );
    let _ = write!(
        out,
        "# Page at which a jump starts: share that goes to what the other direction used last; hit curves of the own and the\n\
         # other direction.\npage = {}\n\
         # Of so many pages about as far back, the one used most often is taken: below 64, below 1024 and more others ago.\nprefer = {}\n\
         # Share of jumps that go as far back as the last one, if that was two pages or more: the trace repeats itself.\nagain = {}\n\
         # Region of 4 MiB that a new page is in.\n\
         region = {}\n# Share of new regions that follow the one used last.\nadjacent = {}\n",
        choice(&direction.page),
        list(&direction.prefer),
        number(direction.again),
        choice(&direction.region),
        number(direction.adjacent)
    );
    let levels = [
        ("block-512k", "Block of 512 KiB in the region", &direction.block_512k),
        ("block-64k", "Block of 64 KiB in that", &direction.block_64k),
    ];
    for (key, what, level) in levels {
        let _ = writeln!(out, "# {what}, by the requests since that was last used, and by which direction.");
        let names = CLASS_NAMES.iter().zip(level);
        rows(out, key, names.map(|(name, row)| format!("# {name}\n  {}", choice(row))));
    }
    out.push_str("# Where a new one lies: the first of its direction; else how far from the one used last, around the end.\n");
    let spots = [
        ("new-block-512k", &direction.new_block_512k),
        ("new-block-64k", &direction.new_block_64k),
        ("new-page", &direction.new_page),
    ];
    for (key, spot) in spots {
        let _ = writeln!(out, "{key} = {{ first = {}, step = {} }}", list(&spot.first), list(&spot.step));
    }
}

type Checked = Result<(), ModelError>;

fn wrong(place: &str, found: impl std::fmt::Display, expected: &str) -> ModelError {
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
    if (sum - 1.0).abs() < 0.01 { Ok(()) } else { Err(wrong(place, format!("a sum of {sum:.3}"), "shares that add up to 1")) }
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

impl Model {
    /// Checks what types can't.
    fn check(&self) -> Checked {
        if self.version != VERSION {
            return Err(wrong("version", self.version, &format!("{VERSION}")));
        }
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
                return Err(wrong("mix.trim-after", format!("{trim} beside {flush} of flush-after"), "a sum of at most 1"));
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
        ("again", direction.again),
    ] {
        share(&at(key), value)?;
    }
    let runs = &direction.runs;
    length(&at("runs.go-on"), &runs.go_on, LENGTHS)?;
    runs.go_on.iter().try_for_each(|value| share(&at("runs.go-on"), *value))?;
    shares(&at("runs.delays"), &runs.delays, WINDOW)?;
    share(&at("runs.same-delay"), runs.same_delay)?;
    if direction.run_sizes.is_empty() && runs.go_on.iter().any(|share| *share > 0.0) {
        return Err(wrong(&at("run-sizes"), "no size", "one at least, since runs go on"));
    }
    check_choice(&at("region"), &direction.region)?;
    check_choice(&at("page"), &direction.page)?;
    length(&at("prefer"), &direction.prefer, 3)?;
    if let Some(prefer) = direction.prefer.iter().find(|prefer| !(1.0..=100.0).contains(*prefer)) {
        return Err(wrong(&at("prefer"), prefer, "1 to 100"));
    }
    let levels = [("block-512k", &direction.block_512k), ("block-64k", &direction.block_64k)];
    for (key, level) in levels {
        length(&at(key), level, CLASSES)?;
        level.iter().try_for_each(|choice| check_choice(&at(key), choice))?;
    }
    let spots =
        [("new-block-512k", &direction.new_block_512k), ("new-block-64k", &direction.new_block_64k), ("new-page", &direction.new_page)];
    for ((key, spot), fan) in spots.into_iter().zip(FAN) {
        shares(&at(&format!("{key}.first")), &spot.first, fan)?;
        shares(&at(&format!("{key}.step")), &spot.step, fan)?;
    }
    Ok(())
}
