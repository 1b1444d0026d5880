//! The controller over a device that holds data and records its requests, with random times, compared with a reference
//! model; and its times, worked out on paper for a device of fixed times.

use super::*;
use flashwright_block::{Bytes, Effects, Priority, Rng, Seed, below, chance};
use std::collections::{BTreeMap, HashMap, HashSet};

// --- devices below ---

/// Works on all requests in parallel, each in its own time: the same for all, or drawn.
#[derive(Clone, Debug)]
struct Below {
    now: u64,
    next_tag: u64,
    read: u64,
    write: u64,
    /// A random share is added, up to this.
    spread: u64,
    rng: Rng,
    flights: Vec<Completion>,
    seen: Vec<Request>,
    refuse: Option<RequestKind>,
    /// Refuses reads of 8 sectors: those ahead of reads of 4.
    refuse_ahead: bool,
    /// The first bytes of each sector that was written: the number of the write.
    sectors: HashMap<u64, u64>,
    /// What reads were given.
    given: HashMap<u64, Vec<u8>>,
}

impl Below {
    fn new(read: u64, write: u64, spread: u64) -> Self {
        Self {
            now: 0,
            next_tag: 0,
            read,
            write,
            spread,
            rng: Seed(3).stream("below"),
            flights: Vec::new(),
            seen: Vec::new(),
            refuse: None,
            refuse_ahead: false,
            sectors: HashMap::new(),
            given: HashMap::new(),
        }
    }
}

impl BlockDevice for Below {
    fn info(&self) -> DeviceInfo {
        DeviceInfo { name: "below".to_owned(), capacity: Bytes(1 << 30), sector: Bytes(SECTOR_BYTES), queue_depth: 32 }
    }
    fn now(&self) -> Nanos {
        Nanos(self.now)
    }
    fn submit(&mut self, request: Request) -> Result<Tag, IoError> {
        if self.refuse == Some(request.kind) || self.refuse_ahead && request.sectors == 8 {
            return Err(IoError::WornOut { reason: "no".to_owned() });
        }
        assert!(request.arrival.0 >= self.now, "time goes on");
        self.now = request.arrival.0;
        self.seen.push(request);
        let time = match request.kind {
            RequestKind::Read => self.read,
            RequestKind::Write => self.write,
            _ => 0,
        };
        let end = Nanos(self.now + time + below(&mut self.rng, self.spread + 1));
        let tag = Tag(self.next_tag);
        self.next_tag += 1;
        self.flights.push(Completion {
            tag,
            request,
            start: request.arrival,
            end,
            effects: Effects { flash_ops: 1, ..Effects::default() },
            result: Ok(()),
        });
        Ok(tag)
    }
    fn wait(&mut self, until: Nanos, completion: &mut Completion) -> Result<bool, IoError> {
        let next = (0..self.flights.len()).min_by_key(|at| (self.flights[*at].end, self.flights[*at].tag));
        match next.filter(|at| self.flights[*at].end <= until) {
            Some(at) => {
                *completion = self.flights.swap_remove(at);
                self.now = self.now.max(completion.end.0);
                Ok(true)
            }
            None => {
                if until.0 != NEVER {
                    self.now = self.now.max(until.0);
                }
                Ok(false)
            }
        }
    }
    fn holds_data(&mut self) -> Option<&mut dyn HoldsData> {
        Some(self)
    }
}

impl HoldsData for Below {
    fn submit_with(&mut self, request: Request, data: &[u8]) -> Result<Tag, IoError> {
        request.check_data(data);
        let tag = self.submit(request)?;
        let extent = Extent::of(&request);
        for (sector, at) in (extent.first..extent.end).zip((0..).step_by(512)) {
            match request.kind {
                RequestKind::Write => {
                    let new = number_in(&data[at..]);
                    let old = self.sectors.insert(sector, new);
                    assert!(old.is_none_or(|old| old <= new), "sector {sector} goes back in time");
                }
                RequestKind::Trim => drop(self.sectors.remove(&sector)),
                _ => {}
            }
        }
        if request.kind == RequestKind::Read {
            let held = (extent.first..extent.end).map(|sector| self.sectors.get(&sector).copied().unwrap_or(0));
            self.given.insert(tag.0, held.flat_map(sector_with).collect());
        }
        Ok(tag)
    }
    fn take_data(&mut self, tag: Tag, data: &mut [u8]) -> bool {
        self.given.remove(&tag.0).inspect(|given| data.copy_from_slice(given)).is_some()
    }
}

/// A sector as the write of this number leaves it.
fn sector_with(number: u64) -> Vec<u8> {
    [&number.to_le_bytes()[..], &[0; 504]].concat()
}
fn number_in(sector: &[u8]) -> u64 {
    u64::from_le_bytes(sector[..8].try_into().unwrap())
}

fn config(text: &str) -> ControllerConfig {
    crate::Config::from_toml(&format!("[controller]\n{text}"), "test").unwrap().controller.clone()
}

