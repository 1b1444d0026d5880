//! A model as text: TOML with a comment on each figure. Reading checks every figure, so that playing can't fail.

use super::chances::{Choice, Spot};
use super::check::{check_version, wrong};
use super::gaps::Arrivals;
use super::kinds::Mix;
use super::runs::RunLaw;
use super::sequence::{self, Sequence};
use super::sizes::SizeRow;
use super::tree::CLASS_NAMES;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// The version of files that this code writes and reads.
pub(super) const VERSION: u32 = 2;

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
    /// Pages of 4 KiB that they use.
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
    /// Which page, among those that a request of about the size jumped to last: for requests of 1 or 2, 3 to 8 and more pages.
    pub page: Vec<Choice>,
    /// The same for pages that fewer than 32 others were used after; `page` has the rest.
    pub near: Vec<Choice>,
    /// Which block of 512 KiB, of the eight used last.
    pub block: Choice,
    /// Which page of a block of 64 KiB in it.
    pub in_block: Choice,
    /// Size class of the next jump, and whether it goes to a near page, by those of the last one: rows and columns for 1 or 2,
    /// 3 to 8 and more pages, first those that are not near.
    pub next: Vec<Vec<f64>>,
    /// For each size, the share that goes to pages that were last used in each other size.
    pub resized: Vec<Vec<f64>>,
    /// Which of those.
    pub resized_page: Choice,
    /// How many pages about as far back are compared, of which the one used most often is taken: for pages below 64, below
    /// 1024 and more others ago. 1 or more, no unit; 1 prefers none.
    pub prefer: Vec<f64>,
    /// Share of new starts in blocks of 64 KiB that were used, from which the request covers only unused pages of the
    /// block, if there are such; for requests of each size class.
    pub clear: Vec<f64>,
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

/// The version alone, whatever else there is.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

impl std::str::FromStr for Model {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<Self, ModelError> {
        match text.parse()? {
            Fit::Statistics(model) => Ok(*model),
            Fit::Sequence(_) => Err(wrong("kind", sequence::KIND, "a model of statistics")),
        }
    }
}

/// A model of either kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Fit {
    /// The trace's own requests in their order.
    Sequence(Box<Sequence>),
    /// What decides how a drive behaves, without any address.
    Statistics(Box<Model>),
}

impl Fit {
    /// What it was fitted to.
    #[must_use]
    pub fn fitted(&self) -> &Fitted {
        match self {
            Fit::Sequence(sequence) => &sequence.fitted,
            Fit::Statistics(model) => &model.fitted,
        }
    }
}

impl std::str::FromStr for Fit {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<Self, ModelError> {
        // Files of other versions have other keys, so their version is looked at first.
        match toml::from_str(text) {
            Ok(Version { version: sequence::VERSION }) => return Ok(Fit::Sequence(Box::new(Sequence::read(text)?))),
            Ok(Version { version }) => check_version(version)?,
            Err(_) => {}
        }
        let model: Model = read(text)?;
        model.check()?;
        Ok(Fit::Statistics(Box::new(model)))
    }
}

/// The figures of a text.
pub(super) fn read<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, ModelError> {
    toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        let message = error.message().lines().next().unwrap_or("no TOML");
        let found = message.split_once(", expected").map_or(message, |(found, _)| found).to_owned();
        let expected = "a model as `flashwright trace fit` writes it".to_owned();
        ModelError { place: format!("line {line}"), found, expected }
    })
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

pub(super) fn list(values: &[f64]) -> String {
    format!("[{}]", values.iter().map(|value| number(*value)).collect::<Vec<_>>().join(", "))
}

