//! A function behind vfio-user: what a driver does, what breaks the rules, and whatever else a host may send.

use crate::common::{Units, about, draws};
use flashwright_block::Placed as _;
use flashwright_nvme::commands::{ADMIN, FUNCTION, IO, TRANSFER_MAX};
use flashwright_nvme::subsystem::{About, Health, Subsystem};
use flashwright_nvme::vfio::{
    Errno, Function, Host, Map, Message, OutOfReach, Queues, TRANSFER_WINDOW, VECTORS, command, flag,
};
use flashwright_nvme::wire::{Cqe, Sqe, Status, put, u16_at, u32_at, u64_at};
use flashwright_nvme::{Op, wire};
use flashwright_testing::Rounds;
use proptest::prelude::*;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

const PAGE: u64 = 4096;
/// The host's memory: what is there, and what a session uses of it.
const MEMORY: u64 = 64 * PAGE;
const ADMIN_SQ: u64 = 0;
const ADMIN_CQ: u64 = PAGE;
const IO_SQ: u64 = 2 * PAGE;
const IO_CQ: u64 = 3 * PAGE;
const DATA: u64 = 16 * PAGE;
const SHADOW: u64 = 8 * PAGE;
const EVENTS: u64 = 9 * PAGE;

/// A host whose memory begins at address 0.
#[derive(Default)]
struct Guest {
    memory: RefCell<Vec<u8>>,
    maps: Vec<(u64, u64)>,
    tied: Vec<u16>,
    signals: Cell<u32>,
    descriptors: usize,
}

impl Guest {
    fn within(&self, address: u64, bytes: usize) -> Result<std::ops::Range<usize>, OutOfReach> {
        let end = address.checked_add(bytes as u64).ok_or(OutOfReach)?;
        let is_mapped = self.maps.iter().any(|(first, length)| *first <= address && end <= first + length);
        let begins = usize::try_from(address).unwrap();
        (is_mapped && end <= MEMORY).then_some(begins..begins + bytes).ok_or(OutOfReach)
    }
}

impl Host for Guest {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), OutOfReach> {
        into.copy_from_slice(&self.memory.borrow()[self.within(address, into.len())?]);
        Ok(())
    }
    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), OutOfReach> {
        let range = self.within(address, bytes.len())?;
        self.memory.borrow_mut()[range].copy_from_slice(bytes);
        Ok(())
    }
    fn load(&self, address: u64) -> Result<u32, OutOfReach> {
        let mut bytes = [0; 4];
        self.read(address, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }
    fn store(&self, address: u64, value: u32) -> Result<(), OutOfReach> {
        self.write(address, &value.to_le_bytes())
    }
    fn fence(&self) {}
    fn begin_message(&mut self, _: usize) {}
    fn map(&mut self, map: &Map) -> Result<(), Errno> {
        if self.maps.iter().any(|(first, bytes)| *first < map.address + map.bytes && map.address < first + bytes) {
            return Err(Errno::EXISTS);
        }
        self.maps.push((map.address, map.bytes));
        Ok(())
    }
    fn unmap(&mut self, range: Option<(u64, u64)>) -> Result<u64, Errno> {
        let (first, bytes) = range.unwrap_or((0, u64::MAX));
        let before = self.maps.len();
        self.maps.retain(|(at, length)| !(*at >= first && at + length <= first.saturating_add(bytes)));
        Ok((before - self.maps.len()) as u64)
    }
    fn tie(&mut self, first: u16, count: u16) -> Result<(), Errno> {
        self.tied.retain(|vector| !(first..first + count).contains(vector));
        if self.descriptors > 0 {
            self.tied.extend(first..first + count);
        }
        Ok(())
    }
    fn signal(&self, vector: u16) -> bool {
        assert!(vector < VECTORS);
        self.signals.set(self.signals.get() + 1);
        self.tied.contains(&vector)
    }
}

/// A driver with one I/O queue, and its drive.
struct Machine {
    subsystem: Subsystem,
    function: Function,
    queues: Queues<Guest>,
    /// Of the admin and the I/O queue: tail, head of the completions and phase.
    rings: [(u32, u32, bool); 2],
    sizes: [u32; 2],
    shadow: bool,
    cid: u16,
    /// The drive's bytes.
    flash: BTreeMap<u64, u8>,
    begun: usize,
    is_silent: bool,
}

fn message(command: u16, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Message { id: 7, command, flags: 0, body }.put(&mut out);
    out
}

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn halves(value: u64) -> [u32; 2] {
    [(value & 0xffff_ffff) as u32, (value >> 32) as u32]
}

fn region_write(region: u32, offset: u64, data: &[u8]) -> Vec<u8> {
    let [low, high] = halves(offset);
    let mut body = words(&[low, high, region, u32::try_from(data.len()).unwrap()]);
    body.extend_from_slice(data);
    message(command::REGION_WRITE, &body)
}

fn map(address: u64, bytes: u64) -> Vec<u8> {
    let [[a, b], [c, d]] = [halves(address), halves(bytes)];
    message(command::DMA_MAP, &words(&[32, 3, 0, 0, a, b, c, d]))
}

fn sqe(opcode: u8, nsid: u32, dwords: [u32; 6], prps: [u64; 2]) -> Sqe {
    let mut bytes = [0; 64];
    bytes[0] = opcode;
    put(&mut bytes, 4, &nsid.to_le_bytes());
    put(&mut bytes, 24, &prps[0].to_le_bytes());
    put(&mut bytes, 32, &prps[1].to_le_bytes());
    dwords.iter().enumerate().for_each(|(at, dword)| put(&mut bytes, 40 + 4 * at, &dword.to_le_bytes()));
    Sqe(bytes)
}

/// A descriptor of an SGL.
fn descriptor(address: u64, length: u32, kind: u8) -> [u8; 16] {
    let mut bytes = [0; 16];
    put(&mut bytes, 0, &address.to_le_bytes());
    put(&mut bytes, 8, &length.to_le_bytes());
    bytes[15] = kind;
    bytes
}

