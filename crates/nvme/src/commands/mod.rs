//! The commands: a file for each, and the list of all.
//!
//! A new command is a file that has a [`Command`], and its name in the list. Opcodes, what they change (log page 05h) and which
//! optional commands there are (ONCS, OACS of identify) come from the list.

use crate::chores::pieces;
use crate::namespace::{Extent, Namespace, bit, is_valid};
use crate::subsystem::{About, Controller, Media, Place, Subsystem};
use crate::vfio::Change;
use crate::wire::identify::MDTS;
use crate::wire::{ALL_NAMESPACES, HOST_PAGE, Sqe, Status, put, status_of};
use crate::wire::{placement, zones};
use flashwright_block::{Zone, ZoneState, Zoned, Zoning};

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
    /// Whether it goes on while the drive is sanitized.
    pub while_sanitizing: bool,
    /// Whether it needs a drive on which what is deallocated reads as zeros.
    pub needs_zeros: bool,
    /// Whether it needs a drive that places data by handle.
    pub needs_placement: bool,
    /// Whether it needs a drive that takes writes in any order.
    pub needs_any_order: bool,
    /// Whether it is of the command set of zoned namespaces.
    pub of_zones: bool,
    run: fn(&mut Call<'_>) -> Result<Outcome, Status>,
}

impl Command {
    /// A mandatory command that changes nothing.
    const BARE: Self = Self {
        opcode: 0,
        name: "",
        effects: 0,
        optional: 0,
        in_discovery: false,
        while_sanitizing: false,
        needs_zeros: false,
        needs_placement: false,
        needs_any_order: false,
        of_zones: false,
        run: |_| Err(Status::INVALID_OPCODE),
    };

    fn is_there(&self, about: &About) -> bool {
        (about.trims_to_zeros || !self.needs_zeros)
            && (about.placement.is_some() || !self.needs_placement)
            && (about.zoning.is_none() || !self.needs_any_order)
            && (about.zoning.is_some() || !self.of_zones)
    }
}

/// What a command changes: bits of the Commands Supported and Effects log.
pub mod effects {
    /// It is there.
    pub const SUPPORTED: u32 = 1;
    /// It changes logical blocks.
    pub const CONTENT: u32 = 1 << 1;
    /// It changes what a namespace can do.
    pub const NAMESPACE: u32 = 1 << 2;
    /// It changes which namespaces there are.
    pub const INVENTORY: u32 = 1 << 3;
    /// No other command for the namespace may run beside it.
    pub const ALONE: u32 = 1 << 16;
    /// No other command for any namespace may run beside it.
    pub const ALL_ALONE: u32 = 2 << 16;
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
    admin: get_log_page, identify, abort, set_features, get_features, async_event_request, namespace_management,
        namespace_attachment, keep_alive, format_nvm, sanitize, directive_send, directive_receive, get_lba_status;
    io: read, write, flush, write_uncorrectable, compare, write_zeroes, dataset_management, verify, copy, io_management_receive,
        io_management_send, zone_append, zone_management_send, zone_management_receive;
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
    /// The serial number of the namespace whose range it is; 0 if it is of none.
    pub namespace: u32,
    /// The first byte.
    pub offset: u64,
    /// Bytes; 0 for a flush.
    pub bytes: u32,
    /// Whether it is durable when it ends.
    pub is_durable: bool,
    /// Of a write, the stream that it is placed by: its reclaim group and unit handle, as the drive names them.
    pub stream: u16,
}

impl Io {
    /// A flush of all that the drive has.
    pub const FLUSH: Self = Self { op: Op::Flush, namespace: 0, offset: 0, bytes: 0, is_durable: false, stream: 0 };
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
    /// Store the data of the command at the write pointer of the zone that begins here, and return where.
    Append,
    /// Open the zone that begins here, until it is closed.
    OpenZone,
    /// Close that zone.
    CloseZone,
    /// Write no more to that zone.
    FinishZone,
    /// Forget what that zone holds.
    ResetZone,
}

impl Op {
    /// Whether it stores the data of the command.
    #[must_use]
    pub fn stores_data(self) -> bool {
        matches!(self, Self::Write | Self::Append)
    }
}

/// What becomes of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is over: dwords 0 and 1 of its completion, and data for the host.
    Done(u64, Vec<u8>),
    /// The drive is asked; a read returns its data.
    Io(Io),
    /// The drive is asked for what was written, which is compared with the data of the command.
    Compare(Vec<Io>),
    /// The drive is asked for each of these, which have their parts of the data in order; there may be none.
    Several(Vec<Io>),
    /// The drive is asked for what is read, and then to write it.
    Copy(Box<Copying>),
    /// It waits for an event.
    Held,
    /// The queues change, of a function on PCIe.
    Queues(Change),
}

