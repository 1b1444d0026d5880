//! Replies of a server: cut from the stream without I/O. Data of reads are counted and dropped.

use crate::wire::{self, chunk};

/// What has been said about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It succeeded.
    Done(u64),
    /// It failed: the error's number, and the server's words if it said any.
    Failed(u64, u32, String),
}

/// Where in the stream the next byte lies.
#[derive(Clone, Copy, Debug, Default)]
enum At {
    /// At the head of a reply, or of a chunk of one.
    #[default]
    Head,
    /// In the data of a read.
    Data { cookie: u64, left: u64, is_last: bool },
}

/// Reads replies.
#[derive(Debug, Default)]
pub struct Replies {
    bytes: Vec<u8>,
    at: At,
    /// Errors of requests whose replies are not over, the first of each.
    failed: Vec<(u64, u32, String)>,
    /// Chunks since a reply was over that brought no data.
    idle: u32,
}

/// What a client knows of a request that it sent.
pub trait Known {
    /// The bytes that a simple reply to it brings; none if there is no such request.
    fn expects(&self, cookie: u64) -> Option<u64>;
    /// Counts bytes that a reply brought. Returns false if they are more than were asked for.
    fn brought(&mut self, cookie: u64, bytes: u64) -> bool;
}

/// Longest chunk other than data.
const CHUNK_MAX: usize = 64 << 10;
/// The most chunks without data in a row that end no reply: those of a reply without end.
const IDLE_MAX: u32 = 1 << 16;
/// The most of an error's words that is kept, in bytes: the protocol allows 4,096, of which people read no line.
const WORDS_MAX: usize = 1024;
const OFFSET_HOLE: u16 = 2;
const ERROR_BIT: u16 = 1 << 15;

