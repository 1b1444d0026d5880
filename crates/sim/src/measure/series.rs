//! A time series of windows of equal length, for a replay whose duration is unknown.

use super::{RequestWindow, Tally, in_pairs};
use flashwright_block::{Completion, Nanos};

/// Initial length of a window; it doubles whenever there are more than [`ROWS_MAX`] windows. We chose it for plots.
const WINDOW_NS: u64 = 100_000_000;
const ROWS_MAX: usize = 1000;

/// The measurement of a replay: a tally with windows of one length.
#[derive(Debug)]
pub(crate) struct Series {
    pub tally: Tally,
    rows: Vec<RequestWindow>,
    window_ns: u64,
    /// When the current window ends, since playing began.
    due_ns: u64,
}

impl Series {
    pub fn new(started: Nanos, timed: bool) -> Self {
        let tally = Tally::new(started.0, timed, true);
        Self { tally, rows: Vec::with_capacity(ROWS_MAX + 1), window_ns: WINDOW_NS, due_ns: WINDOW_NS }
    }

    #[inline]
    pub fn completed(&mut self, completion: &Completion) {
        let elapsed = completion.end.0 - self.tally.start_ns;
        while elapsed > self.due_ns {
            self.end_window(elapsed);
        }
        self.tally.completed(completion);
    }

    fn end_window(&mut self, elapsed: u64) {
        let start_ns = self.tally.start_ns;
        let row = self.tally.end_window(start_ns + self.due_ns);
        let ended = self.due_ns;
        self.rows.push(RequestWindow { time_end_ns: ended, ..row });
        // After a long pause windows grow first, which avoids millions of empty ones.
        while self.rows.len() > ROWS_MAX || (elapsed - ended) / self.window_ns > ROWS_MAX as u64 {
            self.window_ns *= 2;
            self.rows = in_pairs(&self.rows, RequestWindow::join);
            self.rows.reserve(ROWS_MAX + 1);
        }
        self.due_ns = ended + self.window_ns;
    }

    /// The series so far, including the current window.
    pub fn rows(&self) -> Vec<RequestWindow> {
        let mut rows = self.rows.clone();
        let elapsed = self.tally.duration_ns();
        if self.tally.timed
            && self.tally.requests_in_window() > 0
            && elapsed > rows.last().map_or(0, |row| row.time_end_ns)
        {
            let row = self.tally.window(self.tally.end_ns);
            rows.push(RequestWindow { time_end_ns: elapsed, ..row });
        }
        rows
    }
}
