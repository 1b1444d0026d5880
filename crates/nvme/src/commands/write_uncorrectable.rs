//! Write Uncorrectable (NVM Command Set 1.1, section 3.3.7): reads of the blocks fail until they are written. What that is here, says
//! [`crate::uncorrectable`].

use super::{Command, Outcome, effects};

pub(super) const COMMAND: Command = Command {
    opcode: 0x04,
    name: "Write Uncorrectable",
    effects: effects::CONTENT,
    optional: 1 << 1,
    needs_any_order: true,
    run: |call| {
        let placing = call.placing()?;
        call.check_writable()?;
        let range = call.range()?;
        let extents: Vec<_> = range.namespace.locate(range.first, range.bytes).collect();
        let now_ns = call.media.health().power_on_ns;
        call.subsystem.mark_uncorrectable(call.sqe.nsid(), &extents, now_ns)?;
        call.note_placing(placing);
        Ok(Outcome::nothing())
    },
    ..Command::BARE
};