fn table(rows: &[Vec<f64>]) -> String {
    format!("[{}]", rows.iter().map(|row| list(row)).collect::<Vec<_>>().join(", "))
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

/// Appends what a model was fitted to.
pub(super) fn write_fitted(out: &mut String, fitted: &Fitted) {
    let Fitted { requests, reads, writes, trims, flushes, span_s, borrowed } = fitted;
    let quoted: Vec<String> = borrowed.iter().map(|line| format!("  {line:?},\n")).collect();
    let borrowed = if quoted.is_empty() { "[]".to_owned() } else { format!("[\n{}]", quoted.concat()) };
    let _ = write!(
        out,
        "\n[fitted]\nrequests = {requests}\nreads = {reads}\nwrites = {writes}\ntrims = {trims}\nflushes = {flushes}\n\
         # From the first arrival to the last, in seconds.\nspan-s = {}\n\
         # What the trace was too short for.\nborrowed = {borrowed}\n",
        number(*span_s)
    );
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
        write_fitted(&mut out, &self.fitted);
        let Footprint { regions, blocks, pages, most_regions, most_blocks, most_pages } = self.footprint;
        let _ = write!(
            out,
            "\n# Regions of 4 MiB, blocks of 64 KiB, and pages of 4 KiB that the trace's requests use. The hit curves decide\n\
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
    rows(
        out,
        "divide",
        divide.iter().map(|group| format!("[{}]", group.iter().map(|row| list(row)).collect::<Vec<_>>().join(", "))),
    );
}

fn write_direction(out: &mut String, name: &str, direction: &Direction) {
    let _ = writeln!(
        out,
        "\n[{name}]\n# Sizes; where in a page they start; what their starts are multiples of. Jumps, then continued runs."
    );
    for (key, sizes) in [("jump-sizes", &direction.jump_sizes), ("run-sizes", &direction.run_sizes)] {
        rows(
            out,
            key,
            sizes.iter().map(|SizeRow { from, to, offset, align, share }| {
                format!(
                    "{{ from = {from}, to = {to}, offset = {offset}, align = {align}, share = {} }}",
                    number(*share)
                )
            }),
        );
    }
    let _ = write!(
        out,
        "# Share with the size of the last request at the same page (the same way, the other way), or of the same run.\n\
         same-size-own = {}\nsame-size-other = {}\nsame-size-run = {}\n\
         # Share of runs that go on into unused pages, and into used ones, after 1, 2, ... 32, up to 64, 128, 256 and more\n\
         # requests; a row for each kind of jump that\n\
         # began the run, as in next below. After how many requests of their direction, 1 to\n\
         # 32; share of these delays that are as the run's last one.\n\
         runs = {{ go-on = {}, go-on-used = {}, delays = {}, same-delay = {} }}\n",
        number(direction.same_size_own),
        number(direction.same_size_other),
        number(direction.same_size_run),
        table(&direction.runs.go_on),
        table(&direction.runs.go_on_used),
        list(&direction.runs.delays),
        number(direction.runs.same_delay)
    );
    out.push_str(
        "# Page at which a jump starts, among those that a request of the size class jumped to last: share that goes to what the\n\
         # other direction used last; hit curves of the own and the other direction. For 1 or 2, 3 to 8 and more pages.\n",
    );
    rows(out, "page", direction.page.iter().map(choice));
    out.push_str("# The same for what fewer than 32 others were used after, in place of the rest.\n");
    rows(out, "near", direction.near.iter().map(choice));
    let _ = writeln!(
        out,
        "# Jumps to another page of one of the eight blocks of 512 KiB used last: which block; which page of a block of 64 KiB in it.\nblock = {}\nin-block = {}",
        choice(&direction.block),
        choice(&direction.in_block)
    );
    out.push_str(
        "# After each kind of jump, the share of each. Kinds: those of each size class that go far or to something new, then\n\
         # those of each size class that go near.\n",
    );
    rows(out, "next", direction.next.iter().map(|row| list(row)));
    out.push_str("# For each of these classes, the share of jumps to pages that were last used in each other class; which of those.\n");
    rows(out, "resized", direction.resized.iter().map(|row| list(row)));
    let _ = writeln!(out, "resized-page = {}", choice(&direction.resized_page));
    let _ = write!(
        out,
        "# Of so many pages about as far back, the one used most often is taken: below 64, below 1024 and more others ago.\nprefer = {}\n\
         # Share of new starts in used blocks of 64 KiB that cover none of the used pages, if there is room, by size class.\nclear = {}\n\
         # Region of 4 MiB that a new page is in.\n\
         region = {}\n# Share of new regions that follow the one used last.\nadjacent = {}\n",
        list(&direction.prefer),
        list(&direction.clear),
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
    out.push_str(
        "# Where a new one lies: the first of its direction; else how far from the one used last, around the end.\n",
    );
    let spots = [
        ("new-block-512k", &direction.new_block_512k),
        ("new-block-64k", &direction.new_block_64k),
        ("new-page", &direction.new_page),
    ];
    for (key, spot) in spots {
        let _ = writeln!(out, "{key} = {{ first = {}, step = {} }}", list(&spot.first), list(&spot.step));
    }
}