fn request(kind: RequestKind, first_sector: u64, sectors: u32) -> Request {
    Request { kind, first_sector, sectors, ..Request::default() }
}
fn read(first: u64, sectors: u32) -> Request {
    request(RequestKind::Read, first, sectors)
}
fn write(first: u64, sectors: u32) -> Request {
    request(RequestKind::Write, first, sectors)
}
fn flush() -> Request {
    request(RequestKind::Flush, 0, 0)
}

/// Reads of 100 us and writes of 1 ms below, whatever their size.
fn drive(text: &str) -> Controller<Below> {
    Controller::new(&config(text), Seed(1), Below::new(100_000, 1_000_000, 0))
}

/// One request after the other; the time of each in us.
fn times(drive: &mut Controller<Below>, requests: &[Request]) -> Vec<u64> {
    let mut completion = Completion::default();
    requests
        .iter()
        .map(|request| {
            let before = drive.now().0;
            drive.execute(*request, &mut completion).unwrap();
            assert_eq!(completion.end, drive.now());
            (drive.now().0 - before) / 1000
        })
        .collect()
}

/// All at once; the end of each in us, in the order of completion, with its tag.
fn together(drive: &mut Controller<Below>, requests: &[Request]) -> Vec<(u64, u64)> {
    for request in requests {
        drive.submit(*request).unwrap();
    }
    let (mut completion, mut ends) = (Completion::default(), Vec::new());
    while drive.wait(Nanos(NEVER), &mut completion).unwrap() {
        ends.push((completion.tag.0, completion.end.0 / 1000));
    }
    ends
}

fn writes_below(drive: &Controller<Below>) -> Vec<(u64, u32)> {
    let writes = drive.device().seen.iter().filter(|request| request.kind == RequestKind::Write);
    writes.map(|request| (request.first_sector, request.sectors)).collect()
}

// --- compared with the reference model ---

fn pick<'a>(rng: &mut Rng, from: &[&'a str]) -> &'a str {
    from[usize::try_from(below(rng, from.len() as u64)).unwrap()]
}

fn random_config(rng: &mut Rng) -> ControllerConfig {
    let mut text = format!(
        "interface-rate = {:?}\ninterface = {:?}\nqueue-depth = {}\nread-overhead = {:?}\nwrite-overhead = {:?}\n\
         command-limit = {:?}\nturnaround = {:?}\n",
        pick(rng, &["none", "100 MB/s", "3 MB/s"]),
        pick(rng, &["half-duplex", "full-duplex"]),
        pick(rng, &["0", "1", "2", "7", "64"]),
        pick(rng, &["0 ns", "20 us", "1 us"]),
        pick(rng, &["0 ns", "30 us"]),
        pick(rng, &["0 B", "512 B", "2 KiB", "1536 B"]),
        pick(rng, &["0 ns", "50 us"]),
    );
    if chance(rng, 0.8) {
        text += &format!(
            "[controller.write-buffer]\nsize = {:?}\nkind = {:?}\ndrain = {:?}\noversized = {:?}\ncombine = {}\nflushes = {}\nentry = {:?}\n",
            pick(rng, &["512 B", "2560 B", "8 KiB", "20 KiB"]),
            pick(rng, &["fifo", "cache"]),
            pick(rng, &["lazy", "eager"]),
            pick(rng, &["through", "stream"]),
            pick(rng, &["true", "false"]),
            pick(rng, &["1", "3"]),
            pick(rng, &["0 B", "1 KiB", "2560 B"]),
        );
    }
    if chance(rng, 0.7) {
        text += &format!(
            "[controller.read-buffer]\nsize = \"6 KiB\"\nleast = {:?}\nprefetch = {:?}\n",
            pick(rng, &["0 B", "1 KiB"]),
            pick(rng, &["0 B", "2 KiB", "6 KiB"]),
        );
    }
    config(&text)
}

fn random_request(rng: &mut Rng, span: u64, next: &mut u64) -> Request {
    let most = if chance(rng, 0.1) { 30 } else { 6 };
    let sectors = 1 + u32::try_from(below(rng, most)).unwrap();
    let first = if chance(rng, 0.4) { *next % span } else { below(rng, span) };
    *next = first + u64::from(sectors);
    let kind = match below(rng, 100) {
        0..45 => RequestKind::Write,
        45..90 => RequestKind::Read,
        90..97 => RequestKind::Trim,
        _ => return flush(),
    };
    Request { fua: chance(rng, 0.05), ..request(kind, first, sectors) }
}

