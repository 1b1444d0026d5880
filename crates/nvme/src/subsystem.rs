//! What hosts share: the namespaces, and a controller for each host that is connected.

use crate::chores::Chores;
use crate::commands::{self, Call, Io, Outcome};
use crate::fabrics::Queue;
use crate::namespace::{Extent, FORMATS, NAMESPACES_MAX, Namespace, Namespaces, Wanted, bit, is_valid};
use crate::placement::DataPlacement;
use crate::sanitize::{self, Sanitize};
use crate::uncorrectable::Uncorrectable;
use crate::wire::identify::{AERL, NamespaceFacts, VERSION};
use crate::wire::log::{self, ErrorEntry};
use crate::wire::{Sqe, Status, identify, lba_status, zones};
use flashwright_block::{Placed, Placement, Zoned, Zoning};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Commands of a queue, which CAP.MQES tells.
pub const QUEUE_MAX: u16 = 1024;
/// I/O queues of a controller.
pub const IO_QUEUES_MAX: u16 = 128;
/// Controllers at once.
pub const CONTROLLERS_MAX: usize = 64;
/// Bytes of data that a capsule takes.
pub const IN_CAPSULE_BYTES: usize = 8192;
/// The qualified name of every discovery service.
pub const DISCOVERY_NQN: &str = "nqn.2014-08.org.nvmexpress.discovery";
/// The firmware revision that controllers report.
pub const FIRMWARE: &str = env!("CARGO_PKG_VERSION");
/// The beginning of what is kept of a subsystem, which names its form.
const KEPT: [u8; 8] = *b"fwnvme\0\x01";
/// The same of a drive that places data by handle.
const KEPT_WITH_PLACEMENT: [u8; 8] = *b"fwnvme\0\x02";

/// The drive that is behind a subsystem, and where hosts find it.
#[derive(Clone, Debug)]
pub struct About {
    /// The model.
    pub model: String,
    /// Addressable bytes.
    pub bytes: u64,
    /// The smallest unit that the drive reads and writes, in bytes.
    pub unit_bytes: u64,
    /// A page of the flash, in bytes.
    pub page_bytes: u64,
    /// How long a write may be to survive a loss of power as a whole or not at all, if it crosses no multiple of that; none if any
    /// write does.
    pub untorn_bytes: Option<u64>,
    /// Whether a trim of whole pages leaves zeros.
    pub trims_to_zeros: bool,
    /// What it offers to place data by; none if it places none.
    pub placement: Option<Placement>,
    /// Its zones; none if it takes writes in any order.
    pub zoning: Option<Zoning>,
    /// Whether everything that would change the drive is refused.
    pub is_read_only: bool,
    /// The address that hosts connect to: host and port.
    pub address: (String, String),
    /// Whether the address is one of IPv6.
    pub is_v6: bool,
}

impl About {
    /// Bytes that it can hold.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.zoning.map_or(self.bytes, |zoning| zoning.writable().0)
    }

    /// Whether it knows what is not written: then hosts may wish for an error where they read that.
    #[must_use]
    pub fn tells_unwritten(&self) -> bool {
        self.trims_to_zeros || self.zoning.is_some()
    }

    /// Whether namespaces may have a format: the drive reads and writes such blocks, and a loss of power tears none of them.
    #[must_use]
    pub fn has_format(&self, format: u8) -> bool {
        FORMATS.get(usize::from(format)).is_some_and(|shift| {
            let bytes = 1u64 << shift;
            bytes >= self.unit_bytes && self.untorn_bytes.is_none_or(|untorn| bytes <= untorn.max(self.unit_bytes))
        })
    }
}

/// What a drive counts, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Health {
    /// Addressable bytes.
    pub capacity: u64,
    /// Those that hold data.
    pub bytes_used: u64,
    /// Bytes that hosts read.
    pub bytes_read: u64,
    /// Bytes that hosts wrote.
    pub bytes_written: u64,
    /// Read commands.
    pub reads: u64,
    /// Write commands.
    pub writes: u64,
    /// Bytes programmed.
    pub media_bytes_written: u64,
    /// Bytes erased.
    pub media_bytes_erased: u64,
    /// Bytes read from the flash.
    pub media_bytes_read: u64,
    /// Bytes that the flash is rated to take; 0 if it has no limit.
    pub media_bytes_rated: u64,
    /// Share of spare blocks that is left.
    pub spare: f64,
    /// Share of the rated life that is used up; may exceed 1.
    pub used: f64,
    /// Blocks that were retired.
    pub blocks_bad: u32,
    /// Share of blocks that are erased.
    pub blocks_free: f64,
    /// The least erases of a block.
    pub erases_min: u32,
    /// The most erases of a block.
    pub erases_max: u32,
    /// The drive takes no more writes.
    pub is_worn_out: bool,
    /// Time on the drive's clock, nanoseconds.
    pub power_on_ns: u64,
    /// How often it was switched on.
    pub power_cycles: u64,
    /// How often power was lost without a warning.
    pub unsafe_shutdowns: u64,
    /// Commands that failed in the drive.
    pub media_errors: u64,
}

/// What is behind a subsystem: the drive, as far as commands that ask it for nothing need it.
pub trait Media {
    /// What it counts.
    fn health(&self) -> Health;

    /// Whether all of a range of the drive holds data that were written.
    fn is_written(&self, first_byte: u64, bytes: u32) -> bool;

