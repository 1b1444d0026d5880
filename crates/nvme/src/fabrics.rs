//! Fabrics commands: Connect, and the properties of a controller (NVM Express Base 2.1, section 6).

use crate::subsystem::{DISCOVERY_NQN, Place, QUEUE_MAX, Subsystem};
use crate::wire::{Sqe, Status, u16_at, u32_at, u64_at};

/// The opcode of every Fabrics command.
pub const OPCODE: u8 = 0x7f;
/// Bytes of the data of Connect.
pub const CONNECT_BYTES: usize = 1024;
/// A controller identifier that leaves the choice to the subsystem.
pub const ANY_CONTROLLER: u16 = 0xffff;

/// Types of Fabrics commands (FCTYPE).
pub mod kind {
    #![allow(missing_docs)] // as the specification names them
    pub const PROPERTY_SET: u8 = 0x00;
    pub const CONNECT: u8 = 0x01;
    pub const PROPERTY_GET: u8 = 0x04;
}

/// A queue that a connection serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Its controller and number.
    pub place: Place,
    /// The connection's own number.
    pub connection: u64,
    /// Commands that fit.
    pub size: u16,
    /// Whether completions tell the head of the submission queue.
    pub has_flow_control: bool,
}

/// What a Fabrics command gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A result.
    Result(u64),
    /// The connection serves a queue now; the result is the controller's identifier.
    Connected(Queue),
}

/// A refusal: the status, and the result, which names the parameter that is wrong.
pub type Refusal = (Status, u64);

/// A parameter of the command, or of its data, that Connect does not take.
fn wrong(at: u16, is_in_data: bool) -> Refusal {
    (Status::CONNECT_PARAMETERS, u64::from(at) | u64::from(is_in_data) << 16)
}

/// Carries out a Fabrics command on a connection that serves `queue`, if it serves one.
///
/// # Errors
/// [`Refusal`].
pub fn execute(subsystem: &mut Subsystem, queue: Option<&Queue>, sqe: &Sqe, data: &[u8]) -> Result<Answer, Refusal> {
    match (sqe.0[4], queue) {
        (kind::CONNECT, None) => connect(subsystem, sqe, data).map(Answer::Connected),
        (kind::CONNECT, Some(_)) | (_, None) => Err((Status::SEQUENCE, 0)),
        (kind::PROPERTY_GET | kind::PROPERTY_SET, Some(queue)) if queue.place.queue != 0 => {
            Err((Status::INVALID_FIELD, 0))
        }
        (kind::PROPERTY_GET, Some(queue)) => {
            let controller = subsystem.controller(queue.place.controller).ok_or((Status::SEQUENCE, 0))?;
            let value = controller.property(u32_at(&sqe.0, 44), property_bytes(sqe));
            value.map(Answer::Result).ok_or((Status::INVALID_FIELD, 0))
        }
        (kind::PROPERTY_SET, Some(queue)) => {
            let controller = subsystem.controller_mut(queue.place.controller).ok_or((Status::SEQUENCE, 0))?;
            let is_set = controller.set_property(u32_at(&sqe.0, 44), property_bytes(sqe), u64_at(&sqe.0, 48));
            if is_set { Ok(Answer::Result(0)) } else { Err((Status::INVALID_FIELD, 0)) }
        }
        _ => Err((Status::INVALID_OPCODE, 0)),
    }
}

fn property_bytes(sqe: &Sqe) -> usize {
    match sqe.0[40] & 7 {
        0 => 4,
        1 => 8,
        _ => 0,
    }
}

/// A name in the data of Connect, up to its first zero.
fn name(data: &[u8]) -> Option<&str> {
    let length = data.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(&data[..length]).ok()
}

fn connect(subsystem: &mut Subsystem, sqe: &Sqe, data: &[u8]) -> Result<Queue, Refusal> {
    let (format, number, size) = (u16_at(&sqe.0, 40), u16_at(&sqe.0, 42), u16_at(&sqe.0, 44));
    let (attributes, keep_alive_ms) = (sqe.0[46], u32_at(&sqe.0, 48));
    if format != 0 {
        return Err((Status::CONNECT_FORMAT, 0));
    }
    let data: &[u8; CONNECT_BYTES] = data.try_into().map_err(|_| (Status::SGL_LENGTH, 0))?;
    if size == 0 || size >= QUEUE_MAX {
        return Err(wrong(44, false));
    }
    let host_id: [u8; 16] = data[..16].try_into().expect("16 bytes were cut");
    let controller = u16_at(data, 16);
    let subsystem_name = name(&data[256..512]).ok_or(wrong(256, true))?;
    let host_name = name(&data[512..768]).filter(|name| !name.is_empty()).ok_or(wrong(512, true))?;
    let is_discovery = subsystem_name == DISCOVERY_NQN;
    if !is_discovery && subsystem_name != subsystem.nqn {
        return Err(wrong(256, true));
    }
    let controller = if number == 0 {
        if controller != ANY_CONTROLLER {
            return Err(wrong(16, true));
        }
        let host = (host_id, host_name.to_owned());
        subsystem.admit(host, is_discovery, keep_alive_ms).map_err(|status| (status, 0))?
    } else {
        let found = subsystem.controller_mut(controller).ok_or(wrong(16, true))?;
        // By name alone, as the kernel's own target does: hosts exist that draw another identifier for each queue.
        if found.host.1 != host_name {
            return Err((Status::CONNECT_HOST, 0));
        }
        if found.is_discovery != is_discovery {
            return Err(wrong(256, true));
        }
        if found.is_discovery || u32::from(number) > found.io_queues() {
            return Err(wrong(42, false));
        }
        if !found.is_ready() || found.queues.contains_key(&number) {
            return Err((Status::SEQUENCE, 0));
        }
        controller
    };
    let place = Place { controller, queue: number };
    let connection = subsystem.join(place);
    Ok(Queue { place, connection, size: size + 1, has_flow_control: attributes & 1 << 2 == 0 })
}