/// Every read returns what was last written before it, whatever is in flight; after a flush, flash holds everything;
/// buffered bytes are accounted for; commands complete once, in order of time.
#[test]
fn a_read_gets_what_was_written_last() {
    let (mut checked, mut hits, mut coming) = (0, [0; 4], 0);
    for seed in 0..400 {
        let mut rng = Seed(seed).stream("controller");
        let config = random_config(&mut rng);
        let span = 20 + below(&mut rng, 200);
        let mut drive = Controller::new(&config, Seed(1), Below::new(100_000, 300_000, 400_000));
        // By sector the last write, 0 for none; nothing after a trim.
        let mut newest: BTreeMap<u64, Option<u64>> = BTreeMap::new();
        let mut expected: HashMap<Tag, Vec<Option<u64>>> = HashMap::new();
        let depth = 1 + below(&mut rng, 40);
        let (mut open, mut last, mut next, mut submitted) = (HashSet::new(), 0, 0, 0);
        let mut completion = Completion::default();
        while submitted < 250 || !open.is_empty() {
            if submitted < 250 && (open.len() as u64) < depth {
                let arrival = drive.now().0 + if chance(&mut rng, 0.5) { 0 } else { below(&mut rng, 500_000) };
                let request = Request { arrival: Nanos(arrival), ..random_request(&mut rng, span, &mut next) };
                let sectors = request.first_sector..request.end_sector();
                let data = if request.kind == RequestKind::Write { sector_with(submitted + 1) } else { Vec::new() };
                let tag = drive.submit_with(request, &data.repeat(request.sectors as usize)).unwrap();
                assert!(open.insert(tag), "seed {seed}: {tag:?} is new");
                match request.kind {
                    RequestKind::Write => newest.extend(sectors.map(|sector| (sector, Some(submitted + 1)))),
                    RequestKind::Trim => newest.extend(sectors.map(|sector| (sector, None))),
                    RequestKind::Read => {
                        let all = sectors.map(|sector| *newest.get(&sector).unwrap_or(&Some(0)));
                        drop(expected.insert(tag, all.collect()));
                    }
                    _ => {}
                }
                submitted += 1;
                continue;
            }
            let until = if chance(&mut rng, 0.5) { NEVER } else { drive.now().0 + below(&mut rng, 200_000) };
            if drive.wait(Nanos(until), &mut completion).unwrap() {
                assert!(open.remove(&completion.tag), "seed {seed}: {completion:?} ends once");
                assert!(completion.end.0 >= last && completion.end.0 <= until && drive.now() >= completion.end);
                assert!(completion.start >= completion.request.arrival && completion.end >= completion.start);
                last = completion.end.0;
                if let Some(expected) = expected.remove(&completion.tag) {
                    let mut data = vec![0; completion.request.data_bytes()];
                    assert!(drive.take_data(completion.tag, &mut data), "seed {seed}: {completion:?}");
                    for (found, expected) in data.chunks(512).zip(expected) {
                        let Some(expected) = expected else { continue };
                        checked += 1;
                        assert_eq!(number_in(found), expected, "seed {seed}: {completion:?}");
                    }
                }
            } else {
                assert_ne!(until, NEVER, "seed {seed}: {open:?} never end");
                assert_eq!(drive.now().0, until, "the clock gets there");
            }
            coming += usize::from(!drive.held.is_empty());
            assert!(drive.buffered_bytes() <= config.write_buffer.size.0);
            assert!(drive.device().flights.len() >= drive.inside.under_way.len());
        }
        drive.execute(flush(), &mut completion).unwrap();
        assert_eq!(drive.buffered_bytes(), 0);
        for (sector, number) in newest.iter().filter_map(|(sector, number)| Some((sector, (*number)?))) {
            assert_eq!(drive.device().sectors.get(sector), Some(&number), "seed {seed}: sector {sector} after a flush");
        }
        assert!(drive.payloads.as_ref().is_some_and(|payloads| payloads.only_keeps()), "seed {seed}: bytes are left");
        let figures = drive.figures();
        let out: u64 = writes_below(&drive).iter().map(|(_, sectors)| u64::from(*sectors) * SECTOR_BYTES).sum();
        assert_eq!(out, figures.flushed_bytes + figures.write_through_bytes, "seed {seed}");
        let (came, replaced) = (figures.write_buffer_bytes, figures.write_buffer_hit_bytes);
        assert_eq!(came - replaced, figures.flushed_bytes + figures.dropped_bytes, "seed {seed}");
        assert!(figures.prefetched_used_bytes <= figures.prefetched_bytes);
        assert!(
            drive.unsettled.is_empty() && drive.held.is_empty() && drive.writers.is_empty() && drive.in_flight() == 0
        );
        for (sum, hit) in hits.iter_mut().zip([
            figures.write_buffer_hits,
            figures.write_buffer_read_hits,
            figures.read_buffer_hits,
            figures.prefetched_used_bytes,
        ]) {
            *sum += hit;
        }
    }
    assert!(checked > 100_000 && coming > 1_000 && hits.iter().all(|hits| *hits > 500), "{checked} {hits:?} {coming}");
}

