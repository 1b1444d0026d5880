//! Formats of tools and collections, tables by their columns and archives, on a few lines worked out on paper.

#![allow(clippy::unwrap_used)] // helpers are outside of #[test]

use crate::trace_support::{Folder, read, read_text, request};
use flashwright_block::Request;
use flashwright_block::RequestKind::{Flush, Read, Trim, Write};
use flashwright_workload::trace::{TraceInfo, TraceOptions, TraceReader, detect};
use std::io::Write as _;

/// Reads `content` without naming the format, and checks that `format` was found.
fn detected(format: &str, content: impl AsRef<[u8]>) -> Vec<Request> {
    let folder = Folder::new();
    let path = folder.file(content.as_ref());
    assert_eq!(detect(&path).unwrap().name(), format);
    read(&path, &TraceOptions::default()).unwrap()
}

fn by(process: u32, request: Request) -> Request {
    Request { process, ..request }
}

fn columns(text: &str) -> TraceOptions {
    TraceOptions { columns: Some(text.to_owned()), ..TraceOptions::default() }
}

#[test]
fn systor() {
    // LUN 0 reaches (8192 + 4096) / 512 = 24 sectors; LUN 2 lies behind it. A row without a type has had no response.
    let text = "Timestamp,Response,IOType,LUN,Offset,Size\n\
        1456095145.133076000,0.000806000,R,2,1024,4096\n\
        1456095145.133576000,,,0,4096,4096\n\
        1456095146.133076000,0.001000000,W,0,8192,4096\n";
    let expected = [request(0, Read, 24 + 2, 8), request(1_000_000_000, Write, 16, 8)];
    assert_eq!(detected("systor", text), expected);
    // Without the header line as well.
    assert_eq!(detected("systor", text.split_once('\n').unwrap().1), expected);
}

#[test]
fn fiu() {
    // Nanoseconds, sectors. A process may have blanks in its name.
    let text = "89966527950584 4253 nfsd 96 8 W 6 0 88b93b628d84082186026d9da044f173\n\
        89966527950600 17 my shell 5 200 16 R 6 0 e9f4e5ab62a4fff5313a606b0ad4e388\n";
    assert_eq!(detected("fiu", text), [by(4253, request(0, Write, 96, 8)), by(17, request(16, Read, 200, 16))]);
}

#[test]
fn biosnoop() {
    // Completions at 0 and 3.5 ms after 2 ms and 5 ms: arrivals at -2 ms and -1.5 ms.
    let text = "TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  LAT(ms)\n\
        0.000000    kworker/0:1    11     vda     W 64         4096      2.00\n\
        0.003500    two words      12     vda     RA 8         512       5.00\n\
        0.003600    ?              0      vda     N 0          0         0.10\n";
    assert_eq!(detected("biosnoop", text), [by(11, request(0, Write, 64, 8)), by(12, request(500_000, Read, 8, 1))]);
    // With the time in the queue: 3 ms before the first one's arrival at the device.
    let queued = "TIME(s) COMM PID DISK T SECTOR BYTES QUE(ms) LAT(ms)\n\
        0.010000 a 1 vda W 64 4096 0.00 2.00\n\
        0.010000 b 2 vda R 64 4096 3.00 2.00\n";
    assert_eq!(detected("biosnoop", queued), [by(2, request(0, Read, 64, 8)), by(1, request(3_000_000, Write, 64, 8))]);
}

