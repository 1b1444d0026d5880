//! Addresses, and the sockets that listen and talk there.

use flashwright_block::system_says;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

/// Clients that may wait to be accepted: as many as the system allows.
const BACKLOG: i32 = 4096;

/// Why an address can't be listened on, in one sentence, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct ListenError {
    /// The address, what was found, and what was expected.
    pub what: String,
    /// What to try.
    pub hint: &'static str,
}

fn refuse(what: String, hint: &'static str) -> ListenError {
    ListenError { what, hint }
}

/// Where a server listens.
///
/// ```
/// # use flashwright_serve::Address;
/// assert_eq!("unix:/run/drive".parse(), Ok(Address::Unix("/run/drive".into())));
/// assert_eq!("tcp:127.0.0.1:10809".parse(), Ok(Address::Tcp("127.0.0.1:10809".into())));
/// assert!("/run/drive".parse::<Address>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// The path of a socket.
    Unix(PathBuf),
    /// An address and a port; port 0 is any that is free.
    Tcp(String),
}

impl FromStr for Address {
    type Err = ListenError;
    fn from_str(text: &str) -> Result<Self, ListenError> {
        match text.split_once(':') {
            Some(("unix", path)) if !path.is_empty() => Ok(Self::Unix(path.into())),
            Some(("tcp", rest)) if rest.contains(':') => Ok(Self::Tcp(rest.to_owned())),
            _ => Err(refuse(
                format!("found {text:?}, expected unix:PATH or tcp:ADDRESS:PORT"),
                "such as unix:/tmp/drive.sock or tcp:127.0.0.1:10809",
            )),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}

/// A socket that listens. Dropping it removes the file of a Unix socket.
#[derive(Debug)]
pub enum Listener {
    /// On a path.
    Unix(UnixListener, PathBuf),
    /// On an address.
    Tcp(TcpListener, SocketAddr),
}

impl Listener {
    /// Listens. Other machines can reach only what `anywhere` allows. The file of a Unix socket on which nobody listens any
    /// more is replaced.
    ///
    /// # Errors
    /// [`ListenError`]: in use, not allowed, or refused by the system.
    pub fn open(address: &Address, anywhere: bool) -> Result<Self, ListenError> {
        let failed = |error: &io::Error| refuse(format!("found {address}: {}", system_says(error)), "");
        match address {
            Address::Unix(path) => {
                clear_the_way(path)?;
                let listener = bind_privately(path).map_err(|error| failed(&error))?;
                listener.set_nonblocking(true).map_err(|error| failed(&error))?;
                Ok(Self::Unix(listener, path.clone()))
            }
            Address::Tcp(text) => {
                let wrong = |_| {
                    let what =
                        format!("found tcp:{text}, which is no address of this machine, expected tcp:ADDRESS:PORT");
                    refuse(what, "such as tcp:127.0.0.1:10809 or tcp:[::1]:10809")
                };
                let found: Vec<SocketAddr> = text.to_socket_addrs().map_err(wrong)?.collect();
                if let Some(outside) = found.iter().find(|each| !each.ip().is_loopback() && !anywhere) {
                    return Err(refuse(
                        format!(
                            "found tcp:{text}, where other machines can reach {}, expected a loopback address",
                            outside.ip()
                        ),
                        "listen_anywhere=True allows it; whoever connects can read and write the drive",
                    ));
                }
                let listener = TcpListener::bind(found.as_slice()).map_err(|error| failed(&error))?;
                listener.set_nonblocking(true).map_err(|error| failed(&error))?;
                let address = listener.local_addr().map_err(|error| failed(&error))?;
                Ok(Self::Tcp(listener, address))
            }
        }
    }

    /// The next client that waits; none if none does.
    ///
    /// # Errors
    /// Of the system.
    pub fn accept(&self) -> io::Result<Option<Stream>> {
        let accepted = match self {
            Self::Unix(listener, _) => listener.accept().map(|(stream, _)| Stream::Unix(stream)),
            Self::Tcp(listener, _) => listener.accept().and_then(|(stream, _)| {
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }),
        };
        match accepted {
            Ok(stream) => stream.set_nonblocking(false).map(|()| Some(stream)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Where NBD clients connect.
    #[must_use]
    pub fn uri(&self) -> String {
        match self {
            Self::Unix(_, path) => {
                let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                format!("nbd+unix:///?socket={}", in_query(&path.to_string_lossy()))
            }
            Self::Tcp(_, address) => format!("nbd://{address}"),
        }
    }

    /// Address and port, or the path from the root.
    #[must_use]
    pub fn host(&self) -> String {
        match self {
            Self::Unix(_, path) => std::path::absolute(path).unwrap_or_else(|_| path.clone()).display().to_string(),
            Self::Tcp(_, address) => address.to_string(),
        }
    }

    /// Address and port apart; the path from the root and nothing.
    #[must_use]
    pub fn host_and_port(&self) -> (String, String) {
        match self {
            Self::Unix(..) => (self.host(), String::new()),
            Self::Tcp(_, address) => (address.ip().to_string(), address.port().to_string()),
        }
    }

    /// The address as it is written; for port 0 with the port that was found.
    #[must_use]
    pub fn address(&self) -> String {
        match self {
            Self::Unix(_, path) => format!("unix:{}", path.display()),
            Self::Tcp(_, address) => format!("tcp:{address}"),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(listener, _) => listener.as_fd(),
            Self::Tcp(listener, _) => listener.as_fd(),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::Unix(_, path) = self {
            // Whoever removed it before us did no harm.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Listens on a path that only its owner may connect to, whatever the umask: the socket gets its mode before it listens.
fn bind_privately(path: &Path) -> io::Result<UnixListener> {
    let address = SocketAddrUnix::new(path)?;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    rustix::net::bind(&socket, &address)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// Removes the file of a Unix socket on which nobody listens.
fn clear_the_way(path: &Path) -> Result<(), ListenError> {
    let Ok(found) = std::fs::symlink_metadata(path) else { return Ok(()) };
    let shown = path.display();
    if !found.file_type().is_socket() {
        return Err(refuse(format!("found unix:{shown}, a file that is no socket, expected a free path"), ""));
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(refuse(
            format!("found unix:{shown}, where another server listens, expected a free path"),
            "end that server, or name another path",
        )),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path)
            .map_err(|error| refuse(format!("found unix:{shown}: {}", system_says(&error)), "")),
        Err(error) => Err(refuse(format!("found unix:{shown}: {}", system_says(&error)), "")),
    }
}

/// A path as a URI's query has it.
fn in_query(text: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    text.bytes().map(|byte| if keep(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// A connection.
#[derive(Debug)]
pub enum Stream {
    /// On a Unix socket.
    Unix(UnixStream),
    /// Over TCP.
    Tcp(TcpStream),
}

macro_rules! each {
    ($self:ident, $stream:ident => $call:expr) => {
        match $self {
            Stream::Unix($stream) => $call,
            Stream::Tcp($stream) => $call,
        }
    };
}

impl Stream {
    /// Another handle of the same connection.
    ///
    /// # Errors
    /// Of the system.
    pub fn another(&self) -> io::Result<Self> {
        match self {
            Self::Unix(stream) => stream.try_clone().map(Self::Unix),
            Self::Tcp(stream) => stream.try_clone().map(Self::Tcp),
        }
    }

    /// Whether calls return at once where they would wait.
    ///
    /// # Errors
    /// Of the system.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        each!(self, stream => stream.set_nonblocking(nonblocking))
    }

    /// How long reads and writes wait at most.
    ///
    /// # Errors
    /// Of the system.
    pub fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        each!(self, stream => stream.set_read_timeout(timeout).and_then(|()| stream.set_write_timeout(timeout)))
    }

    /// Ends the direction from the client, or both. What has arrived can still be read.
    pub fn shut(&self, both: bool) {
        let how = if both { std::net::Shutdown::Both } else { std::net::Shutdown::Read };
        // A connection that has ended already needs no end.
        let _ = each!(self, stream => stream.shutdown(how));
    }
}

impl Read for &Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        each!(self, stream => { let mut stream = stream; stream.read(into) })
    }
}

impl Write for &Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        each!(self, stream => { let mut stream = stream; stream.write(bytes) })
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        each!(self, stream => stream.as_fd())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("flashwright-listen-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn a_dead_socket_is_replaced_and_a_live_one_is_not() {
        let folder = folder("dead");
        let path = folder.join("a drive.sock");
        let address = Address::Unix(path.clone());
        drop(UnixListener::bind(&path).unwrap()); // leaves its file
        let first = Listener::open(&address, false).unwrap();
        assert!(first.uri().ends_with("/a%20drive.sock"));
        let error = Listener::open(&address, false).unwrap_err();
        assert!(error.what.contains("where another server listens"), "{error}");
        drop(first);
        assert!(!path.exists());
        std::fs::write(&path, "").unwrap();
        let error = Listener::open(&address, false).unwrap_err();
        assert!(error.what.contains("no socket") && path.exists(), "{error}");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn only_this_machine_is_served_unless_others_are_allowed() {
        let address = "tcp:0.0.0.0:0".parse().unwrap();
        let error = Listener::open(&address, false).unwrap_err();
        assert!(error.what.contains("0.0.0.0") && error.hint.contains("listen_anywhere=True"), "{error}");
        assert!(Listener::open(&address, true).is_ok());
        assert!(Listener::open(&"tcp:localhost:0".parse().unwrap(), false).unwrap().uri().starts_with("nbd://"));
        assert!(Listener::open(&"tcp:127.0.0.1:x".parse().unwrap(), false).is_err());
    }
}
