"""Write amplification of PostgreSQL and of RocksDB under the same updates, on the same drive.

    python experiments/real-software/amplification.py [--rows 1000000] [--capacities 60] [--file-system xfs]
        [--only NAME] [--json FILE] [--figure FILE.svg]

It needs root, FUSE and loop devices, nbdfuse, e2fsprogs, PostgreSQL, and `pip install rocksdict matplotlib`. Both keep
the same rows on a new file system on a served drive that held other data before, and then update rows drawn evenly,
100 in each durable transaction, until the host has written the capacity of the drive 60 times. What one byte of a row
becomes is counted twice: in bytes that the host writes to the drive, and in bytes that the drive programs.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Protocol

from disk import loop, mounted, sh

import flashwright
from flashwright import Ssd
from flashwright.serving.server import ServedDrive

VALUE_BYTES = 200
ROW_BYTES = VALUE_BYTES + 8
BATCH = 100
CAPACITY_BYTES = 768 << 20
# 768 MiB of 900, on 16 dies.
DRIVE = (
    Ssd.named("default")
    .with_(
        {
            "geometry.channels": 4,
            "geometry.dies-per-channel": 4,
            "geometry.planes-per-die": 1,
            "geometry.blocks-per-plane": 225,
            "geometry.pages-per-block": 64,
            "capacity.logical": "768 MiB",
            "timing.model": "parallel",
        }
    )
    .precondition("random")
)


class Base(Protocol):
    """A database with numbered rows."""

    def load(self, rows: int) -> None:
        """Write all rows."""

    def update(self, transactions: int) -> None:
        """Update 100 rows in each of some transactions."""


class Postgres:
    """PostgreSQL as its defaults have it, but for a smaller log and smaller buffers, to match the drive."""

    SETTINGS: ClassVar = {
        "shared_buffers": "64MB",
        "max_wal_size": "128MB",
        "min_wal_size": "32MB",
        "wal_compression": "off",
        "listen_addresses": "",
        "autovacuum_naptime": "10s",
        "logging_collector": "off",
    }

    def __init__(self, folder: Path) -> None:
        self.folder, self.data = folder, folder / "data"
        self.rows = 0
        self.bin = Path(sorted(Path("/usr/lib/postgresql").iterdir())[-1]) / "bin"
        self.data.mkdir()
        sh("chown", "-R", "postgres", folder)
        self._as("initdb", "-D", self.data, "--data-checksums", "--no-instructions")
        with (self.data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in self.SETTINGS.items())
            file.write("unix_socket_directories = '/tmp'\nport = 55432\n")
        self._as("pg_ctl", "-D", self.data, "-w", "-l", "/dev/null", "start")

    def _as(self, program: str, *arguments: object) -> str:
        command = ["runuser", "-u", "postgres", "--", self.bin / program, *arguments]
        return sh(*command, within=3600)

    def sql(self, text: str) -> str:
        """What a statement answers."""
        return self._as("psql", "-h", "/tmp", "-p", 55432, "-qAt", "-c", text, "postgres")

    def load(self, rows: int) -> None:
        """Write all rows."""
        self.rows = rows
        self.sql("CREATE EXTENSION IF NOT EXISTS pgcrypto")
        self.sql("CREATE TABLE t (k bigint PRIMARY KEY, v bytea NOT NULL) WITH (fillfactor = 90)")
        self.sql("ALTER TABLE t ALTER v SET STORAGE EXTERNAL")
        self.sql(
            f"INSERT INTO t SELECT k, gen_random_bytes({VALUE_BYTES}) FROM generate_series(1, {rows}) k"
        )
        self.sql("CHECKPOINT")

    def update(self, transactions: int) -> None:
        """Update 100 rows in each of some transactions."""
        with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
            script.write(
                f"UPDATE t SET v = gen_random_bytes({VALUE_BYTES}) FROM (SELECT DISTINCT "
                f"1 + floor(random() * {self.rows})::bigint AS k FROM generate_series(1, {BATCH})) s "
                "WHERE t.k = s.k;\n"
            )
            script.flush()
            os.chmod(script.name, 0o644)
            self._as(
                "pgbench",
                "-h",
                "/tmp",
                "-p",
                55432,
                "-n",
                "-c",
                1,
                "-t",
                transactions,
                "-f",
                script.name,
                "postgres",
            )

    def close(self) -> None:
        """End the server, and demand that every page has its checksum."""
        self._as("pg_ctl", "-D", self.data, "-m", "fast", "-w", "stop")
        self._as("pg_checksums", "--check", "-D", self.data)


class RocksDb:
    """RocksDB with leveled compaction with its defaults, but smaller tables, to match the drive, and no compression."""

    def __init__(self, folder: Path) -> None:
        rocksdict: Any = importlib.import_module("rocksdict")
        options = rocksdict.Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_compression_type(rocksdict.DBCompressionType.none())
        options.set_write_buffer_size(16 << 20)
        options.set_target_file_size_base(16 << 20)
        options.set_max_bytes_for_level_base(64 << 20)
        options.set_level_compaction_dynamic_level_bytes(True)
        options.set_max_background_jobs(2)
        self.path = str(folder / "base")
        self.base = rocksdict.Rdict(self.path, options)
        self.forced = rocksdict.WriteOptions()
        self.forced.sync = True
        self.rocksdict = rocksdict
        self.rng = random.Random(1)
        self.rows = 0

    def _write(self, keys: Iterator[int] | list[int], forced: Any) -> None:
        batch = self.rocksdict.WriteBatch(raw_mode=True)
        for key in keys:
            batch.put(key.to_bytes(8, "big"), self.rng.randbytes(VALUE_BYTES))
        self.base.write(batch, forced)

    def load(self, rows: int) -> None:
        """Write all rows."""
        self.rows = rows
        for first in range(1, rows + 1, 10_000):
            self._write(list(range(first, min(first + 10_000, rows + 1))), self.forced)
        self.base.flush()

    def update(self, transactions: int) -> None:
        """Update 100 rows in each of some transactions."""
        for _ in range(transactions):
            self._write([self.rng.randrange(1, self.rows + 1) for _ in range(BATCH)], self.forced)

    def close(self) -> None:
        """Close it, and read every row, which checks the checksum of each block."""
        del self.base
        options = self.rocksdict.Options(raw_mode=True)
        options.set_paranoid_checks(True)
        base = self.rocksdict.Rdict(self.path, options)
        found = sum(1 for _ in base.items())
        base.close()
        if found != self.rows:
            raise RuntimeError(f"RocksDB has {found} rows of {self.rows}")


BASES: dict[str, Callable[[Path], Any]] = {"PostgreSQL": Postgres, "RocksDB": RocksDb}


def counts(served: ServedDrive) -> tuple[int, int]:
    """Bytes that the host wrote, and bytes that were programmed."""
    figures = served.stats()
    page = 4096
    return int(figures["requests"]["bytes_written"]), int(
        figures["flash"]["programs"]["total"]
    ) * page


def run(name: str, rows: int, capacities: float, kind: str) -> dict[str, Any]:
    """One database; a sample after about each hundredth of what the host is to write."""
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="flashwright-real-")))
        folder.chmod(0o755)
        served = stack.enter_context(flashwright.serve(DRIVE, f"unix:{folder / 'nbd'}"))
        device = stack.enter_context(loop(folder / "nbd"))
        at = stack.enter_context(mounted(device, folder / "m", kind, discard=True))
        base = BASES[name](at)
        stack.callback(base.close)
        base.load(rows)
        sh("sync", "-f", at)
        samples = [(0, *counts(served))]
        updates, chunk, whole = 0, 10, capacities * CAPACITY_BYTES
        while (written := samples[-1][1] - samples[0][1]) < whole:
            base.update(chunk)
            updates += chunk * BATCH
            samples.append((updates * ROW_BYTES, *counts(served)))
            host_bytes = samples[-1][1] - samples[-2][1]
            chunk = max(10, min(2 * chunk, round(chunk * whole / 100 / max(host_bytes, 1))))
            if sys.stderr.isatty():
                print(f"\r{name}: {written / whole:.0%}", end="", file=sys.stderr)
        used = sh("df", "--output=used", "-B1", at).split()[-1]
    assert served.result is not None
    settled = served.result.json["settled"]
    assert settled is not None
    first = next(at for at, each in enumerate(samples) if each[1] - samples[0][1] >= whole / 2)
    user, host, flash = (samples[-1][at] - samples[first][at] for at in range(3))
    found = {
        "base": name,
        "file_system": kind,
        "rows": rows,
        "updates": updates,
        "file_system_bytes": int(used),
        "host_bytes_per_user_byte": host / user,
        "write_amplification_of_the_drive": flash / host,
        "flash_bytes_per_user_byte": flash / user,
        "settled": settled["verdict"],
        "elapsed_s": time.monotonic() - began,
        "samples": samples,
    }
    print(
        f"{name:12} host writes {host / user:6.2f} B a byte, the drive programs {flash / host:5.3f} B a byte of it "
        f"(settled: {settled['verdict']}): {flash / user:6.2f} in all; {int(used) / 2**20:,.0f} MiB of files, "
        f"{updates:,} updates, {found['elapsed_s']:.0f} s",
        flush=True,
    )
    return found


def draw(found: list[dict[str, Any]], path: Path) -> None:
    """What a byte becomes, over what the host writes; each point is the mean of a tenth of the run."""
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "flashwright", "font.size": 9, "svg.fonttype": "none"})
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for each in found:
        samples = each["samples"]
        steps = max(1, len(samples) // 10)
        pairs = list(zip(samples[:-steps], samples[steps:], strict=True))
        capacities = [(later[1] - samples[0][1]) / CAPACITY_BYTES for _, later in pairs]
        host = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairs]
        drive = [(b[2] - a[2]) / (b[1] - a[1]) for a, b in pairs]
        axes[0].plot(capacities, host, label=each["base"])
        axes[1].plot(capacities, drive, label=each["base"])
    for axis, title in zip(
        axes,
        ("Bytes the host writes for a byte updated", "Write amplification of the drive"),
        strict=True,
    ):
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("written by the host (capacities of the drive)")
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=110)


def main() -> int:
    """Both, a table and a picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--capacities", type=float, default=60)
    parser.add_argument("--only", choices=BASES)
    parser.add_argument("--file-system", dest="kind", choices=["ext4", "xfs"], default="ext4")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--figure", type=Path)
    asked = parser.parse_args()
    found = [
        run(name, asked.rows, asked.capacities, asked.kind)
        for name in BASES
        if asked.only in (None, name)
    ]
    if asked.json:
        asked.json.write_text(json.dumps(found) + "\n")
    if asked.figure:
        draw(found, asked.figure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
