//! Every reader on a few lines, with the requests worked out on paper.

#![allow(clippy::unwrap_used)] // helpers are outside of #[test]

use crate::trace_support::{Folder, insist, read, read_all, read_text, request};
use flashwright_block::RequestKind::{Flush, Read, Trim, Write};
use flashwright_block::{Request, RequestSource};
use flashwright_workload::trace::{
    DeviceFilter, DeviceSpan, Layout, Order, TimeUnit, TraceInfo, TraceOptions, TraceReader, detect, find_format,
    formats,
};

/// Reads `text` without naming the format, and checks that `format` was found.
fn detected(format: &str, text: &str) -> Vec<Request> {
    let folder = Folder::new();
    let path = folder.file(text);
    assert_eq!(detect(&path).unwrap().name(), format);
    read(&path, &TraceOptions::default()).unwrap()
}

#[test]
fn spc() {
    // ASU 0 reaches sector 107 + 7 = 114, rounded up to 120: there ASU 1 begins.
    // 700 B are two sectors. 0.026214 s after the first is 26,214,000 ns.
    let text = "0,100,3584,w,1.000000\n1,5,512,R,1.000000\n0,107,3584,W,1.026214\n1,6,700,r,1.5\n";
    assert_eq!(
        detected("spc", text),
        [
            request(0, Write, 100, 7),
            request(0, Read, 125, 1),
            request(26_214_000, Write, 107, 7),
            request(500_000_000, Read, 126, 2),
        ]
    );
}

#[test]
fn msr() {
    // Disk 1 of src reaches (4096 + 1024) / 512 = 10 sectors, so 16; src.2 lies behind it. One tick is 100 ns.
    let text = "128166391024154329,src,2,Write,8192,4096,1514\r\n128166391024154339,src,1,Read,4096,1024,9\r\n";
    assert_eq!(detected("msr", text), [request(0, Write, 16 + 16, 8), request(1_000, Read, 8, 2)]);
}

#[test]
fn etw() {
    // Completion minus elapsed: 261,233 - 3,788 = 257,445 us; 264,162 - 7,571 = 256,591 us, which is earlier and so
    // the start; 277,804 - 454 = 277,350 us. Disk 4 reaches (0x2000 + 0x2000) / 512 = 32 sectors.
    let text = "BeginHeader\n\
        DiskRead,  TimeStamp,     Process Name ( PID),   ThreadID, IrpPtr,   ByteOffset,     IOSize, ElapsedTime,  DiskNum, IrpFlags\n\
        DiskWrite,  TimeStamp,     Process Name ( PID),   IOSize, ElapsedTime,  DiskNum, ByteOffset\n\
        DiskReadInit,  TimeStamp\n\
        EndHeader\n\
        \x20 DiskRead,     261233, p0 (2004),       3348, 0xfffffadf3b9ca010, 0x0000002000, 0x00002000,        3788,        4, 0x000901\n\
        \x20 DiskReadInit,     261240, p0 (2004)\n\
        \x20 DiskRead,     264162, q, (  17),       1, 0x1, 0x0000000400, 0x00000200,        7571,        5, 0x000901\n\
        \x20 DiskWrite,     277804, System (-1), 0x0000f000,   454, 4, 0x0\n";
    let text = text.replace("q, (", "q (").replace("0x0000f000", "0x00000a00");
    let read = |arrival, kind, first, sectors, process| Request { process, ..request(arrival, kind, first, sectors) };
    assert_eq!(
        detected("etw", &text),
        [read(0, Read, 32 + 2, 1, 17), read(854_000, Read, 16, 16, 2004), read(20_759_000, Write, 0, 5, 0)]
    );
}