impl Machine {
    fn new() -> Self {
        let mut subsystem = Subsystem::new(About {
            placement: Some(Units::default().placement()),
            address: ("/run/drive".to_owned(), String::new()),
            ..about()
        });
        let function = Function::new(&mut subsystem).unwrap();
        let guest = Guest { memory: RefCell::new(vec![0; MEMORY as usize]), ..Guest::default() };
        let mut machine = Self {
            subsystem,
            function,
            queues: Queues::new(guest),
            rings: [(0, 0, true); 2],
            sizes: [16, 8],
            shadow: false,
            cid: 0,
            flash: BTreeMap::new(),
            begun: 0,
            is_silent: false,
        };
        machine.tell(&message(command::VERSION, b"\0\0\0\0{}\0")).unwrap();
        machine.tell(&map(0, MEMORY)).unwrap();
        machine
    }

    /// Enables the controller, as a driver does.
    fn enable(&mut self) {
        self.set(0x24, 15 << 16 | 15);
        self.tell(&region_write(0, 0x28, &ADMIN_SQ.to_le_bytes())).unwrap();
        self.tell(&region_write(0, 0x30, &ADMIN_CQ.to_le_bytes())).unwrap();
        self.set(0x14, 6 << 16 | 4 << 20 | 1);
        assert_eq!(self.register(0x1c), 1, "ready");
        self.rings = [(0, 0, true); 2];
        self.shadow = false;
    }

    /// With an I/O queue.
    fn started() -> Self {
        let mut machine = Self::new();
        machine.enable();
        assert_eq!(machine.create(1), [Status::SUCCESS; 2]);
        machine
    }

    fn create(&mut self, queue: u32) -> [Status; 2] {
        self.rings[1] = (0, 0, true);
        let fields = queue | 7 << 16;
        [(0x05, 3 | 1 << 16, IO_CQ), (0x01, 1 | queue << 16, IO_SQ)]
            .map(|(opcode, dword, at)| self.admin(sqe(opcode, 0, [fields, dword, 0, 0, 0, 0], [at, 0])).status)
    }

    /// Sends a message. Returns the body of its answer.
    fn tell(&mut self, message: &[u8]) -> Result<Vec<u8>, u32> {
        let taken = self.function.feed(&mut self.queues, &mut self.subsystem, &mut Units::default(), message);
        assert_eq!(taken, message.len());
        self.run();
        let out = std::mem::take(&mut self.queues.out);
        assert_eq!(u32_at(&out, 4) as usize, out.len());
        let error = u32_at(&out, 12);
        assert_eq!(u32_at(&out, 8) & flag::ERROR != 0, error != 0);
        if error == 0 { Ok(out[16..].to_vec()) } else { Err(error) }
    }

    fn set(&mut self, offset: u64, value: u32) {
        self.tell(&region_write(0, offset, &value.to_le_bytes())).unwrap();
    }

    fn register(&mut self, offset: u32) -> u32 {
        let found = self.tell(&message(command::REGION_READ, &words(&[offset, 0, 0, 4]))).unwrap();
        u32_at(&found, 16)
    }

    /// Lets the drive carry out what it is asked.
    fn run(&mut self) {
        loop {
            let mut bytes = 0;
            while let Some(ready) = self.function.begin() {
                self.begun += 1;
                bytes += ready.data.len();
                assert!(ready.io.offset + u64::from(ready.io.bytes) <= self.subsystem.about.bytes, "{ready:?}");
                let range = ready.io.offset..ready.io.offset + u64::from(ready.io.bytes);
                match ready.io.op {
                    Op::Write if !self.is_silent => self.flash.extend(range.zip(ready.data)),
                    Op::Read => {
                        let places = self.queues.data(ready.flight, ready.at, ready.io.bytes as usize);
                        if !self.is_silent {
                            let of = |at: u64| self.flash.get(&at).copied().unwrap_or(0);
                            places.iter_mut().zip(range).for_each(|(place, at)| *place = of(at));
                        }
                    }
                    _ => {}
                }
                self.queues.ended(ready.flight, Status::SUCCESS);
            }
            assert!(bytes <= TRANSFER_WINDOW + TRANSFER_MAX, "{bytes} bytes were kept");
            self.queues.flush();
            self.function.work(&mut self.queues, &mut self.subsystem, &mut Health::default);
            if self.function.ready.is_empty() {
                self.queues.flush();
                return;
            }
        }
    }

    fn memory(&self, address: u64, bytes: usize) -> Vec<u8> {
        self.queues.host.memory.borrow()[address as usize..address as usize + bytes].to_vec()
    }

    fn fill(&self, address: u64, bytes: &[u8]) {
        put(&mut self.queues.host.memory.borrow_mut(), address as usize, bytes);
    }

    /// Puts a command into a queue and rings.
    fn send(&mut self, queue: usize, mut command: Sqe) -> u16 {
        self.cid += 1;
        put(&mut command.0, 2, &self.cid.to_le_bytes());
        let base = [ADMIN_SQ, IO_SQ][queue];
        self.fill(base + 64 * u64::from(self.rings[queue].0), &command.0);
        self.rings[queue].0 = (self.rings[queue].0 + 1) % self.sizes[queue];
        let tail = self.rings[queue].0;
        if self.shadow && queue == 1 {
            self.fill(SHADOW + 8, &tail.to_le_bytes());
            self.run();
        } else {
            self.set(0x1000 + 8 * queue as u64, tail);
        }
        self.cid
    }

    /// The next completion of a queue, if there is one.
    fn completion(&mut self, queue: usize) -> Option<Cqe> {
        let (_, head, phase) = self.rings[queue];
        let base = [ADMIN_CQ, IO_CQ][queue];
        let bytes: [u8; 16] = self.memory(base + 16 * u64::from(head), 16).try_into().unwrap();
        if (bytes[14] & 1 == 1) != phase {
            return None;
        }
        let next = (head + 1) % self.sizes[queue];
        (self.rings[queue].1, self.rings[queue].2) = (next, phase ^ (next == 0));
        if self.shadow && queue == 1 {
            self.fill(SHADOW + 12, &next.to_le_bytes());
            self.run();
        } else {
            self.set(0x1004 + 8 * queue as u64, next);
        }
        Some(Cqe { status: Status(u16_at(&bytes, 14) >> 1), ..Cqe::parse(&bytes) })
    }

