//! Records what is served: as a trace, or with its data for crash tests.

use flashwright_block::{Request, RequestKind, SECTOR_BYTES, Tag};
use flashwright_sim::crash::{About, RecordingError, RecordingWriter};
use flashwright_workload::trace::{TraceError, TraceLabel, TraceWriter};
use std::collections::HashMap;
use std::path::Path;

/// A trace that is being written. Played on the same drive, it gives the same result: the requests are in the order in which
/// the drive took them, with their arrivals on the drive's clock.
pub struct Recorder {
    writer: Option<TraceWriter>,
    written: u64,
    /// Why it ended early.
    failure: Option<String>,
    /// Whether the drive has been changed by other than requests.
    is_changed: bool,
    /// What is to be told of such a change by a host.
    note: Option<String>,
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
        let writer = TraceWriter::create(path, "flashwright", &label)?.private();
        Ok(Self { writer: Some(writer), written: 0, failure: None, is_changed: false, note: None })
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

    /// The drive was cut off, mounted or changed: the trace alone no longer gives its result. Returns what to tell of it, the
    /// first time.
    pub fn note_change(&mut self, command: &str) -> Option<String> {
        let is_first = !std::mem::replace(&mut self.is_changed, true);
        is_first.then(|| {
            format!(
                "{command}: the trace holds {} requests and not this command: played on the same drive, it gives another result",
                self.written
            )
        })
    }

    /// A host has left a reclaim unit before it was full, which the trace does not hold either.
    pub fn note_update(&mut self) {
        let note = self.note_change("an update of a reclaim unit handle");
        self.note = self.note.take().or(note);
    }

    /// Takes what is to be told.
    pub fn take_note(&mut self) -> Option<String> {
        self.note.take()
    }

    /// Requests in the trace.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Completes the file. Returns why there is none, if there was nothing to write.
    ///
    /// # Errors
    /// Why there is no whole trace, in one sentence.
    pub fn finish(self) -> Result<Option<String>, String> {
        match (self.writer, self.failure) {
            (_, Some(failure)) => Err(failure),
            (Some(_), None) if self.written == 0 => Ok(Some("no request came, so no trace was written".to_owned())),
            (Some(writer), None) => writer.finish().map(|_| None).map_err(|error| error.to_string()),
            (None, None) => unreachable!("a recorder without a writer has failed"),
        }
    }
}

/// What is served with its data, and with what was answered before what: the recording of a crash test.
#[derive(Debug)]
pub struct DataRecorder {
    writer: Option<RecordingWriter>,
    /// The numbers of requests in flight.
    numbers: HashMap<Tag, u64>,
    /// Whether the client has marked anything: a recording of marks alone is one.
    is_marked: bool,
    failure: Option<String>,
}

impl DataRecorder {
    /// Begins a recording.
    ///
    /// # Errors
    /// [`RecordingError`] if the file can't be written.
    pub fn create(path: &Path, about: &About) -> Result<Self, RecordingError> {
        let writer = RecordingWriter::create(path, about)?;
        Ok(Self { writer: Some(writer), numbers: HashMap::new(), is_marked: false, failure: None })
    }

    /// The drive has taken a request.
    pub fn take(&mut self, tag: Tag, request: &Request, data: Option<&[u8]>) {
        let zeros: Vec<u8>; // zeros that a client had written without sending them
        let data = match (request.kind, data) {
            (RequestKind::Write, Some(data)) if !data.is_empty() => data,
            (RequestKind::Write, _) => {
                zeros = vec![0; request.sectors as usize * SECTOR_BYTES as usize];
                &zeros
            }
            _ => &[],
        };
        if let Some(Ok(number)) = self.try_to(|writer| writer.request(request, data)) {
            self.numbers.insert(tag, number);
        }
    }

    /// A request has ended.
    pub fn ended(&mut self, tag: Tag, succeeded: bool) {
        if let Some(number) = self.numbers.remove(&tag)
            && succeeded
        {
            self.try_to(|writer| writer.completed(number));
        }
    }

    /// The client says that something is done. Returns whether it is recorded.
    pub fn mark(&mut self, text: &str) -> bool {
        self.is_marked = true;
        matches!(self.try_to(|writer| writer.mark(text)), Some(Ok(())))
    }

    /// Requests in the recording.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.writer.as_ref().map_or(0, RecordingWriter::requests)
    }

    fn try_to<T>(
        &mut self,
        work: impl FnOnce(&mut RecordingWriter) -> Result<T, RecordingError>,
    ) -> Option<Result<T, RecordingError>> {
        let done = work(self.writer.as_mut()?);
        if let Err(error) = &done {
            self.failure = Some(format!("recording with data ended: {error}"));
            self.writer = None;
        }
        Some(done)
    }

    /// Completes the file. Returns why there is none, if there was nothing to write.
    ///
    /// # Errors
    /// Why there is no whole recording, in one sentence.
    pub fn finish(self) -> Result<Option<String>, String> {
        match (self.writer, self.failure) {
            (_, Some(failure)) => Err(failure),
            (Some(writer), None) if writer.requests() == 0 && !self.is_marked => {
                Ok(Some("no request came, so no recording was written".to_owned()))
            }
            (Some(writer), None) => writer.finish().map(|()| None).map_err(|error| error.to_string()),
            (None, None) => unreachable!("a recorder without a writer has failed"),
        }
    }
}
