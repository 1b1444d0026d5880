"""Traces as people have them: formats of tools and collections, archives, and tables by their columns.

The files of ``cases/formats`` hold the same 60 requests in different formats. Their figures are those of the MSR file
in ``msr.zip``, which `_ROWS` reads with the standard library alone.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tarfile
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import Cli
from flashwright.errors import TraceError
from flashwright.traces import tracefiles, workloads

CASES = Path(__file__).parent / "cases" / "formats"
with zipfile.ZipFile(CASES / "msr.zip") as _archive:
    MSR = _archive.read("msr.csv")
_ROWS = [line.split(",") for line in MSR.decode().splitlines()]
REQUESTS = [
    (row[3].lower(), int(row[4]) // 512, int(row[5]) // 512, (int(row[0]) - int(_ROWS[0][0])) * 100)
    for row in _ROWS
]


def _read(path: Path, **options: Any) -> list[tuple[str, int, int, int]]:
    table = tracefiles.columns(workloads.trace(path, **options)).to_pydict()
    return [
        (str(kind), first, sectors, at)
        for kind, first, sectors, at in zip(
            table["kind"],
            table["first_sector"],
            table["sectors"],
            table["arrival_ns"],
            strict=True,
        )
    ]


def _same(found: list[tuple[str, int, int, int]], *, within_ns: int) -> None:
    """The 60 requests, at times that were rounded by at most so much."""
    assert [row[:3] for row in found] == [row[:3] for row in REQUESTS]
    for row, wanted in zip(found, REQUESTS, strict=True):
        assert abs(row[3] - wanted[3]) <= within_ns


@pytest.mark.parametrize(
    ("name", "format", "within_ns"),
    [
        ("msr.tgz", "msr", 0),
        ("msr.zip", "msr", 0),
        ("msr.csv.lz4", "msr", 0),
        ("systor.csv", "systor", 200),
        ("diskmon.txt", "diskmon", 1_000),
        ("replayer.csv", "replayer", 1_000),
        ("v.vscsi", "vscsi", 1_000),
    ],
)
def test_files_of_the_cases(name: str, format: str, within_ns: int) -> None:
    assert tracefiles.info(CASES / name)["format"] == format
    _same(_read(CASES / name), within_ns=within_ns)


def test_fiu() -> None:
    # Its rows are of 4 KiB each.
    assert tracefiles.info(CASES / "fiu.blkparse")["format"] == "fiu"
    found = _read(CASES / "fiu.blkparse")
    assert [(row[0], row[1]) for row in found] == [(row[0], row[1]) for row in REQUESTS]
    assert {row[2] for row in found} == {8}
    for row, wanted in zip(found, REQUESTS, strict=True):
        assert abs(row[3] - wanted[3]) <= 200


def test_biosnoop_prints_completions() -> None:
    # In the file, LAT(ms) is to be taken off TIME(s), up to 1 ms, which changes the order of some.
    found = _read(CASES / "biosnoop.txt")
    rows = [line.split() for line in (CASES / "biosnoop.txt").read_text().splitlines()[1:]]
    arrivals = sorted(
        (float(time) - float(latency) / 1e3, int(sector)) for time, *_, sector, _, latency in rows
    )
    assert [row[1] for row in found] == [sector for _, sector in arrivals]
    for row, (time, _) in zip(found, arrivals, strict=True):
        assert row[3] == pytest.approx((time - arrivals[0][0]) * 1e9, abs=2)
    assert sorted(row[:3] for row in found) == sorted(row[:3] for row in REQUESTS)


def test_tectonic_has_no_addresses_on_a_disk() -> None:
    info = tracefiles.info(CASES / "tectonic.trace")
    assert (info["format"], info["reads"], info["writes"]) == ("tectonic", 27, 33)
    assert any("no addresses on a disk" in note for note in info["notes"])
    found = _read(CASES / "tectonic.trace")
    assert [(row[0], row[2]) for row in found] == [(row[0], row[2]) for row in REQUESTS]
    rows = [line.split() for line in (CASES / "tectonic.trace").read_text().splitlines()[1:]]
    blocks: dict[tuple[str, str], int] = {}
    for row, cells in zip(found, rows, strict=True):
        block = blocks.setdefault((cells[0], cells[7]), len(blocks))
        assert row[1] == (block * 8 * 2**20 + int(cells[1])) // 512


def test_oraclegeneral_has_no_operation(command: Cli) -> None:
    path = CASES / "oracle.bin"
    info = tracefiles.info(path)
    assert (info["format"], info["reads"], info["writes"]) == ("oraclegeneral", 60, 0)
    assert [row[1:3] for row in _read(path)] == [row[1:3] for row in REQUESTS]
    assert {row[0] for row in _read(path, columns="op=write")} == {"write"}
    said = command("trace", "info", path).out
    assert "there is no operation in it: every request is taken as a read" in " ".join(said.split())


def test_a_table_is_read_by_its_columns(command: Cli) -> None:
    path = CASES / "simplessd-60.trace"
    found = command("trace", "info", path)
    assert found.status == 2
    assert "It looks like a table of 4 columns" in found.err
    assert "--columns time=1:us,op=4,lba=2:sectors,size=3:sectors" in found.err
    assert "trace info" not in found.err
    _same(_read(path, columns="time=1:us,op=4,lba=2:sectors,size=3:sectors"), within_ns=1_000)
    said = command("trace", "info", path, "--columns", "time=us,op=4,lba=2,size=3:sectors")
    assert said.status == 0
    assert "60: 27 reads, 33 writes" in said.out


def _tar(packed: Callable[[bytes], bytes], *members: tuple[str, bytes]) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(content), 1.5
            archive.addfile(info, io.BytesIO(content))
    return packed(target.getvalue())


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_tar_in_any_compression(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "a.tar"
    path.write_bytes(_tar(pack, ("README", b"Words.\n"), ("deep/" * 30 + "msr.csv", MSR)))
    _same(_read(path), within_ns=0)
    path.write_bytes(_tar(pack, ("msr.csv.xz", lzma.compress(MSR))))
    _same(_read(path), within_ns=0)


def _zip(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_zip_in_its_compressions(tmp_path: Path, method: int) -> None:
    _same(_read(_zip(tmp_path / "a.zip", {"folder/msr.csv": MSR}, method)), within_ns=0)


def test_several_traces_in_an_archive(command: Cli, tmp_path: Path) -> None:
    path = _zip(tmp_path / "two.zip", {"a.csv": MSR, "b.csv": MSR, "LICENSE": b"Free.\n"})
    found = command("trace", "info", path)
    assert found.status == 2
    assert (
        f"{path}: a zip archive of 2 traces: a.csv, b.csv; choose one with --member, such as --member a.csv, "
        f"or unpack it with `unzip {path}`" in found.err
    )
    _same(_read(path, member="b.csv"), within_ns=0)
    one = _zip(tmp_path / "one.zip", {"a.csv": MSR, "LICENSE": b"Free.\n"})
    assert tracefiles.info(one)["notes"] == ["read a.csv; not traces, and left out: LICENSE"]


def test_a_damaged_member_is_said(tmp_path: Path) -> None:
    path = _zip(tmp_path / "a.zip", {"msr.csv": MSR}, zipfile.ZIP_STORED)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"Write", b"Wrote", 1))
    with pytest.raises(TraceError, match="the zip stream is damaged: the checksum"):
        tracefiles.info(path)


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + MSR,
        MSR.replace(b"\n", b"\r\n"),
        MSR.decode().encode("utf-16"),
        b"Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n" + MSR,
        b"# recorded somewhere\n" + MSR,
        MSR.replace(b",4096,", b",4.096e3,").replace(b",8192,", b",8192.0,"),
    ],
)
def test_text_as_other_programs_write_it(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "msr.csv"
    path.write_bytes(content)
    assert tracefiles.info(path)["format"] == "msr"
    _same(_read(path), within_ns=0)


@pytest.mark.parametrize(
    ("line", "header", "columns"),
    [
        ("{us};{kind};{lba};{sectors}", "", "time=1:us,op=2,lba=3,size=4:sectors"),
        ("{us}\t{lba}\t{bytes}\t{kind}", "", "time=1:us,lba=2,size=3:bytes,op=4,delimiter=tab"),
        (
            '"{us}","{kind}","{offset:#x}",{bytes}',
            "Time (us),Kind,Offset,Bytes",
            "time=Time (us):us,op=kind,offset=Offset,size=Bytes:bytes,header=yes",
        ),
        (
            "{us} {bit} {offset:x} {sectors}",
            "# t op at n",
            "time=t:us,op=op,offset=at:hex,size=n:sectors,read=1,write=0",
        ),
        ("-{left}|{kind}|{lba}|{sectors}", "", "time=1:us,op=2,lba=3,size=4:sectors"),
        ("{filetime},{kind},{lba},{bytes}.0", "", "time=1:filetime,op=2,lba=3,size=4:bytes"),
    ],
)
def test_tables_of_all_kinds(tmp_path: Path, line: str, header: str, columns: str) -> None:
    path = tmp_path / "table"
    lines = [header] if header else []
    for kind, first, sectors, at in REQUESTS:
        lines.append(
            line.format(
                us=at / 1e3,
                left=(10**9 - at) / 1e3,
                filetime=128166372003077281 + at // 100,
                kind=kind[0].upper(),
                bit=int(kind == "read"),
                lba=first,
                offset=first * 512,
                sectors=sectors,
                bytes=sectors * 512,
            )
        )
    path.write_text("\n".join(lines) + "\n")
    _same(_read(path, columns=columns), within_ns=100)


def test_parquet_and_arrow(command: Cli, tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import feather, parquet

    start = 1_700_000_000 * 10**9
    table = pa.table(
        {
            "at": pa.array([start + row[3] for row in REQUESTS], pa.timestamp("ns")),
            "write": [row[0] == "write" for row in REQUESTS],
            "byte": [row[1] * 512 for row in REQUESTS],
            "length": pa.array([float(row[2] * 512) for row in REQUESTS]),
            "tags": pa.array([["x"]] * len(REQUESTS)),
            "elapsed": pa.array([row[3] for row in REQUESTS], pa.duration("ns")),
        }
    )
    columns = "time=at,op=write,write=true,read=false,offset=byte,size=length:bytes"
    path = tmp_path / "requests.parquet"
    parquet.write_table(table, path)
    _same(_read(path, columns=columns), within_ns=0)
    _same(_read(path, columns=columns.replace("time=at", "time=6:ns")), within_ns=0)
    arrow = tmp_path / "requests.arrow"
    feather.write_feather(table, str(arrow))
    _same(_read(arrow, columns=columns), within_ns=0)
    said = command("trace", "info", path)
    assert said.status == 2
    assert "It looks like a table of" in said.err
    assert "--columns time=at,op=write,read=" in said.err
    path.write_bytes(b"PAR1 and nothing else")
    with pytest.raises(TraceError, match="the Parquet file can't be read as a table"):
        workloads.trace(path)


def test_columns_on_commands_that_play(command: Cli, small: str) -> None:
    path = CASES / "simplessd-60.trace"
    columns = ("--columns", "time=1:us,op=4,lba=2,size=3:sectors")
    found = command(
        "simulate", small, "--trace", path, *columns, "--addresses", "scale", "--json", "-"
    )
    assert found.json["measured"]["requests"] == 60
    assert found.json["host"]["pages_written"] > 0
    found = command("trace", "compare", path, path, *columns, "--json", "-")
    assert found.status == 0
    found = command("simulate", small, "--trace", path, "--columns", "lab=2")
    assert found.status == 2
    assert found.err.startswith('error: --columns: found "lab=2", expected one of the keys time,')
    found = command("simulate", small, "--workload", "uniform", "--columns", "lba=2")
    assert found.err.startswith(
        "error: --columns: found with --workload, expected only with --trace"
    )


def test_converted_tables_are_the_same(command: Cli, tmp_path: Path) -> None:
    target = tmp_path / "same.fwt"
    columns = ("--columns", "time=1:us,op=4,lba=2,size=3:sectors")
    found = command("trace", "convert", CASES / "simplessd-60.trace", target, *columns)
    assert found.status == 0
    _same(_read(target), within_ns=1_000)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"7z\xbc\xaf\x27\x1c and more", "a 7z archive; unpack it with `7z x "),
        (b"Rar!\x1a\x07\x01\x00", "a RAR archive; unpack it with `unrar x "),
        (b"\x1f\x9d\x90 and more", "compressed by compress; unpack it with `gzip -d "),
        (b"SQLite format 3\x00", "an SQLite database; export its table with "),
        (b"PERFILE2 and more", "a recording of perf; print its requests with "),
    ],
)
def test_what_others_pack_is_named(command: Cli, tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "packed"
    path.write_bytes(content)
    found = command("trace", "info", path)
    assert found.status == 2
    assert f"{path}: {said}" in found.err
    assert found.err.count("error:") == 1


def test_a_pipe_is_unpacked_as_a_file_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=((CASES / "msr.zip").read_bytes(),))
    writer.start()
    _same(_read(pipe), within_ns=0)
    writer.join()