#[test]
fn blkparse() {
    // A flush before a write (FWS) goes first; the second F is force-unit-access; D and C events are ignored.
    let text = "  8,0    3        1     0.000000000   697  Q   W 223490 + 8 [kjournald]\n  \
        8,0    3        2     0.000001829   697  G   W 223490 + 8 [kjournald]\n  \
        8,0    3        3     0.000002000   697  P   N [kjournald]\n  \
        8,0    3        4     0.000100000   697  D   W 223490 + 8 [kjournald]\n  \
        8,0    1        5     0.000200000    12  Q FWFS 16 + 8 [jbd2/sda]\n  \
        8,0    1        6     0.000300000    12  Q  FN [jbd2/sda]\n  \
        8,0    1        7     0.000400000    12  Q   D 2048 + 1024 [fstrim]\n  \
        8,0    1        8     0.000500000    12  Q  RA 8 + 8 [cat]\n  \
        8,0    1        9     0.000600000     0  C  RA 8 + 8 [0]\n\
        CPU0 (8,0):\n Reads Queued:         963,     3852KiB\n\nTotal (8,0):\n";
    let by = |process, request: Request| Request { process, ..request };
    assert_eq!(
        detected("blkparse", text),
        [
            by(697, request(0, Write, 223_490, 8)),
            by(12, request(200_000, Flush, 0, 0)),
            Request { fua: true, ..by(12, request(200_000, Write, 16, 8)) },
            by(12, request(300_000, Flush, 0, 0)),
            by(12, request(400_000, Trim, 2048, 1024)),
            by(12, request(500_000, Read, 8, 8)),
        ]
    );
}

/// One blktrace record with its payload.
fn record(little: bool, time: u64, sector: u64, bytes: u32, action: u32, pdu: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut put32 = |value: u32| out.extend(if little { value.to_le_bytes() } else { value.to_be_bytes() });
    let halves = |value: u64| {
        let (low, high) = (value as u32, (value >> 32) as u32);
        if little { [low, high] } else { [high, low] }
    };
    put32(0x6561_7407);
    put32(1);
    halves(time).into_iter().for_each(&mut put32);
    halves(sector).into_iter().for_each(&mut put32);
    [bytes, action, 77, (8 << 20) | 16, 0].into_iter().for_each(&mut put32);
    let pdu_len = pdu.len() as u16;
    out.extend([0, 0]);
    out.extend(if little { pdu_len.to_le_bytes() } else { pdu_len.to_be_bytes() });
    out.extend(pdu);
    out
}

#[test]
fn blktrace_in_both_byte_orders() {
    // Flags in the high half: 1 read, 2 write, 4 flush, 0x400 notify, 0x2000 discard, 0x8000 force-unit-access.
    for little in [true, false] {
        let content = [
            record(little, 5_000_000_000, 64, 4096, 0x0001_0001, b"name"),
            record(little, 5_000_000_010, 64, 4096, 0x0001_0007, b""),
            record(little, 5_000_000_020, 0, 0, 0x0400_0001, b"message"),
            record(little, 5_000_000_300, 8, 512, 0x8002_0001, b""),
            record(little, 5_000_000_200, 16, 1024, 0x2002_0001, b""),
            record(little, 5_000_000_400, 0, 0, 0x0006_0001, b""),
        ]
        .concat();
        let folder = Folder::new();
        let path = folder.file(content);
        assert_eq!(detect(&path).unwrap().name(), "blktrace");
        let by = |request: Request| Request { process: 77, ..request };
        // The window puts 200 before 300.
        assert_eq!(
            read(&path, &TraceOptions::default()).unwrap(),
            [
                by(request(0, Read, 64, 8)),
                by(request(200, Trim, 16, 2)),
                Request { fua: true, ..by(request(300, Write, 8, 1)) },
                by(request(400, Flush, 0, 0)),
            ]
        );
    }
}

#[test]
fn fio_version_2_waits_until_ms_since_the_start() {
    let text = "fio version 2 iolog\n/dev/a add\n/dev/b add\n/dev/a open\n/dev/a write 4096 8192\n\
        /dev/b wait 250 0\n/dev/b read 0 512\n/dev/a wait 100 0\n/dev/a trim 512 512\n/dev/a wait 300 0\n\
        /dev/a datasync 0 0\n/dev/a close\n";
    // a reaches (4096 + 8192) / 512 = 24 sectors; b lies behind it. At 250 ms the second wait is over, as fio has it.
    let ms = 1_000_000;
    assert_eq!(
        detected("fio", text),
        [
            request(0, Write, 8, 16),
            request(250 * ms, Read, 24, 1),
            request(250 * ms, Trim, 1, 1),
            request(300 * ms, Flush, 0, 0),
        ]
    );
    // In the unit of fio's manual.
    let options = TraceOptions { time_unit: Some(TimeUnit::Us), ..TraceOptions::default() };
    assert_eq!(read_text(text, &options).unwrap()[3].arrival.0, 300_000);
}

