//! Requests of a client: cut from the stream and checked, without I/O.

use crate::negotiate::Export;
use crate::wire::{Errno, Head, Kind, PAYLOAD_MAX, REQUEST_BYTES, flag};

/// A request that can be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// What its reply repeats.
    pub cookie: u64,
    /// What it asks for.
    pub kind: Kind,
    /// Its flags.
    pub flags: u16,
    /// The first byte, on a sector's boundary.
    pub offset: u64,
    /// The number of bytes, in whole sectors.
    pub length: u32,
    /// Of a write, the stream that it names for placement; 0 if it names none.
    pub stream: u16,
    /// The submission queue that it came through ([`flashwright_block::Request::queue`]); 0 for a client that has none.
    pub queue: u16,
}

impl Command {
    /// Whether it has a flag.
    #[must_use]
    pub fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }
}

/// What lies at the beginning of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken<'a> {
    /// The request is not complete: it has this many bytes.
    More(usize),
    /// A request, with the data of a write.
    Command(Command, &'a [u8]),
    /// A request that is answered with an error.
    Refused {
        /// What its reply repeats.
        cookie: u64,
        /// What is wrong.
        errno: Errno,
        /// The same for people.
        why: &'static str,
    },
    /// The client ends the connection.
    Disconnect,
    /// The client breaks the protocol; the connection ends.
    Broken(&'static str),
}

/// Looks at the request at the beginning of `input`. Returns how many bytes it takes, 0 if it is not complete.
#[must_use]
pub fn take<'a>(input: &'a [u8], export: &Export, allocation: bool) -> (usize, Taken<'a>) {
    let Some(head) = input.first_chunk::<REQUEST_BYTES>() else { return (0, Taken::More(REQUEST_BYTES)) };
    let Some(head) = Head::parse(head) else {
        return (0, Taken::Broken("a request does not begin as requests do"));
    };
    let Some(kind) = head.kind else {
        return (REQUEST_BYTES, refused(&head, Errno::Invalid, "unknown command"));
    };
    let mut data: &[u8] = &[];
    let mut bytes = REQUEST_BYTES;
    if kind == Kind::Write {
        if head.length > PAYLOAD_MAX {
            return (0, Taken::Broken("a write is longer than 32 MiB"));
        }
        bytes += head.length as usize;
        match input.get(REQUEST_BYTES..bytes) {
            Some(found) => data = found,
            None => return (0, Taken::More(bytes)),
        }
    }
    if kind == Kind::Disconnect {
        return (bytes, Taken::Disconnect);
    }
    let Head { flags, cookie, offset, length, .. } = head;
    match fault(&head, kind, export, allocation) {
        Some((errno, why)) => (bytes, refused(&head, errno, why)),
        None => (bytes, Taken::Command(Command { cookie, kind, flags, offset, length, stream: 0, queue: 0 }, data)),
    }
}

