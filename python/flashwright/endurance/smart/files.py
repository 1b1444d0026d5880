"""From files to drives, each with its readings from the oldest to the newest."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from flashwright.endurance.smart import names
from flashwright.endurance.smart.facts import Facts, SmartError
from flashwright.endurance.smart.judge import judge
from flashwright.endurance.smart.logs import drives_of, of_each
from flashwright.endurance.smart.reading import Smart
from flashwright.endurance.smart.texts import from_table, from_text, is_table
from flashwright.support.arguments import checked
from flashwright.support.files import reason

__all__ = ["parse", "read", "read_drives"]


@checked()
def read(path: Path) -> Smart:
    """SMART data of one drive in a file.

    Parameters
    ----------
    path : Path
        Output of ``smartctl -j -x`` (SATA, SAS or NVMe), of ``nvme smart-log -o json``, and of the logs of
        ``nvme-cli`` that have more: ``ocp smart-add-log``, ``intel smart-log-add``, ``endurance-log``, ``id-ctrl``.
        The text that the tools print without JSON is read too.

    Returns
    -------
    Smart
        The newest reading.

    Raises
    ------
    SmartError
        If it can't be read, is something else, has no wear data, or is of several drives.
    """
    drives = read_drives([path])
    if len(drives) > 1:
        named = ", ".join(str(drive[-1].serial or drive[-1].model) for drive in drives[:3])
        raise SmartError(
            f"{path}: found {len(drives)} drives ({named}{', …' * (len(drives) > 3)}), expected one",
            "give a file of the one drive; `flashwright lifetime smart FILE` shows them all",
        )
    return drives[0][-1]


@checked()
def read_drives(paths: Sequence[Path]) -> list[tuple[Smart, ...]]:
    """The drives in files, each with its readings from the oldest to the newest.

    Two logs of one kind are two readings; logs of different kinds are of one moment.

    Parameters
    ----------
    paths : sequence of Path
        As :func:`read` takes them, and tables of daily readings (Backblaze's).

    Raises
    ------
    SmartError
        If one can't be read, is something else, or has no wear data.
    """
    found: list[Facts] = []
    for path in paths:
        try:
            logs = list(_in_file(path))
        except SmartError as error:
            raise SmartError(f"{path}: {error}", error.hint) from None
        kinds = [facts.kind for facts in logs if facts.serial is None]
        if len(paths) > 1 and len(set(kinds)) < len(kinds):
            raise SmartError(
                f"{path}: found several drives without serial numbers, expected one in each of several files",
                "`smartctl -j -x DEVICE` prints the serial number",
            )
        found.extend(logs)
    drives = []
    for logs in _by_drive(found, len(paths)):
        try:
            drives.append(_readings(logs))
        except SmartError as error:
            serial = logs[0].serial or logs[0].model
            which = f"{serial}: " if len(found) > 1 and serial else ""
            raise SmartError(f"{paths[0]}: {which}{error}", error.hint) from None
    return drives


def parse(value: object) -> Smart:
    """SMART data of one drive as parsed from JSON; see :func:`read`.

    Fields are those of NVM Express 2.0, figure "SMART / Health Information Log" (data units are 512,000
    bytes), and of smartctl's attributes, whose names have their meanings in ``attributes.toml``.

    Parameters
    ----------
    value : object
        Parsed JSON.

    Raises
    ------
    SmartError
        As :func:`read` does.
    """
    logs = list(drives_of(value))
    if not logs:
        raise SmartError(_no_smart_data())
    drives = _by_drive(logs, 1)
    if len(drives) > 1:
        raise SmartError(f"found {len(drives)} drives, expected one", "")
    return _readings(drives[0])[-1]


def _no_smart_data() -> str:
    return "not SMART data: found neither smartctl's fields nor those of nvme-cli's logs, expected one of them"


def _in_file(path: Path) -> Iterator[Facts]:
    text = _text_of(path)
    if is_table(text):
        yield from _of_table(text)
        return
    values, fault = [], None
    # What a shell or sudo says may stand before JSON, and begin with a bracket too.
    for start in islice(re.finditer(r"\A\s*[\[{]|^[\[{]", text, re.MULTILINE), 3):
        try:
            values = _documents(text[start.end() - 1 :])
            break
        except SmartError as error:
            fault = fault or error
    if not values:
        drives = list(of_each(from_text(text), drives_of))
        if not drives:
            raise fault or SmartError(
                "not SMART data: found text that neither smartctl nor nvme-cli prints"
            )
        yield from drives
        return
    drives = list(of_each(values, drives_of))
    if not drives:
        raise SmartError(_no_smart_data())
    yield from drives


def _text_of(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SmartError(reason(error), "") from None
    # PowerShell writes what a command prints in UTF-16.
    wide = data[:2] in (b"\xff\xfe", b"\xfe\xff") and len(data) % 2 == 0
    try:
        return data.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        # Separators of thousands in the code page of a Windows machine.
        if b"\0" not in data and b"smartctl" in data[:4096]:
            return data.decode("utf-8", errors="replace")
        raise SmartError(f"not text in UTF-8: {error.reason}") from None


def _documents(text: str) -> list[object]:
    """The JSON values in a text, one after another; a bare nan, as nvme-cli prints it, is nothing."""
    decoder = json.JSONDecoder()
    try:
        return list(_decoded(decoder, text))
    except ValueError:
        text = re.sub(
            r'("(?:\\.|[^"\\])*")|-?\b(?:nan|inf|infinity)\b',
            lambda found: found[1] or "null",
            text,
            flags=re.IGNORECASE,
        )
        try:
            return list(_decoded(decoder, text))
        except json.JSONDecodeError as error:
            raise SmartError(f"not whole JSON: line {error.lineno}: {error.msg}") from None
        except ValueError as error:
            raise SmartError(f"not whole JSON: {error}") from None
    except RecursionError:
        raise SmartError("not SMART data: nested too deeply") from None


def _decoded(decoder: json.JSONDecoder, text: str) -> Iterator[object]:
    at = 0
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        yield value
        rest = re.compile(r"[\s,]*").match(text, at)
        at = rest.end() if rest else at


def _of_table(text: str) -> Iterator[Facts]:
    found, unknown = False, set()

    def wanted(model: str | None) -> bool:
        known = names.is_known(model)
        if not known:
            unknown.add(str(model))
        return known

    for drive in from_table(text, wanted):
        for facts in drives_of(drive):
            facts.kind = "table"
            found = True
            yield facts
    if not found:
        raise SmartError(
            f"found no drive whose attributes are known by their numbers ({', '.join(sorted(unknown)[:3])})",
            "`smartctl -j -x DEVICE` names them",
        )


def _by_drive(logs: Iterable[Facts], files: int) -> list[list[Facts]]:
    """Logs in groups of one drive each: by serial number, or alone in their files."""
    named: dict[str, list[Facts]] = {}
    nameless = []
    for facts in logs:
        if facts.serial is None:
            nameless.append(facts)
        else:
            named.setdefault(facts.serial, []).append(facts)
    drives = list(named.values())
    kinds = [facts.kind for facts in nameless]
    several = len(set(kinds)) < len(kinds) and files == 1
    if nameless and len(drives) <= 1 and not several:
        # One drive's: each log once, or a moment a file.
        return [[*(drives[0] if drives else []), *nameless]]
    return [*drives, *([facts] for facts in nameless)]


def _readings(logs: Sequence[Facts]) -> tuple[Smart, ...]:
    """The readings of one drive from the oldest to the newest."""
    by_kind: dict[str, list[Facts]] = {}
    for facts in logs:
        by_kind.setdefault(facts.kind, []).append(facts)
    moments = max(len(each) for each in by_kind.values())
    readings = []
    for at in range(moments):
        together = [each[at - moments] for each in by_kind.values() if at - moments >= -len(each)]
        for lasting in by_kind.get("identify", [])[:1]:
            if lasting not in together:
                together.append(lasting)
        together.sort(key=lambda facts: facts.kind in ("identify", "ocp"))
        first = together[0]
        for other in together[1:]:
            first.add(other)
        readings.append(judge(first))
    if all(each.taken_at is not None for each in readings):
        readings.sort(key=lambda each: each.taken_at or 0)
    elif all(each.power_on_hours is not None for each in readings):
        readings.sort(key=lambda each: each.power_on_hours or 0)
    return tuple(readings)
