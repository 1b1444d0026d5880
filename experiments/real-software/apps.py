"""Applications that say what they have promised, and checks of what is left of it.

Each carries out numbered transactions in a folder, and marks a number once the application calls that transaction
durable. `check` opens what a loss of power left, as the application does after a crash, and demands that all of the
transactions up to some number are there, whole, and none after it; that number is at least the last that was marked.
"""

from __future__ import annotations

import importlib
import os
import random
import sqlite3
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROWS = 40
KEYS = 400


def rows(number: int) -> dict[int, bytes]:
    """What a transaction writes: values of 50 to 950 bytes under keys that others write too, and its number under 0."""
    rng = random.Random(number)
    found = {
        rng.randrange(1, KEYS): number.to_bytes(8, "little") + rng.randbytes(rng.randrange(50, 950))
        for _ in range(ROWS)
    }
    found[0] = number.to_bytes(8, "little")
    return found


def after(number: int) -> dict[int, bytes]:
    """All rows after the transactions from 1 to a number."""
    found: dict[int, bytes] = {}
    for each in range(1, number + 1):
        found |= rows(each)
    return found


def check_rows(found: dict[int, bytes], promised: int) -> None:
    """Raise an error unless these are the rows after some transaction that was promised, or after a later one."""
    number = int.from_bytes(found.get(0, bytes(8)), "little")
    if number < promised:
        raise AssertionError(f"transaction {promised} was promised, and {number} is the last")
    expected = after(number)
    if found != expected:
        keys = [
            key
            for key in sorted(found.keys() | expected.keys())
            if found.get(key) != expected.get(key)
        ]
        raise AssertionError(
            f"after transaction {number}, rows are wrong: {keys[:5]} and others, {len(keys)} in all"
        )


class App(ABC):
    """What keeps data on a drive that loses its power."""

    @abstractmethod
    def carry_out(self, number: int) -> None:
        """One transaction, durable at the end."""

    @abstractmethod
    def judge(self, promised: int) -> None:
        """Raise an error unless what was promised is there."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the drive."""


class Database(App):
    """Rows by number in a database, which subclasses open as `base`."""

    base: Any

    @abstractmethod
    def found(self) -> dict[int, bytes]:
        """All rows."""

    def judge(self, promised: int) -> None:
        """Raise an error unless what was promised is there."""
        check_rows(self.found(), promised)

    def close(self) -> None:
        """Close the database."""
        self.base.close()


class Sqlite(Database):
    """SQLite with its rollback journal; EXTRA also forces the folder when the journal goes."""

    MODE = "PRAGMA journal_mode = DELETE; PRAGMA synchronous = EXTRA"

    def __init__(self, folder: Path) -> None:
        self.base = sqlite3.connect(folder / "base", isolation_level=None)
        self.base.executescript(self.MODE)
        self.base.execute("CREATE TABLE IF NOT EXISTS t (k INTEGER PRIMARY KEY, v BLOB)")

    def carry_out(self, number: int) -> None:
        """One transaction."""
        self.base.execute("BEGIN IMMEDIATE")
        self.base.executemany("INSERT OR REPLACE INTO t VALUES (?, ?)", rows(number).items())
        self.base.execute("COMMIT")

    def found(self) -> dict[int, bytes]:
        """All rows."""
        problems = self.base.execute("PRAGMA integrity_check").fetchall()
        if problems != [("ok",)]:
            raise AssertionError(f"integrity_check: {problems[:2]}")
        return dict(self.base.execute("SELECT k, v FROM t"))


class SqliteWal(Sqlite):
    """SQLite with a write-ahead log."""

    MODE = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 100"


class Lmdb(Database):
    """LMDB, which keeps two roots and writes pages anew."""

    def __init__(self, folder: Path) -> None:
        lmdb: Any = importlib.import_module("lmdb")
        self.base = lmdb.open(str(folder / "base"), map_size=16 << 20)

    def carry_out(self, number: int) -> None:
        """One transaction."""
        with self.base.begin(write=True) as transaction:
            for key, value in rows(number).items():
                transaction.put(key.to_bytes(8, "big"), value)

    def found(self) -> dict[int, bytes]:
        """All rows."""
        with self.base.begin() as transaction:
            return {int.from_bytes(key, "big"): bytes(value) for key, value in transaction.cursor()}


class RocksDb(Database):
    """RocksDB with forced writes; small buffers, so that it also flushes tables and compacts."""

    def __init__(self, folder: Path) -> None:
        rocksdict: Any = importlib.import_module("rocksdict")
        options = rocksdict.Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_write_buffer_size(256 << 10)
        options.set_target_file_size_base(256 << 10)
        options.set_level_zero_file_num_compaction_trigger(2)
        options.set_paranoid_checks(True)
        self.rocksdict = rocksdict
        self.base = rocksdict.Rdict(str(folder / "base"), options)
        self.forced = rocksdict.WriteOptions()
        self.forced.sync = True

    def carry_out(self, number: int) -> None:
        """One transaction."""
        batch = self.rocksdict.WriteBatch(raw_mode=True)
        for key, value in rows(number).items():
            batch.put(key.to_bytes(8, "big"), value)
        self.base.write(batch, self.forced)

    def found(self) -> dict[int, bytes]:
        """All rows."""
        return {int.from_bytes(key, "big"): bytes(value) for key, value in self.base.items()}


class Files(App):
    """Files, replaced as editors do: write another one, force it, rename it, force the folder."""

    SLOTS = 50

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "base"
        self.folder.mkdir(exist_ok=True)

    @staticmethod
    def content(number: int) -> bytes:
        """What the file of a transaction holds."""
        return b"".join(value for _, value in sorted(rows(number).items()))

    def carry_out(self, number: int) -> None:
        """Replace one file."""
        new = self.folder / "new"
        with new.open("wb") as file:
            file.write(self.content(number))
            file.flush()
            os.fsync(file.fileno())
        new.rename(self.folder / f"{number % self.SLOTS}")
        handle = os.open(self.folder, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)

    def judge(self, promised: int) -> None:
        """Each file is the one that was promised, or the next."""
        for number in range(max(1, promised - self.SLOTS + 1), promised + 1):
            content = (self.folder / f"{number % self.SLOTS}").read_bytes()
            following = number + self.SLOTS
            if content != self.content(number) and (
                following > promised + 1 or content != self.content(following)
            ):
                raise AssertionError(
                    f"file {number % self.SLOTS} is not the one of transaction {number}"
                )

    def close(self) -> None:
        """Nothing is kept open."""


APPS: dict[str, Callable[[Path], App]] = {
    "files": Files,
    "sqlite": Sqlite,
    "sqlite-wal": SqliteWal,
    "lmdb": Lmdb,
    "rocksdb": RocksDb,
}


def check(app: str, folder: Path, promised: int) -> None:
    """Open what is left and judge it."""
    if promised == 0 and not (folder / "base").exists():
        return
    base = APPS[app](folder)
    try:
        base.judge(promised)
    finally:
        base.close()


def main() -> None:
    """Carry out transactions: APP FOLDER COUNT CTL."""
    from flashwright.serving.control import ask

    app, folder, count, ctl = sys.argv[1:]
    base = APPS[app](Path(folder))
    for number in range(1, int(count) + 1):
        base.carry_out(number)
        ask(ctl, "mark", text=str(number))
    base.close()


if __name__ == "__main__":
    main()
