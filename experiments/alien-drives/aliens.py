"""Models of drives in C that share nothing with the simulator, behind the calls that a target needs.

>>> with Target(Alien("card", 1)) as drive:
...     drive.play("write", [0, 4096], 4096).latency_ns.size
2
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from flashwright.target.target import Target

__all__ = ["DEVELOPMENT", "HELD_OUT", "MAKES", "Alien", "Target", "library"]

HERE = Path(__file__).parent

DEVELOPMENT = ("slc-fixed", "map-cache", "coarse", "disk", "volume", "card", "raid")
"""Makes that rules may be tuned on."""
HELD_OUT = (
    "slc-dynamic",
    "hashed",
    "throttle",
    "compress",
    "set-associative",
    "phase-change",
    "ram-disk",
)
"""Makes that judge: nobody tunes a rule by what it says of these."""
MAKES = DEVELOPMENT + HELD_OUT

FLAGS = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")


def _sources() -> list[Path]:
    return sorted([*HERE.glob("*.[ch]"), *HERE.glob("*/*.c")])


def build(folder: Path | None = None) -> Path:
    """Compile the makes, unless the same sources were compiled before; where the library lies.

    Parameters
    ----------
    folder : path, optional
        Where it goes; by default the user's cache.
    """
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise SystemExit("cc: no C compiler found, expected one to build the makes of drives")
    digest = hashlib.sha256(" ".join(FLAGS).encode())
    for source in _sources():
        digest.update(source.read_bytes())
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = folder or home / "flashwright"
    built = folder / f"alien-drives-{digest.hexdigest()[:16]}.so"
    if not built.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as made:
            part = Path(made) / built.name
            sources = [str(source) for source in _sources() if source.suffix == ".c"]
            subprocess.run([compiler, *FLAGS, "-o", str(part), *sources, "-lm"], check=True)
            part.replace(built)
    return built


@cache
def library() -> ctypes.CDLL:
    """The compiled makes, with the types of their calls."""
    loaded = ctypes.CDLL(str(build()))
    drive, number, text = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_char_p

    def types(name: str, result: Any, *arguments: Any) -> None:
        call = getattr(loaded, name)
        call.restype, call.argtypes = result, arguments

    def column(kind: Any) -> Any:
        return np.ctypeslib.ndpointer(kind, ndim=1, flags="C_CONTIGUOUS")

    types("alien_makes", ctypes.c_int)
    types("alien_make_name", text, ctypes.c_int)
    types("alien_new", drive, ctypes.c_int, number)
    types("alien_free", None, drive)
    types("alien_capacity", number, drive)
    types("alien_block", ctypes.c_uint32, drive)
    types("alien_now", number, drive)
    types("alien_idle", None, drive, number)
    types("alien_carry", None, drive, ctypes.c_double, ctypes.c_int)
    types("alien_purge", ctypes.c_int, drive)
    types("alien_audit", number, drive)
    types("alien_facts", ctypes.c_int, drive)
    types("alien_fact_name", text, drive, ctypes.c_int)
    types("alien_fact_value", ctypes.c_double, drive, ctypes.c_int)
    types("alien_counters", None, drive, column(np.uint64))
    types(
        "alien_play",
        number,
        drive,
        column(np.uint8),
        column(np.uint64),
        column(np.uint32),
        number,
        number,
        ctypes.c_double,
        column(np.uint64),
        column(np.uint64),
    )
    return loaded


class Alien:
    """A drive of a make: what ``flashwright.Target`` calls a `Core`.

    Parameters
    ----------
    make : str
        One of `MAKES`.
    seed : int
        Of its parameters and of all that is random in it.

    Attributes
    ----------
    facts : mapping of str to float
        What was drawn: sizes in bytes, times in nanoseconds, rates in bytes per second, shares.
    """

    def __init__(self, make: str, seed: int) -> None:
        self._library = library()
        names = [
            self._library.alien_make_name(at).decode() for at in range(self._library.alien_makes())
        ]
        if make not in names:
            raise ValueError(f"make: found {make!r}, expected one of {', '.join(names)}")
        self.make, self.seed = make, seed
        self._drive: int | None = self._library.alien_new(names.index(make), seed)
        self.capacity_bytes = int(self._library.alien_capacity(self._drive))
        self.block_bytes = int(self._library.alien_block(self._drive))
        self.facts: Mapping[str, float] = {
            self._library.alien_fact_name(self._drive, at).decode(): float(
                self._library.alien_fact_value(self._drive, at)
            )
            for at in range(self._library.alien_facts(self._drive))
        }

    def info(self) -> str:
        """What it is, in JSON."""
        return json.dumps(
            {
                "name": f"{self.make}-{self.seed}",
                "kind": "simulated",
                "capacity_bytes": self.capacity_bytes,
                "block_bytes": self.block_bytes,
                "real_time": False,
                "writes_allowed": True,
            }
        )

    def now(self) -> int:
        """Its clock, nanoseconds."""
        return int(self._library.alien_now(self._drive))

    def idle(self, nanos: int) -> None:
        """Let time pass."""
        self._library.alien_idle(self._drive, nanos)

    def carry(self, noise_share: float, repeats: bool) -> None:
        """What writes carry from now on: the share of them that is noise, and whether blocks come again."""
        self._library.alien_carry(self._drive, noise_share, int(repeats))

    def play(
        self,
        kinds: npt.NDArray[np.uint8],
        first_sectors: npt.NDArray[np.uint64],
        sectors: npt.NDArray[np.uint32],
        depth: int,
        seconds: float | None = None,
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
        """Play requests, and return when each was submitted and when it ended."""
        end = self.capacity_bytes // 512
        last = first_sectors.astype(np.uint64) + sectors.astype(np.uint64)
        if last.size and int(last.max()) > end:
            raise ValueError(
                f"play: found a request up to sector {int(last.max())}, expected {end} at most"
            )
        submitted, ended = np.empty(kinds.size, np.uint64), np.empty(kinds.size, np.uint64)
        done = self._library.alien_play(
            self._drive,
            np.ascontiguousarray(kinds, np.uint8),
            np.ascontiguousarray(first_sectors, np.uint64),
            np.ascontiguousarray(sectors, np.uint32),
            kinds.size,
            max(depth, 1),
            0.0 if seconds is None else max(seconds, 1e-6),
            submitted,
            ended,
        )
        return submitted[:done], ended[:done]

    def purge(self) -> bool:
        """Discard everything; whether a device of this make takes it. Its clock restarts."""
        return bool(self._library.alien_purge(self._drive))

    def close(self) -> None:
        """Let go of it."""
        if self._drive is not None:
            self._library.alien_free(self._drive)
            self._drive = None

    def audit(self) -> int:
        """How many laws of conservation are broken: 0 if its maps, counts and caches agree."""
        return int(self._library.alien_audit(self._drive))

    def counters(self) -> dict[str, int]:
        """Writes that waited for cleaning, how long (ns), and units that the host wrote and that were copied."""
        found = np.zeros(4, np.uint64)
        self._library.alien_counters(self._drive, found)
        names = ("stalls", "stalled_ns", "host_units", "copied_units")
        return dict(zip(names, found.tolist(), strict=True))

    def counted(self) -> tuple[int, int]:
        """Bytes from the host, in whole units, and bytes to the flash, as an NVMe drive counts them."""
        units, copied = (self.counters()[name] for name in ("host_units", "copied_units"))
        unit = int(self.facts.get("unit", 4096))
        return units * unit, (units + copied) * unit
