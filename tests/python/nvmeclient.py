"""A host of NVMe/TCP that knows just enough of the protocol for tests; sockets and nothing else."""

from __future__ import annotations

import contextlib
import socket
import struct
from types import TracebackType

from nbdclient import take

IC_REQ, IC_RESP, TERMINATED, COMMAND, RESPONSE, C2H_DATA = 0, 1, 3, 4, 5, 7
FLUSH, WRITE, READ, GET_LOG, IDENTIFY, FABRICS = 0x00, 0x01, 0x02, 0x02, 0x06, 0x7F
_IN_CAPSULE, _TRANSPORT = 0x01, 0x5A
_SUCCESS = 1 << 3
_NAME = b"nqn.2014-08.org.nvmexpress:uuid:00000000-0000-4000-8000-000000000000"
_ANY_CONTROLLER = 0xFFFF


class NvmeError(Exception):
    """A command failed, with this status."""


def connection_request(digests: int = 0) -> bytes:
    return struct.pack("<BBBBIHBBI", IC_REQ, 0, 128, 0, 128, 0, 0, digests, 0) + bytes(112)


def capsule(entry: bytes, data: bytes = b"") -> bytes:
    """A command, with its data in the capsule."""
    place = 72 if data else 0
    return struct.pack("<BBBBI", COMMAND, 0, 72, place, 72 + len(data)) + entry + data


def entry(
    opcode: int,
    nsid: int = 0,
    dwords: tuple[int, ...] = (),
    *,
    number: int = 1,
    length: int = 0,
    inside: bool = False,
    kind: int | None = None,
) -> bytes:
    """A submission queue entry; `kind` is that of a command of fabrics."""
    sgl = struct.pack("<QI3xB", 0, length, _IN_CAPSULE if inside else _TRANSPORT)
    head = struct.pack("<BBHI16x", opcode, 0x40, number, nsid if kind is None else kind)
    return head + sgl + struct.pack("<6I", *dwords, *[0] * (6 - len(dwords)))


class Queue:
    """A connection that serves a queue: of the administration, or number 1 of the same controller."""

    def __init__(self, uri: str, admin: Queue | None = None) -> None:
        address, _, self.nqn = uri.removeprefix("nvme+tcp://").partition("/")
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(120)
        try:
            self._begin(admin)
        except BaseException:
            self.socket.close()
            raise

    def _begin(self, admin: Queue | None) -> None:
        self.socket.sendall(connection_request())
        assert take(self.socket, 128)[0] == IC_RESP
        self.controller: int = _ANY_CONTROLLER if admin is None else admin.controller
        data = bytearray(1024)
        data[:16] = bytes([7]) * 16
        data[16:18] = struct.pack("<H", self.controller)
        data[256 : 256 + len(self.nqn)] = self.nqn.encode()
        data[512 : 512 + len(_NAME)] = _NAME
        number, size = (0, 31) if admin is None else (1, 127)
        result, _ = self.ask(FABRICS, 0, (number << 16, size), data=bytes(data), kind=1)
        self.controller = result & 0xFFFF
        if admin is None:
            self.ask(FABRICS, 0, (0, 0x14, 6 << 16 | 4 << 20 | 1), kind=0)

    def ask(
        self,
        opcode: int,
        nsid: int = 1,
        dwords: tuple[int, ...] = (),
        *,
        data: bytes = b"",
        wanted: int = 0,
        kind: int | None = None,
    ) -> tuple[int, bytes]:
        """Give a command, with `data` in its capsule or `wanted` bytes back: its result, and what it brings."""
        length = len(data) or wanted
        sqe = entry(opcode, nsid, dwords, length=length, inside=bool(data), kind=kind)
        self.socket.sendall(capsule(sqe, data))
        found = b""
        while True:
            head = take(self.socket, 8)
            (length,) = struct.unpack("<I", head[4:])
            body = take(self.socket, length - 8)
            if head[0] == C2H_DATA:
                found += body[head[3] - 8 :]
                if head[1] & _SUCCESS:
                    return 0, found
            elif head[0] == RESPONSE:
                result, _, _, _, status = struct.unpack("<QHHHH", body[:16])
                if status >> 1:
                    raise NvmeError(status >> 1)
                return result, found
            else:
                raise EOFError(f"a PDU of type {head[0]} came")

    def read(self, first: int, blocks: int) -> bytes:
        return self.ask(READ, 1, (first, 0, blocks - 1), wanted=512 * blocks)[1]

    def write(self, first: int, data: bytes) -> None:
        self.ask(WRITE, 1, (first, 0, len(data) // 512 - 1), data=data)

    def __enter__(self) -> Queue:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with contextlib.suppress(OSError):
            self.socket.close()