/// Twice the same, and with its state taken out and put back in between.
#[test]
fn a_clone_goes_on_as_the_original() {
    let mut rng = Seed(1).stream("controller");
    let config = config(
        "turnaround = \"50 us\"\nwrite-buffer = { size = \"8 KiB\", drain = \"eager\" }\nread-buffer.size = \"4 KiB\"",
    );
    let mut drive = Controller::new(&config, Seed(1), Below::new(100_000, 300_000, 400_000));
    let mut next = 0;
    for _ in 0..200 {
        drive.submit(random_request(&mut rng, 100, &mut next)).unwrap();
    }
    let mut other = drive.clone();
    let (mut a, mut b) = (Completion::default(), Completion::default());
    while drive.wait(Nanos(NEVER), &mut a).unwrap() {
        assert!(other.wait(Nanos(NEVER), &mut b).unwrap());
        assert_eq!(a, b);
    }
    assert_eq!(drive.figures(), other.figures());
}

// --- times worked out on paper: reads of 100 us, writes of 1000 us below; a sector crosses the link in 10 us ---

const LINK: &str = "interface-rate = \"51.2 MB/s\"\n";

/// 5 of overhead, 10 a sector. The buffer has room for 8 sectors.
///
/// ```text
///   write 8     85    all in the buffer                      write 12 as a stream  5 + 80
///   write 9   1095    5 + 90, then flash                       flash takes those 8, 1000
///   write 4   1045    5, flash takes the first 8, 40           the other 4, 40
///   write 4     45    room is left                             = 1125
///   flush     2000    two entries, one after the other
/// ```
#[test]
fn a_write_that_fits_does_not_wait_for_flash() {
    let text = format!("{LINK}write-overhead = \"5 us\"\nwrite-buffer.size = \"4 KiB\"\n");
    let mut through = drive(&text);
    let requests = [write(0, 8), write(8, 9), write(100, 4), write(104, 4), flush()];
    assert_eq!(times(&mut through, &requests), [85, 1095, 1045, 45, 2000]);
    assert_eq!(writes_below(&through), [(8, 9), (0, 8), (100, 4), (104, 4)]);
    let figures = through.figures();
    assert_eq!((figures.flushes, figures.flushes_forced, figures.write_through_bytes), (3, 3, 9 * 512));
    let mut stream = drive(&format!("{text}write-buffer.oversized = \"stream\"\n"));
    assert_eq!(times(&mut stream, &[write(0, 12), flush()]), [1125, 1000]);
    let mut two = drive(&format!("{text}write-buffer.flushes = 2\n"));
    assert_eq!(times(&mut two, &[write(0, 4), write(4, 4), flush()]), [45, 45, 1000]);
}

/// The first write is on its way to the flash from 80 to 1080; the second finds room then.
#[test]
fn an_eager_buffer_empties_itself_while_the_host_waits() {
    let text = format!("{LINK}write-buffer = {{ size = \"4 KiB\", drain = \"eager\" }}\n");
    assert_eq!(times(&mut drive(&text), &[write(0, 8), write(8, 8)]), [80, 1080]);
    let mut idle = drive(&text);
    let mut completion = Completion::default();
    idle.execute(write(0, 8), &mut completion).unwrap();
    assert!(!idle.wait(Nanos(500_000), &mut completion).unwrap());
    assert_eq!((idle.now(), idle.buffered_bytes()), (Nanos(500_000), 4096));
    assert!(!idle.wait(Nanos(NEVER), &mut completion).unwrap());
    assert_eq!((idle.now(), idle.buffered_bytes()), (Nanos(500_000), 4096), "the clock stays");
    assert!(!idle.wait(Nanos(1_080_000), &mut completion).unwrap());
    assert_eq!((idle.now(), idle.buffered_bytes()), (Nanos(1_080_000), 0));
    assert_eq!(times(&mut idle, &[write(8, 8)]), [80]);
}

/// Parts of 4 sectors, which take and free room by themselves. Lazy: the second write finds the buffer full, so that each of
/// its parts waits 1000 for an entry to leave and crosses in 40. Eager: the entries of the first write are on flash at 1040
/// and 2040, and its parts cross then; the first was acknowledged at 80.
#[test]
fn a_write_in_several_entries_comes_in_as_room_is_made() {
    let text = format!("{LINK}write-buffer = {{ size = \"4 KiB\", entry = \"2 KiB\" }}\n");
    let mut lazy = drive(&text);
    assert_eq!(times(&mut lazy, &[write(0, 8), write(10, 8)]), [80, 2080]);
    assert_eq!(writes_below(&lazy), [(0, 4), (4, 4)]);
    let mut eager = drive(&text.replace(" }", ", drain = \"eager\" }"));
    assert_eq!(times(&mut eager, &[write(0, 8), write(8, 8)]), [80, 2000]);
    // The first part of 10 ends at 12, a multiple of 4: 20 for it and 40 for the next; flash has them at 1020 and 2020.
    let mut inside = drive(&text);
    assert_eq!(times(&mut inside, &[write(10, 6), flush()]), [60, 2000]);
    assert_eq!(writes_below(&inside), [(10, 2), (12, 4)]);
}