    fn ask(&mut self, queue: usize, command: Sqe) -> Cqe {
        let cid = self.send(queue, command);
        let cqe = self.completion(queue).expect("an answer");
        assert_eq!((cqe.cid, cqe.queue, u32::from(cqe.sq_head)), (cid, queue as u16, self.rings[queue].0));
        cqe
    }

    fn admin(&mut self, command: Sqe) -> Cqe {
        self.ask(0, command)
    }

    /// A read or write of blocks of 512 bytes.
    fn io(&mut self, opcode: u8, first: u32, blocks: u32, prps: [u64; 2]) -> Status {
        self.ask(1, sqe(opcode, 1, [first, 0, blocks - 1, 0, 0, 0], prps)).status
    }
}

fn pattern(bytes: usize, salt: u8) -> Vec<u8> {
    (0..bytes).map(|at| (at % 251) as u8 ^ salt).collect()
}

#[test]
fn data_go_by_prps_at_any_place_of_a_page() {
    let mut machine = Machine::started();
    let identify = machine.admin(sqe(0x06, 0, [1, 0, 0, 0, 0, 0], [DATA + 512, DATA + 2 * PAGE]));
    assert_eq!(identify.status, Status::SUCCESS, "over two pages");
    let found = [machine.memory(DATA + 512, 3584), machine.memory(DATA + 2 * PAGE, 512)].concat();
    assert_eq!((u16_at(&found, 0), u32_at(&found, 536), u32_at(&found, 1792)), (0xf1a5, 1, 0));
    assert_eq!(u16_at(&found, 256) & 1 << 8, 1 << 8, "shadow doorbells");
    // A list at the end of a page, whose last place leads on: 12 pages, of which the first has an offset.
    let data = pattern(12 * 4096 - 512, 1);
    let list = 5 * PAGE - 3 * 8;
    let mut entries: Vec<u64> = (0..11).map(|at| DATA + PAGE * [3, 2, 9, 7, 8, 11, 10, 5, 4, 6, 12][at]).collect();
    let (mut left, places) = (data.as_slice(), entries.clone());
    for (address, bytes) in [(DATA + 512, 3584)].into_iter().chain(places.iter().map(|at| (*at, 4096))) {
        let (part, more) = left.split_at(bytes);
        machine.fill(address, part);
        left = more;
    }
    let next = entries.split_off(2);
    for (at, entry) in entries.iter().chain([&(6 * PAGE)]).enumerate() {
        machine.fill(list + 8 * at as u64, &entry.to_le_bytes());
    }
    for (at, entry) in next.iter().enumerate() {
        machine.fill(6 * PAGE + 8 * at as u64, &entry.to_le_bytes());
    }
    assert_eq!(machine.io(0x01, 10, 95, [DATA + 512, list]), Status::SUCCESS);
    assert_eq!((0..data.len() as u64).map(|at| machine.flash[&(5120 + at)]).collect::<Vec<u8>>(), data);
    // Back to another place, and compared.
    for at in 0..12 {
        machine.fill(6 * PAGE + 8 * at, &(DATA + PAGE * (20 + at)).to_le_bytes());
    }
    assert_eq!(machine.io(0x02, 10, 95, [DATA + 20 * PAGE + 512, 6 * PAGE + 8]), Status::SUCCESS);
    assert_eq!(machine.memory(DATA + 20 * PAGE + 512, data.len()), data);
    assert_eq!(machine.io(0x05, 10, 95, [DATA + 20 * PAGE + 512, 6 * PAGE + 8]), Status::SUCCESS);
    assert_eq!(machine.io(0x05, 11, 8, [DATA + 20 * PAGE + 512, DATA + 21 * PAGE]), Status::COMPARE_FAILED);
    // Offsets that no pointer has, and places where nothing is.
    assert_eq!(machine.io(0x02, 0, 8, [DATA + 2, 0]), Status::PRP_OFFSET);
    assert_eq!(machine.io(0x02, 0, 16, [DATA, DATA + 512]), Status::PRP_OFFSET);
    assert_eq!(machine.io(0x02, 0, 24, [DATA, 6 * PAGE + 4]), Status::PRP_OFFSET);
    machine.fill(6 * PAGE, &(DATA + 8).to_le_bytes());
    assert_eq!(machine.io(0x02, 0, 24, [DATA, 6 * PAGE]), Status::PRP_OFFSET);
    assert_eq!(machine.io(0x01, 0, 8, [MEMORY - 512, u64::MAX - 4095]), Status::DATA_TRANSFER);
    assert_eq!(machine.io(0x02, 0, 8, [MEMORY, 0]), Status::DATA_TRANSFER);
    // Longer than any transfer, or past the end.
    assert_eq!(machine.io(0x01, 0, 65_536, [DATA, 0]), Status::INVALID_FIELD);
    assert_eq!(machine.io(0x02, 131_065, 8, [DATA, 0]), Status::LBA_OUT_OF_RANGE);
}

