//! How the replies to a client are written: in the protocol that it speaks.

use crate::command::Command;
use crate::exec::{Failure, Outs};
use crate::guest::Guest;
use crate::nvme::flight;
use crate::wire::{self, Errno, Kind, Style};
use flashwright_block::IoError;
use flashwright_nvme::tcp::Writer;
use flashwright_nvme::vfio::Queues;
use flashwright_nvme::{Status, wire::status_of};

/// The replies to a client that have not been sent.
#[derive(Debug)]
pub enum Replies {
    /// Of NBD.
    Nbd(Style, Vec<u8>),
    /// Of NVMe/TCP.
    Nvme(Box<Writer>),
    /// Of vfio-user: answers to messages here, and the queues of the machine in its memory.
    #[allow(private_interfaces)] // nobody outside makes one
    Vfio(Box<Queues<Guest>>),
}

impl Replies {
    /// For a client of NBD.
    #[must_use]
    pub fn nbd(structured: bool) -> Self {
        Self::Nbd(Style { structured }, Vec::new())
    }

    /// What is to be sent.
    pub fn out(&mut self) -> &mut Vec<u8> {
        match self {
            Self::Nbd(_, out) => out,
            Self::Nvme(writer) => &mut writer.out,
            Self::Vfio(queues) => &mut queues.out,
        }
    }

    /// Bytes that are to be sent.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Nbd(_, out) => out.len(),
            Self::Nvme(writer) => writer.out.len(),
            Self::Vfio(queues) => queues.out.len(),
        }
    }

    /// Writes completions to where a machine finds them. Returns whether it has sent more commands, of which no message tells.
    pub fn flush(&mut self) -> bool {
        let Self::Vfio(queues) = self else { return false };
        queues.flush();
        queues.has_work() || queues.has_rung()
    }

    /// Asks a machine to tell of its next command by a message. Returns whether it has sent one meanwhile.
    pub fn arm(&mut self) -> bool {
        if let Self::Vfio(queues) = self { queues.arm() } else { false }
    }

    /// Where the data of a read that succeeded are to be put; [`Replies::answer`] follows at once.
    pub fn data(&mut self, command: &Command) -> &mut [u8] {
        match self {
            Self::Nbd(style, out) => style.put_read(out, command.cookie, command.offset, command.length),
            Self::Nvme(writer) => {
                let (flight, at) = flight(command);
                writer.data(flight, at, command.length as usize)
            }
            Self::Vfio(queues) => {
                let (flight, at) = flight(command);
                queues.data(flight, at, command.length as usize)
            }
        }
    }

    /// Writes the reply to a command; the data of a read are there.
    pub fn answer(&mut self, command: &Command, failure: Option<&Failure>) {
        match self {
            Self::Nbd(style, out) => match failure {
                Some(failure) => {
                    let (errno, why) = errno_of(failure);
                    style.put_error(out, command.cookie, errno, &why);
                }
                None if command.kind == Kind::Read => {}
                None => style.put_done(out, command.cookie),
            },
            Self::Nvme(_) | Self::Vfio(_) => {
                let writes = !matches!(command.kind, Kind::Read | Kind::Cache);
                let status = match failure {
                    None => Status::SUCCESS,
                    Some(Failure::Drive(error)) => status_of(error, writes),
                    Some(Failure::NotFast) => Status::INTERNAL,
                };
                self.ended(flight(command).0, status);
            }
        }
    }

    /// An append went to a byte of the drive. [`Replies::answer`] follows.
    pub(crate) fn appended(&mut self, command: &Command, byte: u64) {
        let (flight, behind) = (flight(command).0, byte.saturating_sub(command.offset));
        match self {
            Self::Nvme(writer) => writer.appended(flight, behind, command.length),
            Self::Vfio(queues) => queues.appended(flight, behind, command.length),
            Self::Nbd(..) => {}
        }
    }

    /// A request of a command of NVMe has ended.
    pub(crate) fn ended(&mut self, flight: u32, status: Status) {
        match self {
            Self::Nvme(writer) => writer.ended(flight, status),
            Self::Vfio(queues) => queues.ended(flight, status),
            Self::Nbd(..) => {}
        }
    }

    /// Refuses a command that could not be begun, which only clients of NBD send.
    pub fn refuse(&mut self, cookie: u64, errno: Errno, why: &str) {
        if let Self::Nbd(style, out) = self {
            style.put_error(out, cookie, errno, why);
        }
    }

    /// Writes what is mapped, which only clients of NBD ask.
    pub fn block_status(&mut self, command: &Command, stretches: &[(u32, u32)]) {
        if let Self::Nbd(_, out) = self {
            wire::put_block_status(out, command.cookie, stretches);
        }
    }
}

/// How NBD counts a failure, and the failure in words.
fn errno_of(failure: &Failure) -> (Errno, String) {
    let error = match failure {
        Failure::NotFast => {
            return (Errno::NotSupported, "zeros are fast only over whole pages, as a hole".to_owned());
        }
        Failure::Drive(error) => error,
    };
    let errno = match error {
        IoError::OutOfRange { .. } | IoError::Misaligned { .. } => Errno::Invalid,
        IoError::ReadOnly { .. } => Errno::NotPermitted,
        _ => Errno::Io,
    };
    (errno, error.to_string())
}

/// One client alone.
impl Outs for Replies {
    fn replies(&mut self, _: u32) -> Option<&mut Replies> {
        Some(self)
    }
}
