"""The bytes of a blktrace file: its records, what they are of, and the notes among them."""

from __future__ import annotations

import sys
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from flashwright.errors import FlashwrightError

__all__ = [
    "FLUSH",
    "HEADER",
    "MAGIC",
    "NAME_BYTES",
    "NOTE_PROCESS",
    "NOTE_TIMESTAMP",
    "READ",
    "REQUEST_DTYPE",
    "TRIM",
    "VERSION",
    "WRITE",
    "RecordError",
    "Records",
    "is_request",
    "note_bytes",
    "parse_blktrace",
    "process_names",
    "requests_of",
    "run_of_records",
]

Records: TypeAlias = npt.NDArray[np.void]


READ, WRITE, TRIM, FLUSH = 0, 1, 2, 3
"""Kinds of request, numbered as the core's ``RequestKind``."""

# The blktrace format, version 7: a header of 48 bytes, then `pdu_bytes` of payload.
_HEADER_FIELDS = [
    ("magic", "u4"),
    ("sequence", "u4"),
    ("time_ns", "u8"),
    ("sector", "u8"),
    ("bytes", "u4"),
    ("action", "u4"),
    ("pid", "u4"),
    ("device", "u4"),
    ("cpu", "u4"),
    ("error", "u2"),
    ("pdu_bytes", "u2"),
]
HEADER = np.dtype(_HEADER_FIELDS)
MAGIC = 0x65617400
VERSION = 7
# The low half of an action says which step, the high half is a set of classes.
_STEP_MASK = 0xFF
_STEP_QUEUE = 1
NOTE_PROCESS = 0
NOTE_TIMESTAMP = 1
_CLASS_WRITE = 1 << (16 + 1)
_CLASS_FLUSH = 1 << (16 + 2)
_CLASS_SYNC = 1 << (16 + 3)
_CLASS_NOTE = 1 << (16 + 10)
_CLASS_AHEAD = 1 << (16 + 11)
_CLASS_META = 1 << (16 + 12)
_CLASS_TRIM = 1 << (16 + 13)
_CLASS_FUA = 1 << (16 + 15)
NAME_BYTES = 16

REQUEST_DTYPE = np.dtype(
    [
        ("time_ns", np.uint64),
        ("first_sector", np.uint64),
        ("bytes", np.uint32),
        ("pid", np.uint32),
        ("kind", np.uint8),
        ("fua", np.bool_),
        ("preflush", np.bool_),
        ("sync", np.bool_),
        ("meta", np.bool_),
        ("ahead", np.bool_),
    ]
)
"""What :func:`parse_blktrace` gives: a row for each queued request.

``bytes`` is 0 for a flush alone; ``preflush`` marks a write that first makes everything before it
durable; ``ahead`` marks read-ahead, ``meta`` a file system's own data. The format does not tell a
"write zeroes" request from a write.
"""


class RecordError(FlashwrightError):
    """A recording that can't be created, or bytes that are no blktrace file."""


def parse_blktrace(data: bytes) -> Records:
    """Read the queued requests of a blktrace file.

    Parameters
    ----------
    data : bytes
        A whole file of version 7, of either byte order: one processor's file, or several merged.

    Returns
    -------
    numpy.ndarray
        A row of `REQUEST_DTYPE` for each queued request, in the file's order. Other steps of a
        request (merged, issued, completed, …) and notes are left out.

    Raises
    ------
    RecordError
        If the bytes are no such file; the message says where.

    Examples
    --------
    >>> len(parse_blktrace(b""))
    0
    >>> parse_blktrace(b"not a trace")
    Traceback (most recent call last):
    ...
    flashwright.traces.blktrace.RecordError: byte 0: 11 bytes are left; a blktrace record has 48
    """
    records, _ = _whole_file(data)
    return requests_of(records[is_request(records)])


def process_names(data: bytes) -> dict[int, str]:
    """Read the names of the processes that a blktrace file notes.

    Parameters
    ----------
    data : bytes
        A whole file of version 7.

    Returns
    -------
    dict of int to str
        Name by process id; the last one where a process changed it.

    Raises
    ------
    RecordError
        If the bytes are no such file.
    """
    records, payloads = _whole_file(data)
    names: dict[int, str] = {}
    notes = (records["action"] & _CLASS_NOTE != 0) & (
        records["action"] & _STEP_MASK == NOTE_PROCESS
    )
    for index in np.flatnonzero(notes):
        start, length = payloads.get(int(index), (0, 0))
        name = data[start : start + length].split(b"\0", 1)[0]
        names[int(records["pid"][index])] = name.decode("utf-8", "replace")
    return names