#[test]
fn data_go_by_sgls() {
    let mut machine = Machine::started();
    let data = pattern(6144, 2);
    machine.fill(DATA + 3, &data[..1000]);
    machine.fill(DATA + 8192, &data[1000..]);
    let with = |opcode: u8, first: [u8; 16]| {
        let mut command = sqe(opcode, 1, [0, 0, 11, 0, 0, 0], [0; 2]);
        command.0[1] = 1 << 6;
        put(&mut command.0, 24, &first);
        command
    };
    // A segment that leads to a last one.
    machine.fill(SHADOW, &[descriptor(DATA + 3, 1000, 0), descriptor(EVENTS, 16, 0x30)].concat());
    machine.fill(EVENTS, &descriptor(DATA + 8192, 5144, 0));
    assert_eq!(machine.ask(1, with(0x01, descriptor(SHADOW, 32, 0x20))).status, Status::SUCCESS);
    assert_eq!(machine.ask(1, with(0x02, descriptor(DATA + 20 * PAGE + 1, 6144, 0))).status, Status::SUCCESS);
    assert_eq!(machine.memory(DATA + 20 * PAGE + 1, 6144), data);
    let mut refused = |first: [u8; 16]| machine.ask(1, with(0x02, first)).status;
    assert_eq!(refused(descriptor(DATA, 6143, 0)), Status::SGL_LENGTH);
    assert_eq!(refused(descriptor(DATA, u32::MAX, 0)), Status::SGL_LENGTH);
    assert_eq!(refused(descriptor(0, 6144, 0x01)), Status::SGL_TYPE, "an offset in a capsule");
    assert_eq!(refused(descriptor(DATA, 6144, 0x5a)), Status::SGL_TYPE);
    assert_eq!(refused(descriptor(SHADOW, 24, 0x20)), Status::SGL_SEGMENT);
    assert_eq!(refused(descriptor(SHADOW, 0, 0x30)), Status::SGL_SEGMENT);
    assert_eq!(refused(descriptor(SHADOW, 32, 0x30)), Status::SGL_SEGMENT, "the last segment leads on");
    assert_eq!(refused(descriptor(EVENTS, 16, 0x20)), Status::SGL_SEGMENT, "a segment leads nowhere");
    assert_eq!(refused(descriptor(SHADOW, 1 << 30, 0x20)), Status::SGL_COUNT);
    machine.fill(SHADOW, &descriptor(SHADOW, 16, 0x20));
    assert_eq!(machine.ask(1, with(0x02, descriptor(SHADOW, 16, 0x20))).status, Status::SGL_COUNT, "round and round");
    // Admin commands have PRPs.
    let mut identify = sqe(0x06, 0, [1, 0, 0, 0, 0, 0], [DATA, 0]);
    identify.0[1] = 1 << 6;
    assert_eq!(machine.admin(identify).status, Status::INVALID_FIELD);
}

#[test]
fn queues_keep_to_their_rules() {
    let mut machine = Machine::started();
    let mut refused = |opcode: u8, dwords: [u32; 2], prp: u64| {
        machine.admin(sqe(opcode, 0, [dwords[0], dwords[1], 0, 0, 0, 0], [prp, 0])).status
    };
    let entries = 7 << 16;
    for opcode in [0x05, 0x01] {
        assert_eq!(refused(opcode, [entries, 1 | 1 << 16], DATA), Status::INVALID_QUEUE);
        assert_eq!(refused(opcode, [entries | 1, 1 | 1 << 16], DATA), Status::INVALID_QUEUE, "there is one");
        assert_eq!(refused(opcode, [entries | 129, 1 | 1 << 16], DATA), Status::INVALID_QUEUE);
        assert_eq!(refused(opcode, [2, 1 | 1 << 16], DATA), Status::INVALID_QUEUE_SIZE);
        assert_eq!(refused(opcode, [1024 << 16 | 2, 1 | 1 << 16], DATA), Status::INVALID_QUEUE_SIZE);
        assert_eq!(refused(opcode, [entries | 2, 1 << 16], DATA), Status::INVALID_FIELD, "in pieces");
        assert_eq!(refused(opcode, [entries | 2, 1 | 1 << 16], DATA + 64), Status::PRP_OFFSET);
    }
    assert_eq!(refused(0x05, [entries | 2, 3 | u32::from(VECTORS) << 16], DATA), Status::INVALID_VECTOR);
    assert_eq!(refused(0x01, [entries | 2, 1 | 9 << 16], DATA), Status::NO_COMPLETION_QUEUE);
    assert_eq!(refused(0x01, [entries | 2, 1], DATA), Status::INVALID_QUEUE, "that of the admin queue");
    assert_eq!(refused(0x01, [entries | 2, 1 | 200 << 16], DATA), Status::INVALID_QUEUE);
    for opcode in [0x00, 0x04] {
        for queue in [0, 2, 129, 0xffff] {
            assert_eq!(refused(opcode, [queue, 0], 0), Status::INVALID_QUEUE);
        }
    }
    assert_eq!(refused(0x04, [1, 0], 0), Status::INVALID_QUEUE_DELETION, "a submission queue uses it");
    assert_eq!(refused(0x00, [1, 0], 0), Status::SUCCESS);
    assert_eq!(refused(0x04, [1, 0], 0), Status::SUCCESS);
    assert_eq!(machine.create(1), [Status::SUCCESS; 2]);
    assert_eq!(machine.io(0x02, 0, 8, [DATA, 0]), Status::SUCCESS);
    // A controller whose entries have no size yet.
    machine.set(0x14, 0);
    machine.enable();
    machine.set(0x14, 1);
    assert_eq!(machine.create(1), [Status::INVALID_QUEUE_SIZE; 2]);
}

#[test]
fn a_wrong_doorbell_is_told_by_an_event() {
    let mut machine = Machine::started();
    let event = |machine: &mut Machine| {
        let cid = machine.send(0, sqe(0x0c, 0, [0; 6], [0; 2]));
        assert!(machine.completion(0).is_none(), "it waits");
        cid
    };
    let event_of = |machine: &mut Machine, cid: u16| {
        let cqe = machine.completion(0).expect("an event");
        assert_eq!(cqe.cid, cid);
        let read = machine.admin(sqe(0x02, u32::MAX, [0x01 | 15 << 16, 0, 0, 0, 0, 0], [DATA, 0]));
        assert_eq!(read.status, Status::SUCCESS);
        cqe.result
    };
    for (offset, value, expected) in [
        (0x1008, 8, 0x0001_0100),           // a tail beyond the end
        (0x100c, 3, 0x0001_0100),           // more taken than there was
        (0x1010, 1, 0x0001_0000),           // a queue that is not there
        (0x1014, 1, 0x0001_0000),           // likewise
        (0x1000 + 8 * 129, 1, 0x0001_0000), // beyond every queue
    ] {
        let cid = event(&mut machine);
        machine.set(offset, value);
        assert_eq!(event_of(&mut machine, cid), expected, "{offset:x}");
    }
    assert_eq!(machine.io(0x02, 0, 8, [DATA, 0]), Status::SUCCESS, "all goes on");
}

