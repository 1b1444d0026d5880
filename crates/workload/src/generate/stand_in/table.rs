//! The published statistics that stand-ins are calibrated to, in one place, each with its source.
//!
//! Sources, by the name used below:
//! - **UMass**: totals of the whole SPC traces (requests, reads, writes, distinct start addresses).
//! - **MS**: totals of Microsoft's production traces (requests, mean sizes, span, distinct 4 KiB blocks written).
//! - **Hu12**: Hu's thesis, table 2.2. Prints 41, 66.7 and 83.9 as the write/read ratio of Build, MSN and TPC-E. As
//!   ratios they contradict the traces (1.1, 0.45, 0.11 by MS); as percentages of reads they are near (48, 69, 90 by
//!   MS). The `hu12` rows therefore read them as percentages of reads.
//! - **Gupta09**: the DFTL paper, table 3. Its Financial is another part of the trace than UMass's whole: application 9.
//! - **FlashSim**: outputs that the authors of the DFTL paper released with their simulator, of the same part.
//! - **CM**: the container-marking paper, table III: 23.2 % reads, 8.13 ms and 1.30 pages a write for Financial1.
//! - **other**: Financial, Cello99 and TPC-H as published elsewhere (size, reads, rate; for the last two the share of
//!   writes close behind another).
//!
//! Values that no source gives are ours and marked so: shapes of size distributions, popularity exponents, lengths of
//! runs, the spacing of start addresses, the footprints of Cello99 and TPC-H. Kilobytes are read as KiB.

use crate::generate::value::choice;

choice! {
    /// The traces that have a stand-in.
    pub enum Trace {
        /// OLTP of a financial institution, the write-heavy one.
        Financial1 = "financial1",
        /// OLTP of a financial institution, the read-heavy one.
        Financial2 = "financial2",
        /// HP's time-sharing server.
        Cello99 = "cello99",
        /// Decision support.
        TpcH = "tpc-h" | "tpch",
        /// A search engine.
        Websearch1 = "websearch1" | "websearch",
        /// Microsoft's mail server.
        Exchange = "exchange",
        /// Microsoft's build server.
        Build = "build",
        /// Microsoft's MSN storage server, file part.
        Msn = "msn",
        /// On-line brokerage.
        TpcE = "tpc-e" | "tpce",
    }
}

choice! {
    /// The source of the statistics.
    pub enum Variant {
        /// The whole trace.
        Whole = "whole",
        /// Hu's thesis, table 2.2.
        Hu12 = "hu12",
        /// The DFTL paper, table 3.
        Gupta09 = "gupta09",
        /// Published elsewhere.
        Other = "other",
        /// The default source, without a head's locality.
        StatisticsOnly = "statistics-only",
        /// Hu's thesis, without a head's locality.
        Hu12Only = "hu12-statistics-only",
        /// The DFTL paper, without a head's locality.
        Gupta09Only = "gupta09-statistics-only",
        /// Published elsewhere, without a head's locality.
        OtherOnly = "other-statistics-only",
    }
}

impl Variant {
    /// The source of the statistics, none for the trace's default one; and whether there is nothing beside them.
    pub(crate) fn parts(self) -> (Option<Variant>, bool) {
        match self {
            Variant::StatisticsOnly => (None, true),
            Variant::Hu12Only => (Some(Variant::Hu12), true),
            Variant::Gupta09Only => (Some(Variant::Gupta09), true),
            Variant::OtherOnly => (Some(Variant::Other), true),
            source => (Some(source), false),
        }
    }
}

/// Sizes with their weights before the mean is set: (sectors of 512 B, weight).
pub(crate) type Shape = &'static [(u32, f64)];

