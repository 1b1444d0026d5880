//! Records what is served as a trace.

use flashwright_block::Request;
use flashwright_workload::trace::{TraceError, TraceLabel, TraceWriter};
use std::path::Path;

/// A trace that is being written. Played on the same drive, it gives the same result: the requests are in the order in which
/// the drive took them, with their arrivals on the drive's clock.
pub struct Recorder {
    writer: Option<TraceWriter>,
    written: u64,
    /// Why it ended early.
    failure: Option<String>,
}

impl Recorder {
    /// Begins a trace.
    ///
    /// # Errors
    /// [`TraceError`] if the file can't be created.
    pub fn create(path: &Path, drive: &str) -> Result<Self, TraceError> {
        let label = TraceLabel {
            label: format!("served: {drive}"),
            note: "requests of clients, as the drive took them; arrivals are on the drive's clock".to_owned(),
            origin: String::new(),
        };
        Ok(Self { writer: Some(TraceWriter::create(path, "flashwright", &label)?), written: 0, failure: None })
    }

    /// Appends a request that the drive has taken.
    pub fn take(&mut self, request: &Request) {
        let Some(writer) = &mut self.writer else { return };
        match writer.write(request) {
            Ok(()) => self.written += 1,
            Err(error) => {
                self.failure = Some(format!("recording ended after {} requests: {error}", self.written));
                self.writer = None;
            }
        }
    }

    /// Requests in the trace.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Completes the file.
    ///
    /// # Errors
    /// Why there is no whole trace, in one sentence.
    pub fn finish(self) -> Result<u64, String> {
        match (self.writer, self.failure) {
            (_, Some(failure)) => Err(failure),
            (Some(_), None) if self.written == 0 => Err("no request came, so no trace was written".to_owned()),
            (Some(writer), None) => writer.finish().map(|report| report.written).map_err(|error| error.to_string()),
            (None, None) => unreachable!("a recorder without a writer has failed"),
        }
    }
}