fn refused(head: &Head, errno: Errno, why: &'static str) -> Taken<'static> {
    Taken::Refused { cookie: head.cookie, errno, why }
}

/// Why a request can't be carried out.
fn fault(head: &Head, kind: Kind, export: &Export, allocation: bool) -> Option<(Errno, &'static str)> {
    let allowed = match kind {
        Kind::Read => flag::DF | flag::FUA,
        Kind::WriteZeroes => flag::FUA | flag::NO_HOLE | flag::FAST_ZERO,
        Kind::BlockStatus => flag::REQ_ONE | flag::FUA,
        // A server has to bear this flag everywhere.
        _ => flag::FUA,
    };
    if head.flags & !allowed != 0 {
        return Some((Errno::Invalid, "unknown flags"));
    }
    if kind == Kind::Flush {
        let is_bare = head.offset == 0 && head.length == 0;
        return (!is_bare).then_some((Errno::Invalid, "a flush has neither offset nor length"));
    }
    let writes = matches!(kind, Kind::Write | Kind::Trim | Kind::WriteZeroes);
    if writes && export.read_only {
        return Some((Errno::NotPermitted, "the export is read-only"));
    }
    if kind == Kind::BlockStatus && !allocation {
        return Some((Errno::Invalid, "base:allocation was not agreed on"));
    }
    if head.length == 0 {
        return Some((Errno::Invalid, "a request of no bytes"));
    }
    let minimum = u64::from(export.minimum);
    if !head.offset.is_multiple_of(minimum) || !u64::from(head.length).is_multiple_of(minimum) {
        return Some((Errno::Invalid, "not on whole blocks of the export"));
    }
    if head.offset.checked_add(u64::from(head.length)).is_none_or(|end| end > export.bytes) {
        let stores = matches!(kind, Kind::Write | Kind::WriteZeroes);
        return Some((if stores { Errno::NoSpace } else { Errno::Invalid }, "past the end of the drive"));
    }
    if kind == Kind::Read && head.length > PAYLOAD_MAX {
        return Some((Errno::Overflow, "a read is longer than 32 MiB"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn export(read_only: bool) -> Export {
        let (name, description) = (String::new(), String::new());
        Export { name, description, bytes: 64 << 20, minimum: 512, preferred: 4096, read_only }
    }

    fn errno(flags: u16, kind: u16, offset: u64, length: u32, read_only: bool) -> Option<Errno> {
        let mut input = Vec::new();
        Head::put(&mut input, flags, kind, 9, offset, length);
        input.resize(input.len() + if kind == 1 { length as usize } else { 0 }, 0);
        match take(&input, &export(read_only), true) {
            (taken, Taken::Refused { cookie: 9, errno, .. }) if taken == input.len() => Some(errno),
            (taken, Taken::Command(Command { cookie: 9, .. }, _)) if taken == input.len() => None,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_fault_has_its_number() {
        let end = export(false).bytes;
        for kind in [0, 1, 4, 5, 6, 7] {
            assert_eq!(errno(0, kind, end - 512, 512, false), None, "{kind}");
            assert_eq!(errno(0, kind, 0, 100, false), Some(Errno::Invalid));
            assert_eq!(errno(0, kind, 100, 512, false), Some(Errno::Invalid));
            assert_eq!(errno(0, kind, 0, 0, false), Some(Errno::Invalid));
            assert_eq!(errno(1 << 9, kind, 0, 512, false), Some(Errno::Invalid));
            let past = if kind == 1 || kind == 6 { Errno::NoSpace } else { Errno::Invalid };
            for offset in [end - 512, end, u64::MAX - 511] {
                assert_eq!(errno(0, kind, offset, 1024, false), Some(past), "{kind} at {offset}");
            }
            let writes = [1, 4, 6].contains(&kind);
            assert_eq!(errno(0, kind, 0, 512, true), writes.then_some(Errno::NotPermitted));
        }
        assert_eq!(errno(flag::DF, 0, 0, PAYLOAD_MAX + 512, false), Some(Errno::Overflow));
        assert_eq!((errno(0, 3, 0, 0, true), errno(0, 3, 512, 0, true)), (None, Some(Errno::Invalid)));
        assert_eq!(errno(0, 8, 0, 0, false), Some(Errno::Invalid));
        assert_eq!(errno(flag::NO_HOLE, 4, 0, 512, false), Some(Errno::Invalid));
    }

    #[test]
    fn what_cannot_be_followed_ends_the_connection() {
        let mut input = Vec::new();
        Head::put(&mut input, 0, 1, 1, 0, PAYLOAD_MAX + 1);
        assert!(matches!(take(&input, &export(false), true), (0, Taken::Broken(_))));
        assert!(matches!(take(&[1; 28], &export(false), true), (0, Taken::Broken(_))));
        input.clear();
        Head::put(&mut input, 0, 2, 1, 7, 7);
        assert_eq!(take(&input, &export(false), true), (28, Taken::Disconnect));
    }

    #[test]
    fn a_write_is_whole_before_it_is_taken() {
        let mut input = Vec::new();
        Head::put(&mut input, flag::FUA, 1, 1, 512, 512);
        input.extend([7; 512]);
        for cut in 0..input.len() {
            let needed = if cut < 28 { 28 } else { 540 };
            assert_eq!(take(&input[..cut], &export(false), false), (0, Taken::More(needed)));
        }
        let (flags, stream, queue) = (flag::FUA, 0, 0);
        let command = Command { cookie: 1, kind: Kind::Write, flags, offset: 512, length: 512, stream, queue };
        assert_eq!(take(&input, &export(false), false), (540, Taken::Command(command, &[7; 512])));
    }

    #[test]
    fn block_status_needs_its_context() {
        let mut input = Vec::new();
        Head::put(&mut input, 0, 7, 1, 0, 512);
        let (_, taken) = take(&input, &export(false), false);
        assert!(matches!(taken, Taken::Refused { errno: Errno::Invalid, .. }));
    }
}