/// Databases that write records: below a page mostly, few large ones. Ours; chosen such that Financial1's writes,
/// at their mean of 3.73 KiB, take 1.30 pages (CM).
const RECORDS: Shape = &[
    (1, 0.12),
    (2, 0.16),
    (4, 0.12),
    (6, 0.28),
    (7, 0.10),
    (8, 0.12),
    (16, 0.05),
    (32, 0.035),
    (64, 0.01),
    (128, 0.002),
];
/// A Unix file system: fragments, blocks of 4 and 8 KiB, read-ahead. Ours.
const FILES: Shape = &[(2, 0.1), (4, 0.1), (8, 0.5), (16, 0.2), (32, 0.06), (64, 0.03), (128, 0.01)];
/// Pages and powers of two of them up to 256 KiB. Ours.
const PAGES: Shape = &[(8, 0.3), (16, 0.4), (32, 0.12), (64, 0.1), (128, 0.06), (256, 0.015), (512, 0.005)];
/// 8 to 32 KiB in steps of 8, as at the start of WebSearch1.
const INDEX: Shape = &[(16, 0.59), (32, 0.13), (48, 0.08), (64, 0.20)];

/// What a footprint counts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Footprint {
    /// Distinct start addresses.
    Starts(u64),
    /// Distinct 4 KiB pages touched.
    Pages(u64),
    /// Not published: pages, ours.
    Assumed(u64),
}

/// One trace as one source describes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) trace: Trace,
    pub(crate) variant: Variant,
    /// Requests of the whole trace, over which footprint and updates were counted.
    pub(crate) requests: f64,
    /// Share of requests that write.
    pub(crate) write: f64,
    /// Mean size of reads and of writes, KiB.
    pub(crate) read_kib: f64,
    pub(crate) write_kib: f64,
    /// Mean time between requests, milliseconds.
    pub(crate) gap_ms: f64,
    /// Share of writes within 1.5 ms of the write before; none if no source gives it: arrivals are then Poisson.
    pub(crate) close_writes: Option<f64>,
    /// Share of requests that start where the one before ended; 0 if no source gives it.
    pub(crate) sequential: f64,
    pub(crate) footprint: Footprint,
    /// Distance between start addresses outside runs, 4 KiB pages. Ours.
    pub(crate) grain_pages: u64,
    /// Share of the footprint that is written, the rest is only read; matters if `updated` is given. Ours.
    pub(crate) written: f64,
    /// Share of written addresses that are written three times or more ("updated more than once").
    pub(crate) updated: Option<f64>,
    /// Zipf exponent among the popular chunks. Ours.
    pub(crate) alpha: f64,
    pub(crate) shape: Shape,
}

/// Mean requests in a sequential run. Ours.
pub(crate) const RUN_MEAN: f64 = 4.0;

/// Share of the footprint that is popular if no source reports updates. Ours.
pub(crate) const HOT_ASSUMED: f64 = 0.2;

/// The row of a trace that others are written as changes of.
const FINANCIAL1: Row = Row {
    trace: Trace::Financial1,
    variant: Variant::Whole,
    requests: 5_334_987.0,            // UMass
    write: 4_099_354.0 / 5_334_987.0, // UMass: 76.8 %, as CM and Hu12's 3.31
    read_kib: 2.22,                   // ours, such that all requests have 3.38 (Hu12)
    write_kib: 3.73,                  // ours, as above; 1.30 pages (CM)
    gap_ms: 8.13,                     // CM; Hu12's 122 IOPS are 8.20
    close_writes: None,
    sequential: 0.02,                      // Gupta09
    footprint: Footprint::Starts(710_908), // UMass
    grain_pages: 1,
    written: 1.0,
    updated: Some(0.30), // Hu12
    alpha: 0.8,
    shape: RECORDS,
};

/// The DFTL paper's Financial: application 9 of Financial1, its sectors numbered in order of address.
const GUPTA09_FINANCIAL: Row = Row {
    requests: 322_874.0, // FlashSim
    // Ours, such that page mapping copies as many pages as FlashSim does of the whole trace (12,691 on 1 GiB and 32 MiB of spare blocks).
    footprint: Footprint::Assumed(97_000),
    ..described(FINANCIAL1, Variant::Gupta09, 4.38, 0.91, 133.50)
};

