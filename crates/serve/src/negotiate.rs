//! The negotiation that opens a connection, as a state machine without I/O.
//!
//! ```text
//!   greeting ─► client flags ─► option ─┬─► reply ─► option …
//!                                       ├─► GO, EXPORT_NAME: transmission
//!                                       └─► ABORT: end
//! ```

use crate::wire::{self, option, reply};

/// What is exported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Its name; the empty name means it too.
    pub name: String,
    /// A line for people.
    pub description: String,
    /// Its size.
    pub bytes: u64,
    /// The smallest unit that is read or written.
    pub minimum: u32,
    /// The size that costs least.
    pub preferred: u32,
    /// Whether it refuses everything that would change it.
    pub read_only: bool,
}

impl Export {
    /// The transmission flags.
    #[must_use]
    pub fn flags(&self) -> u16 {
        use wire::export::{
            CAN_MULTI_CONN, HAS_FLAGS, READ_ONLY, SEND_CACHE, SEND_DF, SEND_FAST_ZERO, SEND_FLUSH, SEND_FUA, SEND_TRIM,
            SEND_WRITE_ZEROES,
        };
        let both = HAS_FLAGS | SEND_FLUSH | SEND_DF | CAN_MULTI_CONN | SEND_CACHE;
        let writes = SEND_FUA | SEND_TRIM | SEND_WRITE_ZEROES | SEND_FAST_ZERO;
        both | if self.read_only { READ_ONLY } else { writes }
    }

    fn is_called(&self, name: &[u8]) -> bool {
        name.is_empty() || name == self.name.as_bytes()
    }
}

/// What a connection agreed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreed {
    /// Replies are structured.
    pub structured: bool,
    /// The client may ask what is mapped.
    pub allocation: bool,
}

/// How far a negotiation has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The next message is not complete yet.
    More,
    /// A message was answered; another follows.
    Answered,
    /// Requests follow.
    Transmission(Agreed),
    /// The client ends the connection.
    Ended,
    /// The client breaks the protocol; the connection ends.
    Broken(&'static str),
}

/// Most bytes that an option may have; a client that sends more is ended.
const OPTION_MAX: usize = 64 << 10;
/// Longest name that the protocol allows.
const NAME_MAX: usize = 4096;

/// A negotiation.
///
/// ```
/// use flashwright_serve::negotiate::{Agreed, Export, Negotiation, Progress};
/// use flashwright_serve::wire;
///
/// let export =
///     Export { name: "d".into(), description: String::new(), bytes: 4096, minimum: 512, preferred: 4096, read_only: false };
/// let (mut negotiation, mut out) = (Negotiation::default(), Vec::new());
/// Negotiation::greet(&mut out);
/// let mut client = 3u32.to_be_bytes().to_vec(); // fixed newstyle, no zeros
/// assert_eq!(negotiation.step(&export, &client, &mut out), (4, Progress::Answered));
/// client = [wire::OPTION_MAGIC.to_be_bytes().as_slice(), &1u32.to_be_bytes(), &0u32.to_be_bytes()].concat();
/// out.clear();
/// assert_eq!(negotiation.step(&export, &client, &mut out), (16, Progress::Transmission(Agreed::default())));
/// assert_eq!(out[..8], 4096u64.to_be_bytes());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Negotiation {
    flags: Option<u32>,
    agreed: Agreed,
}

impl Negotiation {
    /// Appends what the server says first.
    pub fn greet(out: &mut Vec<u8>) {
        out.extend_from_slice(&wire::MAGIC.to_be_bytes());
        out.extend_from_slice(&wire::OPTION_MAGIC.to_be_bytes());
        out.extend_from_slice(&(wire::FIXED_NEWSTYLE | wire::NO_ZEROES).to_be_bytes());
    }

    /// Takes the next message from `input` and appends the answer to `out`. Returns the number of bytes taken.
    pub fn step(&mut self, export: &Export, input: &[u8], out: &mut Vec<u8>) -> (usize, Progress) {
        let Some(flags) = self.flags else { return self.take_flags(input) };
        if input.len() < wire::OPTION_BYTES {
            return (0, Progress::More);
        }
        if wire::u64_at(input, 0) != wire::OPTION_MAGIC {
            return (0, Progress::Broken("an option does not begin as options do"));
        }
        let (kind, length) = (wire::u32_at(input, 8), wire::u32_at(input, 12) as usize);
        if length > OPTION_MAX {
            return (0, Progress::Broken("an option is longer than 64 KiB"));
        }
        let Some(data) = input.get(wire::OPTION_BYTES..wire::OPTION_BYTES + length) else {
            return (0, Progress::More);
        };
        let no_zeroes = flags & u32::from(wire::NO_ZEROES) != 0;
        (wire::OPTION_BYTES + length, self.answer(export, kind, data, no_zeroes, out))
    }