#[test]
fn a_full_completion_queue_waits_and_the_phase_turns() {
    let mut machine = Machine::started();
    // Seven completions fit. The others wait, round after round.
    for _ in 0..5 {
        let sent: Vec<u16> = (0..7).map(|at| machine.send(1, sqe(0x02, 1, [at, 0, 0, 0, 0, 0], [DATA, 0]))).collect();
        for at in 0..4 {
            machine.send(1, sqe(0x02, 1, [at, 0, 0, 0, 0, 0], [DATA, 0]));
        }
        for cid in sent {
            assert_eq!(machine.completion(1).expect("an entry").cid, cid);
        }
        for _ in 0..4 {
            assert!(machine.completion(1).is_some());
        }
        assert!(machine.completion(1).is_none());
    }
}

#[test]
fn shadow_doorbells_need_no_message_while_somebody_looks() {
    let mut machine = Machine::started();
    assert_eq!(machine.admin(sqe(0x7c, 0, [0; 6], [SHADOW + 8, EVENTS])).status, Status::INVALID_FIELD);
    machine.fill(SHADOW, &vec![0; 4096]);
    assert_eq!(machine.admin(sqe(0x7c, 0, [0; 6], [SHADOW, EVENTS])).status, Status::SUCCESS);
    machine.shadow = true;
    let data = pattern(4096, 5);
    machine.fill(DATA, &data);
    for round in 0..20 {
        assert_eq!(machine.io(0x01, 8 * round, 8, [DATA, 0]), Status::SUCCESS);
        assert_eq!(machine.io(0x02, 8 * round, 8, [DATA + PAGE, 0]), Status::SUCCESS);
        assert_eq!(machine.memory(DATA + PAGE, 4096), data);
        // Armed, the host has to ring at the next entry.
        assert!(!machine.queues.arm());
        assert_eq!(u32_at(&machine.memory(EVENTS + 8, 4), 0), machine.rings[1].0);
    }
    assert_eq!(u32_at(&machine.memory(SHADOW, 4), 0), machine.rings[0].0, "the admin queue's is kept");
    // What is rung between the last look and the sleep is seen.
    let tail = (machine.rings[1].0 + 1) % 8;
    machine.fill(SHADOW + 8, &tail.to_le_bytes());
    assert!(machine.queues.arm() && machine.queues.has_rung());
    // A completion queue without room asks to be told.
    machine.rings[1].0 = tail;
    machine.run();
    while machine.completion(1).is_some() {}
    (0..11).for_each(|_| _ = machine.send(1, sqe(0x02, 1, [0, 0, 0, 0, 0, 0], [DATA, 0])));
    machine.queues.arm();
    assert_eq!(u32_at(&machine.memory(EVENTS + 12, 4), 0), machine.rings[1].1);
    for left in (0..11).rev() {
        assert!(machine.completion(1).is_some(), "{left} more");
    }
    // Values that no queue has are told of, and nothing spins.
    machine.fill(SHADOW + 8, &0x7777_7777u32.to_le_bytes());
    machine.run();
    assert!(!machine.queues.arm());
}

#[test]
fn a_reset_ends_all_and_what_the_drive_has_lands_nowhere() {
    let mut machine = Machine::started();
    let fetch = |machine: &mut Machine| {
        machine.fill(IO_SQ + 64 * u64::from(machine.rings[1].0), &sqe(0x02, 1, [0; 6], [DATA, 0]).0);
        let tail = machine.rings[1].0 + 1;
        let ring = region_write(0, 0x1008, &tail.to_le_bytes());
        machine.function.feed(&mut machine.queues, &mut machine.subsystem, &mut Health::default, &ring);
        machine.queues.out.clear();
        machine.function.begin().expect("a read")
    };
    let reset = region_write(0, 0x14, &(6u32 << 16 | 4 << 20).to_le_bytes());
    for end in [reset, message(command::DEVICE_RESET, &[]), region_write(7, 0x69, &[0x80])] {
        let ready = fetch(&mut machine);
        machine.tell(&end).unwrap();
        machine.fill(DATA, &[3; 512]);
        machine.queues.data(ready.flight, 0, 512).fill(9);
        machine.queues.ended(ready.flight, Status::SUCCESS);
        machine.queues.flush();
        assert_eq!(machine.memory(DATA, 512), [3; 512]);
        assert_eq!(machine.register(0x1c), 0);
        machine.fill(0, &vec![0; 4 * PAGE as usize]);
        machine.enable();
        assert_eq!(machine.create(1), [Status::SUCCESS; 2]);
    }
    // A queue that is deleted: its command is aborted, and lands nowhere.
    let ready = fetch(&mut machine);
    let deleted = machine.admin(sqe(0x00, 0, [1, 0, 0, 0, 0, 0], [0; 2]));
    assert_eq!(deleted.status, Status::SUCCESS);
    assert_eq!(Cqe::parse(&machine.memory(IO_CQ, 16).try_into().unwrap()).status, Status::SQ_DELETED);
    machine.queues.data(ready.flight, 0, 512).fill(9);
    machine.queues.ended(ready.flight, Status::SUCCESS);
    assert_eq!(machine.memory(DATA, 512), [3; 512]);
    // Memory that is taken back: the command fails.
    assert_eq!(machine.create(2), [Status::INVALID_QUEUE, Status::NO_COMPLETION_QUEUE].map(|_| Status::SUCCESS));
}