/// What the drive is asked for a Copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copying {
    /// What is read, in order.
    pub reads: Vec<Io>,
    /// Where it is written.
    pub writes: Vec<Io>,
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
    /// The namespaces of the controller, as [`bit`]s.
    pub(crate) attached: u64,
    pub(crate) sqe: &'a Sqe,
    pub(crate) data: &'a [u8],
    pub(crate) media: &'a mut dyn Media,
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
    let command = command.filter(|command| command.is_there(&call.subsystem.about)).ok_or(Status::INVALID_OPCODE)?;
    if call.sqe.fuse() != 0 {
        return Err(Status::INVALID_FIELD);
    }
    if call.subsystem.sanitize.is_under_way() && !command.while_sanitizing {
        return Err(Status::SANITIZING);
    }
    let outcome = (command.run)(call)?;
    if !call.subsystem.uncorrectable.is_empty() {
        call.clear_written(&outcome);
    }
    Ok(outcome)
}

/// The commands of a queue: those that every controller has, and those that only a function on PCIe has.
fn lists(queue: u16, controller: &Controller) -> [&'static [Command]; 2] {
    let more = if controller.is_function { FUNCTION } else { &[] };
    if queue == 0 { [ADMIN, more] } else { [IO, &[]] }
}

/// Log page 05h, of a command set.
pub(crate) fn effects_log(controller: &Controller, about: &About, set: u8) -> Vec<u8> {
    let mut out = vec![0; 4096];
    let is_of = |command: &&Command| command.is_there(about) && (set == zones::COMMAND_SET || !command.of_zones);
    for (queue, begins) in [(0, 0), (1, 1024)] {
        for command in lists(queue, controller).into_iter().flatten().filter(is_of) {
            let effects = command.effects | effects::SUPPORTED;
            put(&mut out, begins + 4 * usize::from(command.opcode), &effects.to_le_bytes());
        }
    }
    out
}

/// Bits of the optional commands of a queue.
pub(crate) fn optional(queue: u16, controller: &Controller, about: &About) -> u16 {
    let there = lists(queue, controller).into_iter().flatten().filter(|command| command.is_there(about));
    there.fold(0, |bits, command| bits | command.optional)
}

