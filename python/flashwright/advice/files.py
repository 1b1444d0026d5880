"""Files that bring advice to a Linux machine: a udev rule, a script that checks its effect, a layout, jobs of fio.

None of them destroys anything: the layout is printed, and fio's writes are in a file of their own.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from flashwright.advice.lines import BlockDevice, HostAdvice
from flashwright.errors import ConfigError, OutputError
from flashwright.support.files import check_writable, reason, write_beside

__all__ = ["machine_files", "prepare", "write_files"]

# Seconds of a job of fio. Chosen: thousands of requests, and all jobs take a minute or two.
_SECONDS = 15


def prepare(advice: HostAdvice, folder: Path, *, force: bool = False) -> dict[str, str]:
    """Make the folder, and find out whether the files can be written to it.

    Parameters
    ----------
    advice : HostAdvice
        What they say; it must name a disk.
    folder : Path
        Where.
    force : bool, optional
        Allow files that are there.

    Returns
    -------
    dict of str to str
        The files' text by name.

    Raises
    ------
    ConfigError
        If the advice names no disk, or nothing of it can be written.
    OutputError
        If a file is there already, or none can be written.
    """
    contents = machine_files(advice)
    if not contents:
        raise ConfigError(
            f"folder: found no advice for {advice.profile.target.name} that a file could hold, expected findings",
            "its verdicts are unknown; probe it again with more time, or add what you know to the profile",
            parameters=["folder"],
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: can't be created: {reason(error)}") from None
    for path in (folder / name for name in contents):
        if path.exists() and not force:
            raise OutputError(
                f"{path}: found a file there, expected none",
                "force=True replaces it",
                parameters=["force"],
            )
        check_writable(path)
    return contents


def write_files(advice: HostAdvice, folder: Path, *, force: bool = False) -> list[Path]:
    """Write the files into a folder, which is made if need be; :func:`prepare` says what can go wrong.

    Returns
    -------
    list of Path
        The files.
    """
    contents = prepare(advice, folder, force=force)
    for name, text in contents.items():
        with write_beside(folder / name) as part:
            part.write_text(text, encoding="utf-8")
            part.chmod(0o755 if name.endswith(".sh") else 0o644)
    return [folder / name for name in contents]


def machine_files(advice: HostAdvice) -> dict[str, str]:
    """The files' text by name; those that there is no advice for are left out.

    Parameters
    ----------
    advice : HostAdvice
        It must name a disk.

    Raises
    ------
    ConfigError
        If it names none.

    Examples
    --------
    >>> from flashwright import Ssd
    >>> from flashwright.advice.host import host_advice
    >>> from flashwright.twin.profile import Profile
    >>> advice = host_advice(Profile.described(Ssd.named("ssd-a")), device=BlockDevice("/dev/sdb"))
    >>> list(machine_files(advice))
    ['60-flashwright-sdb.rules', 'apply.sh', 'layout.sh', 'measure.fio', 'measure-destroys-data.fio']
    """
    device = advice.device
    if device is None:
        raise ConfigError(
            f"device: found a profile of {advice.profile.target.name}, which is no disk, expected the name of one",
            "name the disk that the files are for (device=)",
            parameters=["device"],
        )
    found = {}
    if advice.queue:
        found[f"60-flashwright-{device.kernel_name}.rules"] = _rules(advice, device)
        found["apply.sh"] = _apply(advice, device)
    if advice.partition is not None or advice.mkfs:
        found["layout.sh"] = _layout(advice, device)
    reads, writes = _jobs(advice, "read"), _jobs(advice, "write")
    if reads:
        found["measure.fio"] = _fio(advice, device, reads, writes=False)
        found["measure-destroys-data.fio"] = _fio(advice, device, writes, writes=True)
    return found


def _head(advice: HostAdvice, *lines: str) -> str:
    """What a file is for, as comments."""
    # A name has no line breaks in this form, whatever it is.
    name = json.dumps(advice.profile.target.name)
    made = f"Advice of {json.dumps(advice.profile.made_by)} for {name}."
    return "".join(f"# {line}\n" for line in (made, *lines))


_QUEUE_TOPICS = ("linux scheduler", "max_sectors_kb", "nr_requests", "read_ahead_kb")
_LAYOUT_TOPICS = ("spare space", "partition", "ext4", "xfs", "discard")


def _reasons(advice: HostAdvice) -> str:
    """Why the queue's settings are as they are, as comments."""
    return "".join(
        f"# {line.topic}: {line.text}\n"
        for line in advice.lines
        if line.given and line.topic in _QUEUE_TOPICS
    )


def _rules(advice: HostAdvice, device: BlockDevice) -> str:
    """The scheduler comes first: the kernel sets requests anew when it changes."""
    declared = advice.profile.declared
    keys = ['ACTION=="add|change"', 'SUBSYSTEM=="block"', 'ENV{DEVTYPE}=="disk"']
    model, serial = (_pattern(declared.get(key)) for key in ("model", "serial"))
    # Beside the model, sysfs has the serial number of NVMe drives only.
    if model is None:
        keys.append(f'KERNEL=="{device.kernel_name}"')
        how = "The disk is known by its name, which may change when disks come or go."
    else:
        keys.append(f'ATTRS{{model}}=="{model}"')
        how = "The disk is known by its model: all of that model get these settings."
        if serial is not None and device.kernel_name.startswith("nvme"):
            keys.append(f'ATTRS{{serial}}=="{serial}"')
            how = "The disk is known by its model and serial number."
    settings = [f'ATTR{{queue/{name}}}="{value}"' for name, value in advice.queue.items()]
    head = _head(
        advice,
        how,
        "Copy it to /etc/udev/rules.d, then: udevadm control --reload && udevadm trigger --action=change "
        f"--sysname-match={device.kernel_name}",
        "udev does not report values that the kernel refused or changed; apply.sh does.",
    )
    return f"{head}{_reasons(advice)}\n{', '.join(keys + settings)}\n"


