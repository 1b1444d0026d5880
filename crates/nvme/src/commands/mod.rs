//! The commands: a file for each, and the list of all.
//!
//! A new command is a file that has a [`Command`], and its name in the list. Opcodes, what they change (log page 05h) and which
//! optional commands there are (ONCS, OACS of identify) come from the list.

use crate::subsystem::{Health, Place, Subsystem};
use crate::vfio::Change;
use crate::wire::identify::{MDTS, RANGE_BYTES_MAX};
use crate::wire::{ALL_NAMESPACES, HOST_PAGE, Sqe, Status, put};

/// A command of the list.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// Its number.
    pub opcode: u8,
    /// As the specification names it.
    pub name: &'static str,
    /// What it changes: bits of the effects log, [`effects`].
    pub effects: u32,
    /// Its bit of ONCS, or of OACS if it is an admin command; 0 if it is mandatory.
    pub optional: u16,
    /// Whether discovery controllers have it too.
    pub in_discovery: bool,
    run: fn(&mut Call<'_>) -> Result<Outcome, Status>,
}

/// What a command changes: bits of the Commands Supported and Effects log.
pub mod effects {
    /// It is there.
    pub const SUPPORTED: u32 = 1;
    /// It changes logical blocks.
    pub const CONTENT: u32 = 1 << 1;
    /// It changes what a namespace can do.
    pub const NAMESPACE: u32 = 1 << 2;
    /// No other command for the namespace may run beside it.
    pub const ALONE: u32 = 1 << 16;
}

/// Makes the modules and the lists of commands: admin commands, I/O commands, and admin commands of a function on PCIe.
macro_rules! commands {
    (admin: $($admin:ident),+; io: $($io:ident),+; function: $($function:ident),+;) => {
        $(mod $admin;)+
        $(mod $io;)+
        $(mod $function;)+
        /// The commands of the admin queue.
        pub const ADMIN: &[Command] = &[$($admin::COMMAND),+];
        /// The commands of I/O queues.
        pub const IO: &[Command] = &[$($io::COMMAND),+];
        /// The commands of the admin queue that only a function on PCIe has.
        pub const FUNCTION: &[Command] = &[$($function::COMMAND),+];
    };
}

commands! {
    admin: get_log_page, identify, abort, set_features, get_features, async_event_request, format_nvm, keep_alive;
    io: read, write, flush, compare, write_zeroes, dataset_management, verify;
    function: create_io_submission_queue, create_io_completion_queue, delete_io_submission_queue, delete_io_completion_queue,
        doorbell_buffer_config;
}

/// The opcode of Read, whose data go to the host.
pub const READ: u8 = read::COMMAND.opcode;

/// What the drive is asked for a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// What to do.
    pub op: Op,
    /// The first byte.
    pub offset: u64,
    /// Bytes; 0 for a flush.
    pub bytes: u32,
    /// Whether it is durable when it ends.
    pub is_durable: bool,
}

/// What to do with a range of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Return what was last written.
    Read,
    /// Store the data of the command.
    Write,
    /// Make everything acknowledged durable.
    Flush,
    /// The content is no longer needed.
    Deallocate,
    /// Store zeros; `true` if a range may be deallocated instead.
    WriteZeroes(bool),
    /// Read, and return nothing.
    Verify,
}

/// What becomes of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is over: dwords 0 and 1 of its completion, and data for the host.
    Done(u64, Vec<u8>),
    /// The drive is asked; a read returns its data.
    Io(Io),
    /// The drive is asked for what was written, which is compared with the data of the command.
    Compare(Io),
    /// The drive is asked for each of these; there may be none.
    Several(Vec<Io>),
    /// It waits for an event.
    Held,
    /// The queues change, of a function on PCIe.
    Queues(Change),
}

impl Outcome {
    /// It is over and returns nothing.
    #[must_use]
    pub fn nothing() -> Self {
        Self::Done(0, Vec::new())
    }
}

/// A command that is carried out.
pub struct Call<'a> {
    pub(crate) subsystem: &'a mut Subsystem,
    pub(crate) place: Place,
    pub(crate) sqe: &'a Sqe,
    pub(crate) data: &'a [u8],
    pub(crate) health: &'a dyn Fn() -> Health,
}

/// The largest transfer of a command.
pub const TRANSFER_MAX: usize = HOST_PAGE << MDTS;

/// Finds the command and carries it out.
pub(crate) fn run(call: &mut Call<'_>) -> Result<Outcome, Status> {
    let opcode = call.sqe.opcode();
    let controller = call.subsystem.controller(call.place.controller).ok_or(Status::SEQUENCE)?;
    if !controller.is_ready() {
        return Err(Status::SEQUENCE);
    }
    let is_discovery = controller.is_discovery;
    let [list, more] = lists(call.place.queue, controller);
    let command =
        list.iter().chain(more).find(|command| command.opcode == opcode && (command.in_discovery || !is_discovery));
    let command = command.ok_or(Status::INVALID_OPCODE)?;
    if call.sqe.fuse() != 0 {
        return Err(Status::INVALID_FIELD);
    }
    (command.run)(call)
}