impl Call<'_> {
    /// The namespace that the command names.
    fn namespace(&self) -> Result<&Namespace, Status> {
        self.namespace_of(self.sqe.nsid())
    }

    /// A namespace that the controller has.
    ///
    /// An identifier that no namespace can have is an invalid namespace; one that the controller does not have, a wrong field
    /// (Base 2.1, section 3.2.1.5).
    fn namespace_of(&self, nsid: u32) -> Result<&Namespace, Status> {
        if !is_valid(nsid) {
            return Err(Status::INVALID_NAMESPACE);
        }
        self.subsystem.namespaces.get(nsid).filter(|_| self.attached & bit(nsid) != 0).ok_or(Status::INVALID_FIELD)
    }

    /// The namespaces that the command names: one, or all that the controller has.
    fn namespaces(&self) -> Result<Vec<u32>, Status> {
        if self.sqe.nsid() != ALL_NAMESPACES {
            return Ok(vec![self.namespace()?.id]);
        }
        let all = self.subsystem.namespaces.iter().map(|namespace| namespace.id);
        Ok(all.filter(|nsid| self.attached & bit(*nsid) != 0).collect())
    }

    /// Nothing may be changed that is read only.
    fn check_writable(&self) -> Result<(), Status> {
        if self.subsystem.about.is_read_only { Err(Status::WRITE_PROTECTED) } else { Ok(()) }
    }

    /// The range of a command that names blocks in dwords 10 to 12.
    fn range(&self) -> Result<Range<'_>, Status> {
        Range::of(self.namespace()?, self.sqe.first_block(), self.sqe.blocks())
    }

    /// The same for a command that moves data, which the host's SGL must fit.
    fn range_with_data<'n>(&self, namespace: &'n Namespace, comes: bool) -> Result<Range<'n>, Status> {
        let blocks = self.sqe.blocks();
        let bytes = usize::try_from(blocks << namespace.shift()).unwrap_or(usize::MAX);
        if bytes > TRANSFER_MAX {
            return Err(Status::INVALID_FIELD);
        }
        let given = if comes { self.data.len() } else { self.sqe.sgl().length as usize };
        if given != bytes {
            return Err(Status::SGL_LENGTH);
        }
        Range::of(namespace, self.sqe.first_block(), blocks)
    }

    /// Bit 30 of dword 12, or a host that has switched the write cache off.
    fn is_durable(&self) -> bool {
        let is_asked = self.sqe.dword(12) & 1 << 30 != 0;
        is_asked || !self.has_write_cache()
    }

    fn has_write_cache(&self) -> bool {
        let controller = self.subsystem.controller(self.place.controller);
        controller.is_none_or(|controller| controller.feature(0x06).unwrap_or(1) & 1 != 0)
    }

    /// Where a write, a copy or zeros are placed: by the directive in dwords 12 and 13. An identifier that names no group or no handle, as none
    /// at all, means group 0 and the first handle of the namespace (Base 2.1, section 8.1.10.3).
    fn placing(&self) -> Result<Placing, Status> {
        let (directive, identifier) = ((self.sqe.dword(12) >> 20 & 0xf) as u8, (self.sqe.dword(13) >> 16) as u16);
        let handles = &self.namespace()?.handles;
        let first = handles.first().copied();
        match (directive, first) {
            (0, _) => Ok(Placing { stream: first.unwrap_or(0).into(), handle: first.unwrap_or(0), unknown: None }),
            (placement::DIRECTIVE, Some(first)) => Ok(match self.subsystem.placed_by(handles, identifier) {
                Some((stream, _, handle)) => Placing { stream, handle, unknown: None },
                None => Placing { stream: first.into(), handle: first, unknown: Some(identifier) },
            }),
            _ => Err(Status::INVALID_FIELD), // no such directive, or it is not enabled
        }
    }

    /// The reclaim unit handle of the placement handle in dword 11, whatever the group, and how many types of events that dword names.
    fn placement_handle(&self) -> Result<(u8, usize), Status> {
        let (place, count) = (self.sqe.dword(11) & 0xffff, self.sqe.dword(11) >> 16 & 0xff);
        let namespace = self.namespace()?;
        self.subsystem.placement_on()?;
        let handle = namespace.handles.get(place as usize).ok_or(Status::INVALID_FIELD)?;
        Ok((*handle, count as usize))
    }

    /// A command that is carried out named no placement identifier that there is.
    fn note_placing(&mut self, placing: Placing) {
        if let Some(identifier) = placing.unknown {
            self.note_placement_event(placement::event::INVALID_IDENTIFIER, identifier, (0, placing.handle));
        }
    }

    /// Notes an event of placement that a host caused, of a handle in a group, if such events are wanted.
    #[cold]
    fn note_placement_event(&mut self, kind: u8, identifier: u16, (group, handle): (u16, u8)) {
        let nsid = self.sqe.nsid();
        if let Some(placement) = self.subsystem.placement.as_mut().filter(|placement| placement.wants(handle, kind)) {
            let at_ns = self.media.health().power_on_ns;
            let (identifier, nsid, handle) = (Some(identifier), Some(nsid), handle.into());
            placement.note(placement::Event { kind, at_ns, identifier, nsid, group, handle, moved: None });
        }
    }

    /// The zones of the drive.
    fn zoned(&mut self) -> Result<&mut dyn Zoned, Status> {
        self.media.zoned().ok_or(Status::INTERNAL)
    }

    /// A zone.
    fn zone(&mut self, number: u32) -> Result<Zone, Status> {
        self.zoned()?.zone(number).map_err(|error| status_of(&error, false))
    }

    /// The zone that holds a logical block, and whether it begins there.
    fn zone_of(&self, zoning: &Zoning, block: u64) -> Result<(u32, bool), Status> {
        let namespace = self.namespace()?;
        let blocks = zoning.size.0 >> namespace.shift();
        if block >= namespace.blocks() {
            return Err(Status::LBA_OUT_OF_RANGE);
        }
        Ok((u32::try_from(block / blocks).expect("zones have 32-bit numbers"), block.is_multiple_of(blocks)))
    }

    /// The zones of a zoned namespace, whose commands come only where there is one.
    fn zoning(&self) -> Result<Zoning, Status> {
        self.subsystem.about.zoning.ok_or(Status::INVALID_OPCODE)
    }

    /// What is asked, if nothing is read of a zone that is offline, nor of what is marked as uncorrectable, nor of what is not written where the
    /// host has that be an error.
    fn readable(&mut self, outcome: Outcome) -> Result<Outcome, Status> {
        let subsystem = &*self.subsystem;
        let may_fail = subsystem.about.zoning.is_some() || subsystem.has_dulbe || !subsystem.uncorrectable.is_empty();
        if may_fail { self.check_readable(outcome) } else { Ok(outcome) }
    }

    #[cold]
    fn check_readable(&mut self, outcome: Outcome) -> Result<Outcome, Status> {
        let reads = match &outcome {
            Outcome::Io(io) => std::slice::from_ref(io),
            Outcome::Several(ios) | Outcome::Compare(ios) => ios,
            Outcome::Copy(copying) => &copying.reads,
            _ => &[],
        };
        for io in reads {
            self.check_zones(io)?;
            if self.subsystem.uncorrectable.touches(io.offset, io.bytes) {
                return Err(Status::UNRECOVERED_READ);
            }
            if self.minds_unwritten(io) && !self.media.is_written(io.offset, io.bytes) {
                return Err(Status::UNWRITTEN);
            }
        }
        Ok(outcome)
    }

    /// What is written or deallocated is not marked as uncorrectable any more.
    #[cold]
    fn clear_written(&mut self, outcome: &Outcome) {
        let asked = match outcome {
            Outcome::Io(io) => std::slice::from_ref(io),
            Outcome::Several(ios) => ios,
            Outcome::Copy(copying) => &copying.writes,
            _ => &[],
        };
        let clears = |io: &&Io| matches!(io.op, Op::Write | Op::WriteZeroes(_) | Op::Deallocate);
        for io in asked.iter().filter(clears) {
            self.subsystem.uncorrectable.clear(io.offset, io.bytes.into());
        }
    }

    fn check_zones(&mut self, io: &Io) -> Result<(), Status> {
        let Some(zoning) = self.subsystem.about.zoning else { return Ok(()) };
        let zones = io.offset / zoning.size.0..(io.offset + u64::from(io.bytes)).div_ceil(zoning.size.0);
        for number in zones {
            if self.zone(u32::try_from(number).unwrap_or(u32::MAX))?.state == ZoneState::Offline {
                return Err(Status::ZONE_OFFLINE);
            }
        }
        Ok(())
    }

    /// Whether the host has reads of what is not written be errors, in the namespace that is read.
    fn minds_unwritten(&mut self, io: &Io) -> bool {
        let read = self.subsystem.namespaces.iter().find(|namespace| namespace.serial == io.namespace);
        let key = read.map(|namespace| (set_features::id::RECOVERY, namespace.id));
        let features = self.subsystem.controller(self.place.controller).map(|controller| &controller.features);
        key.zip(features)
            .and_then(|(key, features)| features.get(&key))
            .is_some_and(|value| value & set_features::DULBE != 0)
    }

    fn controller(&mut self) -> Result<&mut Controller, Status> {
        self.subsystem.controller_mut(self.place.controller).ok_or(Status::SEQUENCE)
    }

    /// Data for the host, cut to what it has room for.
    fn reply(&self, mut data: Vec<u8>) -> Outcome {
        data.truncate(self.sqe.sgl().length as usize);
        Outcome::Done(0, data)
    }
}

