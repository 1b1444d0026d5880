//! A virtual machine that knows just enough of vfio-user and of NVMe over PCIe: its memory is a memfd.

use flashwright_nvme::vfio::{Message, command, flag};
use flashwright_nvme::wire::{Cqe, Sqe, Status, put, u16_at, u32_at, u64_at};
use flashwright_serve::{Served, Server};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::fs::File;
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

pub const PAGE: u64 = 4096;
/// Bytes of the memory, at address [`BASE`].
pub const MEMORY: u64 = 8 << 20;
pub const BASE: u64 = 1 << 32;
/// Where queues are: those of queue `q` are `q` times two pages on.
pub const QUEUES: u64 = BASE;
pub const SHADOW: u64 = BASE + 64 * PAGE;
pub const EVENTS: u64 = BASE + 65 * PAGE;
/// Where PRP lists are built.
pub const LIST: u64 = BASE + 66 * PAGE;
/// Where data are.
pub const DATA: u64 = BASE + 256 * PAGE;
/// Entries of a queue.
pub const ENTRIES: u32 = 64;

/// A queue pair, as its driver knows it.
#[derive(Clone, Copy)]
struct Ring {
    tail: u32,
    head: u32,
    phase: bool,
}

const EMPTY: Ring = Ring { tail: 0, head: 0, phase: true };

pub struct Machine {
    pub stream: UnixStream,
    pub memory: File,
    pub vectors: Vec<OwnedFd>,
    rings: [Ring; 4],
    pub has_shadow: bool,
    id: u16,
    cid: u16,
}

/// A command, with its PRPs or its SGL.
pub fn sqe(opcode: u8, nsid: u32, dwords: [u32; 6], pointer: [u64; 2]) -> Sqe {
    let mut bytes = [0; 64];
    bytes[0] = opcode;
    put(&mut bytes, 4, &nsid.to_le_bytes());
    put(&mut bytes, 24, &pointer[0].to_le_bytes());
    put(&mut bytes, 32, &pointer[1].to_le_bytes());
    dwords.iter().enumerate().for_each(|(at, dword)| put(&mut bytes, 40 + 4 * at, &dword.to_le_bytes()));
    Sqe(bytes)
}

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn memory(seals: bool) -> File {
    let file = memfd_create("memory", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    let file = File::from(file);
    file.set_len(MEMORY).unwrap();
    if seals {
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW).unwrap();
    }
    file
}

impl Machine {
    /// Connects, and maps its memory.
    pub fn open<S: Served>(server: &Server<S>, is_sealed: bool) -> Self {
        let mut machine = Self::connect(server, is_sealed);
        machine.tell(command::VERSION, b"\0\0\0\0{\"capabilities\":{\"max_msg_fds\":8}}\0", &[]).unwrap();
        let memory = machine.memory.try_clone().unwrap();
        machine.map(BASE, MEMORY, 0, &[memory.as_fd()]).unwrap();
        machine
    }

    /// Connects, and says nothing.
    pub fn connect<S: Served>(server: &Server<S>, is_sealed: bool) -> Self {
        let path =
            server.uris().iter().find_map(|uri| uri.strip_prefix("vfio-user:")).expect("it listens for machines");
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let (memory, vectors) = (memory(is_sealed), Vec::new());
        Self { stream, memory, vectors, rings: [EMPTY; 4], has_shadow: false, id: 0, cid: 0 }
    }

    /// With an enabled controller, vectors, and I/O queues.
    pub fn begun<S: Served>(server: &Server<S>, is_sealed: bool, queues: u16) -> Self {
        let mut machine = Self::open(server, is_sealed);
        machine.tie(4);
        machine.enable();
        for queue in 1..=queues {
            assert_eq!(machine.create(queue), [Status::SUCCESS; 2]);
        }
        machine
    }