/// 4 5 are the newest entry, so they are replaced in both. 0 1 then cost a flush in a buffer, nothing in a cache; there
/// 4 5 have not been written for longest and leave for 20.
#[test]
fn a_buffer_hits_its_newest_entry_and_a_cache_any() {
    let requests = [write(0, 4), write(4, 4), write(5, 2), write(0, 4), write(20, 4)];
    let text = format!("{LINK}write-buffer.size = \"4 KiB\"\n");
    let mut fifo = drive(&text);
    assert_eq!(times(&mut fifo, &requests), [40, 40, 20, 1040, 1040]);
    assert_eq!(writes_below(&fifo), [(0, 4), (4, 4)]);
    assert_eq!(fifo.figures().write_buffer_hits, 1);
    let mut cache = drive(&format!("{text}write-buffer.kind = \"cache\"\n"));
    assert_eq!(times(&mut cache, &requests), [40, 40, 20, 40, 1040]);
    assert_eq!(writes_below(&cache), [(4, 4)]);
    assert_eq!(cache.figures().write_buffer_hits, 2);
}

#[test]
fn entries_that_adjoin_reach_the_flash_as_one_write_up_to_the_limit() {
    let text = format!("{LINK}write-buffer = {{ size = \"8 KiB\", combine = true }}\n");
    let requests = [write(4, 4), write(8, 4), write(0, 4), flush()];
    let mut joined = drive(&text);
    assert_eq!(times(&mut joined, &requests), [40, 40, 40, 1000]);
    assert_eq!(writes_below(&joined), [(0, 12)]);
    let mut limited = drive(&format!("command-limit = \"4 KiB\"\n{text}"));
    assert_eq!(times(&mut limited, &requests), [40, 40, 40, 2000]);
    assert_eq!(writes_below(&limited), [(4, 8), (0, 4)]);
}

/// Firmware 5, flash 100, link 10: one at a time 115 each; two at a time the second is 5 later at the flash and waits
/// for the link until 115.
#[test]
fn a_drive_takes_so_many_commands_at_once() {
    let text = format!("{LINK}read-overhead = \"5 us\"\n");
    let requests = [read(0, 1), read(8, 1), read(16, 1)];
    assert_eq!(together(&mut drive(&format!("{text}queue-depth = 1")), &requests), [(0, 115), (1, 230), (2, 345)]);
    assert_eq!(together(&mut drive(&format!("{text}queue-depth = 2")), &requests), [(0, 115), (1, 125), (2, 230)]);
    assert_eq!(drive(&format!("{text}queue-depth = 2")).info().queue_depth, 2);
    assert_eq!(drive(&text).info().queue_depth, 32, "as the device below");
}

/// At 100 the read has its data and the write arrives: one after the other, or side by side.
#[test]
fn a_link_carries_one_way_or_both() {
    let requests = [read(0, 4), Request { arrival: Nanos(100_000), ..write(8, 4) }];
    let text = format!("{LINK}write-buffer.size = \"4 KiB\"\n");
    assert_eq!(together(&mut drive(&text), &requests), [(0, 140), (1, 180)]);
    let full = format!("interface = \"full-duplex\"\n{text}");
    assert_eq!(together(&mut drive(&full), &requests), [(1, 140), (0, 140)]);
}

/// The write starts at 0, both reads after a turn at 50, the second write after another at 100.
#[test]
fn a_turnaround_keeps_the_flash_waiting() {
    let mut turning = drive("turnaround = \"50 us\"");
    let ends = together(&mut turning, &[write(0, 1), read(8, 1), read(16, 1), write(24, 1)]);
    assert_eq!(ends, [(1, 150), (2, 150), (0, 1000), (3, 1100)]);
    assert_eq!(turning.figures().turnarounds, 2);
}

/// Pieces of 2 sectors at even addresses. The read of 1 to 4 has three of them, each over the link while flash reads the
/// next, and the last one after it. Of the write, both cross by 40; flash has the first from 20 on.
#[test]
fn a_command_is_worked_on_piece_by_piece() {
    let mut limited = drive(&format!("{LINK}command-limit = \"1 KiB\"\n"));
    assert_eq!(times(&mut limited, &[read(1, 4), write(0, 4)]), [310, 2020]);
    let seen: Vec<_> = limited.device().seen.iter().map(|request| (request.first_sector, request.sectors)).collect();
    assert_eq!(seen, [(1, 1), (2, 2), (4, 1), (0, 2), (2, 2)]);
}