#[test]
fn diskmon() {
    let text = "0\t0.001565\t0.00000841\t0\tWrite\t202520\t8\t\n1\t0.008453\t0.00002719\t1\tRead\t8\t16\t\n";
    // Disk 0 reaches sector 202,528.
    assert_eq!(detected("diskmon", text), [request(0, Write, 202_520, 8), request(6_888_000, Read, 202_528 + 8, 16)]);
    let clock = "0\t11:59:59.5 AM\t0.1\t0\tWrite\t0\t8\r\n1\t12:00:01 PM\t0.1\t0\tRead\t8\t8\r\n";
    assert_eq!(detected("diskmon", clock), [request(0, Write, 0, 8), request(1_500_000_000, Read, 8, 8)]);
    // Windows' shells write UTF-16.
    let wide: Vec<u8> = [0xff, 0xfe].into_iter().chain(clock.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    assert_eq!(detected("diskmon", wide).len(), 2);
}

#[test]
fn emmc() {
    let row = |sector: u64, sectors: u64, flags: u8, at: f64| {
        let bytes = sectors * 512;
        format!(
            "{sector}\t\t{sectors}\t\t{bytes}\t\t{flags}\t\t{at:.9}\t\t{:.9}\t\t{:.9}\t\t{:.9}\n",
            at + 0.1,
            at + 0.2,
            at + 0.3
        )
    };
    let text = row(96, 8, 5, 2.0) + &row(8, 2, 4, 2.5) + &row(0, 8, 1, 2.25) + &row(16, 8, 0, 3.0);
    assert_eq!(
        detected("emmc", text),
        [
            request(0, Write, 96, 8),
            request(250_000_000, Write, 0, 8),
            request(500_000_000, Read, 8, 2),
            request(1_000_000_000, Read, 16, 8)
        ]
    );
}

#[test]
fn replayer() {
    // Milliseconds, bytes, 1 reads.
    let text = "1.565,0,4096,4096,0\n8.453,0,8192,512,1\n8.606,0,0,1024,0\n8.986,0,512,512,1\n";
    let requests = detected("replayer", text);
    assert_eq!(requests[..2], [request(0, Write, 8, 8), request(6_888_000, Read, 16, 1)]);
    // Sectors: not this format, and no other; the columns must be said.
    let folder = Folder::new();
    let other = folder.file(text.replace("4096", "7").as_bytes());
    let error = detect(&other).unwrap_err().to_string();
    assert!(
        error.contains("It looks like a table of 5 columns") && error.contains("--columns time=1:s,op=5,"),
        "{error}"
    );
}

#[test]
fn tectonic() {
    // Blocks of 8 MiB in order of first use: 16,384 sectors each. A block is a number and a shard.
    let text = "# block_id io_offset io_size op_time op_name user_namespace user_name rs_shard_id op_count\n\
        310 262144 4096 1572074461.57806 1 24 3 5 1\n\
        311 0 512 1572074461.57906 4 24 3 5 1\n\
        310 0 512 1572074462.57806 3 24 3 6 1\n\
        310 0 512 1572074463.57806 100 24 3 5 1\n\
        310 0 1024 1572074464.57806 2 24 3 5 1\n";
    assert_eq!(
        detected("tectonic", text),
        [
            request(0, Read, 512, 8),
            request(1_000_000, Write, 16_384, 1),
            request(1_000_000_000, Write, 2 * 16_384, 1),
            request(3_000_000_000, Read, 0, 2)
        ]
    );
    let named = "op_time,block_id,block_id_size,io_size,io_offset,op_name\n1,7,40,512,0,getChunkData.Permanent\n2,8,40,512,512,putChunk.Temp\n";
    // Blocks of 40 MiB: 81,920 sectors.
    assert_eq!(detected("tectonic", named), [request(0, Read, 0, 1), request(1_000_000_000, Write, 81_921, 1)]);
}

#[test]
fn vscsi() {
    let record = |version: u8, number: u32, opcode: u16, bytes: u32, sector: u64, us: u64| -> Vec<u8> {
        let op = [opcode.to_le_bytes(), (u16::from(version) << 8).to_le_bytes()].concat();
        let counts = [number, bytes, 1].map(u32::to_le_bytes).concat();
        let place = [sector, us].map(u64::to_le_bytes).concat();
        match version {
            1 => [counts, op, place].concat(),
            _ => [op, counts, place, vec![0; 8]].concat(),
        }
    };
    for version in [1, 2] {
        let file = [
            record(version, 5, 0x2a, 4096, 100, 1_000),
            record(version, 6, 0x28, 512, 3, 1_500),
            record(version, 7, 0x42, 8192, 8, 1_600),
            record(version, 8, 0x35, 0, 0, 1_700),
        ];
        assert_eq!(
            detected("vscsi", file.concat()),
            [
                request(0, Write, 100, 8),
                request(500_000, Read, 3, 1),
                request(600_000, Trim, 8, 16),
                request(700_000, Flush, 0, 0)
            ]
        );
    }
}

#[test]
fn oraclegeneral() {
    let record = |seconds: u32, object: u64, bytes: u32, next: i64| {
        [
            seconds.to_le_bytes().to_vec(),
            object.to_le_bytes().to_vec(),
            bytes.to_le_bytes().to_vec(),
            next.to_le_bytes().to_vec(),
        ]
        .concat()
    };
    // Objects count pages of 4 KiB: 3 pages follow 3 pages. Request 0 is used again as request 3.
    let file =
        [record(5, 10, 12_288, 3), record(5, 13, 4096, -1), record(7, 90, 512, -1), record(8, 10, 12_288, -1)].concat();
    let expected = [
        request(0, Read, 80, 24),
        request(0, Read, 104, 8),
        request(2_000_000_000, Read, 720, 1),
        request(3_000_000_000, Read, 80, 24),
    ];
    assert_eq!(detected("oraclegeneral", &file), expected);
    let folder = Folder::new();
    let path = folder.file(&file);
    let notes = TraceInfo::of(&path, &TraceOptions::default()).unwrap().notes;
    assert!(
        notes.iter().any(|note| note.contains("no operation in it: every request is taken as a read")),
        "{notes:?}"
    );
    let written = read(&path, &columns("op=write,lba=id:sectors")).unwrap();
    assert_eq!(written[1], request(0, Write, 13, 8));
    // The same objects in sectors of 512 B.
    let sectors =
        [record(5, 10, 4096, -1), record(5, 18, 512, -1), record(7, 19, 512, -1), record(8, 100, 512, -1)].concat();
    assert_eq!(detected("oraclegeneral", &sectors)[1], request(0, Read, 18, 1));
    // A next use that is another object's is none.
    let wrong =
        [record(5, 10, 512, 2), record(5, 11, 512, -1), record(7, 12, 512, -1), record(8, 13, 512, -1)].concat();
    assert!(detect(folder.file(&wrong)).is_err());
}

#[test]
fn tables() {
    let expected = [request(0, Write, 8, 8), request(1_500, Read, 24, 16), request(2_500, Trim, 0, 1)];
    for (text, spec) in [
        ("10 8 8 W\n11.5 24 16 R\n12.5 0 1 D\n", "time=1:us,lba=2,size=3:sectors,op=4"),
        // Tabs, a header, names in another case, bytes, hexadecimal.
        (
            "T\tOffset\tLen\tOp\n1.0e-5\t0x1000\t4096\twrite\n0.0000115\t0x3000\t8192\tREAD\n0.0000125\t0\t512.0\ttrim\n",
            "time=t:s,offset=offset,size=len:bytes,op=op",
        ),
        // Semicolons, words of one's own, pages, a comment, an empty line, CR LF, a row of another kind.
        (
            "# made by hand\r\n\r\n-5;1;1;7\r\n-3.5;0x3;2;x y\r\n0;0;0;note\r\n",
            "time=1:us,lba=2:pages,size=3:pages,op=4,write=7,read=x y,skip=note",
        ),
        // A header that is a comment, columns in another order.
        ("# op|lba|n|ns\nW|8|8|100\nR|24|16|1600\nD|0|1|2600\n", "time=ns:ns,op=op,lba=lba,size=n:sectors"),
        // Quoted, with a sign in a field that is not used.
        (
            "\"a,b\",\"2024-01-01 00:00:00\",8,8,\"W\"\n\"c\",2024-01-01T00:00:00.0000015,24,16,R\nd,2024-01-01 01:00:00.0000025+01:00,0,1,D\n",
            "time=2:date,lba=3,size=4:sectors,op=5",
        ),
    ] {
        let found = read_text(text, &columns(spec)).unwrap();
        let count = found.len();
        assert_eq!(found, expected[..count], "{text}");
        assert!(count >= 2, "{text}");
    }
    // One kind and one size for all, two devices, no times.
    let all = read_text("b,4096\na,0\n", &columns("op=write,device=1,offset=2,size=4KiB")).unwrap();
    assert_eq!(all, [request(0, Write, 8 + 8, 8), request(0, Write, 0, 8)]);
    // Files put together: the header stands in the middle as well.
    let twice = read_text("lba,n,op\n0,8,R\nlba,n,op\n8,8,F\n", &columns("op=op,lba=lba,size=n:sectors")).unwrap();
    assert_eq!(twice, [request(0, Read, 0, 8), request(0, Flush, 0, 0)]);
}

#[test]
fn tables_say_what_is_wrong_and_where() {
    for (text, spec, expected) in [
        (
            "1,2,3,W\n1,2,-8,W\n",
            "time=1:us,lba=2,size=3:sectors,op=4",
            ":2: field size (column 3): found \"-8\", expected a whole number of bytes",
        ),
        (
            "1,2,3,W\n1,2,8,0\n",
            "time=1:us,lba=2,size=3:sectors,op=4",
            ":2: field op (column 4): found \"0\", expected a word whose kind is known; say it with read=",
        ),
        (
            "1,2,3,W\nx,2,8,W\n",
            "time=1:us,lba=2,size=3:sectors,op=4",
            ":2: field time (column 1): found \"x\", expected a number of at most 500 years",
        ),
        (
            "1,2,3,W\n1,2\n",
            "time=1:us,lba=2,size=3:sectors,op=4",
            ":2: field op (column 4): found \"\", expected one more field",
        ),
        (
            "a,b,c,d\n1,2,3,W\n",
            "time=1:us,lba=lab,size=3:sectors,op=4",
            ":1: field column \"lab\": found \"a,b,c,d\", expected a column of this name in the header line",
        ),
        (
            "1,2,3,W\n",
            "time=1,lba=2,size=3:sectors,op=4",
            ":1: field time (column 1): found \"1\", expected a date; the unit of other times must be said",
        ),
        ("1,2.5,3,W\n", "time=1:us,lba=2:bytes,size=3:bytes,op=4", "field lba (column 2): found \"2.5\""),
        (
            "1,\"2,3,W\n",
            "time=1:us,lba=2,size=3:bytes,op=4,header=no",
            "expected a quote that is closed on the same line",
        ),
    ] {
        let error = read_text(text, &columns(spec)).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
    // Columns for a format that has its own.
    let error = read_text("0,8,512,R,0.5\n1,8,512,R,0.6\n", &columns("op=write")).unwrap_err().to_string();
    assert!(error.contains("columns: found \"them for the format spc\""), "{error}");
}

#[test]
fn headers_comments_points_and_exponents() {
    let plain = "128166391024154329,src,2,Write,8192,4096,1514\n128166391024154339,src,2,Read,4096,1024,9\n";
    let expected = read_text(plain, &TraceOptions::default()).unwrap();
    for text in [
        format!("Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n{plain}"),
        format!("# from\n# afar\n\n{plain}"),
        plain.replace("128166391024154329", "1.28166391024154329e+17").replace("4096,1514", "4096.0,1514"),
        plain.replace("8192", "8.192e3"),
        format!("\u{feff}{}", plain.replace('\n', "\r\n")),
    ] {
        assert_eq!(detected("msr", &text), expected, "{text}");
    }
    // A header with other names is that of another table, whatever its rows look like.
    let folder = Folder::new();
    let other = folder.file("ts,rw,lba,nbytes,queue\n0,W,2048,4096,0\n35,R,0,8192,1\n80,W,2056,16384,0\n");
    let error = detect(&other).unwrap_err().to_string();
    assert!(error.contains("such as --columns time=ts:us,op=rw,lba=lba:sectors,size=nbytes:bytes"), "{error}");
    // A header further down is a line that cannot be read.
    assert!(read_text(&format!("{plain}Timestamp,Hostname\n"), &TraceOptions::default()).is_err());
}

fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, content) in members {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        builder.append_data(&mut header, name, *content).unwrap();
    }
    builder.into_inner().unwrap()
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(content).unwrap();
    out.finish().unwrap()
}

