//! The host of a function: the memory of a virtual machine, its vectors, and the descriptors that came with its messages.
//!
//! Its memory is a file of `tmpfs`, such as a memfd, of which the machine sends the descriptor. One that is sealed against
//! shrinking is mapped ([`Mapping`]); any other is read and written by system calls, since whoever shortens a mapped file kills the
//! process that touches it. Files of other file systems are refused: reading one may take as long as its owner likes.

use crate::listen::Stream;
use crate::mapping::Mapping;
use flashwright_nvme::vfio::{Errno, Host, MESSAGE_FDS_MAX, Map, OutOfReach, VECTORS};
use rustix::fs::{FileType, OFlags, SealFlags, fcntl_get_seals, fcntl_getfl, fcntl_setfl, fstat, fstatfs};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::collections::VecDeque;
use std::io::{self, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::atomic::{Ordering, fence};

/// Maps of a machine: far more than its memory has parts, and few enough for the system.
const MAPS_MAX: usize = 1024;
/// Descriptors that wait for their messages. Those beyond are closed.
const WAITING_MAX: usize = 4 * MESSAGE_FDS_MAX;
/// Reads of a word that changes all the time: no doorbell does.
const TRIES_MAX: usize = 16;
/// The type of `tmpfs` in `statfs`.
const TMPFS: u64 = 0x0102_1994;

/// A range of the machine's memory.
#[derive(Debug)]
struct Area {
    address: u64,
    bytes: u64,
    is_writable: bool,
    content: Content,
}

/// What is behind a range.
#[derive(Debug)]
enum Content {
    /// Nothing: a device of the machine, which only the machine can reach.
    Elsewhere,
    Mapped(Mapping),
    /// A file that may become shorter, from an offset on.
    File(OwnedFd, u64),
}

/// The machine that a function belongs to.
#[derive(Debug)]
pub(crate) struct Guest {
    /// In the order of their addresses.
    areas: Vec<Area>,
    vectors: Vec<Option<OwnedFd>>,
    /// Descriptors, each with the number of the byte in the stream at which it came.
    waiting: VecDeque<(u64, OwnedFd)>,
    /// Those of the message that is handled.
    descriptors: VecDeque<OwnedFd>,
    /// Bytes that came, and those among them that were handled.
    received: u64,
    handled: u64,
}

impl Guest {
    pub fn new() -> Self {
        Self {
            areas: Vec::new(),
            vectors: (0..VECTORS).map(|_| None).collect(),
            waiting: VecDeque::new(),
            descriptors: VecDeque::new(),
            received: 0,
            handled: 0,
        }
    }

    /// Carries out `part` on each area of a range, with the place in the area and the part of the range.
    fn each(
        &self,
        address: u64,
        bytes: usize,
        mut part: impl FnMut(&Area, u64, std::ops::Range<usize>) -> Result<(), OutOfReach>,
    ) -> Result<(), OutOfReach> {
        address.checked_add(bytes as u64).ok_or(OutOfReach)?;
        let mut done = 0;
        let mut at = self.areas.partition_point(|area| area.address <= address);
        while done < bytes {
            let now = address + done as u64;
            let area = at.checked_sub(1).and_then(|at| self.areas.get(at)).ok_or(OutOfReach)?;
            let within = now.checked_sub(area.address).filter(|within| *within < area.bytes).ok_or(OutOfReach)?;
            let count = usize::try_from(area.bytes - within).unwrap_or(usize::MAX).min(bytes - done);
            part(area, within, done..done + count)?;
            done += count;
            at += 1;
        }
        Ok(())
    }
}

fn place(within: u64) -> usize {
    usize::try_from(within).expect("an area is mapped whole")
}

impl Host for Guest {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), OutOfReach> {
        self.each(address, into.len(), |area, within, part| match &area.content {
            Content::Elsewhere => Err(OutOfReach),
            Content::Mapped(mapping) => {
                mapping.read(place(within), &mut into[part]);
                Ok(())
            }
            Content::File(file, offset) => {
                let mut rest = &mut into[part];
                let mut at = offset + within;
                while !rest.is_empty() {
                    let count = rustix::io::pread(file, &mut *rest, at).map_err(|_| OutOfReach)?;
                    if count == 0 {
                        return Err(OutOfReach); // it has become shorter
                    }
                    (rest, at) = (&mut rest[count..], at + count as u64);
                }
                Ok(())
            }
        })
    }

    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), OutOfReach> {
        self.each(address, bytes.len(), |area, within, part| match &area.content {
            _ if !area.is_writable => Err(OutOfReach),
            Content::Elsewhere => Err(OutOfReach),
            Content::Mapped(mapping) => {
                mapping.write(place(within), &bytes[part]);
                Ok(())
            }
            Content::File(file, offset) => {
                // Where the file has become shorter, this makes it longer again, which harms nobody.
                let (mut rest, mut at) = (&bytes[part], offset + within);
                while !rest.is_empty() {
                    let count = rustix::io::pwrite(file, rest, at).map_err(|_| OutOfReach)?;
                    if count == 0 {
                        return Err(OutOfReach);
                    }
                    (rest, at) = (&rest[count..], at + count as u64);
                }
                Ok(())
            }
        })
    }

    fn load(&self, address: u64) -> Result<u32, OutOfReach> {
        let mut found = Err(OutOfReach);
        if !address.is_multiple_of(4) {
            return found;
        }
        self.each(address, 4, |area, within, _| {
            if let Content::Mapped(mapping) = &area.content {
                found = Ok(mapping.load(place(within)));
            }
            Ok(())
        })?;
        if found.is_err() {
            // A system call may copy byte by byte. A word that is the same twice was not caught in between.
            let (mut now, mut before) = ([0; 4], [0; 4]);
            self.read(address, &mut now)?;
            for _ in 0..TRIES_MAX {
                if now == before {
                    break;
                }
                before = now;
                self.read(address, &mut now)?;
            }
            found = Ok(u32::from_le_bytes(now));
        }
        found
    }

    fn store(&self, address: u64, value: u32) -> Result<(), OutOfReach> {
        if !address.is_multiple_of(4) {
            return Err(OutOfReach);
        }
        let mut is_stored = false;
        self.each(address, 4, |area, within, _| {
            if let (Content::Mapped(mapping), true) = (&area.content, area.is_writable) {
                mapping.store(place(within), value);
                is_stored = true;
            }
            Ok(())
        })?;
        // A system call ends after those before it.
        if is_stored { Ok(()) } else { self.write(address, &value.to_le_bytes()) }
    }

    fn fence(&self) {
        fence(Ordering::SeqCst);
    }

    fn begin_message(&mut self, bytes: usize) {
        self.descriptors.clear();
        self.handled += bytes as u64;
        while self.waiting.front().is_some_and(|(at, _)| *at < self.handled) {
            self.descriptors.extend(self.waiting.pop_front().map(|(_, descriptor)| descriptor));
        }
    }

    fn map(&mut self, map: &Map) -> Result<(), Errno> {
        let at = self.areas.partition_point(|area| area.address < map.address);
        let before = at.checked_sub(1).map(|at| &self.areas[at]);
        let is_over = before.is_some_and(|area| area.address + area.bytes > map.address)
            || self.areas.get(at).is_some_and(|area| map.address + map.bytes > area.address);
        if is_over {
            return Err(Errno::EXISTS);
        }
        if self.areas.len() >= MAPS_MAX {
            return Err(Errno::NO_SPACE);
        }
        let content = match self.descriptors.pop_front() {
            None => Content::Elsewhere,
            Some(file) => content(file, map)?,
        };
        let Map { address, bytes, is_writable, .. } = *map;
        self.areas.insert(at, Area { address, bytes, is_writable, content });
        Ok(())
    }

    fn unmap(&mut self, range: Option<(u64, u64)>) -> Result<u64, Errno> {
        let (first, end) = range.map_or((0, u64::MAX), |(first, bytes)| (first, first + bytes));
        let touches = |area: &Area| area.address < end && area.address + area.bytes > first;
        let lies_in = |area: &Area| area.address >= first && area.address + area.bytes <= end;
        if self.areas.iter().any(|area| touches(area) && !lies_in(area)) {
            return Err(Errno::INVALID);
        }
        let gone = self.areas.extract_if(.., |area| touches(area)).map(|area| area.bytes);
        Ok(gone.fold(0, u64::saturating_add))
    }

    fn tie(&mut self, first: u16, count: u16) -> Result<(), Errno> {
        let vectors = usize::from(first)..usize::from(first) + usize::from(count);
        if !self.descriptors.is_empty() && self.descriptors.len() != vectors.len() {
            return Err(Errno::INVALID);
        }
        for vector in vectors {
            self.vectors[vector] = self.descriptors.pop_front().map(event).transpose()?;
        }
        Ok(())
    }

    fn signal(&self, vector: u16) -> bool {
        let Some(Some(event)) = self.vectors.get(usize::from(vector)) else { return false };
        // It fails only where nobody has heard 2^64 signals.
        let _ = rustix::io::write(event, &1u64.to_ne_bytes());
        true
    }
}