/// Flash 100 and 10 a sector, or the link alone.
#[test]
fn a_read_buffer_keeps_what_was_read_last() {
    let mut kept = drive(&format!("{LINK}read-buffer = {{ size = \"4 KiB\", least = \"1 KiB\" }}\n"));
    let requests = [
        (read(0, 4), 140),
        (read(0, 4), 40),
        (read(1, 2), 20),
        (read(1, 1), 110), // below the least
        (read(4, 4), 140),
        (read(2, 4), 40),
        (read(40, 9), 190), // too large: it leaves nothing
        (read(0, 4), 140),
        (write(3, 1), 1010),
        (read(0, 4), 140),
    ];
    let (requests, expected): (Vec<_>, Vec<_>) = requests.into_iter().unzip();
    assert_eq!(times(&mut kept, &requests), expected);
    assert_eq!(kept.figures().read_buffer_hits, 3);
}

/// The second read continues where the first ended, so 4 to 7 are read in parallel. At 240 those serve the third, and 8
/// to 11 are read until 340, for which the last read, at 280, waits.
#[test]
fn a_reader_that_goes_on_is_read_ahead_of() {
    let mut ahead = drive(&format!("{LINK}read-buffer = {{ size = \"4 KiB\", prefetch = \"2 KiB\" }}\n"));
    let requests = [read(0, 2), read(2, 2), read(4, 2), read(6, 2), read(8, 2)];
    assert_eq!(times(&mut ahead, &requests), [120, 120, 20, 20, 80]);
    let figures = ahead.figures();
    assert_eq!(figures.read_buffer_hits, 3);
    // The fifth read causes a read-ahead of 12 to 15.
    assert_eq!((figures.prefetched_bytes, figures.prefetched_used_bytes), (12 * 512, 6 * 512));
}

/// A read of buffered sectors alone takes the link's time; one that reaches further waits for the flush of 1000 only in
/// the order of what flash is asked.
#[test]
fn a_read_finds_what_is_buffered() {
    let mut drive = drive(&format!("{LINK}write-buffer.size = \"4 KiB\"\n"));
    assert_eq!(times(&mut drive, &[write(0, 2), write(2, 2), read(1, 2), read(3, 2)]), [20, 20, 20, 120]);
    let seen: Vec<_> = drive.device().seen.iter().map(|request| (request.kind, request.first_sector)).collect();
    // In order of arrival, though only the second entry is requested.
    assert_eq!(seen, [(RequestKind::Write, 0), (RequestKind::Write, 2), (RequestKind::Read, 3)]);
    assert_eq!(drive.figures().write_buffer_read_hits, 1);
}

#[test]
fn a_trim_drops_what_is_buffered() {
    let mut drive = drive("write-buffer.size = \"4 KiB\"");
    let trim = request(RequestKind::Trim, 0, 5);
    assert_eq!(times(&mut drive, &[write(0, 4), write(4, 2), trim, flush()]), [0, 0, 0, 1000]);
    assert_eq!(writes_below(&drive), [(4, 2)], "of the second entry a sector stays");
    assert_eq!(drive.figures().dropped_bytes, 4 * 512);
}

/// 40 on the link, then both entries one after the other. One past the buffer waits for the entry before it, too.
#[test]
fn a_forced_write_is_on_flash_with_all_before_it() {
    let forced = |first, sectors| Request { fua: true, ..write(first, sectors) };
    let mut drive = drive(&format!("{LINK}write-buffer.size = \"4 KiB\"\n"));
    let requests = [write(0, 4), forced(4, 4), write(20, 4), forced(40, 9)];
    assert_eq!(times(&mut drive, &requests), [40, 2040, 40, 2090]);
    assert_eq!(writes_below(&drive), [(0, 4), (4, 4), (20, 4), (40, 9)]);
}

#[test]
fn a_flush_holds_up_the_writes_behind_it() {
    let mut drive = drive(&format!("{LINK}write-buffer.size = \"4 KiB\"\n"));
    let ends = together(&mut drive, &[write(0, 4), flush(), write(8, 4)]);
    assert_eq!(ends, [(0, 40), (1, 1040), (2, 1080)]);
}

#[test]
fn what_the_device_below_refuses_is_told_and_the_rest_goes_on() {
    let mut refusing = drive("command-limit = \"1 KiB\"");
    refusing.device_mut().refuse = Some(RequestKind::Write);
    refusing.submit(write(0, 6)).unwrap();
    refusing.submit(read(100, 2)).unwrap();
    let mut completion = Completion::default();
    assert!(refusing.wait(Nanos(NEVER), &mut completion).unwrap());
    assert_eq!(completion.tag, Tag(0));
    assert_eq!(completion.result, Err(Box::new(IoError::WornOut { reason: "no".to_owned() })));
    assert!(refusing.wait(Nanos(NEVER), &mut completion).unwrap());
    assert_eq!((completion.tag, completion.end, completion.result.is_ok()), (Tag(1), Nanos(100_000), true));
    assert!(!refusing.wait(Nanos(NEVER), &mut completion).unwrap());
    assert_eq!(refusing.in_flight(), 0);
    let past = refusing.submit(read(1 << 21, 1)).unwrap_err();
    assert!(matches!(past, IoError::OutOfRange { device_sectors: 0x20_0000, .. }));
}

