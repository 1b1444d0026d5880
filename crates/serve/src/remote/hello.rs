//! The client's side of the negotiation.

use super::uri::{Refused, Uri};
use crate::listen::{Address, Stream};
use crate::wire::{self, info, option, reply};
use flashwright_block::system_says;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// What server and client agreed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// Size of the export.
    pub bytes: u64,
    /// Its transmission flags: [`wire::export`].
    pub flags: u16,
    /// The smallest unit that is read or written.
    pub minimum: u32,
    /// The most bytes that a request may carry, or ask for.
    pub maximum: u32,
    /// Whether replies may be structured.
    pub structured: bool,
}

/// How long a server may take to take the connection, and then for the whole negotiation.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// Longest answer to an option, and most answers to one: there are four types of information.
const ANSWER_MAX: usize = 64 << 10;
const ANSWERS_MAX: usize = 64;
/// What servers take that name no limits.
const MINIMUM: u32 = 1;
const ERR_TLS_REQUIRED: u32 = 1 << 31 | 5;

/// Connects and negotiates.
///
/// # Errors
/// [`Refused`]: one line.
pub fn hello(uri: &Uri) -> Result<(Stream, Terms), Refused> {
    let refuse = |why: String, hint| Refused { what: format!("{uri}: {why}"), hint };
    let stream = connect(uri.address()).map_err(|error| refuse(in_words(&error), "is a server there?"))?;
    let mut talk = Talk { stream: &stream, until: Instant::now() + PATIENCE };
    let terms = talk.all(uri.export()).map_err(|why| match why {
        Broken::Io(error) => refuse(format!("the negotiation failed: {}", in_words(&error)), "is it a server of NBD?"),
        Broken::Said(why, hint) => refuse(why, hint),
    })?;
    let set = stream.set_timeout(None).and_then(|()| stream.set_nonblocking(true));
    set.map_err(|error| refuse(in_words(&error), ""))?;
    Ok((stream, terms))
}

pub(super) fn connect(address: &Address) -> io::Result<Stream> {
    let stream = match address {
        Address::Unix(path) => Stream::Unix(UnixStream::connect(path)?),
        Address::Tcp(text) => {
            let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
            let mut found = None;
            for each in text.to_socket_addrs().map_err(|_| io::Error::other("no such host"))? {
                match TcpStream::connect_timeout(&each, PATIENCE) {
                    Ok(stream) => {
                        found = Some(stream);
                        break;
                    }
                    Err(error) => last = error,
                }
            }
            let stream = found.ok_or(last)?;
            stream.set_nodelay(true)?;
            Stream::Tcp(stream)
        }
    };
    stream.set_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// What went wrong between the server and us.
pub(super) fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "the server has ended the connection".to_owned(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "no answer within 10 s".to_owned(),
        _ => system_says(error),
    }
}

