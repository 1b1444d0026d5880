//! Temporary files and short ways to read them, for the trace tests.
#![allow(dead_code)]

use flashwright_block::{Nanos, Request, RequestKind};
use flashwright_workload::trace::{TraceError, TraceOptions, TraceReader};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A folder of its own that goes when dropped.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("flashwright-trace-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn file(&self, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path("trace");
        fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub fn insist(format: &str) -> TraceOptions {
    TraceOptions { format: Some(format.to_owned()), ..TraceOptions::default() }
}

/// All requests of a file, read in small batches of uneven size.
pub fn read(path: &Path, options: &TraceOptions) -> Result<Vec<Request>, TraceError> {
    read_all(&mut TraceReader::open(path, options)?)
}

pub fn read_all(reader: &mut TraceReader) -> Result<Vec<Request>, TraceError> {
    let (mut requests, mut size) = (Vec::new(), 1);
    while reader.read(&mut requests, size)? > 0 {
        size = size % 61 + 7;
    }
    Ok(requests)
}

/// All requests of a text.
pub fn read_text(text: &str, options: &TraceOptions) -> Result<Vec<Request>, TraceError> {
    let folder = Folder::new();
    read(&folder.file(text), options)
}

pub fn request(arrival: u64, kind: RequestKind, first_sector: u64, sectors: u32) -> Request {
    Request { arrival: Nanos(arrival), first_sector, sectors, kind, ..Request::default() }
}