    pub fn send(&mut self, command: u16, flags: u32, body: &[u8], descriptors: &[BorrowedFd<'_>]) {
        self.id = self.id.wrapping_add(1);
        let mut out = Vec::new();
        Message { id: self.id, command, flags, body }.put(&mut out);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(64))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)));
        }
        let sent = sendmsg(&self.stream, &[IoSlice::new(&out)], &mut control, SendFlags::NOSIGNAL).unwrap();
        self.stream.write_all(&out[sent..]).unwrap();
    }

    /// Sends a message. Returns the body of its answer, or its error.
    pub fn tell(&mut self, command: u16, body: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<Vec<u8>, u32> {
        self.send(command, 0, body, descriptors);
        let mut header = [0; 16];
        self.stream.read_exact(&mut header).unwrap();
        assert_eq!((u16_at(&header, 0), u16_at(&header, 2)), (self.id, command));
        let mut body = vec![0; u32_at(&header, 4) as usize - 16];
        self.stream.read_exact(&mut body).unwrap();
        if u32_at(&header, 8) & flag::ERROR == 0 { Ok(body) } else { Err(u32_at(&header, 12)) }
    }

    pub fn map(&mut self, address: u64, bytes: u64, offset: u64, file: &[BorrowedFd<'_>]) -> Result<(), u32> {
        let mut body = words(&[32, 3]);
        [offset, address, bytes].iter().for_each(|value| body.extend(value.to_le_bytes()));
        self.tell(command::DMA_MAP, &body, file).map(|_| ())
    }

    pub fn unmap(&mut self, address: u64, bytes: u64) -> Result<u64, u32> {
        let mut body = words(&[24, 0]);
        [address, bytes].iter().for_each(|value| body.extend(value.to_le_bytes()));
        self.tell(command::DMA_UNMAP, &body, &[]).map(|body| u64_at(&body, 16))
    }

    /// Ties vectors to eventfds.
    pub fn tie(&mut self, count: u32) {
        self.vectors =
            (0..count).map(|_| eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap()).collect();
        let owned: Vec<OwnedFd> = self.vectors.iter().map(|each| each.try_clone().unwrap()).collect();
        let borrowed: Vec<BorrowedFd<'_>> = owned.iter().map(AsFd::as_fd).collect();
        self.tell(command::DEVICE_SET_IRQS, &words(&[20, 4 | 32, 2, 0, count]), &borrowed).unwrap();
    }

    /// Whether a vector is signalled within a time.
    pub fn is_signalled(&self, vector: usize) -> bool {
        let since = Instant::now();
        while since.elapsed() < Duration::from_secs(5) {
            if rustix::io::read(&self.vectors[vector], &mut [0; 8]).is_ok() {
                return true;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        false
    }

    pub fn read_region(&mut self, region: u32, offset: u32, bytes: u32) -> Vec<u8> {
        self.tell(command::REGION_READ, &words(&[offset, 0, region, bytes]), &[]).unwrap().split_off(16)
    }

    pub fn register(&mut self, offset: u32) -> u32 {
        u32_at(&self.read_region(0, offset, 4), 0)
    }

    /// Writes a register, without an answer as virtual machines do.
    pub fn set(&mut self, offset: u32, value: u32) {
        self.send(command::REGION_WRITE, flag::NO_REPLY, &words(&[offset, 0, 0, 4, value]), &[]);
    }

    /// Enables the controller, as Linux does.
    pub fn enable(&mut self) {
        let capabilities = u64_at(&self.read_region(0, 0, 8), 0);
        assert_eq!((capabilities & 0xffff, capabilities >> 37 & 1), (1023, 1));
        self.set(0x14, 0);
        assert_eq!(self.register(0x1c) & 1, 0);
        self.memory.write_all_at(&vec![0; 66 * PAGE as usize], 0).unwrap();
        (self.rings, self.has_shadow) = ([EMPTY; 4], false);
        self.set(0x24, (ENTRIES - 1) << 16 | (ENTRIES - 1));
        for (register, address) in [(0x28, QUEUES), (0x30, QUEUES + PAGE)] {
            self.set(register, (address & 0xffff_ffff) as u32);
            self.set(register + 4, (address >> 32) as u32);
        }
        // All command sets, where there are several.
        let sets = if capabilities >> 43 & 1 == 1 { 6 << 4 } else { 0 };
        self.set(0x14, 6 << 16 | 4 << 20 | sets);
        self.set(0x14, 6 << 16 | 4 << 20 | sets | 1);
        while self.register(0x1c) & 1 == 0 {}
    }

    /// Creates a completion queue and a submission queue.
    pub fn create(&mut self, queue: u16) -> [Status; 2] {
        self.rings[usize::from(queue)] = EMPTY;
        let (number, at) = (u32::from(queue), QUEUES + 2 * PAGE * u64::from(queue));
        let fields = number | (ENTRIES - 1) << 16;
        let completion = sqe(0x05, 0, [fields, 3 | number << 16, 0, 0, 0, 0], [at + PAGE, 0]);
        let submission = sqe(0x01, 0, [fields, 1 | number << 16, 0, 0, 0, 0], [at, 0]);
        [completion, submission].map(|command| self.ask(0, command).status)
    }

    /// Keeps shadow doorbells from now on.
    pub fn keep_shadow(&mut self) {
        for (queue, ring) in self.rings.into_iter().enumerate() {
            self.fill(SHADOW + 8 * queue as u64, &words(&[ring.tail, ring.head]));
        }
        assert_eq!(self.ask(0, sqe(0x7c, 0, [0; 6], [SHADOW, EVENTS])).status, Status::SUCCESS);
        self.has_shadow = true;
    }

    pub fn fill(&self, address: u64, bytes: &[u8]) {
        self.memory.write_all_at(bytes, address - BASE).unwrap();
    }

    pub fn look(&self, address: u64, bytes: usize) -> Vec<u8> {
        let mut found = vec![0; bytes];
        self.memory.read_exact_at(&mut found, address - BASE).unwrap();
        found
    }

    /// Tells the new value of a doorbell: by the shadow, if there is one, and by the register if the function asks for it.
    fn ring(&mut self, queue: u16, is_completion: bool, before: u32, value: u32) {
        let at = 8 * u64::from(queue) + 4 * u64::from(is_completion);
        if self.has_shadow && queue > 0 {
            self.fill(SHADOW + at, &value.to_le_bytes());
            let event = u32_at(&self.look(EVENTS + at, 4), 0);
            let distance = |from: u32| value.wrapping_sub(from) & 0xffff;
            if distance(event).wrapping_sub(1) & 0xffff >= distance(before) {
                return;
            }
        }
        self.set(u32::try_from(0x1000 + at).unwrap(), value);
    }

    /// Puts a command into a queue, without its doorbell.
    pub fn put(&mut self, queue: u16, mut command: Sqe) -> u16 {
        self.cid = self.cid.wrapping_add(1);
        put(&mut command.0, 2, &self.cid.to_le_bytes());
        let ring = &mut self.rings[usize::from(queue)];
        let at = QUEUES + 2 * PAGE * u64::from(queue) + 64 * u64::from(ring.tail);
        ring.tail = (ring.tail + 1) % ENTRIES;
        self.fill(at, &command.0);
        self.cid
    }

    /// Rings for what was put since a tail.
    pub fn ring_for(&mut self, queue: u16, count: u32) {
        let tail = self.rings[usize::from(queue)].tail;
        self.ring(queue, false, (tail + ENTRIES - count) % ENTRIES, tail);
    }

    /// The next completion of a queue, if there is one.
    pub fn poll(&mut self, queue: u16) -> Option<Cqe> {
        let ring = self.rings[usize::from(queue)];
        let at = QUEUES + 2 * PAGE * u64::from(queue) + PAGE + 16 * u64::from(ring.head);
        let bytes: [u8; 16] = self.look(at, 16).try_into().unwrap();
        if (bytes[14] & 1 == 1) != ring.phase {
            return None;
        }
        let head = (ring.head + 1) % ENTRIES;
        self.rings[usize::from(queue)] = Ring { head, phase: ring.phase ^ (head == 0), ..ring };
        self.ring(queue, true, ring.head, head);
        Some(Cqe::parse(&bytes))
    }

    /// Takes completions when the last of them is there.
    pub fn take(&mut self, queue: u16, count: u32) {
        let ring = self.rings[usize::from(queue)];
        let base = QUEUES + 2 * PAGE * u64::from(queue) + PAGE;
        let last = (ring.head + count - 1) % ENTRIES;
        let phase = ring.phase ^ (last < ring.head);
        while (self.look(base + 16 * u64::from(last) + 14, 1)[0] & 1 == 1) != phase {
            std::thread::yield_now();
        }
        let head = (ring.head + count) % ENTRIES;
        self.rings[usize::from(queue)] = Ring { head, phase: phase ^ (head == 0), ..ring };
        self.ring(queue, true, ring.head, head);
    }

    /// The next completion of a queue, within a time.
    pub fn wait(&mut self, queue: u16) -> Option<Cqe> {
        let since = Instant::now();
        while since.elapsed() < Duration::from_secs(10) {
            if let Some(cqe) = self.poll(queue) {
                return Some(cqe);
            }
            std::thread::sleep(Duration::from_micros(20));
        }
        None
    }

    pub fn ask(&mut self, queue: u16, command: Sqe) -> Cqe {
        let cid = self.put(queue, command);
        self.ring_for(queue, 1);
        let cqe = self.wait(queue).expect("a completion");
        assert_eq!((cqe.cid, cqe.queue), (cid, queue));
        cqe
    }

    /// The PRPs of a range of memory: where it is longer than two pages, a list is made.
    pub fn prps(&self, address: u64, bytes: u64) -> [u64; 2] {
        let second = (address / PAGE + 1) * PAGE;
        let pages = (address + bytes).div_ceil(PAGE) - address / PAGE;
        if pages <= 2 {
            return [address, second];
        }
        let entries: Vec<u8> = (0..pages - 1).flat_map(|at| (second + at * PAGE).to_le_bytes()).collect();
        self.fill(LIST, &entries);
        [address, LIST]
    }

    /// A read or write of blocks of 512 bytes, whose data are in order in memory.
    pub fn io(&mut self, queue: u16, opcode: u8, first: u64, blocks: u32, address: u64) -> Status {
        let pointer = self.prps(address, u64::from(blocks) * 512);
        let [low, high] = [first & 0xffff_ffff, first >> 32].map(|half| u32::try_from(half).unwrap());
        self.ask(queue, sqe(opcode, 1, [low, high, blocks - 1, 0, 0, 0], pointer)).status
    }

    pub fn write(&mut self, first: u64, data: &[u8]) -> Status {
        self.fill(DATA + 512, data);
        self.io(1, 0x01, first, u32::try_from(data.len() / 512).unwrap(), DATA + 512)
    }

    pub fn read(&mut self, first: u64, bytes: usize) -> Vec<u8> {
        self.fill(DATA + 512, &vec![0xee; bytes]);
        let status = self.io(1, 0x02, first, u32::try_from(bytes / 512).unwrap(), DATA + 512);
        assert!(status.is_ok(), "{status:?}");
        self.look(DATA + 512, bytes)
    }

    pub fn identify(&mut self, structure: u32, nsid: u32) -> Vec<u8> {
        assert_eq!(self.ask(0, sqe(0x06, nsid, [structure, 0, 0, 0, 0, 0], [DATA, 0])).status, Status::SUCCESS);
        self.look(DATA, 4096)
    }

    /// Whether the server has ended the connection.
    pub fn is_ended(&mut self) -> bool {
        let mut rest = Vec::new();
        self.stream.read_to_end(&mut rest).is_ok()
    }
}