/// Eager: the first write is acknowledged from the buffer at 40, and flash then refuses its data. The flush is next to
/// complete among those that change something, so it reports the loss; the read before it does not. Later commands
/// succeed.
#[test]
fn a_loss_after_the_acknowledgement_is_told_by_the_next_command() {
    let mut drive = drive(&format!("{LINK}write-buffer = {{ size = \"4 KiB\", drain = \"eager\" }}\n"));
    drive.device_mut().refuse = Some(RequestKind::Write);
    let mut completion = Completion::default();
    let mut outcome = |drive: &mut Controller<Below>, request| {
        drive.execute(request, &mut completion).unwrap();
        completion.result.clone()
    };
    assert_eq!(outcome(&mut drive, write(0, 4)), Ok(()));
    assert!(!drive.wait(Nanos(3_000_000), &mut Completion::default()).unwrap());
    assert_eq!(outcome(&mut drive, read(100, 2)), Ok(()));
    let lost = Err(Box::new(IoError::WornOut { reason: "no".to_owned() }));
    assert_eq!(outcome(&mut drive, flush()), lost);
    assert_eq!(outcome(&mut drive, flush()), Ok(()));
    assert_eq!((drive.in_flight(), drive.buffered_bytes()), (0, 0));
}

/// Sequential reads cause read-ahead of the next sectors. If that fails, the read that waits for them goes to the
/// flash.
#[test]
fn a_read_ahead_that_fails_leaves_reads_to_the_flash() {
    let mut drive = drive("read-buffer = { size = \"16 KiB\", prefetch = \"4 KiB\" }");
    let mut completion = Completion::default();
    for first in [0, 4, 8, 12, 16, 20] {
        drive.device_mut().refuse_ahead = first == 4;
        drive.execute(read(first, 4), &mut completion).unwrap();
        assert_eq!(completion.result, Ok(()), "{first}");
    }
    assert!(drive.device().seen.iter().any(|request| request.sectors == 8), "something was read ahead later");
    assert!(drive.held.is_empty() && drive.in_flight() == 0);
}

/// One place, reads of 100 us. Queue 1 asks for four, then queue 2 for two, and last queue 3, which is urgent, for one.
#[test]
fn another_arbiter_takes_other_commands_from_the_driver() {
    let asked: Vec<Request> = (0..)
        .zip([1, 1, 1, 1, 2, 2, 3])
        .map(|(n, queue)| {
            let priority = if queue == 3 { Priority::Urgent } else { Priority::Medium };
            Request { queue, priority, ..read(8 * n, 8) }
        })
        .collect();
    let tags = |queues: &str| -> Vec<u64> {
        let one = config(&format!("queue-depth = 1\n[controller.queues]\n{queues}"));
        let mut drive = Controller::new(&one, Seed(1), Below::new(100_000, 1_000_000, 0));
        let mut completion = Completion::default();
        for request in &asked {
            drive.submit(*request).unwrap();
        }
        let next = |_: &Request| {
            assert!(drive.wait(Nanos(NEVER), &mut completion).unwrap());
            assert_eq!(completion.end.0 % 100_000, 0);
            completion.tag.0
        };
        asked.iter().map(next).collect()
    };
    assert_eq!(tags("arbiter = \"fifo\""), [0, 1, 2, 3, 4, 5, 6]);
    // The first found the drive free; then queue 2 has as many turns as queue 1.
    assert_eq!(tags("arbiter = \"round-robin\""), [0, 1, 4, 6, 2, 5, 3]);
    assert_eq!(tags("arbiter = \"round-robin\"\nround-robin.burst = 2"), [0, 1, 2, 4, 5, 6, 3]);
    assert_eq!(tags("arbiter = \"weighted\""), [0, 6, 1, 4, 2, 5, 3]);
}

/// When each of these requests was taken, and when the host saw its completion, in the order in which it did; in microseconds.
fn seen(queues: &str, asked: &[(u64, u16)]) -> Vec<(u64, u64, u64)> {
    let config = config(&format!("queue-depth = 8\n[controller.queues]\n{queues}"));
    let mut drive = Controller::new(&config, Seed(1), Below::new(100_000, 1_000_000, 0));
    for (n, (at, queue)) in (0..).zip(asked) {
        drive.submit(Request { arrival: Nanos(1000 * at), queue: *queue, ..read(8 * n, 8) }).unwrap();
    }
    assert_eq!(drive.in_flight(), asked.len());
    let mut completion = Completion::default();
    let next = |_: &(u64, u16)| {
        assert!(drive.wait(Nanos(NEVER), &mut completion).unwrap());
        (completion.tag.0, completion.start.0 / 1000, completion.end.0 / 1000)
    };
    let found = asked.iter().map(next).collect();
    assert_eq!((drive.in_flight(), drive.wait(Nanos(NEVER), &mut completion)), (0, Ok(false)));
    found
}