/// Where a write is placed.
#[derive(Clone, Copy, Debug)]
struct Placing {
    /// See [`Io::stream`].
    stream: u16,
    /// The reclaim unit handle.
    handle: u8,
    /// An identifier that names none.
    unknown: Option<u16>,
}

/// Logical blocks of a namespace.
#[derive(Clone, Copy, Debug)]
struct Range<'a> {
    namespace: &'a Namespace,
    /// The first byte of the namespace.
    first: u64,
    bytes: u64,
    /// See [`Io::stream`].
    stream: u16,
}

impl<'a> Range<'a> {
    fn of(namespace: &'a Namespace, first: u64, blocks: u64) -> Result<Self, Status> {
        let end = first.checked_add(blocks).ok_or(Status::LBA_OUT_OF_RANGE)?;
        if end > namespace.blocks() {
            return Err(Status::LBA_OUT_OF_RANGE);
        }
        let shift = namespace.shift();
        Ok(Self { namespace, first: first << shift, bytes: blocks << shift, stream: 0 })
    }

    /// The same, to be written in the unit of a handle.
    fn placed(self, placing: Placing) -> Self {
        Self { stream: placing.stream, ..self }
    }

    /// What the drive is asked for it: one request, or one for each of its extents.
    fn asks(&self, op: Op, is_durable: bool) -> Outcome {
        if let [extent] = self.namespace.extents() {
            let bytes = u32::try_from(self.bytes).expect("65,536 blocks of 4 KiB at most");
            let (namespace, offset) = (self.namespace.serial, extent.first + self.first);
            return Outcome::Io(Io { op, namespace, offset, bytes, is_durable, stream: self.stream });
        }
        let ios = self.ios(op, is_durable);
        if let [io] = ios[..] { Outcome::Io(io) } else { Outcome::Several(ios) }
    }

    fn ios(&self, op: Op, is_durable: bool) -> Vec<Io> {
        let io = |extent: Extent| Io {
            op,
            namespace: self.namespace.serial,
            offset: extent.first,
            bytes: u32::try_from(extent.bytes).expect("65,536 blocks of 4 KiB at most"),
            is_durable,
            stream: self.stream,
        };
        self.namespace.locate(self.first, self.bytes).map(io).collect()
    }
}