#[test]
fn fio_writes_actions_that_it_does_not_read() {
    let text = "fio version 3 iolog\n0 f add\n1 f write 0 512\n2 f sync_file_range 0 0\n3 f syncfs 0 0\n4 f close\n";
    let folder = Folder::new();
    let mut reader = TraceReader::open(folder.file(text), &TraceOptions::default()).unwrap();
    assert_eq!(read_all(&mut reader).unwrap(), [request(0, Write, 0, 1), request(2_000, Flush, 0, 0)]);
    assert_eq!(reader.stats().ignored_events, 1);
}

#[test]
fn fio_version_3_has_microseconds() {
    let text = "fio version 3 iolog\n0 f add\n2 f open\n7 f read 1024 512\n9 f sync 0 0\n12 f close\n";
    assert_eq!(detected("fio", text), [request(0, Read, 2, 1), request(2_000, Flush, 0, 0)]);
}

#[test]
fn alibaba_and_tencent() {
    // Device 3 reaches 8 sectors, so device 10 begins at 8.
    let text = "10,W,4096,512,1577808000000046\n3,R,0,4096,1577808000000050\n";
    assert_eq!(detected("alibaba", text), [request(0, Write, 16, 1), request(4_000, Read, 0, 8)]);
    let text = "1538323200,10,8,1,1283\n1538323201,0,16,0,1283\n";
    assert_eq!(detected("tencent", text), [request(0, Write, 10, 8), request(1_000_000_000, Read, 0, 16)]);
}

#[test]
fn headed_csv() {
    // Sectors of 256 B: 1,056 of them are 528 of ours. Device 1 begins behind device 0's 16 sectors.
    let text = "time_s,device,sector,size_bytes,op,start_delay_us,complete_delay_us\n\
        0.5,1,1056,4096,R,174,19687\n0.522479,0,24,2048,W,76,10038\n";
    assert_eq!(detected("hplajw", text), [request(0, Read, 16 + 528, 8), request(22_479_000, Write, 12, 4)]);
    let text =
        "version,time,op,size,lbn\n1,5633898,2a,512,100\n1,5633899,28,6656,200\n1,5633899,1a,24,0\n1,5633900,35,0,0\n";
    assert_eq!(
        detected("cloudphysics", text),
        [request(0, Write, 100, 1), request(1_000_000_000, Read, 200, 13), request(2_000_000_000, Flush, 0, 0)]
    );
}

#[test]
fn the_column_formats_differ_when_named() {
    let line = "10.5 0 512 1024 1\n11.000001 0 1536 512 0\n";
    let second = 500_001;
    for (format, expected) in [
        ("disksim", [request(0, Read, 512, 1024), request(second, Write, 1536, 512)]),
        ("flashsim", [request(0, Read, 512, 8192), request(second, Write, 1536, 4096)]),
        ("bytes", [request(0, Read, 1, 2), request(second, Write, 3, 1)]),
    ] {
        assert_eq!(read_text(line, &insist(format)).unwrap(), expected, "{format}");
    }
    assert_eq!(
        read_text("7 2 8 16 1\n9 2 0 8 0\n", &insist("mqsim")).unwrap(),
        [request(0, Read, 8, 16), request(2, Write, 0, 8)]
    );
    // Flags of DiskSim: bit 0 alone counts.
    assert_eq!(read_text("0.0 0 8 16 3\n", &insist("disksim")).unwrap(), [request(0, Read, 8, 16)]);
    assert_eq!(read_text("0.0 0 8 16 2\n", &insist("disksim")).unwrap(), [request(0, Write, 8, 16)]);
}

