//! Addresses of exports and namespaces, after the public description of NBD's URIs (`doc/uri.md` of the project NetworkBlockDevice/nbd).

use crate::listen::Address;
use std::fmt;
use std::str::FromStr;

/// Where an export is: `nbd://HOST:PORT/EXPORT` or `nbd+unix:///EXPORT?socket=PATH`; or a subsystem of NVMe/TCP:
/// `nvme+tcp://HOST:PORT/NQN`.
///
/// ```
/// use flashwright_serve::{Address, Uri};
///
/// let uri: Uri = "nbd://localhost/disk".parse()?;
/// assert_eq!((uri.address(), uri.export()), (&Address::Tcp("localhost:10809".into()), "disk"));
/// let uri: Uri = "nbd+unix:///?socket=/run/a%20drive".parse()?;
/// assert_eq!((uri.address(), uri.export()), (&Address::Unix("/run/a drive".into()), ""));
/// let uri: Uri = "nvme+tcp://localhost/nqn.2014-08.org.example:disk".parse()?;
/// assert_eq!((uri.address(), uri.is_nvme()), (&Address::Tcp("localhost:4420".into()), true));
/// assert!("nbd+unix:///disk".parse::<Uri>().unwrap_err().what.contains("?socket=PATH"));
/// # Ok::<(), flashwright_serve::Refused>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uri {
    text: String,
    address: Address,
    export: String,
}

/// Why an export can't be used: one line, and what to try.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Refused {
    /// The address, what was found, and what was expected.
    pub what: String,
    /// What to try; may be empty.
    pub hint: &'static str,
}

/// The ports of servers that name none.
const PORT: u16 = 10809;
const NVME_PORT: u16 = 4420;
const NVME: &str = "nvme+tcp";
const HINT: &str = "such as nbd://localhost:10809/, nbd+unix:///?socket=/run/drive.sock or nvme+tcp://localhost:4420/";

impl Uri {
    /// Whether a text is meant as one.
    #[must_use]
    pub fn is_one(text: &str) -> bool {
        text.split_once("://").is_some_and(|(scheme, _)| scheme.starts_with("nbd") || scheme == NVME)
    }

    /// Whether it is a subsystem of NVMe/TCP.
    #[must_use]
    pub fn is_nvme(&self) -> bool {
        self.text.starts_with(NVME)
    }

    /// The server's address.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The export's name, or the qualified name of the subsystem; empty for the server's default.
    #[must_use]
    pub fn export(&self) -> &str {
        &self.export
    }
}

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Uri {
    type Err = Refused;
    fn from_str(text: &str) -> Result<Self, Refused> {
        let refuse = |found: &str| Refused { what: format!("{text}: {found}"), hint: HINT };
        let (scheme, rest) =
            text.split_once("://").ok_or_else(|| refuse("found no ://, expected nbd://HOST/EXPORT"))?;
        let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let plain = |part: &str| decoded(part).ok_or_else(|| refuse(&format!("found {part:?}, expected %XX of UTF-8")));
        let address = match scheme {
            "nbd" | NVME => {
                if let Some(query) = query {
                    return Err(refuse(&format!("found ?{query}, expected no query after {scheme}://HOST:PORT/NAME")));
                }
                let port = if scheme == NVME { NVME_PORT } else { PORT };
                Address::Tcp(host_and_port(host, port).map_err(|found| refuse(&found))?)
            }
            "nbd+unix" => {
                if !host.is_empty() {
                    return Err(refuse(&format!("found the host {host:?}, expected nbd+unix:///EXPORT?socket=PATH")));
                }
                match query.and_then(|query| query.split_once('=')) {
                    Some(("socket", path)) if !path.is_empty() && !path.contains('&') => {
                        Address::Unix(plain(path)?.into())
                    }
                    _ => {
                        let found = query.map_or("no query".to_owned(), |query| format!("?{query}"));
                        return Err(refuse(&format!("found {found}, expected ?socket=PATH")));
                    }
                }
            }
            "nbds" | "nbds+unix" => return Err(refuse("found a scheme with TLS, expected nbd or nbd+unix")),
            other => return Err(refuse(&format!("found the scheme {other:?}, expected nbd, nbd+unix or nvme+tcp"))),
        };
        Ok(Self { text: text.to_owned(), address, export: plain(path)? })
    }
}

/// Host and port as the system takes them, or what is wrong.
fn host_and_port(text: &str, usual: u16) -> Result<String, String> {
    if text.contains('@') {
        return Err("found a user, expected HOST:PORT alone".to_owned());
    }
    let (host, port) = match text.rsplit_once(':') {
        // The colons of a numeric address of IPv6 are in brackets.
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (text, None),
    };
    let is_numeric = host.starts_with('[') && host.ends_with(']') && host.len() > 2;
    if host.is_empty() || (!is_numeric && host.contains([':', '[', ']'])) {
        return Err(format!("found the host {host:?}, expected a name or an address, in brackets for IPv6"));
    }
    match port.map_or(Ok(usual), str::parse::<u16>) {
        Ok(port) if port > 0 => Ok(format!("{host}:{port}")),
        _ => Err(format!("found the port {:?}, expected 1 to 65535", port.unwrap_or_default())),
    }
}

/// A text without its `%XX`; none if one is broken, or the bytes are no UTF-8.
fn decoded(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), text.bytes());
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let value = digit(rest.next()?)? * 16 + digit(rest.next()?)?;
        bytes.push(u8::try_from(value).ok()?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_read() {
        for (text, address, export) in [
            ("nbd://a", "tcp:a:10809", ""),
            ("nbd://a:7/x/y", "tcp:a:7", "x/y"),
            ("nbd://[::1]/%C3%BC", "tcp:[::1]:10809", "ü"),
            ("nbd://[::1]:8/", "tcp:[::1]:8", ""),
            ("nbd+unix:///e?socket=s", "unix:s", "e"),
            ("nbd+unix://?socket=/a/b", "unix:/a/b", ""),
        ] {
            let uri: Uri = text.parse().unwrap();
            assert_eq!((uri.address.to_string(), uri.export.as_str()), (address.to_owned(), export), "{text}");
            assert!(Uri::is_one(text) && uri.to_string() == text);
        }
        assert!(!Uri::is_one("/dev/nbd0") && !Uri::is_one("sim:nbd://"));
    }

    #[test]
    fn every_broken_part_has_its_line() {
        for (text, found) in [
            ("nbd:/a", "no ://"),
            ("nbds://a/", "TLS"),
            ("nbd+vsock://1/", "scheme \"nbd+vsock\""),
            ("nbd:///x", "the host \"\""),
            ("nbd://u@h/", "a user"),
            ("nbd://a:b:1/", "the host \"a:b\""),
            ("nbd://h:0/", "the port \"0\""),
            ("nbd://h:70000/", "the port \"70000\""),
            ("nbd://h:/", "the port \"\""),
            ("nbd://h/?socket=s", "no query"),
            ("nbd://h/%zz", "\"%zz\""),
            ("nbd://h/%ff", "\"%ff\""),
            ("nbd+unix://h/?socket=s", "the host \"h\""),
            ("nbd+unix:///", "found no query"),
            ("nbd+unix:///?socket=", "?socket="),
            ("nbd+unix:///?sock=s", "?sock=s"),
            ("nbd+unix:///?socket=a&b=c", "b=c"),
        ] {
            let error = text.parse::<Uri>().unwrap_err();
            assert!(error.what.starts_with(text) && error.what.contains(found), "{}", error.what);
            assert!(!error.what.contains('\n') && !error.hint.is_empty());
        }
    }
}