/// Three reads are fetched, and the drive has the first: Abort takes back the second, and neither the first nor what there is not.
#[test]
fn a_command_that_waits_is_aborted() {
    let mut machine = Machine::started();
    let cids = [0x100u16, 0x101, 0x102];
    for (at, cid) in (0..).zip(cids) {
        let mut read = sqe(0x02, 1, [8 * at, 0, 0, 0, 0, 0], [DATA + PAGE * u64::from(at), 0]);
        put(&mut read.0, 2, &cid.to_le_bytes());
        machine.fill(IO_SQ + 64 * u64::from(at), &read.0);
    }
    machine.rings[1].0 = 3;
    let ring = region_write(0, 0x1008, &3u32.to_le_bytes());
    machine.function.feed(&mut machine.queues, &mut machine.subsystem, &mut Health::default, &ring);
    machine.queues.out.clear();
    let first = machine.function.begin().unwrap();
    assert_eq!(machine.function.ready.len(), 2);
    let begun = machine.begun;
    let abort = |machine: &mut Machine, queue: u32, cid: u16| {
        let cqe = machine.admin(sqe(0x08, 0, [queue | u32::from(cid) << 16, 0, 0, 0, 0, 0], [0; 2]));
        assert!(cqe.status.is_ok());
        cqe.result
    };
    assert_eq!(abort(&mut machine, 1, cids[1]), 0, "it was aborted");
    assert_eq!(machine.begun, begun + 1, "the third read was carried out meanwhile");
    for (queue, cid) in [(1, cids[0]), (1, cids[1]), (1, 7), (2, cids[0]), (500, 0)] {
        assert_eq!(abort(&mut machine, queue, cid), 1, "{cid:x} of queue {queue}");
    }
    machine.queues.data(first.flight, 0, 512).fill(9);
    machine.queues.ended(first.flight, Status::SUCCESS);
    machine.queues.flush();
    let ended: Vec<_> = std::iter::from_fn(|| machine.completion(1)).map(|cqe| (cqe.cid, cqe.status.parts())).collect();
    assert_eq!(ended, [(cids[1], (0, 0x07)), (cids[2], (0, 0)), (cids[0], (0, 0))]);
}

#[test]
fn a_shutdown_makes_durable_what_was_written() {
    let mut machine = Machine::started();
    let begun = machine.begun;
    let message = region_write(0, 0x14, &(6u32 << 16 | 4 << 20 | 1 | 1 << 14).to_le_bytes());
    machine.function.feed(&mut machine.queues, &mut machine.subsystem, &mut Health::default, &message);
    machine.queues.out.clear();
    assert_eq!(machine.function.ready[0].io.op, Op::Flush);
    let ready = machine.function.begin().unwrap();
    assert_eq!(machine.register(0x1c) >> 2 & 3, 1, "it goes on");
    machine.queues.ended(ready.flight, Status::SUCCESS);
    assert_eq!((machine.register(0x1c) >> 2 & 3, machine.begun), (2, begun), "it is over");
}

#[test]
fn memory_that_is_not_there_stops_the_controller_until_it_is_reset() {
    let mut machine = Machine::started();
    let [a, b] = halves(MEMORY);
    machine.tell(&message(command::DMA_UNMAP, &words(&[24, 0, 0, 0, a, b]))).unwrap();
    machine.set(0x1008, 1);
    assert_eq!(machine.register(0x1c), 3, "fatal");
    machine.tell(&map(0, MEMORY)).unwrap();
    machine.set(0x14, 0);
    machine.fill(0, &vec![0; 4 * PAGE as usize]);
    machine.enable();
    assert_eq!(machine.create(1), [Status::SUCCESS; 2]);
    assert_eq!(machine.io(0x02, 0, 8, [DATA, 0]), Status::SUCCESS);
    // An admin queue of one entry, or at no page.
    for (aqa, asq) in [(15 << 16, ADMIN_SQ), (15 << 16 | 15, 64)] {
        machine.set(0x14, 0);
        machine.set(0x24, aqa);
        machine.tell(&region_write(0, 0x28, &asq.to_le_bytes())).unwrap();
        machine.set(0x14, 6 << 16 | 4 << 20 | 1);
        assert_eq!(machine.register(0x1c), 3);
    }
}

#[test]
fn vectors_are_raised_and_kept_until_somebody_is_tied() {
    let mut machine = Machine::started();
    let pending = |machine: &mut Machine| {
        u64_at(&machine.tell(&message(command::REGION_READ, &words(&[0x3000, 0, 0, 8]))).unwrap(), 16)
    };
    machine.io(0x02, 0, 8, [DATA, 0]);
    assert_eq!(pending(&mut machine), 0b11, "those of both queues");
    let set =
        |flags: u32, first: u32, count: u32| message(command::DEVICE_SET_IRQS, &words(&[20, flags, 2, first, count]));
    machine.queues.host.descriptors = 2;
    machine.tell(&set(4 | 32, 0, 2)).unwrap();
    assert_eq!(pending(&mut machine), 0);
    machine.tell(&set(1 | 8, 1, 1)).unwrap(); // masked
    machine.io(0x02, 0, 8, [DATA, 0]);
    assert_eq!(pending(&mut machine), 0b10);
    machine.tell(&set(1 | 16, 1, 1)).unwrap();
    assert_eq!(pending(&mut machine), 0);
    let before = machine.queues.host.signals.get();
    machine.tell(&set(1 | 32, 0, 2)).unwrap(); // by hand
    assert_eq!(machine.queues.host.signals.get(), before + 2);
    machine.queues.host.descriptors = 0;
    machine.tell(&set(1 | 32, 0, 0)).unwrap();
    assert!(machine.queues.host.tied.is_empty());
    for (flags, first, count) in [(4 | 32, 0, 130), (4 | 32, u32::MAX, 2), (2 | 32, 0, 1), (4 | 8, 0, 1), (7, 0, 1)] {
        assert_eq!(machine.tell(&set(flags, first, count)), Err(22));
    }
}