const SPC: &[u8] = b"0,100,3584,w,1.0\n1,5,512,R,1.0\n";

#[test]
fn archives() {
    let folder = Folder::new();
    let expected = read(&folder.file(SPC), &TraceOptions::default()).unwrap();
    let one = tar(&[("a.spc", SPC)]);
    let packed = tar(&[("README.txt", b"What this is.\n"), ("dir/a.spc.gz", &gzip(SPC)), ("._a.spc", b"Mac")]);
    for content in [one.clone(), gzip(&one), zstd::bulk::compress(&packed, 1).unwrap(), packed.clone()] {
        assert_eq!(read(&folder.file(&content), &TraceOptions::default()).unwrap(), expected);
    }
    let reader = TraceReader::open(folder.file(&packed), &TraceOptions::default()).unwrap();
    assert_eq!(reader.notes(), ["read dir/a.spc.gz; not traces, and left out: README.txt"]);
    let two = folder.file(tar(&[("a.spc", SPC), ("b.spc", SPC)]));
    let open = |path: &std::path::Path, member: Option<&str>| {
        let options = TraceOptions { member: member.map(str::to_owned), ..TraceOptions::default() };
        read(path, &options).map_err(|error| error.to_string())
    };
    let error = open(&two, None).unwrap_err();
    assert!(error.contains("a tar archive of 2 traces: a.spc, b.spc; choose one with --member, such as --member a.spc, or unpack it with `tar -xf "), "{error}");
    assert_eq!(open(&two, Some("b.spc")).unwrap(), expected);
    let error = open(&two, Some("c")).unwrap_err();
    assert!(error.contains("a tar archive without a member \"c\"; it has a.spc, b.spc"), "{error}");
    let error = open(&folder.file(SPC), Some("c")).unwrap_err();
    assert!(error.contains("trace option member: found \"c\", expected only with an archive (tar or zip)"), "{error}");
    // Cut short within the member: said.
    let error = open(&folder.file(&one[..530]), None).unwrap_err();
    assert!(error.contains("the file is cut short"), "{error}");
    for (magic, name) in [
        (&b"7z\xbc\xaf\x27\x1c rest"[..], "a 7z archive; unpack it with `7z x "),
        (b"Rar!\x1a\x07\x01\0", "a RAR archive"),
    ] {
        let error = open(&folder.file(magic), None).unwrap_err();
        assert!(error.contains(name), "{error}");
    }
}

#[test]
fn lz4_frames_follow_each_other() {
    let frame = |content: &[u8]| {
        let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    };
    let folder = Folder::new();
    let expected = read(&folder.file([SPC, SPC].concat()), &TraceOptions::default()).unwrap();
    let both = [frame(SPC), frame(SPC)].concat();
    assert_eq!(read(&folder.file(&both), &TraceOptions::default()).unwrap(), expected);
    let cut = folder.file(&both[..both.len() - 9]);
    let error = read(&cut, &TraceOptions::default()).unwrap_err().to_string();
    assert!(error.contains("cut short") || error.contains("the lz4 stream is damaged"), "{error}");
}