def _whole_file(data: bytes) -> tuple[Records, dict[int, tuple[int, int]]]:
    """All records of a file, and the (start, length) of the payloads that are there, by record."""
    if len(data) < HEADER.itemsize:
        if data:
            raise _no_room(0, len(data))
        return np.empty(0, HEADER), {}
    header = _header_of(data)
    parts: list[Records] = []
    payloads: dict[int, tuple[int, int]] = {}
    offset = done = 0
    while offset < len(data):
        run = run_of_records(data, offset, header)
        if not len(run):
            if len(data) - offset < header.itemsize:
                raise _no_room(offset, len(data) - offset)
            magic = int.from_bytes(data[offset : offset + 4], sys.byteorder)
            raise RecordError(
                f"byte {offset}: a record starts with 0x{magic:08x}; "
                f"expected 0x{MAGIC | VERSION:08x}",
                "the file may be damaged, or no blktrace file",
            )
        parts.append(run)
        offset += run.nbytes
        done += len(run)
        payload = int(run["pdu_bytes"][-1])
        if payload:
            if offset + payload > len(data):
                raise RecordError(
                    f"byte {offset}: a payload of {payload} bytes runs past the end of the file",
                    "the file may be cut short",
                )
            payloads[done - 1] = (offset, payload)
            offset += payload
    return np.concatenate(parts), payloads


def _no_room(offset: int, left: int) -> RecordError:
    return RecordError(
        f"byte {offset}: {left} bytes are left; a blktrace record has {HEADER.itemsize}",
        "the file may be cut short",
    )


def _header_of(data: bytes) -> np.dtype[np.void]:
    """The record header in the byte order that the first magic number shows."""
    orders: tuple[tuple[Literal["little", "big"], Literal["<", ">"]], ...] = (
        ("little", "<"),
        ("big", ">"),
    )
    for order, code in orders:
        magic = int.from_bytes(data[:4], order)
        if magic & 0xFFFFFF00 == MAGIC:
            if magic & 0xFF != VERSION:
                raise RecordError(
                    f"blktrace version {magic & 0xFF}; expected version {VERSION}",
                    "convert it with the blktrace tools of the machine that made it",
                )
            return HEADER.newbyteorder(code)
    magic = int.from_bytes(data[:4], sys.byteorder)
    raise RecordError(
        f"byte 0: the file starts with 0x{magic:08x}; expected 0x{MAGIC | VERSION:08x}",
        "it is no blktrace file; is it compressed?",
    )


def run_of_records(data: bytes | bytearray, offset: int, header: np.dtype[np.void]) -> Records:
    """Records from `offset` on, up to the first that has a payload (included) or is none (excluded)."""
    found = 0
    window = 16
    available = (len(data) - offset) // header.itemsize
    while found < available:
        count = min(window, available - found)
        at = np.frombuffer(data, header, count, offset + found * header.itemsize)
        stops = (at["magic"] != MAGIC | VERSION) | (at["pdu_bytes"] != 0)
        if stops.any():
            first = int(stops.argmax())
            found += first + int(at["magic"][first] == MAGIC | VERSION)
            break
        found += count
        window = min(window * 4, 1 << 16)
    # A copy: the live buffer is cut after this, which a view would forbid.
    return np.frombuffer(data, header, found, offset).copy()


def is_request(records: Records) -> npt.NDArray[np.bool_]:
    """Which records are of a request that was queued."""
    action = records["action"]
    queued: npt.NDArray[np.bool_] = (action & _CLASS_NOTE == 0) & (
        action & _STEP_MASK == _STEP_QUEUE
    )
    return queued


def requests_of(records: Records) -> Records:
    """Rows of `REQUEST_DTYPE` for records of queued requests."""
    action = records["action"]
    rows = np.empty(len(records), REQUEST_DTYPE)
    rows["time_ns"] = records["time_ns"]
    rows["first_sector"] = records["sector"]
    rows["bytes"] = records["bytes"]
    rows["pid"] = records["pid"]
    flushes = action & _CLASS_FLUSH != 0
    # A flush alone travels as an empty write that asks for a flush first.
    alone = flushes & (records["bytes"] == 0)
    trims = action & _CLASS_TRIM != 0
    rows["kind"] = np.where(action & _CLASS_WRITE != 0, WRITE, READ)
    rows["kind"][trims] = TRIM
    rows["kind"][alone] = FLUSH
    rows["preflush"] = flushes & ~alone
    rows["fua"] = (action & _CLASS_FUA != 0) & ~alone
    rows["sync"] = action & _CLASS_SYNC != 0
    rows["meta"] = action & _CLASS_META != 0
    rows["ahead"] = action & _CLASS_AHEAD != 0
    return rows


def note_bytes(step: int, time_ns: int, pid: int, payload: bytes) -> bytes:
    """The bytes of a note: a record that is of no request."""
    header = np.zeros(1, HEADER)
    header["magic"] = MAGIC | VERSION
    header["time_ns"] = time_ns
    header["action"] = _CLASS_NOTE | step
    header["pid"] = pid
    header["pdu_bytes"] = len(payload)
    return header.tobytes() + payload
