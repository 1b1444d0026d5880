"""A client of NBD that knows just enough of the protocol for tests; sockets and nothing else."""

from __future__ import annotations

import socket
import struct
from types import TracebackType
from urllib.parse import parse_qs, urlsplit

READ, WRITE, DISCONNECT, FLUSH, TRIM, CACHE, WRITE_ZEROES, BLOCK_STATUS = range(8)
FUA, NO_HOLE, DF, REQ_ONE, FAST_ZERO = 1, 2, 4, 8, 16
EPERM, EIO, EINVAL, ENOSPC, EOVERFLOW, ENOTSUP = 1, 5, 22, 28, 75, 95

_OPTION = 0x49484156454F5054
_GO, _STRUCTURED, _CONTEXT = 7, 8, 10


class NbdError(Exception):
    """A command failed."""

    def __init__(self, errno: int, why: str) -> None:
        super().__init__(errno, why)
        self.errno, self.why = errno, why


def connect(uri: str) -> socket.socket:
    """A connection to where a URI says."""
    parts = urlsplit(uri)
    if parts.scheme == "nbd+unix":
        raw = socket.socket(socket.AF_UNIX)
        try:
            raw.connect(parse_qs(parts.query)["socket"][0])
        except OSError:
            raw.close()
            raise
        return raw
    return socket.create_connection((parts.hostname or "", parts.port or 10809))


def take(connection: socket.socket, count: int) -> bytes:
    """So many bytes of what the other end sends; EOFError if it ends before."""
    data = memoryview(bytearray(count))
    taken = 0
    while taken < count:
        more = connection.recv_into(data[taken:])
        if not more:
            raise EOFError("the server has ended the connection")
        taken += more
    return bytes(data)


class Nbd:
    """A connection with structured replies and block status."""

    def __init__(self, uri: str, *, name: str = "") -> None:
        self.socket = connect(uri)
        # Long enough for a machine that is busy with other tests; a hang ends all the same.
        self.socket.settimeout(120)
        try:
            self._negotiate(name)
        except BaseException:
            self.socket.close()
            raise

    def _negotiate(self, name: str) -> None:
        magic, _, _ = struct.unpack(">8sQH", take(self.socket, 18))
        assert magic == b"NBDMAGIC"
        self.socket.sendall(struct.pack(">I", 3))
        self.option(_STRUCTURED)
        text = b"base:allocation"
        self.option(_CONTEXT, struct.pack(">III", 0, 1, len(text)) + text)
        for kind, data in self.option(_GO, struct.pack(">I", len(name)) + name.encode() + bytes(2)):
            if kind == 3 and data[:2] == b"\0\0":
                self.size, self.flags = struct.unpack(">QH", data[2:])
        self._cookie = 0

    def option(self, kind: int, data: bytes = b"") -> list[tuple[int, bytes]]:
        """Send an option, and fetch the replies up to the last."""
        self.socket.sendall(struct.pack(">QII", _OPTION, kind, len(data)) + data)
        found: list[tuple[int, bytes]] = []
        while not found or found[-1][0] in (2, 3, 4):
            _, _, reply, length = struct.unpack(">QIII", take(self.socket, 20))
            found.append((reply, take(self.socket, length)))
        if found[-1][0] != 1:
            raise NbdError(found[-1][0], found[-1][1].decode())
        return found

    def send(
        self, kind: int, offset: int = 0, length: int = 0, data: bytes = b"", flags: int = 0
    ) -> int:
        """Send a request; its cookie."""
        self._cookie += 1
        head = struct.pack(">IHHQQI", 0x25609513, flags, kind, self._cookie, offset, length)
        self.socket.sendall(head + data)
        return self._cookie

    def reply(self) -> tuple[int, bytes]:
        """The next reply: its cookie, and what it brings."""
        magic, flags, kind, cookie, length = struct.unpack(">IHHQI", take(self.socket, 20))
        assert magic == 0x668E33EF and flags == 1, "each reply is one chunk"
        data = take(self.socket, length)
        if kind == 1 << 15 | 1:
            errno, size = struct.unpack(">IH", data[:6])
            raise NbdError(errno, data[6 : 6 + size].decode())
        return cookie, data[8:] if kind == 1 else data

    def ask(
        self, kind: int, offset: int = 0, length: int = 0, data: bytes = b"", flags: int = 0
    ) -> bytes:
        """Send a request and fetch its reply."""
        cookie = self.send(kind, offset, length, data, flags)
        found, brought = self.reply()
        assert found == cookie
        return brought

    def read(self, offset: int, length: int) -> bytes:
        return self.ask(READ, offset, length)

    def write(self, offset: int, data: bytes, flags: int = 0) -> None:
        self.ask(WRITE, offset, len(data), data, flags)

    def mapped(self, offset: int, length: int) -> list[tuple[int, int]]:
        """Lengths in bytes, and the flags of each: 3 is a hole of zeros."""
        data = self.ask(BLOCK_STATUS, offset, length)
        return [pair for pair in struct.iter_unpack(">II", data[4:])]  # noqa: C416 # typed pairs

    def __enter__(self) -> Nbd:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.send(DISCONNECT)
        self.socket.close()