const FINANCIAL2: Row = Row {
    trace: Trace::Financial2,
    requests: 3_699_194.0,          // UMass
    write: 653_082.0 / 3_699_194.0, // UMass: 17.7 %
    read_kib: 2.38,                 // Hu12, all requests
    write_kib: 2.38,                // Hu12, all requests
    gap_ms: 1000.0 / 54.0,          // Hu12: 54 IOPS
    sequential: 0.0,
    footprint: Footprint::Starts(296_072), // UMass
    // With 2.2 writes for each address of the footprint, 40 % cannot have three and be popular too: many are only read.
    written: 0.5,
    updated: Some(0.40), // Hu12
    ..FINANCIAL1
};

const CELLO99: Row = Row {
    trace: Trace::Cello99,
    variant: Variant::Gupta09,
    requests: 2_097_152.0,                    // ours
    write: 0.65,                              // Gupta09
    read_kib: 5.03,                           // Gupta09, all requests
    write_kib: 5.03,                          // Gupta09, all requests
    gap_ms: 41.01,                            // Gupta09
    close_writes: Some(0.31),                 // other
    sequential: 0.01,                         // Gupta09
    footprint: Footprint::Assumed(1_048_576), // 4 GiB
    grain_pages: 1,
    written: 1.0,
    updated: None,
    alpha: 0.9,
    shape: FILES,
};

const TPC_H: Row = Row {
    trace: Trace::TpcH,
    variant: Variant::Gupta09,
    requests: 2_097_152.0,                    // ours
    write: 0.05,                              // Gupta09
    read_kib: 12.82,                          // Gupta09, all requests
    write_kib: 12.82,                         // Gupta09, all requests
    gap_ms: 155.56,                           // Gupta09
    close_writes: Some(0.11),                 // other
    sequential: 0.18,                         // Gupta09
    footprint: Footprint::Assumed(2_097_152), // 8 GiB
    grain_pages: 2,
    written: 1.0,
    updated: None,
    alpha: 0.8,
    shape: PAGES,
};

const WEBSEARCH1: Row = Row {
    trace: Trace::Websearch1,
    variant: Variant::Whole,
    requests: 1_055_448.0,      // UMass
    write: 212.0 / 1_055_448.0, // UMass
    read_kib: 14.86,            // Gupta09, all requests
    write_kib: 14.86,           // Gupta09, all requests
    gap_ms: 9.97,               // Gupta09
    close_writes: None,
    sequential: 0.14,                      // Gupta09
    footprint: Footprint::Starts(480_446), // UMass
    grain_pages: 2,                        // sizes are multiples of 8 KiB, so runs stay on the grid
    written: 1.0,
    updated: None,
    alpha: 0.8,
    shape: INDEX,
};

const EXCHANGE: Row = Row {
    trace: Trace::Exchange,
    variant: Variant::Whole,
    requests: 52_254_526.0,             // MS: 25,412,082 reads, 26,842,444 writes
    write: 26_842_444.0 / 52_254_526.0, // MS
    read_kib: 11.70,                    // MS
    write_kib: 18.59,                   // MS
    gap_ms: 86_815.3e3 / 52_254_526.0,  // MS: span
    close_writes: None,
    sequential: 0.0,
    footprint: Footprint::Pages(9_559_605), // MS
    grain_pages: 2,
    written: 1.0,
    updated: Some(0.35), // Hu12
    alpha: 0.6,
    shape: PAGES,
};

const BUILD: Row = Row {
    trace: Trace::Build,
    requests: 10_919_540.0,                  // MS: 5,258,028 reads, 5,661,512 writes
    write: 5_661_512.0 / 10_919_540.0,       // MS
    read_kib: 32.75,                         // MS
    write_kib: 28.11,                        // MS
    gap_ms: 84_379.5e3 / 10_919_540.0,       // MS: span
    footprint: Footprint::Pages(16_311_208), // MS
    grain_pages: 4,
    updated: Some(0.13), // Hu12
    ..EXCHANGE
};

