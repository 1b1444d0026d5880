"""A guest of QEMU with emulated NVMe drives, in which commands run on this machine's own files, read-only.

    python experiments/nvme-guest/guest.py -- COMMAND ...

It needs qemu-system-x86_64 8.1 or newer, and apt, from which it takes a kernel and busybox. The drives, whose serial
numbers say which is which: "plain" has an ordinary namespace, "zoned" one with zones, "placed" one with flexible data
placement. The guest numbers them as it likes.
"""

from __future__ import annotations

import argparse
import lzma
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "flashwright-guest"
MODULES = ("virtio_pci", "9pnet_virtio", "9p", "nvme")
DRIVE_BYTES = 1 << 28
SECONDS = 600
INIT = """#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
for module in $(/bin/busybox cat /modules/order); do /bin/busybox insmod /modules/$module; done
/bin/busybox mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=262144 host /host
/bin/busybox mount -t proc proc /host/proc
/bin/busybox mount -t sysfs sysfs /host/sys
/bin/busybox mount -t devtmpfs devtmpfs /host/dev
/bin/busybox mount -t tmpfs tmpfs /host/tmp
/bin/busybox mount -t tmpfs tmpfs /host/run
/bin/busybox mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 out /host/mnt
/bin/busybox chroot /host /bin/bash /mnt/job.sh > /host/mnt/output 2>&1
echo $? > /host/mnt/status
/bin/busybox sync
/bin/busybox poweroff -f
"""


def fetched(cache: Path) -> Path:
    """The kernel, its modules and busybox, unpacked; taken from the distribution the first time."""
    tree = cache / "tree"
    if tree.exists():
        return tree
    cache.mkdir(parents=True, exist_ok=True)
    depends = subprocess.run(
        ["apt-cache", "depends", "linux-image-amd64"], capture_output=True, text=True, check=True
    ).stdout
    kernel = next(word for word in depends.split() if word.startswith("linux-image-6"))
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        subprocess.run(
            ["apt-get", "download", "-qq", kernel, "busybox-static"], cwd=folder, check=True
        )
        part = Path(folder) / "tree"
        for package in Path(folder).glob("*.deb"):
            subprocess.run(["dpkg", "-x", str(package), str(part)], check=True)
        part.rename(tree)
    return tree


def in_order(modules: Path, wanted: Iterable[str]) -> dict[str, bytes]:
    """Modules by name with what they depend on, which comes first. Those that are part of the kernel are left out."""
    paths = {path.name.split(".")[0].replace("-", "_"): path for path in modules.rglob("*.ko*")}
    found: dict[str, bytes] = {}

    def take(name: str) -> None:
        path = paths.get(name.replace("-", "_"))
        if path is None or name in found:
            return
        content = path.read_bytes()
        content = lzma.decompress(content) if path.suffix == ".xz" else content
        depends = re.search(rb"\0depends=([^\0]*)\0", content)
        for other in (depends[1] if depends else b"").decode().split(","):
            take(other)
        found[name] = content

    for name in wanted:
        take(name)
    return found


def archive(files: dict[str, bytes | None]) -> bytes:
    """A cpio archive (newc); None makes a folder."""
    made = bytearray()
    for number, (name, content) in enumerate({**files, "TRAILER!!!": b""}.items(), start=1):
        mode = 0o40755 if content is None else 0o100755
        fields = (number, mode, 0, 0, 1, 0, len(content or b""), 0, 0, 0, 0, len(name) + 1, 0)
        made += b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
        made += b"\0" * (-len(made) % 4) + (content or b"")
        made += b"\0" * (-len(made) % 4)
    return bytes(made)


def initramfs(tree: Path) -> bytes:
    """What the guest starts from."""
    modules = next(tree.glob("**/lib/modules/*"))
    files: dict[str, bytes | None] = dict.fromkeys(["bin", "proc", "host", "modules"])
    ordered = in_order(modules, MODULES)
    files |= {f"modules/{name}": content for name, content in ordered.items()}
    files["modules/order"] = "\n".join(ordered).encode()
    files["bin/busybox"] = next(tree.glob("**/bin/busybox")).read_bytes()
    files["init"] = INIT.encode()
    return archive(files)


def run(
    command: str, drives: Path, *, accelerator: str = "tcg", seconds: float = SECONDS
) -> tuple[int, str]:
    """Run a shell command in the guest; its status and what it printed.

    Parameters
    ----------
    command : str
        For bash. It may write to /mnt and /tmp; /mnt is lost with the guest.
    drives : Path
        A folder for the files of the drives ``plain``, ``zoned`` and ``placed``, made if they are missing.
    accelerator : str, optional
        Of QEMU: ``"tcg"`` emulates the processor and works everywhere, ``"kvm"`` is faster where it works.
    seconds : float, optional
        After which the guest is given up.
    """
    for name in ("plain", "zoned", "placed"):
        with (drives / name).open("ab") as file:
            file.truncate(DRIVE_BYTES)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        out.mkdir()
        (out / "job.sh").write_text(command)
        tree = fetched(CACHE)
        first = Path(folder) / "initramfs"
        first.write_bytes(initramfs(tree))
        done = subprocess.run(
            [
                "qemu-system-x86_64",
                *(
                    "-accel",
                    accelerator,
                    "-cpu",
                    "max",
                    "-m",
                    "2G",
                    "-smp",
                    "2",
                    "-nographic",
                    "-no-reboot",
                ),
                *("-kernel", str(next(tree.glob("boot/vmlinuz*"))), "-initrd", str(first)),
                *("-append", "console=ttyS0 quiet panic=-1"),
                *("-virtfs", "local,path=/,mount_tag=host,security_model=none,readonly=on"),
                *("-virtfs", f"local,path={out},mount_tag=out,security_model=none"),
                *blocks("plain", drives),
                *("-device", "nvme,serial=plain,drive=plain"),
                *blocks("zoned", drives),
                *("-device", "nvme,serial=zoned,id=zoned"),
                "-device",
                "nvme-ns,drive=zoned,bus=zoned,zoned=on,zoned.zone_size=16M,zoned.max_open=8,zoned.max_active=12",
                *blocks("placed", drives),
                "-device",
                "nvme-subsys,id=group,fdp=on,fdp.runs=16M,fdp.nrg=1,fdp.nruh=8",
                *("-device", "nvme,serial=placed,id=placed,subsys=group"),
                *("-device", "nvme-ns,drive=placed,bus=placed,fdp.ruhs=0-3"),
            ],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
        status = out / "status"
        if not status.exists():
            raise RuntimeError(f"the guest did not get so far: {done.stdout[-3000:]}{done.stderr}")
        return int(status.read_text()), (out / "output").read_text(errors="replace")


def blocks(name: str, drives: Path) -> list[str]:
    """The file of a drive, as an option of QEMU."""
    return ["-drive", f"file={drives / name},if=none,format=raw,id={name}"]


def main() -> int:
    """Run the command of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("command", nargs="+")
    parser.add_argument("--drives", type=Path, help="keep the drives in this folder")
    options = parser.parse_args()
    if shutil.which("qemu-system-x86_64") is None:
        sys.exit("qemu-system-x86_64: not installed")
    with tempfile.TemporaryDirectory() as folder:
        status, output = run(shlex.join(options.command), options.drives or Path(folder))
    print(output, end="")
    return status


if __name__ == "__main__":
    sys.exit(main())