/// Why a greeting failed.
pub(super) enum Broken {
    Io(io::Error),
    Said(String, &'static str),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

pub(super) fn said<T>(why: &str, hint: &'static str) -> Result<T, Broken> {
    Err(Broken::Said(why.to_owned(), hint))
}

/// Messages of the negotiation.
struct Talk<'a> {
    stream: &'a Stream,
    until: Instant,
}

impl Talk<'_> {
    fn all(&mut self, export: &str) -> Result<Terms, Broken> {
        let begin = self.take::<8>()?;
        if u64::from_be_bytes(begin) != wire::MAGIC {
            return said("found a server that does not greet as NBD does", "is it a server of NBD?");
        }
        let (magic, flags) = (self.take::<8>()?, u16::from_be_bytes(self.take::<2>()?));
        if u64::from_be_bytes(magic) != wire::OPTION_MAGIC || flags & wire::FIXED_NEWSTYLE == 0 {
            return said("found a server of the old protocol, expected fixed newstyle", "");
        }
        let ours = u32::from(flags & (wire::FIXED_NEWSTYLE | wire::NO_ZEROES));
        self.stream.write_all(&ours.to_be_bytes())?;
        self.ask(option::STRUCTURED_REPLY, &[])?;
        let structured = self.answer(option::STRUCTURED_REPLY)?.0 == reply::ACK;
        let mut terms = Terms { minimum: MINIMUM, maximum: wire::PAYLOAD_MAX, structured, ..Terms::default() };
        let name = export.as_bytes();
        let length = u32::try_from(name.len()).unwrap_or(u32::MAX).to_be_bytes();
        self.ask(option::GO, &[&length, name, &1u16.to_be_bytes(), &info::BLOCK_SIZE.to_be_bytes()])?;
        for _ in 0..ANSWERS_MAX {
            let (kind, data) = self.answer(option::GO)?;
            match kind {
                reply::ACK => return sensible(terms),
                reply::INFO if data.len() >= 12 && wire::u16_at(&data, 0) == info::EXPORT => {
                    (terms.bytes, terms.flags) = (wire::u64_at(&data, 2), wire::u16_at(&data, 10));
                }
                reply::INFO if data.len() >= 14 && wire::u16_at(&data, 0) == info::BLOCK_SIZE => {
                    (terms.minimum, terms.maximum) = (wire::u32_at(&data, 2), wire::u32_at(&data, 10));
                }
                reply::INFO => {}
                reply::ERR_UNSUP => return self.by_name(name, flags, terms),
                reply::ERR_UNKNOWN => {
                    let why = format!("found no export {export:?} there");
                    return Err(Broken::Said(why, "`nbdinfo --list` shows the exports of a server"));
                }
                ERR_TLS_REQUIRED => return said("the server asks for TLS, which is not spoken here", ""),
                _ => {
                    let why = String::from_utf8_lossy(&data).replace(char::is_whitespace, " ");
                    return Err(Broken::Said(format!("the server refuses the export: {why}"), ""));
                }
            }
        }
        said("the server tells of the export without end", "is it a server of NBD?")
    }

    /// As servers want it that do not know GO.
    fn by_name(&mut self, name: &[u8], flags: u16, terms: Terms) -> Result<Terms, Broken> {
        self.ask(option::EXPORT_NAME, &[name])?;
        // A server without such an export ends the connection.
        let bytes = u64::from_be_bytes(self.take::<8>()?);
        let found = u16::from_be_bytes(self.take::<2>()?);
        if flags & wire::NO_ZEROES == 0 {
            self.take::<124>()?;
        }
        sensible(Terms { bytes, flags: found, ..terms })
    }

    fn ask(&mut self, kind: u32, parts: &[&[u8]]) -> Result<(), Broken> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let mut message = wire::OPTION_MAGIC.to_be_bytes().to_vec();
        message.extend_from_slice(&kind.to_be_bytes());
        message.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
        parts.iter().for_each(|part| message.extend_from_slice(part));
        Ok((&mut &*self.stream).write_all(&message)?)
    }

    /// The type and the data of a reply to an option.
    fn answer(&mut self, option: u32) -> Result<(u32, Vec<u8>), Broken> {
        let head = self.take::<20>()?;
        let length = wire::u32_at(&head, 16) as usize;
        if wire::u64_at(&head, 0) != wire::OPTION_REPLY_MAGIC || wire::u32_at(&head, 8) != option || length > ANSWER_MAX
        {
            return said("the server breaks the protocol in the negotiation", "is it a server of NBD?");
        }
        let mut data = vec![0; length];
        self.fill(&mut data)?;
        Ok((wire::u32_at(&head, 12), data))
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Broken> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        fill(self.stream, self.until, bytes)
    }
}

/// Reads bytes that come in time, however few at once.
pub(super) fn fill(mut stream: &Stream, until: Instant, mut bytes: &mut [u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_timeout(Some(left))?;
        match stream.read(bytes) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => bytes = &mut bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Refuses terms that nobody can keep.
pub(super) fn sensible(terms: Terms) -> Result<Terms, Broken> {
    let Terms { minimum, maximum, bytes, .. } = terms;
    let block = minimum.max(512);
    if !minimum.is_power_of_two() || minimum > 1 << 16 || maximum < block {
        let found =
            format!("found blocks of {minimum} to {maximum} bytes, expected a power of two to 64 KiB, and more");
        return Err(Broken::Said(found, ""));
    }
    if bytes < u64::from(block) {
        return Err(Broken::Said(format!("found {bytes} bytes, expected at least a block of {block}"), ""));
    }
    Ok(Terms { minimum: block, maximum: (maximum - maximum % block).min(wire::PAYLOAD_MAX), ..terms })
}