    /// The drive as one that places data by handle, if it does.
    fn placed(&mut self) -> Option<&mut dyn Placed> {
        None
    }

    /// The drive as one that has zones, if it does.
    fn zoned(&mut self) -> Option<&mut dyn Zoned> {
        None
    }
}

impl<F: Fn() -> Health> Media for F {
    fn health(&self) -> Health {
        self()
    }
    fn is_written(&self, _: u64, _: u32) -> bool {
        true
    }
}

/// A subsystem: one drive.
#[derive(Debug)]
pub struct Subsystem {
    /// The drive.
    pub about: About,
    /// Its qualified name.
    pub nqn: String,
    /// The serial number.
    pub serial: String,
    uuid: [u8; 16],
    pub(crate) namespaces: Namespaces,
    pub(crate) sanitize: Sanitize,
    /// None where the drive places no data.
    pub(crate) placement: Option<DataPlacement>,
    chores: Chores,
    /// Whether a host has ever asked for an error where it reads what is not written.
    pub(crate) has_dulbe: bool,
    /// What hosts have marked as uncorrectable.
    pub(crate) uncorrectable: Uncorrectable,
    /// Whether what is kept of it has changed since it was last taken.
    is_changed: bool,
    controllers: BTreeMap<u16, Controller>,
    next: u16,
    connections: u64,
}

/// Where a command came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The controller.
    pub controller: u16,
    /// The queue; 0 for the admin queue.
    pub queue: u16,
}

/// A controller: what a host is connected to.
#[derive(Debug)]
pub struct Controller {
    /// Its identifier.
    pub id: u16,
    /// Its place among those that there are, which the next one takes once it is gone.
    slot: u16,
    /// Whether it only tells where others are.
    pub is_discovery: bool,
    /// Whether it is a function on PCIe, whose queues are in its host's memory.
    pub is_function: bool,
    /// Whether the drive has zones, for which the host has to enable all command sets.
    pub has_zones: bool,
    /// Who is connected.
    pub host: ([u8; 16], String),
    /// CC.
    pub config: u32,
    /// Milliseconds without a command after which the host is taken for lost; 0 for never.
    pub keep_alive_ms: u32,
    /// Queues with a connection: its number, which no other ever had.
    pub queues: BTreeMap<u16, u64>,
    /// Identifiers of the commands that wait for an event.
    pub event_requests: VecDeque<u16>,
    /// Events that nobody has been told of, as they are told.
    events: VecDeque<u32>,
    /// Log pages of events that were told and not read: no further event of their type is told.
    masked: BTreeSet<u8>,
    /// Bits of critical warnings that were told.
    warned: u8,
    /// Namespaces that it has, and those that have changed since it was last asked which: namespace 1 is bit 0.
    attached: u64,
    changed: u64,
    /// Zones that the drive has changed by itself since it was last asked which.
    pub(crate) changed_zones: Vec<u32>,
    /// What it has told of blocks that are marked as uncorrectable.
    pub(crate) lba_status: LbaStatus,
    /// Values that were set of features, of a namespace where they are of one.
    pub(crate) features: BTreeMap<(u8, u32), u32>,
    pub(crate) host_behavior: Vec<u8>,
    /// The time that the host has set, in milliseconds, and when it did, on the drive's clock in nanoseconds.
    pub(crate) timestamp: Option<(u64, u64)>,
    /// Event requests that were aborted and have not been answered.
    aborted: Vec<u16>,
    /// Commands that are to be aborted: queue, identifier, and that of the Abort, which waits until the queue's connection has looked.
    aborts: Vec<(u16, u16, u16)>,
    /// Aborts that have not been answered, and whether they aborted.
    aborts_ended: VecDeque<(u16, bool)>,
    errors: VecDeque<ErrorEntry>,
    /// Entries that the error log has had.
    pub errors_total: u64,
    /// Commands that it has taken: while they grow, its host is there.
    pub commands: u64,
}

/// What a controller has told of blocks that are marked as uncorrectable.
#[derive(Debug, Default)]
pub(crate) struct LbaStatus {
    /// Whether some were marked since it last told.
    is_news: bool,
    /// When its log page was last read, on the drive's clock in nanoseconds.
    read_ns: u64,
    /// The log page, which stays as it is while a host reads it.
    pub page: Option<Vec<u8>>,
}

impl LbaStatus {
    /// The log page was read; a host that goes on with it has it `kept`.
    pub fn read(&mut self, kept: Option<Vec<u8>>, now_ns: u64) {
        if kept.is_none() {
            self.read_ns = now_ns;
        }
        self.page = kept;
    }
}

/// The namespace of a drive with zones, which it is all of.
const ZONED: u32 = 1;
/// How long a host waits until the controller is ready, in units of 500 ms; it is at once. A kernel complains if CRTO is below
/// CAP.TO.
const READY_TIMEOUT: u8 = 15;

/// CC and CSTS.
mod bits {
    pub const ENABLE: u32 = 1;
    pub const COMMAND_SET: u32 = 7 << 4;
    pub const ALL_COMMAND_SETS: u32 = 6 << 4;
    pub const SHUTDOWN: u32 = 3 << 14;
    pub const READY: u32 = 1;
    pub const SHUTDOWN_COMPLETE: u32 = 2 << 2;
}

