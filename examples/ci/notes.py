"""The application under test: notes in SQLite, durable when ``add`` returns."""

import sqlite3
from collections.abc import Iterable
from pathlib import Path


class Notes:
    """Notes in a folder.

    Parameters
    ----------
    folder : Path
        Where the database is, or will be.
    """

    def __init__(self, folder: Path) -> None:
        self._base = sqlite3.connect(folder / "notes.db", isolation_level=None)
        self._base.execute("PRAGMA journal_mode = WAL")
        self._base.execute("PRAGMA synchronous = FULL")
        self._base.execute("CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, text TEXT)")

    def add(self, texts: Iterable[str]) -> None:
        """Add notes, all of them or none."""
        with self._base:
            self._base.execute("BEGIN")
            self._base.executemany("INSERT INTO notes (text) VALUES (?)", [(t,) for t in texts])

    def count(self) -> int:
        """Notes that there are."""
        return int(self._base.execute("SELECT count(*) FROM notes").fetchone()[0])

    def close(self) -> None:
        """Let go of the folder."""
        self._base.close()
