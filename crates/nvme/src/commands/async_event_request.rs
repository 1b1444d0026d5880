//! Asynchronous Event Request (NVM Express Base 2.1, section 5.1.2): it waits until there is an event.

use super::Command;

pub(super) const COMMAND: Command = Command {
    opcode: 0x0c,
    name: "Asynchronous Event Request",
    in_discovery: true,
    while_sanitizing: true,
    run: |call| {
        let cid = call.sqe.cid();
        call.controller()?.hold_event_request(cid)
    },
    ..Command::BARE
};