/// Properties, by their offsets.
mod property {
    pub const CAP: u32 = 0x00;
    pub const VS: u32 = 0x08;
    pub const CC: u32 = 0x14;
    pub const CSTS: u32 = 0x1c;
    pub const NSSR: u32 = 0x20;
    pub const CRTO: u32 = 0x68;
}

impl Controller {
    /// Whether the host has enabled it.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.config & bits::ENABLE != 0 && self.config & bits::SHUTDOWN == 0
    }

    /// A property's value; none if there is none of that size there.
    #[must_use]
    pub fn property(&self, offset: u32, bytes: usize) -> Option<u64> {
        let value = match (offset, bytes) {
            (property::CAP, 8) => {
                let timeout = u64::from(READY_TIMEOUT) << 24;
                // CQR; the NVM command set; others beside it; CRMS: ready with all media
                let others = u64::from(self.has_zones) << 43;
                u64::from(QUEUE_MAX - 1) | 1 << 16 | timeout | 1 << 37 | others | 1 << 59
            }
            (property::VS, 4) => u64::from(VERSION),
            (property::CC, 4) => u64::from(self.config),
            (property::CSTS, 4) => {
                let ready = if self.config & bits::ENABLE != 0 { bits::READY } else { 0 };
                let shut = if self.config & bits::SHUTDOWN != 0 { bits::SHUTDOWN_COMPLETE } else { 0 };
                u64::from(ready | shut)
            }
            (property::NSSR, 4) => 0,
            (property::CRTO, 4) => u64::from(READY_TIMEOUT),
            _ => return None,
        };
        Some(value)
    }

    /// Bits of CC by which the host may choose command sets.
    pub(crate) fn command_sets(&self) -> u32 {
        if self.has_zones && self.config & bits::COMMAND_SET == bits::ALL_COMMAND_SETS { bits::COMMAND_SET } else { 0 }
    }

    /// The namespaces that its host can use: zoned ones only if it has enabled their command set.
    fn usable(&self) -> u64 {
        if self.has_zones && self.command_sets() == 0 { 0 } else { self.attached }
    }

    /// Sets a property. Returns false if it can't be set.
    pub fn set_property(&mut self, offset: u32, bytes: usize, value: u64) -> bool {
        if (offset, bytes) != (property::CC, 4) {
            return false;
        }
        let (before, now) = (self.config, (value & 0xffff_ffff) as u32);
        self.config = now;
        if before & bits::ENABLE != 0 && now & bits::ENABLE == 0 {
            self.reset();
        }
        true
    }

    /// I/O queues that the host may have: what it asked for, or the most.
    #[must_use]
    pub fn io_queues(&self) -> u32 {
        self.feature(0x07).map_or(u32::from(IO_QUEUES_MAX), |given| (given & 0xffff) + 1)
    }

    /// A moment of the drive's clock, in nanoseconds, as a timestamp: in milliseconds since a beginning that the host has set, or since
    /// the drive was new.
    pub(crate) fn timestamp_of(&self, ns: u64) -> [u8; 8] {
        /// The origin of a timestamp that a host has set, in bits 3:1 of byte 6.
        const SET_BY_HOST: u8 = 1 << 1;
        let (set_ms, at_ns) = self.timestamp.unwrap_or((0, 0));
        let later_ms = ns.saturating_sub(at_ns) / 1_000_000;
        let ms = (set_ms + later_ms).saturating_sub(at_ns.saturating_sub(ns) / 1_000_000);
        let mut data = ms.to_le_bytes();
        data[6..].fill(0);
        if self.timestamp.is_some() {
            data[6] = SET_BY_HOST;
        }
        data
    }

    /// What a feature of the controller was set to.
    pub(crate) fn feature(&self, id: u8) -> Option<u32> {
        self.features.get(&(id, 0)).copied()
    }

    /// Whether it has a namespace.
    #[must_use]
    pub fn has(&self, nsid: u32) -> bool {
        is_valid(nsid) && self.attached & bit(nsid) != 0
    }

    /// Namespaces that have changed.
    pub(crate) fn changed(&self) -> impl Iterator<Item = u32> + use<> {
        let changed = self.changed;
        (1..=NAMESPACES_MAX).filter(move |nsid| changed & bit(*nsid) != 0)
    }

    fn reset(&mut self) {
        self.queues.retain(|queue, _| *queue == 0);
        self.event_requests.clear();
        self.aborted.clear();
        self.aborts.clear();
        self.aborts_ended.clear();
        self.events.clear();
        self.masked.clear();
        self.features.clear();
        self.timestamp = None;
        self.lba_status = LbaStatus::default();
        self.warned = 0;
    }

    /// Tells of an event, once somebody asks: its type, what happened, and the log page to read.
    pub(crate) fn announce(&mut self, kind: u8, what: u8, page: u8) {
        let event = u32::from(page) << 16 | u32::from(what) << 8 | u32::from(kind);
        if !self.events.contains(&event) {
            self.events.push_back(event);
        }
    }

    /// The next request of the admin queue that was held and is to be answered: an event request with an event, or because it was aborted, or an
    /// Abort with whether it did.
    pub fn next_event(&mut self) -> Option<(u16, Result<u64, Status>)> {
        if let Some(cid) = self.aborted.pop() {
            return Some((cid, Err(Status::ABORTED)));
        }
        if let Some((cid, was_aborted)) = self.aborts_ended.pop_front() {
            return Some((cid, Ok(u64::from(!was_aborted))));
        }
        let at = self.events.iter().position(|event| !self.masked.contains(&((event >> 16 & 0xff) as u8)))?;
        let cid = self.event_requests.pop_front()?;
        let event = self.events.remove(at)?;
        let page = (event >> 16 & 0xff) as u8;
        self.masked.insert(page);
        let of_namespace = if page == zones::CHANGED { ZONED } else { 0 };
        Some((cid, Ok(u64::from(event) | u64::from(of_namespace) << 32)))
    }

    /// A log page was read: its events are over, and so is what it listed.
    pub(crate) fn read_page(&mut self, page: u8) {
        self.masked.remove(&page);
        if page == log::CHANGED_NAMESPACES {
            self.changed = 0;
            self.events.retain(|event| event >> 16 != u32::from(page));
        }
        if page == lba_status::PAGE {
            self.events.retain(|event| event >> 16 != u32::from(page));
        }
        if page == zones::CHANGED {
            self.changed_zones.clear();
            self.events.retain(|event| event >> 16 != u32::from(page));
        }
    }

    /// Tells of blocks that were marked as uncorrectable, if its host wants that, and as rarely as it wants.
    fn tell_lba_status(&mut self, now_ns: u64) {
        let is_wanted = self.feature(0x0b).unwrap_or(0) & lba_status::NOTICES != 0;
        let interval_ns = u64::from(self.feature(lba_status::INTERVAL).unwrap_or(0)) * 100_000_000;
        if self.lba_status.is_news && is_wanted && now_ns.saturating_sub(self.lba_status.read_ns) >= interval_ns {
            self.lba_status.is_news = false;
            self.announce(2, lba_status::ALERT, lba_status::PAGE);
        }
    }

    /// The drive has changed zones by itself.
    fn note_zones(&mut self, changed: &[u32]) {
        let fresh = changed.iter().filter(|zone| !self.changed_zones.contains(zone));
        let fresh: Vec<u32> = fresh.copied().collect();
        self.changed_zones.extend(fresh);
        if self.feature(0x0b).unwrap_or(0) & zones::CHANGED_NOTICES != 0 {
            self.announce(2, 0xef, zones::CHANGED);
        }
    }

    /// A namespace has changed, by a command of the controller `by`, whose host knows.
    fn note_changed(&mut self, nsid: u32, by: u16) {
        /// The bit of the feature for events that are announced.
        const WANTED: u32 = 1 << 8;
        if self.id == by {
            return;
        }
        self.changed |= bit(nsid);
        if self.feature(0x0b).unwrap_or(0) & WANTED != 0 {
            self.announce(2, 0, log::CHANGED_NAMESPACES);
        }
    }

    /// A sanitize operation begins: the end of an earlier one is no news any more.
    fn forget_sanitize(&mut self) {
        self.events.retain(|event| event >> 16 != u32::from(log::SANITIZE));
        self.masked.remove(&log::SANITIZE);
    }

    /// Aborts an event request. Returns false if there is none of that identifier.
    pub(crate) fn abort_event_request(&mut self, cid: u16) -> bool {
        let Some(at) = self.event_requests.iter().position(|waiting| *waiting == cid) else { return false };
        self.event_requests.remove(at);
        self.aborted.push(cid);
        true
    }

    /// Holds an Abort of a command in another queue.
    pub(crate) fn hold_abort(&mut self, queue: u16, cid: u16, by: u16) -> Result<Outcome, Status> {
        if self.aborts.len() + self.aborts_ended.len() > usize::from(identify::ACL) {
            return Err(Status::TOO_MANY_ABORTS);
        }
        self.aborts.push((queue, cid, by));
        Ok(Outcome::Held)
    }

    /// The next command of a queue that is to be aborted, and the Abort.
    pub(crate) fn next_abort(&mut self, queue: u16) -> Option<(u16, u16)> {
        let at = self.aborts.iter().position(|(of, ..)| *of == queue)?;
        let (_, cid, by) = self.aborts.remove(at);
        Some((cid, by))
    }

    /// An Abort has ended.
    pub(crate) fn abort_ended(&mut self, by: u16, was_aborted: bool) {
        self.aborts_ended.push_back((by, was_aborted));
    }

    pub(crate) fn hold_event_request(&mut self, cid: u16) -> Result<Outcome, Status> {
        if self.event_requests.len() > usize::from(AERL) {
            return Err(Status::TOO_MANY_EVENT_REQUESTS);
        }
        self.event_requests.push_back(cid);
        Ok(Outcome::Held)
    }

    pub(crate) fn error_log(&self) -> impl Iterator<Item = &ErrorEntry> {
        self.errors.iter()
    }

    fn note_error(&mut self, queue: u16, sqe: &Sqe, status: Status) {
        self.errors_total += 1;
        let (number, cid, nsid, block) = (self.errors_total, sqe.cid(), sqe.nsid(), sqe.first_block());
        let transport = if self.is_function { log::PCIE } else { log::TCP };
        self.errors.push_front(ErrorEntry { number, queue, cid, status, nsid, block, transport });
        self.errors.truncate(usize::from(identify::ELPE) + 1);
    }
}

