//! A page that shows the drive at work: samples of every second, and the state of all blocks.

use crate::served::{Glance, Served};
use crate::server::stats;
use crate::shared::{Shared, locked};
use flashwright_sim::Latency;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::time::Duration;

/// Seconds that are kept.
const KEPT: usize = 900;
const SECOND: Duration = Duration::from_secs(1);

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// What happened in a second.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Sample {
    /// Seconds since the drive is served, at the end.
    at_s: f64,
    /// Seconds that it covers.
    span_s: f64,
    reads: u64,
    writes: u64,
    bytes_read: u64,
    bytes_written: u64,
    pages_written: u64,
    programs: u64,
    programs_gc: u64,
    erases: u64,
    blocks_free: u64,
    /// Response times of reads and writes on the drive's clock; null if there were none.
    p50_ns: Option<u64>,
    p99_ns: Option<u64>,
    p99_9_ns: Option<u64>,
}

impl Sample {
    fn between(before: &Glance, now: &Glance, at_s: f64, span_s: f64, times: &Latency) -> Self {
        Self {
            at_s,
            span_s,
            reads: now.requests[0] - before.requests[0],
            writes: now.requests[1] - before.requests[1],
            bytes_read: now.bytes[0] - before.bytes[0],
            bytes_written: now.bytes[1] - before.bytes[1],
            pages_written: now.pages_written - before.pages_written,
            programs: now.programs - before.programs,
            programs_gc: now.programs_gc - before.programs_gc,
            erases: now.erases - before.erases,
            blocks_free: now.blocks_free,
            p50_ns: times.quantile(0.5),
            p99_ns: times.quantile(0.99),
            p99_9_ns: times.quantile(0.999),
        }
    }
}

/// Takes a sample each second until the server stops.
pub(crate) fn sample<S: Served>(shared: &Shared<S>) {
    let (mut before, mut last_s) = (Glance::default(), 0.0);
    while !shared.sleep(SECOND) {
        let Some(mut drive) = shared.drive() else { return };
        let (now, times) = (drive.served.glance(), drive.recent.replace(Latency::default()));
        drop(drive);
        let at_s = shared.started.elapsed().as_secs_f64();
        let taken = Sample::between(&before, &now, at_s, at_s - last_s, &times.unwrap_or_default());
        (before, last_s) = (now, at_s);
        let mut samples = locked(&shared.samples);
        if samples.len() == KEPT {
            samples.pop_front();
        }
        samples.push_back(taken);
    }
}

/// The page, or its data.
pub(crate) fn page<S: Served>(shared: &Shared<S>, path: &str) -> crate::http::Found {
    match path {
        "/" => Some(("text/html", PAGE.replace("/*style*/", STYLE).replace("/*script*/", SCRIPT))),
        "/data" => Some(("application/json", data(shared).to_string())),
        _ => None,
    }
}

fn data<S: Served>(shared: &Shared<S>) -> Value {
    let blocks = shared.drive().and_then(|drive| drive.served.blocks()).map(|blocks| {
        let whole = f64::from(blocks.pages_per_block);
        // A letter for the valid share of a cell, of 64 levels from '0' on: a page of thousands of numbers would be long.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 0 to 63
        let letter = |valid: &f32| char::from(b'0' + (f64::from(*valid) / whole * 63.0).round().clamp(0.0, 63.0) as u8);
        json!({
            "joined": blocks.joined,
            "cells_per_plane": blocks.cells_per_plane,
            "valid": blocks.valid.iter().map(letter).collect::<String>(),
            "erases": blocks.erases,
        })
    });
    let samples: VecDeque<Sample> = locked(&shared.samples).clone();
    json!({ "stats": stats(shared), "samples": samples, "blocks": blocks })
}
