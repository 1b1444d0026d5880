"""A drive at a socket of vfio-user: what a virtual machine finds there, and what is refused."""

from __future__ import annotations

import json
import socket
import struct
from pathlib import Path

import pytest

import flashwright
from flashwright import Ssd
from flashwright.errors import ServeError

SMALL = "[geometry]\nblocks-per-plane = 32\npages-per-block = 16\n[capacity]\nutilization = 0.8\n"
VERSION, REGION_READ = 1, 9


def _ask(stream: socket.socket, command: int, body: bytes) -> bytes:
    """The body of the answer to a message."""
    stream.sendall(struct.pack("<HHIII", 7, command, 16 + len(body), 0, 0) + body)
    number, same, length, flags, error = struct.unpack(
        "<HHIII", stream.recv(16, socket.MSG_WAITALL)
    )
    assert (number, same, flags, error) == (7, command, 1, 0)
    return stream.recv(length - 16, socket.MSG_WAITALL)


def test_a_machine_finds_a_controller_and_the_socket_goes_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "drive.sock"
    with flashwright.serve(Ssd.from_text(SMALL), vfio_user=path) as drive:
        assert drive.uris[-1] == f"vfio-user:{path}"
        with socket.socket(socket.AF_UNIX) as stream:
            stream.connect(str(path))
            body = _ask(stream, VERSION, struct.pack("<HH", 0, 0) + b"{}\0")
            assert body[:4] == bytes(4)
            assert json.loads(body[4:-1])["capabilities"]["max_msg_fds"] > 0
            found = _ask(stream, REGION_READ, struct.pack("<QII", 8, 7, 4))
            assert struct.unpack("<I", found[16:])[0] >> 8 == 0x010802
        assert path.is_socket()
    assert not path.exists()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("file", "no socket"),
        ("none/drive.sock", "no such file or directory"),
        ("x" * 200, "too long"),
    ],
)
def test_a_path_that_can_not_be_used_is_one_line(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ServeError, match=said) as found:
        flashwright.serve(Ssd.from_text(SMALL), (), vfio_user=[tmp_path / name])
    assert "\n" not in str(found.value)
    assert name in str(found.value)
