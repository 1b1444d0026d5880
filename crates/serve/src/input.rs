//! Bytes that came from a client and were not taken yet.

use std::io::{self, Read};

/// A buffer that is read into at its end and taken from at its beginning.
#[derive(Debug)]
pub(crate) struct Input {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

/// Bytes that are read at once.
const CHUNK: usize = 256 << 10;

impl Input {
    pub fn new() -> Self {
        Self { bytes: vec![0; CHUNK], start: 0, end: 0 }
    }

    /// One without room, in whose place another comes at once.
    pub fn empty() -> Self {
        Self { bytes: Vec::new(), start: 0, end: 0 }
    }

    /// What was read and not taken.
    pub fn rest(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    pub fn take(&mut self, count: usize) {
        self.start += count;
        assert!(self.start <= self.end, "no more is taken than was read");
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            if self.bytes.len() > 8 * CHUNK {
                self.bytes.truncate(CHUNK);
                self.bytes.shrink_to_fit();
            }
        }
    }

    /// Reads once, of a message of `message` bytes. Returns the number of bytes; 0 at the end of the stream.
    ///
    /// Room for a long message grows with what has come of it, so that an announcement alone takes no memory.
    pub fn read(&mut self, mut from: impl Read, message: usize) -> io::Result<usize> {
        let held = self.end - self.start;
        if self.start > 0 && (self.start + message > self.bytes.len() || self.end == self.bytes.len()) {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, held);
        }
        let room = message.min((2 * held).max(CHUNK)).max(held + 1);
        if room > self.bytes.len() {
            self.bytes.resize(room.next_multiple_of(CHUNK), 0);
        }
        let count = from.read(&mut self.bytes[self.end..])?;
        self.end += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_announcement_alone_takes_no_room() {
        let sent = vec![7; CHUNK + 40];
        let (mut input, mut from) = (Input::new(), sent.as_slice());
        while input.read(&mut from, 32 << 20).unwrap() > 0 {
            assert!(input.bytes.len() <= 3 * CHUNK, "{} bytes came", input.rest().len());
        }
        assert_eq!(input.rest(), sent);
    }

    #[test]
    fn messages_longer_than_the_buffer_fit() {
        let sent: Vec<u8> = (0..3_000_000u32).map(|at| (at % 251) as u8).collect();
        let (mut input, mut from) = (Input::new(), sent.as_slice());
        input.read(&mut from, 28).unwrap();
        input.take(28);
        while input.rest().len() < 2_900_000 {
            assert!(input.read(&mut from, 2_900_000).unwrap() > 0);
        }
        assert_eq!(input.rest()[..2_900_000], sent[28..2_900_028]);
        input.take(2_900_000);
        while input.read(&mut from, 28).unwrap() > 0 {}
        assert_eq!(input.rest(), &sent[2_900_028..]);
        input.take(input.rest().len());
        assert_eq!(input.bytes.len(), CHUNK);
    }
}
