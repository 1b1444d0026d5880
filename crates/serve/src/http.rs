//! As much of HTTP as a browser and Prometheus need to fetch a page: GET, one answer a connection.

use crate::clients::serve_each;
use crate::connection::waits;
use crate::listen::{Listener, Stream};
use crate::shared::Shared;
use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

/// What is at a path: its type and its content.
pub(crate) type Found = Option<(&'static str, String)>;

/// Longest request.
const REQUEST_MAX: usize = 16 << 10;
/// How long a client may take to ask, and then to take the answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Interval between two looks at whether the server stops.
const LOOK: Duration = Duration::from_millis(100);
/// Clients at once; each has a thread, so that one that says nothing keeps no other waiting.
const CLIENTS_MAX: usize = 64;

/// Answers requests until the server stops.
pub(crate) fn listen<S: Send>(listener: Listener, shared: &Shared<S>, page: impl Fn(&str) -> Found + Sync) {
    serve_each(listener, shared, ("http", CLIENTS_MAX), |stream, _| {
        // Whoever went away needs no answer.
        let _ = answer(&stream, &page, shared);
    });
}

fn answer<S>(mut stream: &Stream, page: impl Fn(&str) -> Found, shared: &Shared<S>) -> io::Result<()> {
    stream.set_timeout(Some(LOOK))?;
    let (mut request, mut bytes) = (Vec::new(), [0; 4096]);
    let is_late = lateness(shared);
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(count) => request.extend_from_slice(&bytes[..count]),
            Err(error) if waits(&error) => {}
            Err(error) => return Err(error),
        }
        if request.len() > REQUEST_MAX || is_late() {
            return Ok(());
        }
    }
    let text = String::from_utf8_lossy(&request);
    let mut words = text.split([' ', '\r']);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = path.split('?').next().unwrap_or_default();
    let (status, (kind, content)) = match (method, page(path)) {
        ("GET" | "HEAD", Some(found)) => ("200 OK", found),
        ("GET" | "HEAD", None) => ("404 Not Found", ("text/plain", "nothing is there\n".to_owned())),
        _ => ("405 Method Not Allowed", ("text/plain", "only GET and HEAD are known\n".to_owned())),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
        content.len()
    );
    let all = head + if method == "HEAD" { "" } else { &content };
    let (mut left, is_late) = (all.as_bytes(), lateness(shared));
    while !left.is_empty() && !is_late() {
        match stream.write(left) {
            Ok(count) => left = &left[count..],
            Err(error) if waits(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether a client has had its time, or the server stops.
fn lateness<S>(shared: &Shared<S>) -> impl Fn() -> bool {
    let begun = Instant::now();
    move || begun.elapsed() > PATIENCE || shared.is_stopping()
}