    fn take_flags(&mut self, input: &[u8]) -> (usize, Progress) {
        if input.len() < 4 {
            return (0, Progress::More);
        }
        let flags = wire::u32_at(input, 0);
        if flags & !u32::from(wire::FIXED_NEWSTYLE | wire::NO_ZEROES) != 0 {
            return (0, Progress::Broken("unknown client flags"));
        }
        self.flags = Some(flags);
        (4, Progress::Answered)
    }

    fn answer(&mut self, export: &Export, kind: u32, data: &[u8], no_zeroes: bool, out: &mut Vec<u8>) -> Progress {
        let refuse = |out: &mut Vec<u8>, error: u32, why: &str| {
            wire::put_option_reply(out, kind, error, &[why.as_bytes()]);
            Progress::Answered
        };
        match kind {
            option::EXPORT_NAME => {
                if !export.is_called(data) {
                    return Progress::Broken("no export of that name"); // the option has no error reply
                }
                out.extend_from_slice(&export.bytes.to_be_bytes());
                out.extend_from_slice(&export.flags().to_be_bytes());
                out.resize(out.len() + if no_zeroes { 0 } else { 124 }, 0);
                Progress::Transmission(self.agreed)
            }
            option::ABORT => {
                wire::put_option_reply(out, kind, reply::ACK, &[]);
                Progress::Ended
            }
            option::LIST => {
                if !data.is_empty() {
                    return refuse(out, reply::ERR_INVALID, "LIST takes no data");
                }
                let name = export.name.as_bytes();
                wire::put_option_reply(
                    out,
                    kind,
                    reply::SERVER,
                    &[&length_of(name), name, export.description.as_bytes()],
                );
                wire::put_option_reply(out, kind, reply::ACK, &[]);
                Progress::Answered
            }
            option::STARTTLS if !data.is_empty() => refuse(out, reply::ERR_INVALID, "STARTTLS takes no data"),
            option::STARTTLS => refuse(out, reply::ERR_UNSUP, "this server speaks no TLS; connect without it"),
            option::INFO | option::GO => match asked_name(data) {
                Err(error) => refuse(out, error, "expected a name of at most 4096 bytes and a list of numbers"),
                Ok((name, _)) if !export.is_called(name) => refuse(out, reply::ERR_UNKNOWN, "no export of that name"),
                Ok((_, wanted)) => {
                    inform(export, kind, wanted, out);
                    if kind == option::GO { Progress::Transmission(self.agreed) } else { Progress::Answered }
                }
            },
            option::STRUCTURED_REPLY => {
                if !data.is_empty() {
                    return refuse(out, reply::ERR_INVALID, "STRUCTURED_REPLY takes no data");
                }
                self.agreed.structured = true;
                wire::put_option_reply(out, kind, reply::ACK, &[]);
                Progress::Answered
            }
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => self.contexts(export, kind, data, out),
            _ => refuse(out, reply::ERR_UNSUP, "unknown option"),
        }
    }

    fn contexts(&mut self, export: &Export, kind: u32, data: &[u8], out: &mut Vec<u8>) -> Progress {
        let sets = kind == option::SET_META_CONTEXT;
        self.agreed.allocation &= !sets;
        let refusal = match asked_contexts(data) {
            _ if !self.agreed.structured => Err((reply::ERR_INVALID, "structured replies must be agreed on first")),
            Err(error) => Err((error, "expected a name and a list of queries")),
            Ok((name, _)) if !export.is_called(name) => Err((reply::ERR_UNKNOWN, "no export of that name")),
            Ok((_, queries)) => Ok(queries),
        };
        match refusal {
            Err((error, why)) => wire::put_option_reply(out, kind, error, &[why.as_bytes()]),
            Ok(queries) => {
                let name = wire::ALLOCATION.as_bytes();
                let lists_all = !sets && (queries.is_empty() || queries.contains(&b"base:".as_slice()));
                if lists_all || queries.contains(&name) {
                    let id = if sets { wire::ALLOCATION_ID } else { 0 };
                    wire::put_option_reply(out, kind, reply::META_CONTEXT, &[&id.to_be_bytes(), name]);
                    self.agreed.allocation |= sets;
                }
                wire::put_option_reply(out, kind, reply::ACK, &[]);
            }
        }
        Progress::Answered
    }
}

/// The length of a name before the name.
fn length_of(text: &[u8]) -> [u8; 4] {
    u32::try_from(text.len()).expect("names are short").to_be_bytes()
}

/// A text with its length before it, and what follows.
fn cut_text(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = data.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_be_bytes(*length) as usize)
}