#[test]
fn messages_keep_to_their_rules() {
    let mut machine = Machine::new();
    let ask = |machine: &mut Machine, command: u16, fields: &[u32]| machine.tell(&message(command, &words(fields)));
    assert_eq!(ask(&mut machine, command::DEVICE_GET_INFO, &[16, 0, 0, 0]), Ok(words(&[16, 3, 9, 5])));
    let bar = ask(&mut machine, command::DEVICE_GET_REGION_INFO, &[32, 0, 0, 0, 0, 0, 0, 0]).unwrap();
    assert_eq!((u32_at(&bar, 4), u64_at(&bar, 16)), (3, 0x4000));
    assert_eq!(ask(&mut machine, command::DEVICE_GET_REGION_INFO, &[32, 0, 9, 0, 0, 0, 0, 0]), Err(22));
    let vectors = ask(&mut machine, command::DEVICE_GET_IRQ_INFO, &[16, 0, 2, 0]).unwrap();
    assert_eq!(u32_at(&vectors, 12), u32::from(VECTORS));
    assert_eq!(ask(&mut machine, command::DEVICE_GET_IRQ_INFO, &[16, 0, 0, 0]), Ok(words(&[16, 0, 0, 0])));
    let class = ask(&mut machine, command::REGION_READ, &[8, 0, 7, 4]).unwrap();
    assert_eq!(u32_at(&class, 16) >> 8, 0x01_08_02);
    let capabilities = ask(&mut machine, command::REGION_READ, &[0, 0, 0, 8]).unwrap();
    assert_eq!((u64_at(&capabilities, 16) & 0xffff, u64_at(&capabilities, 16) >> 43 & 1), (1023, 0));
    for (region, offset, count) in [(0, 0x4000, 1), (0, 0x3fff, 2), (7, 4096, 1), (1, 0, 4), (9, 0, 4), (0, 0, 1 << 17)]
    {
        assert_eq!(
            ask(&mut machine, command::REGION_READ, &[offset, 0, region, count]),
            Err(22),
            "{region} {offset:x}"
        );
    }
    assert_eq!(machine.tell(&region_write(0, 0x1001, &[0; 4])), Err(22));
    assert_eq!(machine.tell(&region_write(0, 0x14, &[0; 2])), Err(22));
    assert_eq!(ask(&mut machine, command::REGION_WRITE, &[0x14, 0, 0, 8, 0]), Err(22), "less than it says");
    assert_eq!(machine.tell(&map(PAGE, PAGE)), Err(17), "over another");
    for (address, bytes) in [(1 << 40, 0), ((1 << 40) + 1, PAGE), (1 << 40, 77), (u64::MAX - 4095, PAGE)] {
        assert_eq!(machine.tell(&map(address, bytes)), Err(22));
    }
    assert_eq!(ask(&mut machine, 11, &[0; 8]), Err(95));
    assert_eq!(ask(&mut machine, command::DMA_MAP, &[0; 3]), Err(22));
    // No answer is wanted, and none comes.
    let mut silent = region_write(0, 0x24, &[1, 2, 3, 4]);
    silent[8] |= 1 << 4;
    assert_eq!(
        machine.function.feed(&mut machine.queues, &mut machine.subsystem, &mut Health::default, &silent),
        silent.len()
    );
    assert!(machine.queues.out.is_empty());
    assert_eq!(machine.register(0x24), 0x0403_0201);
    // What ends a connection: a second version, an answer, a length that no message has.
    for (at, value) in [(2, 1), (8, 1), (4, 15), (6, 0xff)] {
        let mut machine = Machine::new();
        let mut bytes = message(command::DEVICE_RESET, &[]);
        bytes[at] = value;
        machine.function.feed(&mut machine.queues, &mut machine.subsystem, &mut Health::default, &bytes);
        assert!(machine.function.is_broken());
    }
    // Version 1, or anything before a version.
    for first in [message(command::VERSION, b"\x01\0\0\0{}\0"), message(command::DEVICE_RESET, &[])] {
        let mut machine = Machine::new();
        let mut function = Function::new(&mut machine.subsystem).unwrap();
        function.feed(&mut machine.queues, &mut machine.subsystem, &mut Health::default, &first);
        assert!(function.is_broken());
    }
}