impl Replies {
    /// Takes bytes as they came, and passes each reply that is complete to `done`.
    ///
    /// # Errors
    /// What breaks the protocol.
    pub fn take<K: Known>(
        &mut self,
        mut input: &[u8],
        known: &mut K,
        mut done: impl FnMut(&mut K, Reply),
    ) -> Result<(), &'static str> {
        loop {
            if let At::Data { cookie, left, is_last } = self.at {
                let count = left.min(input.len() as u64);
                input = &input[usize::try_from(count).unwrap_or(input.len())..];
                if count < left {
                    self.at = At::Data { cookie, left: left - count, is_last };
                    return Ok(());
                }
                self.at = At::Head;
                self.over(cookie, is_last, known, &mut done);
            }
            // Heads are short: they are collected until one is whole.
            let needed = self.needed()?;
            let count = needed.saturating_sub(self.bytes.len()).min(input.len());
            self.bytes.extend_from_slice(&input[..count]);
            input = &input[count..];
            if self.bytes.len() < self.needed()? {
                if input.is_empty() {
                    return Ok(());
                }
                continue;
            }
            let message = std::mem::take(&mut self.bytes);
            self.message(&message, known, &mut done)?;
            self.bytes = message;
            self.bytes.clear();
        }
    }

    /// Bytes of the message that has begun.
    fn needed(&self) -> Result<usize, &'static str> {
        let bytes = &self.bytes;
        if bytes.len() < 4 {
            return Ok(4);
        }
        match wire::u32_at(bytes, 0) {
            wire::SIMPLE_REPLY_MAGIC => Ok(16),
            wire::CHUNK_MAGIC if bytes.len() < 20 => Ok(20),
            wire::CHUNK_MAGIC => {
                let (kind, length) = (wire::u16_at(bytes, 6), wire::u32_at(bytes, 16) as usize);
                match kind {
                    chunk::OFFSET_DATA => Ok(28), // the rest is data
                    _ if length > CHUNK_MAX => Err("a chunk of a reply is too long"),
                    _ => Ok(20 + length),
                }
            }
            _ => Err("a reply does not begin as replies do"),
        }
    }

    fn message<K: Known>(
        &mut self,
        message: &[u8],
        known: &mut K,
        done: &mut impl FnMut(&mut K, Reply),
    ) -> Result<(), &'static str> {
        let cookie = wire::u64_at(message, 8);
        let expected = known.expects(cookie).ok_or("a reply answers no request")?;
        if wire::u32_at(message, 0) == wire::SIMPLE_REPLY_MAGIC {
            match wire::u32_at(message, 4) {
                0 if expected > 0 => {
                    known.brought(cookie, expected);
                    self.at = At::Data { cookie, left: expected, is_last: true };
                }
                0 => done(known, Reply::Done(cookie)),
                errno => done(known, Reply::Failed(cookie, errno, String::new())),
            }
            return Ok(());
        }
        let (flags, kind) = (wire::u16_at(message, 4), wire::u16_at(message, 6));
        let (is_last, length) = (flags & chunk::DONE != 0, wire::u32_at(message, 16));
        let body = &message[20..];
        let mut brings = false;
        match kind {
            chunk::NONE if length == 0 => {}
            chunk::OFFSET_DATA if length > 8 => {
                let left = u64::from(length - 8);
                if !known.brought(cookie, left) {
                    return Err("a reply brings more than was asked for");
                }
                self.at = At::Data { cookie, left, is_last };
                return Ok(());
            }
            OFFSET_HOLE if length == 12 => {
                let bytes = u64::from(wire::u32_at(body, 8));
                if !known.brought(cookie, bytes) {
                    return Err("a reply brings more than was asked for");
                }
                brings = bytes > 0;
            }
            kind if kind & ERROR_BIT != 0 && length >= 6 => {
                if self.failed.iter().all(|(failed, ..)| *failed != cookie) {
                    let end = (6 + usize::from(wire::u16_at(body, 4)).min(WORDS_MAX)).min(body.len());
                    let why = String::from_utf8_lossy(&body[6..end]).replace(char::is_whitespace, " ");
                    self.failed.push((cookie, wire::u32_at(body, 0), why));
                }
            }
            _ => return Err("a chunk of a reply is of no known type"),
        }
        self.idle += u32::from(!brings);
        if self.idle > IDLE_MAX {
            return Err("a reply has no end");
        }
        self.over(cookie, is_last, known, done);
        Ok(())
    }

    /// A chunk is over, and with the last one the reply.
    fn over<K: Known>(&mut self, cookie: u64, is_last: bool, known: &mut K, done: &mut impl FnMut(&mut K, Reply)) {
        if !is_last {
            return;
        }
        self.idle = 0;
        // The first error is the one that is told.
        let first = self.failed.iter().position(|(failed, ..)| *failed == cookie);
        match first.map(|at| self.failed.remove(at)) {
            Some((_, errno, why)) => done(known, Reply::Failed(cookie, errno, why)),
            None => done(known, Reply::Done(cookie)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Errno, Style};

    /// Reads of 8 bytes with cookies 1 to 3, other requests with 11 to 13.
    #[derive(Default)]
    struct Sent(Vec<u64>);

    impl Known for Sent {
        fn expects(&self, cookie: u64) -> Option<u64> {
            match cookie {
                1..=3 => Some(8),
                11..=13 => Some(0),
                _ => None,
            }
        }
        fn brought(&mut self, cookie: u64, bytes: u64) -> bool {
            self.0.push(cookie);
            bytes <= 8
        }
    }

    fn chunk(out: &mut Vec<u8>, flags: u16, kind: u16, cookie: u64, body: &[u8]) {
        out.extend(wire::CHUNK_MAGIC.to_be_bytes());
        out.extend(flags.to_be_bytes());
        out.extend(kind.to_be_bytes());
        out.extend(cookie.to_be_bytes());
        out.extend(u32::try_from(body.len()).unwrap().to_be_bytes());
        out.extend(body);
    }

    fn error(errno: u32) -> Vec<u8> {
        [&errno.to_be_bytes()[..], &[0, 2], b"no"].concat()
    }

    #[test]
    fn replies_are_read_wherever_they_are_cut() {
        let (simple, structured) = (Style::default(), Style { structured: true });
        let mut stream = Vec::new();
        simple.put_read(&mut stream, 1, 0, 8);
        simple.put_done(&mut stream, 11);
        simple.put_error(&mut stream, 12, Errno::Io, "");
        structured.put_read(&mut stream, 2, 0, 8);
        structured.put_done(&mut stream, 13);
        // Chunks of two reads that take turns, both with errors, and a hole.
        chunk(&mut stream, 0, 32769, 3, &error(5));
        chunk(&mut stream, 0, 32769, 2, &error(28));
        chunk(&mut stream, 0, 1, 3, &[0; 12]);
        chunk(&mut stream, 1, 2, 2, &[0; 12]);
        chunk(&mut stream, 1, 0, 3, &[]);
        let expected = [
            Reply::Done(1),
            Reply::Done(11),
            Reply::Failed(12, 5, String::new()),
            Reply::Done(2),
            Reply::Done(13),
            Reply::Failed(2, 28, "no".to_owned()),
            Reply::Failed(3, 5, "no".to_owned()),
        ];
        for size in 1..stream.len() {
            let (mut replies, mut found, mut sent) = (Replies::default(), Vec::new(), Sent::default());
            for part in stream.chunks(size) {
                replies.take(part, &mut sent, |_, reply| found.push(reply)).unwrap();
            }
            assert_eq!(found, expected, "in parts of {size}");
            assert_eq!(sent.0, [1, 2, 3, 2]);
        }
    }

    #[test]
    fn a_reply_without_end_takes_no_memory_and_is_told() {
        let mut endless = Vec::new();
        chunk(&mut endless, 0, 32769, 1, &[&[0, 0, 0, 5, 0x70, 0][..], &[b'x'; 0x7000]].concat());
        let (mut replies, mut rounds) = (Replies::default(), 0);
        while replies.take(&endless, &mut Sent::default(), |_, reply| panic!("{reply:?}")).is_ok() {
            rounds += 1;
            let kept: usize = replies.failed.iter().map(|(.., why)| why.len()).sum();
            assert!(kept <= WORDS_MAX, "{kept} bytes after {rounds} errors");
        }
        assert_eq!(rounds, IDLE_MAX);
    }

    #[test]
    fn what_breaks_the_protocol_is_told() {
        let broken = |build: &dyn Fn(&mut Vec<u8>)| {
            let mut stream = Vec::new();
            build(&mut stream);
            Replies::default().take(&stream, &mut Sent::default(), |_, _| {}).unwrap_err()
        };
        assert!(broken(&|out| out.extend([7; 16])).contains("does not begin"));
        assert!(broken(&|out| Style::default().put_done(out, 99)).contains("no request"));
        assert!(broken(&|out| chunk(out, 1, 1, 1, &[0; 17 + 8])).contains("more than was asked"));
        assert!(broken(&|out| chunk(out, 1, 9, 1, &[])).contains("no known type"));
        assert!(broken(&|out| chunk(out, 1, 0, 1, &[0; 4])).contains("no known type"));
        assert!(broken(&|out| chunk(out, 1, 32769, 1, &vec![0; 70_000])).contains("too long"));
    }
}
