//! Sanitize (NVM Express Base 2.1, section 5.1.22): begins to make all data of the drive unreadable. What it can do, and what that is
//! here, says [`crate::sanitize`].

use super::{Command, Outcome, effects};
use crate::sanitize::STAYS_ALLOCATED;
use crate::wire::Status;

/// Dword 10, bits 2:0. Block erase (2), overwrite (3) and the end of a media verification (5) are not supported.
const EXIT_FAILURE: u32 = 1;
const CRYPTO_ERASE: u32 = 4;
/// Dword 10, bit 10: a media verification follows.
const VERIFIES: u32 = 1 << 10;
/// The feature that says whether a drive that deallocates in any case may be asked not to, in bit 0.
const RESPONSE: u8 = 0x17;

pub(super) const COMMAND: Command = Command {
    opcode: 0x84,
    name: "Sanitize",
    effects: effects::CONTENT | effects::ALL_ALONE,
    needs_zeros: true,
    run: |call| {
        let asked = call.sqe.dword(10);
        match asked & 7 {
            EXIT_FAILURE => return Ok(Outcome::nothing()), // no operation fails for good
            CRYPTO_ERASE if asked & VERIFIES == 0 => {}
            _ => return Err(Status::INVALID_FIELD),
        }
        let may_ask = call.controller()?.feature(RESPONSE).unwrap_or(0) & 1 != 0;
        if asked & STAYS_ALLOCATED != 0 && !may_ask {
            return Err(Status::INVALID_FIELD);
        }
        call.check_writable()?;
        let written = call.media.health().bytes_written;
        call.subsystem.begin_to_sanitize(asked, written);
        Ok(Outcome::nothing())
    },
    ..Command::BARE
};