const MSN: Row = Row {
    trace: Trace::Msn,
    requests: 28_071_688.0,                 // MS, file server: 19,361,002 reads, 8,710,686 writes
    write: 8_710_686.0 / 28_071_688.0,      // MS
    read_kib: 10.50,                        // MS
    write_kib: 13.15,                       // MS
    gap_ms: 21_720.7e3 / 28_071_688.0,      // MS: span
    footprint: Footprint::Pages(5_865_820), // MS
    updated: Some(0.09),                    // Hu12
    ..EXCHANGE
};

const TPC_E: Row = Row {
    trace: Trace::TpcE,
    requests: 112_707_336.0,                // MS: 101,787,700 reads, 10,919,636 writes
    write: 10_919_636.0 / 112_707_336.0,    // MS
    read_kib: 8.26,                         // MS
    write_kib: 11.06,                       // MS
    gap_ms: 4_536.3e3 / 112_707_336.0,      // MS: span
    footprint: Footprint::Pages(8_460_835), // MS
    updated: Some(0.01),                    // Hu12
    ..EXCHANGE
};

/// A row as Hu12's table 2.2 has it: mean size of all requests in KiB, share of writes, requests per second.
const fn hu12(row: Row, kib: f64, write: f64, iops: f64) -> Row {
    Row { variant: Variant::Hu12, read_kib: kib, write_kib: kib, write, gap_ms: 1000.0 / iops, ..row }
}

/// A row as others have it: mean size of all requests in KiB, share of writes, mean gap in milliseconds.
const fn described(row: Row, variant: Variant, kib: f64, write: f64, gap_ms: f64) -> Row {
    Row { variant, read_kib: kib, write_kib: kib, write, gap_ms, ..row }
}

/// All rows; the first of a trace is its default.
pub(crate) const ROWS: &[Row] = &[
    FINANCIAL1,
    GUPTA09_FINANCIAL,
    described(FINANCIAL1, Variant::Other, 7.1, 1.0 - 0.189, 1000.0 / 47.0),
    FINANCIAL2,
    hu12(FINANCIAL2, 2.38, 0.24 / 1.24, 54.0),
    CELLO99,
    described(CELLO99, Variant::Other, 7.06, 0.804, 1000.0 / 74.0),
    TPC_H,
    described(TPC_H, Variant::Other, 31.6, 0.082, 1000.0 / 173.0),
    WEBSEARCH1,
    described(WEBSEARCH1, Variant::Gupta09, 14.86, 0.01, 9.97),
    EXCHANGE,
    hu12(EXCHANGE, 12.5, 1.53 / 2.53, 611.0),
    BUILD,
    hu12(BUILD, 4.14, 1.0 - 0.41, 1980.0), // 41 read as per cent of reads, see above
    MSN,
    hu12(MSN, 22.52, 1.0 - 0.667, 106.0), // 66.7 likewise
    TPC_E,
    hu12(TPC_E, 12.75, 1.0 - 0.839, 308.0), // 83.9 likewise
];

/// The row of `trace` by `variant`, or its default one.
pub(crate) fn row(trace: Trace, variant: Option<Variant>) -> Option<&'static Row> {
    let source = variant.and_then(|variant| variant.parts().0);
    ROWS.iter().find(|row| row.trace == trace && source.is_none_or(|source| row.variant == source))
}

/// The name of the trace as its publishers write it.
pub(crate) fn title(trace: Trace) -> &'static str {
    match trace {
        Trace::Financial1 => "Financial1",
        Trace::Financial2 => "Financial2",
        Trace::Cello99 => "Cello99",
        Trace::TpcH => "TPC-H",
        Trace::Websearch1 => "WebSearch1",
        Trace::Exchange => "Exchange",
        Trace::Build => "Build",
        Trace::Msn => "MSN",
        Trace::TpcE => "TPC-E",
    }
}

impl Row {
    /// Start addresses outside runs.
    pub(crate) fn slots(&self) -> u64 {
        match self.footprint {
            Footprint::Starts(starts) => starts,
            Footprint::Pages(pages) | Footprint::Assumed(pages) => pages / self.grain_pages,
        }
    }
}