#[test]
fn layouts_filters_and_spans() {
    let text = "2,0,4096,r,0\n10,8,4096,w,1\n2,0,4096,r,2\n";
    let folder = Folder::new();
    let path = folder.file(text);
    let firsts = |options: &TraceOptions| -> Vec<_> {
        read(&path, options).unwrap().iter().map(|request| request.first_sector).collect()
    };
    // In number order: 2 has 8 sectors, then 10.
    assert_eq!(firsts(&TraceOptions::default()), [0, 16, 0]);
    assert_eq!(firsts(&TraceOptions { layout: Layout::Overlay, ..TraceOptions::default() }), [0, 8, 0]);
    let devices = DeviceFilter::Only(vec!["10".to_owned()]);
    assert_eq!(firsts(&TraceOptions { devices, ..TraceOptions::default() }), [8]);
    let span = |name: &str, sectors| DeviceSpan { name: name.to_owned(), base_sector: 0, sectors, requests: 0 };
    let spans = vec![span("10", 1000), span("2", 8)];
    assert_eq!(firsts(&TraceOptions { spans, ..TraceOptions::default() }), [1000, 8, 1000]);

    for (spans, says) in [
        (vec![span("2", 8)], "no span is given for device 10"),
        (vec![span("2", 8), span("10", 15)], "device 10 reaches sector 16, beyond the 15 sectors"),
    ] {
        let error = read(&path, &TraceOptions { spans, ..TraceOptions::default() }).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn arrivals_are_clamped_counted_and_scaled() {
    let text = "0,0,512,r,5\n0,1,512,r,4\n0,2,512,r,7\n0,3,512,r,6\n";
    let folder = Folder::new();
    let path = folder.file(text);
    let options = TraceOptions { time_scale: 0.5, order: Some(Order::AsIs), ..TraceOptions::default() };
    let mut reader = TraceReader::open(&path, &options).unwrap();
    assert_eq!(reader.remaining(), Some(4));
    let arrivals: Vec<_> = read_all(&mut reader).unwrap().iter().map(|request| request.arrival.0).collect();
    assert_eq!(arrivals, [0, 0, 1_000_000_000, 1_000_000_000]);
    assert_eq!((reader.stats().out_of_order, reader.stats().requests), (2, 4));
    assert_eq!((reader.remaining(), reader.progress()), (Some(0), Some(1.0)));
    let error = TraceReader::open(&path, &TraceOptions { time_scale: f64::NAN, ..TraceOptions::default() });
    assert_eq!(
        error.err().unwrap().to_string(),
        "trace option time_scale: found NaN, expected a finite number, 0 or more"
    );
}

#[test]
fn info_counts_what_the_papers_print() {
    // Pages 0 and 1 written by the first, 1 by the second and third, page 2 read; the third request follows the
    // second of its own ASU though another comes between; five requests over 3 s.
    let text = "0,0,8192,w,0\n0,8,2048,w,1\n1,0,512,r,1.5\n0,12,2048,w,2\n0,16,4096,r,3\n";
    let folder = Folder::new();
    let info = TraceInfo::of(folder.file(text), &TraceOptions::default()).unwrap();
    assert_eq!((info.requests, info.reads, info.writes), (5, 2, 3));
    assert_eq!((info.pages, info.pages_written, info.pages_written_twice, info.pages_written_thrice), (4, 2, 1, 1));
    assert!((info.read_percent - 40.0).abs() < 1e-9 && (info.write_bytes_mean - 4096.0).abs() < 1e-9);
    assert!((info.sequential_percent - 40.0).abs() < 1e-9, "requests 4 and 5 of 5");
    assert!((info.inter_arrival_ms_mean - 750.0).abs() < 1e-9);
    assert_eq!((info.end_byte, info.devices.len(), info.devices[1].base_sector), (25 * 512, 2, 24));
}

#[test]
fn the_table_is_sound() {
    for format in formats() {
        assert_eq!(find_format(format.name()).unwrap(), *format);
        assert!(!format.summary().is_empty() && !format.summary().contains('\n'));
    }
    let error = find_format("disksin").unwrap_err().to_string();
    assert!(error.contains("did you mean \"disksim\"?"), "{error}");
}