def _pattern(text: object) -> str | None:
    """A declared text as udev matches it: sysfs pads it, and what has a meaning of its own becomes any letter."""
    if not isinstance(text, str) or not text.strip():
        return None
    return re.sub(r"[^A-Za-z0-9 ._-]", "?", text.strip()) + "*"


_APPLY = """\
set -eu
disk=${{1:-{name}}}
queue=${{FLASHWRIGHT_SYS:-/sys}}/block/$disk/queue
if [ ! -d "$queue" ]; then
    echo "$queue: there is no such folder; expected the name of a whole disk, such as {name}" >&2
    exit 2
fi
failed=0

# The kernel clamps some values silently, so each is read back.
apply() {{
    file=$queue/$1
    note=
    if ! (printf '%s\\n' "$2" >"$file") 2>/dev/null; then
        note=' (refused)'
    fi
    got=$(cat "$file" 2>/dev/null) || got=nothing
    case $got in
        *\\[*\\]*) got=${{got#*\\[}} got=${{got%%\\]*}} ;;
    esac
    echo "$1: asked $2, got $got$note"
    [ "$got" = "$2" ] || failed=1
}}

"""


def _apply(advice: HostAdvice, device: BlockDevice) -> str:
    head = _head(
        advice,
        "Applies settings to the disk's queue until the next boot, and reports what the kernel accepted.",
        "Usage: apply.sh [DISK]; exits 1 where the kernel refused or changed a value.",
    )
    calls = "".join(f"apply {name} {shlex.quote(value)}\n" for name, value in advice.queue.items())
    body = _APPLY.format(name=device.kernel_name)
    return f"#!/bin/sh\n{head}{_reasons(advice)}{body}{calls}exit $failed\n"


def _layout(advice: HostAdvice, device: BlockDevice) -> str:
    """The commands as text for the reader: nothing here runs them."""
    head = _head(
        advice,
        "Prints the commands that partition and format the disk, and runs none of them: they destroy its data.",
        "Usage: layout.sh [DEVICE]",
    )
    rows = []
    for line in advice.lines:
        if line.given and line.topic in _LAYOUT_TOPICS:
            # The shell looks into what it prints.
            text = re.sub(r"([$`\\])", r"\\\1", line.text)
            rows.append(f"# {line.topic}: {text}")
            if line.topic == "partition":
                rows.append("# either of:")
            rows += [
                # The partition first: its name begins with the disk's.
                command.replace(device.partition, "$part").replace(device.path, "$disk")
                for command in line.commands
            ]
    return (
        f"#!/bin/sh\n{head}set -eu\ndisk=${{1:-{device.path}}}\n"
        "case $disk in\n    *[0-9]) part=${disk}p1 ;;\n    *) part=${disk}1 ;;\nesac\n"
        "cat <<END\n" + "\n".join(rows) + "\nEND\n"
    )


def _jobs(advice: HostAdvice, kind: str) -> dict[str, dict[str, int]]:
    """Jobs by name: what their requests are like."""
    target = advice.profile.target
    jobs: dict[str, dict[str, int]] = {}
    page = advice.profile.findings.get("clustered-page")
    if page is not None and page.verdict == "found" and isinstance(page.value, int | float):
        size = int(page.value)
        aligned = {"bs": size, "blockalign": size, "iodepth": 1}
        jobs[f"aligned-{kind}s"] = aligned
        off = size // 2 // target.block_bytes * target.block_bytes
        if off:
            jobs[f"unaligned-{kind}s"] = aligned | {"offset": off}
    best, depth = advice.request_bytes, advice.depth
    if best is not None and depth is not None:
        jobs[f"best-{kind}s"] = {"bs": best, "iodepth": depth}
        jobs[f"larger-{kind}s"] = {"bs": 2 * best, "iodepth": depth}
        jobs[f"deeper-{kind}s"] = {"bs": best, "iodepth": 2 * depth}
    return jobs


def _fio(
    advice: HostAdvice, device: BlockDevice, jobs: Mapping[str, Mapping[str, int]], *, writes: bool
) -> str:
    head = _head(
        advice,
        "Repeats measurements behind it: aligned against unaligned requests, and the best size and depth against more.",
        "It OVERWRITES the disk. Run it only if nothing on the disk is needed."
        if writes
        else "It only reads. Usage: fio --readonly measure.fio",
    )
    common = [
        "[global]",
        f"filename={device.path}",
        "direct=1",
        "ioengine=libaio",
        "time_based=1",
        f"runtime={_SECONDS}",
        "norandommap=1",
        "group_reporting=1",
        "allow_mounted_write=0",
        # As the probes do: else the write buffer hides what flash takes.
        *(["rw=randwrite", "fdatasync=1", "refill_buffers=1"] if writes else ["rw=randread"]),
    ]
    sections = [
        "\n".join([f"[{name}]", "stonewall", *(f"{key}={value}" for key, value in job.items())])
        for name, job in jobs.items()
    ]
    return head + "\n" + "\n\n".join(["\n".join(common), *sections]) + "\n"
