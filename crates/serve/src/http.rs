//! As much of HTTP as a browser and Prometheus need to fetch a page: GET, one answer a connection.

use crate::listen::{Listener, Stream};
use crate::shared::{Shared, wait_for};
use std::io::{Read, Write};
use std::time::{Duration, Instant};

/// What is at a path: its type and its content.
pub(crate) type Found = Option<(&'static str, String)>;

/// Longest request.
const REQUEST_MAX: usize = 16 << 10;
/// How long a client may take, so that one that says nothing keeps others waiting no longer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Answers requests until the server stops.
pub(crate) fn listen<S>(listener: &Listener, shared: &Shared<S>, page: impl Fn(&str) -> Found) {
    while !shared.is_stopping() {
        match listener.accept() {
            Ok(None) => wait_for(listener, &shared.bell),
            Ok(Some(stream)) => {
                // Whoever went away needs no answer.
                let _ = answer(&stream, &page);
            }
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

fn answer(mut stream: &Stream, page: impl Fn(&str) -> Found) -> std::io::Result<()> {
    stream.set_timeout(Some(PATIENCE))?;
    let (mut request, mut bytes, begun) = (Vec::new(), [0; 4096], Instant::now());
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = stream.read(&mut bytes)?;
        request.extend_from_slice(&bytes[..count]);
        if count == 0 || request.len() > REQUEST_MAX || begun.elapsed() > PATIENCE {
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
    stream.write_all(head.as_bytes())?;
    if method != "HEAD" { stream.write_all(content.as_bytes()) } else { Ok(()) }
}