/// What a host does next, drawn from bytes.
fn act(machine: &mut Machine, bytes: [u8; 16]) {
    let [what, opcode, cid, nsid, first, blocks, page, value, kind, extra @ ..] = bytes;
    let mut input = Vec::new();
    match what % 16 {
        // A command in a queue, and a doorbell for it: mostly a small step, now and then anywhere.
        0..=8 => {
            let queue = usize::from(kind & 3 != 0);
            let known: Vec<u8> = if queue == 0 { ADMIN.iter().chain(FUNCTION) } else { IO.iter().chain(&[]) }
                .map(|each| each.opcode)
                .collect();
            let opcode = if what < 240 { known[usize::from(opcode) % known.len()] } else { opcode };
            let nsid = [1, 1, 1, 1, 0, 2, u32::MAX, u32::MAX - 1][usize::from(nsid) % 8];
            let pointer = |byte: u8, exact: u8| match exact % 8 {
                0 => u64::from(byte) * 512 + u64::from(exact),
                1 => u64::MAX - u64::from(byte),
                2 => PAGE * u64::from(byte) + (PAGE - 8 * u64::from(byte % 16)),
                _ => PAGE * u64::from(byte % 70),
            };
            let blocks = if blocks < 250 { u32::from(blocks % 64) } else { 0xffff };
            let dwords = match (queue, opcode) {
                (0, 0x00 | 0x01 | 0x04 | 0x05) => {
                    let size = if extra[2] < 240 { u32::from(extra[2] % 16) } else { u32::from(extra[2]) << 8 };
                    [
                        u32::from(first % 6) | size << 16,
                        u32::from(page % 8 > 0) | u32::from(extra[3] % 6) << 16 | 2,
                        0,
                        0,
                        0,
                        0,
                    ]
                }
                (0, _) => [u32::from(page % 32) | u32::from(extra[2]) << 16, u32::from(extra[3]), 0, 0, 0, 0],
                _ => [u32::from(first), 0, blocks, 0, 0, 0],
            };
            let mut command = sqe(opcode, nsid, dwords, [pointer(page, extra[0]), pointer(value, extra[1])]);
            if kind >= 240 {
                command.0[1] = extra[4] & 0xc3;
                put(
                    &mut command.0,
                    24,
                    &descriptor(pointer(page, extra[0]), u32::from(extra[2]) * 16, extra[3] & 0xf3),
                );
            }
            put(&mut command.0, 2, &u16::from(cid).to_le_bytes());
            let (tail, base) = (machine.rings[queue].0, [ADMIN_SQ, IO_SQ][queue]);
            machine.fill(base + 64 * u64::from(tail % 16), &command.0);
            machine.rings[queue].0 = (tail + 1) % machine.sizes[queue];
            let tail = if what < 250 { machine.rings[queue].0 } else { u32::from(value) };
            if extra[5] % 4 == 0 {
                machine.fill(SHADOW + 8 * queue as u64, &tail.to_le_bytes());
            } else {
                input = region_write(0, 0x1000 + 8 * queue as u64, &tail.to_le_bytes());
            }
        }
        // Completions are taken: as many as there are, or any.
        9 => {
            let queue = usize::from(kind & 3 != 0);
            while kind < 200 && machine.completion(queue).is_some() {}
            let head = if kind < 200 { machine.rings[queue].1 } else { u32::from(value) };
            input = region_write(0, 0x1004 + 8 * u64::from(kind % 8), &head.to_le_bytes());
        }
        // A register, or any place of a region.
        10 => {
            let at = [0x14, 0x14, 0x24, 0x28, 0x2c, 0x30, 0x34, 0x1000 + 4 * u64::from(first)][usize::from(page) % 8];
            let config = 6 << 16 | 4 << 20 | u32::from(extra[0] < 200) | u32::from(extra[1] > 230) << 14;
            let value = if at == 0x14 { config } else { u32::from(value) << (extra[0] % 24) };
            input = region_write(0, at, &value.to_le_bytes());
        }
        11 => {
            let (offset, region) = (u32::from(first) << (extra[0] % 8), u32::from(page % 10));
            let region = if extra[1] < 128 { 7 * u32::from(page % 2) } else { region };
            if extra[2] < 128 {
                input = message(command::REGION_READ, &words(&[offset, 0, region, u32::from(extra[3])]));
            } else {
                input = region_write(region, u64::from(offset), &vec![value; usize::from(extra[3])]);
            }
        }
        // Maps come and go.
        12 => {
            let (address, bytes) = (PAGE * u64::from(first % 64), PAGE * u64::from(blocks % 64));
            input = map(address, bytes);
            if kind < 128 {
                let [[a, b], [c, d]] = [halves(address), halves(bytes)];
                input = message(command::DMA_UNMAP, &words(&[24, u32::from(kind % 64 == 0) * 2, a, b, c, d]));
            } else if kind < 240 {
                machine.queues.host.maps = vec![(0, MEMORY)];
                return;
            }
        }
        13 => {
            machine.queues.host.descriptors = usize::from(extra[0] % 4);
            let fields = [20, u32::from(page), u32::from(kind % 6), u32::from(first), u32::from(blocks)];
            input = message(command::DEVICE_SET_IRQS, &[words(&fields), vec![1; usize::from(extra[1])]].concat());
        }
        // The host begins again.
        14 => {
            machine.queues.host.maps = vec![(0, MEMORY)];
            machine.set(0x14, 0);
            machine.fill(0, &vec![0; 4 * PAGE as usize]);
            machine.enable();
            assert_eq!(machine.create(1), [Status::SUCCESS; 2]);
            return;
        }
        // Bytes change on the way, or anything comes.
        _ => {
            input = message(u16::from(opcode % 16), &vec![value; usize::from(first)]);
            let at = usize::from(page) % input.len();
            if kind < 64 {
                input[at] ^= 1 << (extra[0] % 8);
            }
            if kind < 32 {
                put(&mut input, 4, &(16 + u32::from(first)).to_le_bytes());
            }
        }
    }
    let mut rest = input.as_slice();
    while !rest.is_empty() && !machine.function.is_broken() {
        let taken = machine.function.feed(
            &mut machine.queues,
            &mut machine.subsystem,
            &mut Units { rooms: Some([0, 4096, 512, 1 << 20]), ..Units::default() },
            rest,
        );
        rest = &rest[taken..];
        let waits = machine.function.ready.len();
        assert!(waits <= 256 + 16 * 260, "{waits} requests wait");
        if extra[6] % 8 > 0 || taken > 0 && !rest.is_empty() {
            machine.run();
        }
        if taken == 0 && machine.function.ready.is_empty() {
            break;
        }
    }
    machine.queues.out.clear();
    if extra[6] % 16 == 1 {
        machine.queues.arm();
    }
}

/// A session of a host. Returns how often the drive was asked.
fn session(acts: &[[u8; 16]]) -> usize {
    let mut machine = Machine::started();
    machine.is_silent = true;
    for bytes in acts {
        act(&mut machine, *bytes);
        if machine.function.is_broken() {
            machine.function.leave(&mut machine.subsystem);
            machine.queues = Queues::new(std::mem::take(&mut machine.queues.host));
            machine.function = Function::new(&mut machine.subsystem).unwrap();
            machine.tell(&message(command::VERSION, b"\0\0\0\0{}\0")).unwrap();
        }
    }
    machine.run();
    machine.function.leave(&mut machine.subsystem);
    assert_eq!(machine.subsystem.controllers().count(), 0);
    machine.begun
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_host_breaks_a_function(acts in prop::collection::vec(any::<[u8; 16]>(), 1..60)) {
        session(&acts);
    }

    #[test]
    fn noise_ends_a_connection_or_waits(noise in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut machine = Machine::new();
        machine.function.feed(&mut machine.queues, &mut machine.subsystem, &mut Health::default, &noise);
    }
}

/// What a host does in a session.
const ACTS: usize = 100;

#[test]
fn a_million_acts_break_nothing() {
    let mut begun = 0;
    let mut rounds = Rounds::new("functions of vfio-user", 10_000);
    while let Some(seed) = rounds.next_seed() {
        let mut next = draws(seed);
        rounds.count(ACTS as u64);
        let acts: Vec<[u8; 16]> =
            (0..ACTS).map(|_| (u128::from(next()) << 64 | u128::from(next())).to_le_bytes()).collect();
        begun += session(&acts);
    }
    assert!(begun > 50_000, "the drive was asked {begun} times: most commands were refused");
}

const _: () = assert!(wire::HOST_PAGE as u64 == PAGE);