/// The name and the list of numbers of INFO and GO.
fn asked_name(data: &[u8]) -> Result<(&[u8], &[u8]), u32> {
    let (name, rest) = cut_text(data).ok_or(reply::ERR_INVALID)?;
    if name.len() > NAME_MAX {
        return Err(reply::ERR_TOO_BIG);
    }
    let (count, wanted) = rest.split_first_chunk::<2>().ok_or(reply::ERR_INVALID)?;
    let fits = wanted.len() == 2 * usize::from(u16::from_be_bytes(*count));
    if fits { Ok((name, wanted)) } else { Err(reply::ERR_INVALID) }
}

/// The name and the queries of the options about contexts.
fn asked_contexts(data: &[u8]) -> Result<(&[u8], Vec<&[u8]>), u32> {
    let (name, rest) = cut_text(data).ok_or(reply::ERR_INVALID)?;
    let (count, mut rest) = rest.split_first_chunk::<4>().ok_or(reply::ERR_INVALID)?;
    let mut queries = Vec::new();
    for _ in 0..u32::from_be_bytes(*count) {
        let (query, others) = cut_text(rest).ok_or(reply::ERR_INVALID)?;
        queries.push(query);
        rest = others;
    }
    if rest.is_empty() { Ok((name, queries)) } else { Err(reply::ERR_INVALID) }
}