/// Reads of 100 us. A doorbell takes 5 us and an interrupt 3 us.
#[test]
fn doorbells_and_interrupts_take_their_time() {
    let both = seen("doorbell = \"5 us\"\ninterrupt = \"3 us\"", &[(0, 1), (0, 1), (7, 2)]);
    assert_eq!(both, [(0, 5, 108), (1, 5, 108), (2, 12, 115)]);
    // A place is free when a command ends, not when the host has seen it.
    let one = config("queue-depth = 1\n[controller.queues]\ndoorbell = \"5 us\"\ninterrupt = \"3 us\"");
    let mut drive = Controller::new(&one, Seed(1), Below::new(100_000, 1_000_000, 0));
    let mut completion = Completion::default();
    drive.submit(read(0, 8)).unwrap();
    drive.submit(read(8, 8)).unwrap();
    for end in [108_000, 208_000] {
        assert!(drive.wait(Nanos(NEVER), &mut completion).unwrap());
        assert_eq!(completion.end, Nanos(end));
    }
}

/// Reads of 100 us. An interrupt is for three completions of a queue, or for those of 50 us.
#[test]
fn completions_of_a_queue_share_interrupts() {
    let queues = "interrupt = \"2 us\"\naggregation-threshold = 3\naggregation-time = \"50 us\"";
    let found = seen(queues, &[(0, 1), (0, 2), (10, 1), (20, 1), (30, 1), (40, 1)]);
    // Those of queue 1 end at 100, 110 and 120: together. The next two end at 130 and 140, and no third comes by 180.
    assert_eq!(found, [(0, 0, 122), (2, 10, 122), (3, 20, 122), (1, 0, 152), (4, 30, 182), (5, 40, 182)]);
    // One that ends when the time of those before it is over waits for others anew.
    assert_eq!(
        seen(queues, &[(0, 1), (50, 1), (99, 1), (100, 1)]),
        [(0, 0, 152), (1, 50, 202), (2, 99, 202), (3, 100, 252)]
    );
}

/// What waits for a doorbell or an interrupt fails when the power does.
#[test]
fn a_loss_of_power_takes_what_the_host_has_not_seen() {
    let text = "recovery.mount-by = \"scan\"\n[controller.queues]\ndoorbell = \"5 us\"\naggregation-threshold = 9\naggregation-time = \"1 s\"";
    let config = crate::Config::from_toml(text, "test").unwrap();
    let ssd = Ssd::with_policies(&config, Seed(1), crate::Keeps::Bytes, &crate::Policies::default()).unwrap();
    let mut drive = Controller::of_drive(ssd, Seed(1));
    let mut completion = Completion::default();
    drive.submit(read(0, 8)).unwrap();
    assert_eq!(drive.wait(Nanos(10_000_000), &mut completion), Ok(false));
    assert_eq!(drive.queue.taken(), 0); // it has ended
    drive.submit(read(8, 8)).unwrap();
    drive.cut().unwrap();
    for tag in 0..2 {
        assert_eq!(drive.wait(Nanos(NEVER), &mut completion), Ok(true));
        assert_eq!((completion.tag, &completion.result), (Tag(tag), &Err(Box::new(IoError::PowerOff))));
    }
    assert_eq!(drive.wait(Nanos(NEVER), &mut completion), Ok(false));
}

#[test]
fn contradictions_are_said_in_a_line_each() {
    let text = "[controller]\ncommand-limit = \"100 B\"\nqueue-depth = 70000\n[controller.write-buffer]\nkind = \"cache\"\n\
                flushes = 0\n[controller.read-buffer]\nsize = \"4 KiB\"\nleast = \"8 KiB\"\nprefetch = \"5 KiB\"\n\
                [controller.queues]\naggregation-threshold = 8\n";
    let message = crate::Config::from_toml(text, "ssd.toml").unwrap_err().to_string();
    assert_eq!(
        message.replace("ssd.toml: controller.", ""),
        "command-limit: found 100 B, expected a multiple of 512 B, at most 1 TiB\n\
         queue-depth: found 70000, expected 0 to 65,536\n\
         queues.aggregation-time: found 0 ns, expected a time, after which fewer completions than \
         controller.queues.aggregation-threshold get their interrupt\n\
         read-buffer.least: found 8 KiB, expected no more than controller.read-buffer.size = 4 KiB\n\
         read-buffer.prefetch: found 5 KiB, expected no more than controller.read-buffer.size = 4 KiB\n\
         write-buffer.flushes: found 0, expected 1 to 1,024\n\
         write-buffer.size: found 0 B (no buffer), expected a size, which the other settings of \
         controller.write-buffer need"
    );
    assert!(ControllerConfig::default().is_off() && !config("queue-depth = 1").is_off());
}
