//! The most recent sanitize operation (NVM Express Base 2.1, section 8.1.24, and log page 81h).
//!
//! The drive's data lie under a media key that a crypto erase replaces, which makes all of them unreadable at once: here, all ranges
//! are deallocated. A block erase would have to erase every block of the flash, also those without data, and an overwrite would
//! have to reach the spare blocks; a request for the drive can do neither, so both are refused.

use crate::wire::put;

/// What SANICAP of identify tells: crypto erase; and that the drive deallocates what it has sanitized in any case (NDI).
pub(crate) const CAPABILITIES: u32 = 1 | 1 << 29;
/// The largest progress, which stands for none.
const NO_PROGRESS: u16 = u16::MAX;

/// How the most recent operation went (SOS).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// There was none.
    #[default]
    Never = 0,
    Succeeded = 1,
    UnderWay = 2,
    /// It succeeded, and deallocated what the host wanted to stay allocated.
    Deallocated = 4,
}

/// The most recent operation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sanitize {
    pub state: State,
    /// Command dword 10 of the command that began it.
    pub asked: u32,
    /// Bytes that hosts had written when it began, if that was in this process.
    pub written: Option<u64>,
}

/// Dword 10, bit 9: the host wants what is sanitized to stay allocated.
pub(crate) const STAYS_ALLOCATED: u32 = 1 << 9;

impl Sanitize {
    pub fn is_under_way(&self) -> bool {
        self.state == State::UnderWay
    }

    /// All ranges are deallocated.
    pub fn end(&mut self) {
        self.state = if self.asked & STAYS_ALLOCATED == 0 { State::Succeeded } else { State::Deallocated };
    }

    /// Log page 81h, with the progress of the operation that is under way.
    pub fn log(&self, progress: u16, bytes_written: u64, bytes_used: u64) -> Vec<u8> {
        let mut out = vec![0; 512];
        let is_erased = self.written == Some(bytes_written) && bytes_used == 0;
        put(&mut out, 0, &if self.is_under_way() { progress } else { NO_PROGRESS }.to_le_bytes());
        put(&mut out, 2, &(self.state as u16 | u16::from(is_erased) << 8).to_le_bytes());
        put(&mut out, 4, &self.asked.to_le_bytes());
        out[8..36].fill(0xff); // no time is estimated, of any operation
        // Sanitize state: idle, or processing, which is restricted unless bit 3 of dword 10 allowed to leave after a failure.
        out[36] = match (self.is_under_way(), self.asked & 1 << 3 != 0) {
            (false, _) => 0,
            (true, false) => 1,
            (true, true) => 3,
        };
        out
    }

    /// What is kept of it.
    pub fn kept(&self) -> [u8; KEPT_BYTES] {
        let mut out = [0; KEPT_BYTES];
        out[0] = self.state as u8;
        put(&mut out, 4, &self.asked.to_le_bytes());
        out
    }

    /// Reads what was kept. None if it can't be that.
    pub fn of_kept(bytes: &[u8; KEPT_BYTES]) -> Option<Self> {
        let all = [State::Never, State::Succeeded, State::UnderWay, State::Deallocated];
        let state = all.into_iter().find(|state| *state as u8 == bytes[0])?;
        Some(Self { state, asked: crate::wire::u32_at(bytes, 4), written: None })
    }
}

/// Bytes that are kept of it.
pub(crate) const KEPT_BYTES: usize = 8;
