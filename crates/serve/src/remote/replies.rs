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
    /// Errors of requests whose replies are not over.
    failed: Vec<(u64, u32, String)>,
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
                if !known.brought(cookie, u64::from(wire::u32_at(body, 8))) {
                    return Err("a reply brings more than was asked for");
                }
            }
            kind if kind & ERROR_BIT != 0 && length >= 6 => {
                let end = (6 + usize::from(wire::u16_at(body, 4))).min(body.len());
                let why = String::from_utf8_lossy(&body[6..end]).replace(['\n', '\r'], " ");
                self.failed.push((cookie, wire::u32_at(body, 0), why));
            }
            _ => return Err("a chunk of a reply is of no known type"),
        }
        self.over(cookie, is_last, known, done);
        Ok(())
    }

    /// A chunk is over, and with the last one the reply.
    fn over<K: Known>(&mut self, cookie: u64, is_last: bool, known: &mut K, done: &mut impl FnMut(&mut K, Reply)) {
        if !is_last {
            return;
        }
        // The first error is the one that is told.
        let first = self.failed.iter().position(|(failed, ..)| *failed == cookie);
        match first.map(|at| self.failed.remove(at)) {
            Some((_, errno, why)) => {
                self.failed.retain(|(failed, ..)| *failed != cookie);
                done(known, Reply::Failed(cookie, errno, why));
            }
            None => done(known, Reply::Done(cookie)),
        }
    }
}