impl Subsystem {
    /// Of a drive. Its name and its identifiers follow from the model, the size and the address, so that they are the same
    /// whenever it is served there, and differ between drives that one machine serves.
    #[must_use]
    pub fn new(about: About) -> Self {
        let text = format!("{}\0{}\0{}\0{}", about.model, about.bytes, about.address.0, about.address.1);
        let uuid = uuid_of(text.as_bytes());
        let hex: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
        let nqn = format!(
            "nqn.2014-08.org.nvmexpress:uuid:{}-{}-{}-{}-{}",
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..]
        );
        let format = u8::from(about.unit_bytes > 512);
        let namespaces = Namespaces::whole(about.bytes, about.page_bytes, format, uuid);
        let serial = format!("FW{}", &hex[..16]).to_uppercase();
        let placement = about.placement.map(DataPlacement::new);
        let chores = Chores::new(about.zoning.map(|zoning| zoning.size.0));
        let mut made = Self {
            about,
            nqn,
            serial,
            uuid,
            namespaces,
            sanitize: Sanitize::default(),
            placement,
            chores,
            has_dulbe: false,
            uncorrectable: Uncorrectable::default(),
            is_changed: false,
            controllers: BTreeMap::new(),
            next: 1,
            connections: 0,
        };
        made.give_all_handles();
        made
    }

    /// Namespaces without a list, which no host has created since the drive places data, have every handle.
    fn give_all_handles(&mut self) {
        let Some(placement) = self.placement.as_ref().filter(|placement| placement.is_on) else { return };
        let all: Vec<u8> = (0..=u8::MAX).take(placement.offered.handles.into()).collect();
        for namespace in self.namespaces.iter_mut().filter(|namespace| namespace.handles.is_empty()) {
            namespace.handles.clone_from(&all);
        }
    }

    /// What is to be kept with the drive, if it has changed: the namespaces, and the most recent sanitize operation. It is to be
    /// durable before anything that the subsystem answered leaves.
    pub fn take_changed(&mut self) -> Option<Vec<u8>> {
        std::mem::take(&mut self.is_changed).then(|| {
            let mut out = if self.placement.is_some() { KEPT_WITH_PLACEMENT } else { KEPT }.to_vec();
            if let Some(placement) = &self.placement {
                placement.put(&mut out);
            }
            out.extend(self.sanitize.kept());
            self.namespaces.put(&mut out);
            out
        })
    }

    /// Goes on from what was kept with the drive. What had not been deallocated then is now.
    ///
    /// # Errors
    /// If it is not what a drive of this size keeps, or of another version.
    pub fn restore(&mut self, kept: &[u8]) -> Result<(), &'static str> {
        const WRONG: &str = "what the drive keeps of its namespaces is of another drive or another version";
        let rest = match (kept.strip_prefix(&KEPT_WITH_PLACEMENT), &mut self.placement) {
            (Some(rest), Some(placement)) => placement.take(rest).ok_or(WRONG)?,
            _ => kept.strip_prefix(&KEPT).ok_or(WRONG)?,
        };
        let (sanitize, namespaces) = rest.split_first_chunk().ok_or(WRONG)?;
        self.sanitize = Sanitize::of_kept(sanitize).ok_or(WRONG)?;
        self.namespaces.take(namespaces).ok_or(WRONG)?;
        let handles = self.placement.as_ref().map_or(0, |placement| placement.offered.handles);
        if self.namespaces.iter().flat_map(|namespace| &namespace.handles).any(|handle| u16::from(*handle) >= handles) {
            return Err(WRONG);
        }
        self.give_all_handles();
        self.chores.add(&self.namespaces.erasing, self.about.page_bytes);
        Ok(())
    }

    /// A request for the drive that is no host's. Whoever owns the drive begins it before any further request of a host, and says
    /// by [`Subsystem::chore_ended`] how it ended.
    pub fn next_chore(&mut self) -> Option<Io> {
        self.chores.next()
    }

    /// A request that was no host's has ended. What has changed by that is to be kept before a later request is answered.
    pub fn chore_ended(&mut self, offset: u64, bytes: u32, is_done: bool) {
        if is_done {
            self.namespaces.erased(offset, self.chores.bytes_of(bytes));
            self.is_changed = true;
        }
        if self.chores.ended(offset, bytes, is_done) && self.sanitize.is_under_way() {
            self.sanitize.end();
            let what = if self.sanitize.state == sanitize::State::Succeeded { 1 } else { 2 };
            self.controllers.values_mut().for_each(|controller| controller.announce(6, what, log::SANITIZE));
        }
    }

    /// The drive has power again: what a loss of power failed is done again.
    pub fn power_is_back(&mut self) {
        self.chores.retry();
    }

    /// How far a sanitize operation is, in units of 1/65,536.
    pub(crate) fn progress(&self) -> u16 {
        self.chores.progress()
    }

    /// Whether a request may still be begun: its namespace may have been deleted, formatted or sanitized since the command was
    /// carried out.
    ///
    /// # Errors
    /// The status with which its command ends if it may not.
    #[inline]
    pub fn check(&self, io: &Io) -> Result<(), Status> {
        if io.namespace == 0 || self.namespaces.has_serial(io.namespace) {
            return Ok(());
        }
        Err(if self.sanitize.is_under_way() { Status::SANITIZING } else { Status::INVALID_NAMESPACE })
    }

    /// The namespaces.
    #[must_use]
    pub fn namespaces(&self) -> &Namespaces {
        &self.namespaces
    }

    /// Whether hosts may create and delete namespaces, and sanitize: what is deallocated must read as zeros.
    #[must_use]
    pub fn is_managed(&self) -> bool {
        self.about.trims_to_zeros
    }

    /// A controller; none if its host has gone.
    #[must_use]
    pub fn controller(&self, id: u16) -> Option<&Controller> {
        self.controllers.get(&id)
    }

    /// The same, to change it.
    pub fn controller_mut(&mut self, id: u16) -> Option<&mut Controller> {
        self.controllers.get_mut(&id)
    }

    /// Identifiers of the controllers that serve the namespaces.
    pub fn controllers(&self) -> impl Iterator<Item = u16> {
        self.controllers.values().filter(|each| !each.is_discovery).map(|each| each.id)
    }

    /// Makes a controller for a host.
    ///
    /// # Errors
    /// [`Status::CONNECT_BUSY`] if there are too many.
    pub fn admit(&mut self, host: ([u8; 16], String), is_discovery: bool, keep_alive_ms: u32) -> Result<u16, Status> {
        if self.controllers.len() >= CONTROLLERS_MAX {
            return Err(Status::CONNECT_BUSY);
        }
        while self.controllers.contains_key(&self.next) || self.next >= 0xfff0 {
            self.next = if self.next >= 0xfff0 { 1 } else { self.next + 1 };
        }
        let id = self.next;
        self.next += 1;
        let is_taken = |slot: &u16| self.controllers.values().any(|controller| controller.slot == *slot);
        let slot = (0..).find(|slot| !is_taken(slot)).expect("controllers are fewer than slots");
        let is_new_for = |namespace: &&Namespace| {
            let others = || self.controllers.values().any(|controller| controller.has(namespace.id));
            !is_discovery && namespace.is_attached && (namespace.is_shared || !others())
        };
        let attached = self.namespaces.iter().filter(is_new_for).fold(0, |all, namespace| all | bit(namespace.id));
        let controller = Controller {
            id,
            slot,
            is_discovery,
            is_function: false,
            has_zones: self.about.zoning.is_some() && !is_discovery,
            host,
            config: 0,
            keep_alive_ms,
            queues: BTreeMap::new(),
            event_requests: VecDeque::new(),
            events: VecDeque::new(),
            masked: BTreeSet::new(),
            warned: 0,
            attached,
            changed: 0,
            changed_zones: Vec::new(),
            lba_status: LbaStatus::default(),
            features: BTreeMap::new(),
            host_behavior: vec![0; 512],
            timestamp: None,
            aborted: Vec::new(),
            aborts: Vec::new(),
            aborts_ended: VecDeque::new(),
            errors: VecDeque::new(),
            errors_total: 0,
            commands: 0,
        };
        self.controllers.insert(id, controller);
        Ok(id)
    }

    /// Makes a controller that is a function on PCIe.
    ///
    /// # Errors
    /// As [`Self::admit`].
    pub fn admit_function(&mut self) -> Result<u16, Status> {
        let id = self.admit(Default::default(), false, 0)?;
        self.controllers.entry(id).and_modify(|controller| controller.is_function = true);
        Ok(id)
    }

    /// A controller goes, with its host.
    pub fn retire(&mut self, id: u16) {
        self.controllers.remove(&id);
    }

    /// A connection serves a queue of a controller that there is. Returns its number.
    pub(crate) fn join(&mut self, place: Place) -> u64 {
        self.connections += 1;
        if let Some(controller) = self.controllers.get_mut(&place.controller) {
            controller.queues.insert(place.queue, self.connections);
        }
        self.connections
    }

    /// Whether a connection still serves its queue: the controller is there, and was not reset.
    #[must_use]
    pub fn serves(&self, queue: &Queue) -> bool {
        let controller = self.controllers.get(&queue.place.controller);
        controller.is_some_and(|found| found.queues.get(&queue.place.queue) == Some(&queue.connection))
    }

    /// The number that no other queue has of those that there are; 0 for admin queues.
    #[must_use]
    pub fn queue_number(&self, place: Place) -> u16 {
        match self.controllers.get(&place.controller) {
            Some(controller) if place.queue > 0 => controller.slot * IO_QUEUES_MAX + place.queue,
            _ => 0,
        }
    }

    /// The connection of a queue has ended. That of the admin queue takes the controller with it.
    pub fn leave(&mut self, queue: &Queue) {
        if !self.serves(queue) {
            return; // its queue is gone, or is that of another
        }
        let place = queue.place;
        if place.queue == 0 {
            self.controllers.remove(&place.controller);
        } else if let Some(controller) = self.controllers.get_mut(&place.controller) {
            controller.queues.remove(&place.queue);
            while let Some((_, by)) = controller.next_abort(place.queue) {
                controller.abort_ended(by, false);
            }
        }
    }

    /// Carries out a command as far as it does without the drive.
    ///
    /// `data` is what the host sent with it.
    ///
    /// # Errors
    /// The status with which it is answered; it is in the error log then.
    pub fn execute(&mut self, place: Place, sqe: &Sqe, data: &[u8], media: &mut dyn Media) -> Result<Outcome, Status> {
        let controller = self.controllers.get_mut(&place.controller);
        let attached = controller.map_or(0, |controller| {
            controller.commands += 1;
            controller.usable()
        });
        let mut call = Call { subsystem: self, place, attached, sqe, data, media };
        let outcome = commands::run(&mut call);
        if let Err(status) = outcome
            && let Some(controller) = self.controllers.get_mut(&place.controller)
        {
            controller.note_error(place.queue, sqe, status);
        }
        outcome
    }

    /// A command failed in the drive: the error log has it.
    pub fn note_failure(&mut self, place: Place, sqe: &Sqe, status: Status) {
        if let Some(controller) = self.controllers.get_mut(&place.controller) {
            controller.note_error(place.queue, sqe, status);
        }
    }

    /// Looks at the drive, now and then: announces what has changed in its health, and notes what it has moved.
    pub fn look(&mut self, media: &mut dyn Media) {
        let health = media.health();
        self.watch_health(&health);
        self.controllers.values_mut().for_each(|controller| controller.tell_lba_status(health.power_on_ns));
        self.note_moves(media);
        self.note_zones(media);
    }

    /// Marks ranges of a namespace as uncorrectable.
    ///
    /// # Errors
    /// [`Status::INTERNAL`] if too much is marked already.
    pub(crate) fn mark_uncorrectable(&mut self, nsid: u32, ranges: &[Extent], now_ns: u64) -> Result<(), Status> {
        if self.uncorrectable.is_full() {
            return Err(Status::INTERNAL);
        }
        ranges.iter().for_each(|range| self.uncorrectable.mark(*range));
        for controller in self.controllers.values_mut().filter(|controller| controller.has(nsid)) {
            controller.lba_status.is_news = true;
            controller.tell_lba_status(now_ns);
        }
        Ok(())
    }

    /// Tells the controllers of zones that the drive has changed by itself.
    pub(crate) fn note_zones(&mut self, media: &mut dyn Media) {
        let failed = media.zoned().map_or_else(Vec::new, Zoned::take_failed);
        if !failed.is_empty() {
            self.controllers.values_mut().for_each(|controller| controller.note_zones(&failed));
        }
    }

    /// Announces what has changed in the health of the drive.
    pub fn watch_health(&mut self, health: &Health) {
        let warning = log::critical_warning(health);
        for controller in self.controllers.values_mut() {
            let wanted = controller.feature(0x0b).unwrap_or(0);
            let fresh = warning & !controller.warned & (wanted & 0x1f) as u8;
            controller.warned |= fresh;
            if fresh & 1 != 0 {
                controller.announce(1, 2, 0x02); // health: spare below its threshold
            }
            if fresh & 1 << 3 != 0 {
                controller.announce(1, 0, 0x02); // health: reliability
            }
        }
    }

    /// What a namespace says of itself; `bytes_used` of the drive hold data.
    #[must_use]
    pub fn namespace_facts(&self, namespace: &Namespace, bytes_used: u64) -> NamespaceFacts {
        // Nobody counts what each of several namespaces holds.
        let used = if namespace.bytes == self.about.bytes { bytes_used } else { namespace.bytes };
        NamespaceFacts {
            blocks: namespace.blocks(),
            used: (used >> namespace.shift()).min(namespace.blocks()),
            capacity: self.about.zoning.map_or(namespace.capacity(), |zoning| zoning.writable().0),
            formats: &FORMATS,
            format: namespace.format,
            page_bytes: self.about.page_bytes,
            // The parts of a write that lie in several extents may be begun at different times.
            untorn_bytes: self.about.untorn_bytes.or((namespace.extents().len() > 1).then_some(self.about.page_bytes)),
            trims_to_zeros: self.about.trims_to_zeros,
            tells_unwritten: self.about.tells_unwritten(),
            is_shared: namespace.is_shared,
            nguid: namespace.uuid,
            zoning: self.about.zoning,
        }
    }

    /// Gives or takes a namespace to or from controllers, all or none.
    ///
    /// # Errors
    /// [`Status::CONTROLLER_LIST`], [`Status::ALREADY_ATTACHED`], [`Status::PRIVATE`], [`Status::NOT_ATTACHED`], in this order.
    pub(crate) fn attach(&mut self, nsid: u32, ids: &[u16], attaches: bool, by: u16) -> Result<(), Status> {
        let has = |id: &u16| self.controllers.get(id).is_some_and(|controller| controller.has(nsid));
        let is_there = |id: &u16| self.controllers.get(id).is_some_and(|controller| !controller.is_discovery);
        if !ids.iter().all(is_there) {
            return Err(Status::CONTROLLER_LIST);
        }
        if attaches && ids.iter().any(has) {
            return Err(Status::ALREADY_ATTACHED);
        }
        if !attaches && !ids.iter().all(has) {
            return Err(Status::NOT_ATTACHED);
        }
        let after = self.controllers.keys().filter(|id| has(id) != ids.contains(id)).count();
        let namespace = self.namespaces.get_mut(nsid).ok_or(Status::INVALID_FIELD)?;
        if attaches && !namespace.is_shared && after > 1 {
            return Err(Status::PRIVATE);
        }
        namespace.is_attached = after > 0;
        self.is_changed = true;
        for id in ids {
            if let Some(controller) = self.controllers.get_mut(id) {
                controller.attached ^= bit(nsid);
                controller.note_changed(nsid, by);
            }
        }
        Ok(())
    }

    /// Controllers that have a namespace.
    pub(crate) fn controllers_with(&self, nsid: u32) -> impl Iterator<Item = u16> {
        self.controllers.values().filter(move |controller| controller.has(nsid)).map(|controller| controller.id)
    }

    /// Changes a namespace, whose data are lost: gives it another format, or deletes it if there is none.
    ///
    /// # Errors
    /// [`Status::INTERNAL`] if the drive is off, and the table has no room for more that is to be deallocated then.
    pub(crate) fn change(&mut self, nsid: u32, format: Option<u8>, by: u16) -> Result<(), Status> {
        if !self.namespaces.can_erase() {
            return Err(Status::INTERNAL);
        }
        for controller in self.controllers.values_mut().filter(|controller| controller.has(nsid)) {
            controller.note_changed(nsid, by);
            if format.is_none() {
                controller.attached &= !bit(nsid);
            }
        }
        let held = match format {
            Some(format) => self.namespaces.format(nsid, format),
            None => self.namespaces.delete(nsid),
        };
        held.iter().for_each(|range| self.uncorrectable.clear(range.first, range.bytes));
        self.chores.add(&held, self.about.page_bytes);
        self.is_changed = true;
        Ok(())
    }

    /// Begins to sanitize.
    pub(crate) fn begin_to_sanitize(&mut self, asked: u32, bytes_written: u64) {
        self.sanitize = Sanitize { state: sanitize::State::UnderWay, asked, written: Some(bytes_written) };
        self.namespaces.renew_serials();
        self.uncorrectable.clear_all();
        self.namespaces.erasing = vec![Extent { first: 0, bytes: self.about.bytes }];
        self.chores.add(&self.namespaces.erasing, self.about.page_bytes);
        self.is_changed = true;
        self.controllers.values_mut().for_each(Controller::forget_sanitize);
    }

    /// Creates a namespace, with these reclaim unit handles where data are placed. Returns its identifier.
    ///
    /// # Errors
    /// As [`Namespaces::create`], and [`Status::PLACEMENT_LIST`].
    pub(crate) fn create(&mut self, wanted: &Wanted, handles: &[u16]) -> Result<u32, Status> {
        let uuid = self.uuid;
        let placement = self.placement.as_ref();
        let (handles, is_assigned) =
            placement.map_or(Ok(Default::default()), |placement| placement.assign(handles, &self.namespaces))?;
        let id = self.namespaces.create(wanted, |serial| uuid_of(&[&uuid[..], &serial.to_le_bytes()].concat()))?;
        if let Some(namespace) = self.namespaces.get_mut(id) {
            (namespace.handles, namespace.is_assigned) = (handles, is_assigned);
        }
        self.is_changed = true;
        Ok(id)
    }

    /// Switches placement on or off.
    ///
    /// # Errors
    /// [`Status::INVALID_FIELD`] where the drive places no data, [`Status::SEQUENCE`] while there are namespaces.
    pub(crate) fn switch_placement(&mut self, is_on: bool, media: &mut dyn Media) -> Result<(), Status> {
        let placement = self.placement.as_mut().ok_or(Status::INVALID_FIELD)?;
        if self.namespaces.iter().next().is_some() {
            return Err(Status::SEQUENCE);
        }
        placement.switch(is_on, &media.health());
        placement.watch(media);
        self.is_changed = true;
        Ok(())
    }

    /// Chooses whether events of some types, given as bits, are noted of a handle.
    pub(crate) fn want_events(&mut self, handle: u8, kinds: u8, is_wanted: bool, media: &mut dyn Media) {
        if let Some(placement) = &mut self.placement {
            placement.want(handle, kinds, is_wanted);
            placement.watch(media);
            self.is_changed = true;
        }
    }

    /// Placement where it is on.
    ///
    /// # Errors
    /// [`Status::PLACEMENT_OFF`].
    pub(crate) fn placement_on(&self) -> Result<&DataPlacement, Status> {
        self.placement.as_ref().filter(|placement| placement.is_on).ok_or(Status::PLACEMENT_OFF)
    }

    /// Where the drive places what names an identifier, with these handles of a namespace: the stream, the group and the handle. None if the
    /// identifier names none.
    pub(crate) fn placed_by(&self, handles: &[u8], identifier: u16) -> Option<(u16, u16, u8)> {
        let offered = &self.placement.as_ref()?.offered;
        let (group, place) = offered.group_bits().split(identifier);
        let handle = *handles.get(usize::from(place))?;
        (group < offered.groups).then(|| (offered.group_bits().join(group, handle.into()), group, handle))
    }

    /// Notes what the drive has moved.
    pub(crate) fn note_moves(&mut self, media: &mut dyn Media) {
        if let (Some(placement), Some(placed)) = (&mut self.placement, media.placed()) {
            placement.note_moves(placed.take_moved(), &self.namespaces);
        }
    }

    /// The drive tells again of the moves that are noted, in a process that has just begun.
    pub fn watch_moves(&self, media: &mut dyn Media) {
        if let Some(placement) = &self.placement {
            placement.watch(media);
        }
    }
}

/// An identifier that follows from `text`.
fn uuid_of(text: &[u8]) -> [u8; 16] {
    let mut uuid = [0; 16];
    uuid[..8].copy_from_slice(&hash(text, 0).to_be_bytes());
    uuid[8..].copy_from_slice(&hash(text, 1).to_be_bytes());
    uuid[6] = uuid[6] & 0x0f | 0x80; // version 8: made by a rule of one's own
    uuid[8] = uuid[8] & 0x3f | 0x80;
    uuid
}

/// FNV-1a of 64 bits, with a start that depends on `salt`.
fn hash(bytes: &[u8], salt: u64) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ salt.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    (mixed ^ mixed >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