/// The commands of a queue: those that every controller has, and those that only a function on PCIe has.
fn lists(queue: u16, controller: &crate::Controller) -> [&'static [Command]; 2] {
    let more = if controller.is_function { FUNCTION } else { &[] };
    if queue == 0 { [ADMIN, more] } else { [IO, &[]] }
}

/// Log page 05h.
pub(crate) fn effects_log(controller: &crate::Controller) -> Vec<u8> {
    let mut out = vec![0; 4096];
    for (queue, begins) in [(0, 0), (1, 1024)] {
        for command in lists(queue, controller).into_iter().flatten() {
            let effects = command.effects | effects::SUPPORTED;
            put(&mut out, begins + 4 * usize::from(command.opcode), &effects.to_le_bytes());
        }
    }
    out
}

/// Bits of the optional commands of a queue.
pub(crate) fn optional(queue: u16, controller: &crate::Controller) -> u16 {
    lists(queue, controller).into_iter().flatten().fold(0, |bits, command| bits | command.optional)
}

impl Call<'_> {
    /// The namespace that the command names is the one that there is.
    fn check_namespace(&self) -> Result<(), Status> {
        if self.sqe.nsid() == self.subsystem.namespace.id { Ok(()) } else { Err(Status::INVALID_NAMESPACE) }
    }

    /// The same, or all namespaces.
    fn check_namespace_or_all(&self) -> Result<(), Status> {
        if self.sqe.nsid() == ALL_NAMESPACES { Ok(()) } else { self.check_namespace() }
    }

    /// Nothing may be changed that is read only.
    fn check_writable(&self) -> Result<(), Status> {
        if self.subsystem.about.is_read_only { Err(Status::WRITE_PROTECTED) } else { Ok(()) }
    }

    /// The range of a command that names blocks in dwords 10 to 12, as bytes.
    fn range(&self) -> Result<(u64, u32), Status> {
        let shift = self.subsystem.block_shift();
        let (first, blocks) = (self.sqe.first_block(), self.sqe.blocks());
        let end = first.checked_add(blocks).ok_or(Status::LBA_OUT_OF_RANGE)?;
        if end > self.subsystem.namespace.bytes >> shift {
            return Err(Status::LBA_OUT_OF_RANGE);
        }
        Ok((first << shift, u32::try_from(blocks << shift).expect("65,536 blocks of 4 KiB at most")))
    }

    /// The same for a command that moves data, which the host's SGL must fit.
    fn range_with_data(&self, comes: bool) -> Result<(u64, u32), Status> {
        let bytes = usize::try_from(self.sqe.blocks() << self.subsystem.block_shift()).unwrap_or(usize::MAX);
        if bytes > TRANSFER_MAX {
            return Err(Status::INVALID_FIELD);
        }
        let given = if comes { self.data.len() } else { self.sqe.sgl().length as usize };
        if given != bytes {
            return Err(Status::SGL_LENGTH);
        }
        self.range()
    }

    /// Bit 30 of dword 12, or a host that has switched the write cache off.
    fn is_durable(&self) -> bool {
        let is_asked = self.sqe.dword(12) & 1 << 30 != 0;
        is_asked || !self.has_write_cache()
    }

    fn has_write_cache(&self) -> bool {
        let controller = self.subsystem.controller(self.place.controller);
        controller.is_none_or(|controller| controller.features.get(&0x06).copied().unwrap_or(1) & 1 != 0)
    }

    /// Cuts a range into pieces that the drive takes at once, between pages of the flash.
    fn pieces(&self, op: Op, first: u64, bytes: u64) -> impl Iterator<Item = Io> + use<> {
        let page = self.subsystem.about.page_bytes.clamp(1, RANGE_BYTES_MAX);
        let most = RANGE_BYTES_MAX - RANGE_BYTES_MAX % page;
        let end = first + bytes;
        let piece = move |at: u64| {
            let bytes = u32::try_from((end - at).min(most)).expect("a GiB at most");
            Io { op, offset: at, bytes, is_durable: false }
        };
        let step = usize::try_from(most).expect("a GiB at most");
        (first..end).step_by(step).map(piece)
    }

    fn controller(&mut self) -> Result<&mut crate::Controller, Status> {
        self.subsystem.controller_mut(self.place.controller).ok_or(Status::SEQUENCE)
    }

    /// Data for the host, cut to what it has room for.
    fn reply(&self, mut data: Vec<u8>) -> Outcome {
        data.truncate(self.sqe.sgl().length as usize);
        Outcome::Done(0, data)
    }
}