/// What a map's file gives.
fn content(file: OwnedFd, map: &Map) -> Result<Content, Errno> {
    let found = fstat(&file).map_err(|_| Errno::DESCRIPTOR)?;
    let is_tmpfs = fstatfs(&file).is_ok_and(|system| u64::try_from(system.f_type) == Ok(TMPFS));
    let end = map.offset + map.bytes;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile || !is_tmpfs {
        return Err(Errno::DESCRIPTOR);
    }
    if u64::try_from(found.st_size).is_ok_and(|bytes| bytes < end) {
        return Err(Errno::INVALID);
    }
    if !fcntl_get_seals(&file).is_ok_and(|seals| seals.contains(SealFlags::SHRINK)) {
        return Ok(Content::File(file, map.offset));
    }
    let bytes = usize::try_from(map.bytes).map_err(|_| Errno::INVALID)?;
    let mapping = Mapping::new(&file, map.offset, bytes, map.is_writable);
    mapping.map(Content::Mapped).map_err(|_| Errno::INVALID)
}

/// An eventfd, which must not make whoever signals it wait.
fn event(descriptor: OwnedFd) -> Result<OwnedFd, Errno> {
    let found = fstat(&descriptor).map_err(|_| Errno::DESCRIPTOR)?;
    // Files without a type are those of the kernel's own devices, such as eventfds.
    if FileType::from_raw_mode(found.st_mode) != FileType::Unknown {
        return Err(Errno::DESCRIPTOR);
    }
    let flags = fcntl_getfl(&descriptor).map_err(|_| Errno::DESCRIPTOR)?;
    if !flags.contains(OFlags::NONBLOCK) {
        fcntl_setfl(&descriptor, flags | OFlags::NONBLOCK).map_err(|_| Errno::DESCRIPTOR)?;
    }
    Ok(descriptor)
}

/// Reads what comes from a machine, and keeps the descriptors that come with it.
pub(crate) struct WithDescriptors<'a> {
    pub stream: &'a Stream,
    pub guest: &'a mut Guest,
}

impl Read for WithDescriptors<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MESSAGE_FDS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let came = recvmsg(self.stream, &mut [IoSliceMut::new(into)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
        self.guest.received += came.bytes as u64;
        // A call ends with the message that has descriptors: they belong to its last byte.
        let last = self.guest.received.saturating_sub(1);
        for message in control.drain() {
            let RecvAncillaryMessage::ScmRights(descriptors) = message else { continue };
            for descriptor in descriptors {
                if self.guest.waiting.len() < WAITING_MAX {
                    self.guest.waiting.push_back((last, descriptor));
                }
            }
        }
        Ok(came.bytes)
    }
}