/// Says what INFO and GO ask for; size and block sizes are told in any case.
fn inform(export: &Export, kind: u32, wanted: &[u8], out: &mut Vec<u8>) {
    let mut tell = |of: u16, parts: &[&[u8]]| {
        let head = of.to_be_bytes();
        let all: Vec<&[u8]> = std::iter::once(head.as_slice()).chain(parts.iter().copied()).collect();
        wire::put_option_reply(out, kind, reply::INFO, &all);
    };
    tell(wire::info::EXPORT, &[&export.bytes.to_be_bytes(), &export.flags().to_be_bytes()]);
    let sizes = [export.minimum, export.preferred, wire::PAYLOAD_MAX].map(u32::to_be_bytes);
    tell(wire::info::BLOCK_SIZE, &[&sizes[0], &sizes[1], &sizes[2]]);
    let asks = |of: u16| wanted.chunks_exact(2).any(|each| wire::u16_at(each, 0) == of);
    if asks(wire::info::NAME) {
        tell(wire::info::NAME, &[export.name.as_bytes()]);
    }
    if asks(wire::info::DESCRIPTION) {
        tell(wire::info::DESCRIPTION, &[export.description.as_bytes()]);
    }
    wire::put_option_reply(out, kind, reply::ACK, &[]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn export() -> Export {
        let (name, description) = ("drive".to_owned(), "a drive".to_owned());
        Export { name, description, bytes: 1 << 20, minimum: 512, preferred: 4096, read_only: false }
    }

    /// A negotiation past the client's flags.
    fn begun() -> Negotiation {
        let mut negotiation = Negotiation::default();
        assert_eq!(negotiation.step(&export(), &[0, 0, 0, 3], &mut Vec::new()), (4, Progress::Answered));
        negotiation
    }

    fn asked(negotiation: &mut Negotiation, kind: u32, data: &[u8]) -> (Progress, Vec<(u32, Vec<u8>)>) {
        let length = u32::try_from(data.len()).unwrap().to_be_bytes();
        let input = [&wire::OPTION_MAGIC.to_be_bytes()[..], &kind.to_be_bytes(), &length, data].concat();
        let mut out = Vec::new();
        for cut in 0..input.len() {
            assert_eq!(negotiation.step(&export(), &input[..cut], &mut out), (0, Progress::More), "{cut} bytes");
        }
        let (taken, progress) = negotiation.step(&export(), &input, &mut out);
        assert_eq!(taken, input.len());
        let (mut replies, mut rest) = (Vec::new(), out.as_slice());
        while rest.len() >= 20 && wire::u64_at(rest, 0) == wire::OPTION_REPLY_MAGIC {
            assert_eq!(wire::u32_at(rest, 8), kind);
            let length = wire::u32_at(rest, 16) as usize;
            replies.push((wire::u32_at(rest, 12), rest[20..20 + length].to_vec()));
            rest = &rest[20 + length..];
        }
        (progress, replies)
    }

    fn kinds(replies: &[(u32, Vec<u8>)]) -> Vec<u32> {
        replies.iter().map(|(kind, _)| *kind).collect()
    }

    const NAMELESS: [u8; 6] = [0; 6];

    #[test]
    fn go_tells_size_and_blocks_and_what_was_asked_for() {
        let data = [&[0, 0, 0, 5][..], b"drive", &[0, 2, 0, 2, 0, 1]].concat();
        let (progress, replies) = asked(&mut begun(), option::GO, &data);
        assert_eq!(progress, Progress::Transmission(Agreed::default()));
        assert_eq!(kinds(&replies), [reply::INFO, reply::INFO, reply::INFO, reply::INFO, reply::ACK]);
        assert_eq!(replies[0].1[2..10], (1u64 << 20).to_be_bytes());
        assert_eq!(replies[1].1, [0, 3, 0, 0, 2, 0, 0, 0, 16, 0, 2, 0, 0, 0]);
        assert_eq!((&replies[2].1[2..], &replies[3].1[2..]), (&b"drive"[..], &b"a drive"[..]));
    }

    #[test]
    fn what_is_not_here_is_refused_and_the_negotiation_goes_on() {
        let mut negotiation = begun();
        for (kind, data, error) in [
            (option::STARTTLS, &[][..], reply::ERR_UNSUP),
            (option::STARTTLS, &[1], reply::ERR_INVALID),
            (11, &[], reply::ERR_UNSUP),
            (option::GO, &[0, 0, 0, 1, b'x', 0, 0], reply::ERR_UNKNOWN),
            (option::INFO, &[0, 0, 0, 9, b'x', 0, 0], reply::ERR_INVALID),
            (option::INFO, &[0, 0, 0, 0, 0, 9], reply::ERR_INVALID),
            (option::LIST, &[1], reply::ERR_INVALID),
            (option::STRUCTURED_REPLY, &[1], reply::ERR_INVALID),
            (option::SET_META_CONTEXT, &[0; 8], reply::ERR_INVALID),
        ] {
            let (progress, replies) = asked(&mut negotiation, kind, data);
            assert_eq!((progress, kinds(&replies)), (Progress::Answered, vec![error]), "{kind} {data:?}");
        }
        assert_eq!(asked(&mut negotiation, option::GO, &NAMELESS).0, Progress::Transmission(Agreed::default()));
        assert_eq!(asked(&mut negotiation, option::ABORT, &[]).0, Progress::Ended);
    }

    #[test]
    fn contexts_are_agreed_on_after_structured_replies() {
        let mut negotiation = begun();
        asked(&mut negotiation, option::STRUCTURED_REPLY, &[]);
        let query = |text: &str| {
            let text = text.as_bytes();
            [&[0, 0, 0, 0, 0, 0, 0, 1][..], &u32::try_from(text.len()).unwrap().to_be_bytes(), text].concat()
        };
        for (data, found) in [(query("base:"), true), (vec![0; 8], true), (query("qemu:"), false)] {
            let (_, replies) = asked(&mut negotiation, option::LIST_META_CONTEXT, &data);
            assert_eq!(replies.len() == 2, found);
        }
        let (_, replies) = asked(&mut negotiation, option::SET_META_CONTEXT, &query("base:allocation"));
        assert_eq!(replies[0], (reply::META_CONTEXT, [&[0, 0, 0, 1][..], b"base:allocation"].concat()));
        let both = Agreed { structured: true, allocation: true };
        assert_eq!(asked(&mut negotiation, option::GO, &NAMELESS).0, Progress::Transmission(both));
        // Asked again for another one, the first is gone.
        asked(&mut negotiation, option::SET_META_CONTEXT, &query("other:context"));
        let one = Agreed { allocation: false, ..both };
        assert_eq!(asked(&mut negotiation, option::GO, &NAMELESS).0, Progress::Transmission(one));
    }

    #[test]
    fn a_client_that_breaks_the_protocol_is_told_apart() {
        let mut out = Vec::new();
        assert!(matches!(Negotiation::default().step(&export(), &[0, 0, 1, 0], &mut out), (0, Progress::Broken(_))));
        assert!(matches!(begun().step(&export(), &[7; 16], &mut out), (0, Progress::Broken(_))));
        let long = [&wire::OPTION_MAGIC.to_be_bytes()[..], &[0, 0, 0, 7, 0xff, 0, 0, 0]].concat();
        assert!(matches!(begun().step(&export(), &long, &mut out), (0, Progress::Broken(_))));
        assert_eq!(asked(&mut begun(), option::EXPORT_NAME, b"other").0, Progress::Broken("no export of that name"));
        assert!(out.is_empty());
    }

    #[test]
    fn old_clients_get_size_flags_and_zeros() {
        let mut negotiation = Negotiation::default();
        negotiation.step(&export(), &[0, 0, 0, 1], &mut Vec::new());
        let input = [&wire::OPTION_MAGIC.to_be_bytes()[..], &[0, 0, 0, 1, 0, 0, 0, 0]].concat();
        let mut out = Vec::new();
        assert!(matches!(negotiation.step(&export(), &input, &mut out), (16, Progress::Transmission(_))));
        assert_eq!((out.len(), wire::u64_at(&out, 0), wire::u16_at(&out, 8)), (134, 1 << 20, export().flags()));
        let refuses_writes = Export { read_only: true, ..export() }.flags();
        assert_eq!(refuses_writes & wire::export::READ_ONLY, wire::export::READ_ONLY);
        assert_eq!(refuses_writes & wire::export::SEND_TRIM, 0);
    }
}
