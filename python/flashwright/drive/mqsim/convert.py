"""The two files of MQSim, read by the tables, as a drive and commands."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fractions import Fraction
from itertools import product
from pathlib import Path

import tomli_w

from flashwright.drive.description import completed, config_of
from flashwright.drive.mqsim.device import DEVICE_SETS, as_time
from flashwright.drive.mqsim.element import (
    Element,
    Fate,
    Idle,
    Note,
    Option,
    Outcome,
    Setting,
    Spec,
    Values,
)
from flashwright.drive.mqsim.flows import FLOW_SETS, PARTS, FlowValues, reads_alone
from flashwright.drive.mqsim.xmlfile import Node
from flashwright.drive.mqsim.xmlfile import read as read_xml
from flashwright.errors import ConfigError, FlashwrightError, WorkloadError
from flashwright.support.core import _core
from flashwright.support.files import check_folder, write_beside
from flashwright.traces import workloads

__all__ = ["Conversion", "Run", "convert"]

_MOST_FLOWS = 8
"""Flows that a scenario may have, as MQSim's documentation says."""

_FEWEST_BLOCKS = 4
"""The fewest blocks that a plane may have here."""


@dataclass(frozen=True)
class Run:
    """A flow as a command.

    Attributes
    ----------
    label : str
        The scenario and the flow, as in the name of the result.
    command : tuple of str
        What runs it, in the folder of the drive.
    """

    label: str
    command: tuple[str, ...]

    @property
    def text(self) -> str:
        """The command as a shell takes it."""
        return shlex.join(self.command)


@dataclass(frozen=True)
class Conversion:
    """A drive, its runs, and what is not the same.

    Attributes
    ----------
    toml : str
        The drive, with the elements that each value came from.
    runs : tuple of Run
        A run for each flow of each scenario.
    notes : tuple of Note
        What has no equal, is approximated, has no effect, is missing or not known.
    """

    toml: str
    runs: tuple[Run, ...]
    notes: tuple[Note, ...]

    def write(self, folder: Path) -> None:
        """Write ``drive.toml``, and ``run.sh`` if there are runs.

        Parameters
        ----------
        folder : Path
            Where to; it is made if it is not there.

        Raises
        ------
        OutputError
            If that can't be.
        """
        check_folder(folder)
        with write_beside(folder / "drive.toml") as part:
            part.write_text(self.toml, encoding="utf-8")
        if self.runs:
            with write_beside(folder / "run.sh") as part:
                part.write_text(self.script, encoding="utf-8")

    @property
    def script(self) -> str:
        """The commands as a script; options given to it are added to each.

        Examples
        --------
        >>> Conversion("", (Run("flow 1", ("flashwright", "--version")),), ()).script.splitlines()[-1]
        'flashwright --version "$@"'
        """
        head = '#!/bin/sh\n# Options given to this script are added to each command.\nset -e\ncd "$(dirname "$0")"\n'
        return head + "".join(f'\n# {run.label}\n{run.text} "$@"\n' for run in self.runs)


def convert(
    config: Path,
    workload: Path | None = None,
    *,
    out: Path = Path(),
    blocks_per_plane: int | None = None,
) -> Conversion:
    """Convert what MQSim reads.

    Parameters
    ----------
    config : Path
        The file that describes the SSD.
    workload : Path, optional
        The file that describes the scenarios.
    out : Path, optional
        The folder that the commands will run in: traces are named from there.
    blocks_per_plane : int, optional
        Blocks of a plane, if not those of the file. Shares of blocks stay, and RAM shrinks with them.

    Returns
    -------
    Conversion

    Raises
    ------
    ConfigError
        If the SSD can't be read, or can't be a drive.
    WorkloadError
        If the scenarios can't.

    Examples
    --------
    >>> try:
    ...     convert(Path("gone.xml"))
    ... except ConfigError as error:
    ...     print(error)
    gone.xml: no such file or directory
    """
    notes: list[Note] = []
    device = _device(read_xml(config, "Execution_Parameter_Set", ConfigError), config, notes)
    device.blocks = blocks_per_plane or device.whole("Block_No_Per_Plane")
    if not _FEWEST_BLOCKS <= device.blocks <= device.whole("Block_No_Per_Plane"):
        raise ConfigError(
            f"blocks_per_plane: found {device.blocks:,}, expected {_FEWEST_BLOCKS} to "
            f"Block_No_Per_Plane = {device.whole('Block_No_Per_Plane'):,}",
            "",
            parameters=["blocks_per_plane"],
        )
    scenarios = _scenarios(workload, device, out, notes)
    flows = [flow for flows in scenarios for flow in flows]
    if flows:
        device.caching = flows[0].word("Device_Level_Data_Caching_Mode")
        device.fullest = max(flow.whole("Initial_Occupancy_Percentage") for flow in flows)
    rows = [row for rows in DEVICE_SETS.values() for row in rows]
    outcomes = _outcomes(rows, device, config, ConfigError, notes)
    settings = [each for each in outcomes if isinstance(each, Setting)]
    toml = _toml(settings, config)
    _check(toml, settings, config)
    runs = [_run(flow, workload, toml, notes) for flow in flows if workload is not None]
    for number, scenario in enumerate(scenarios, 1):
        if len(scenario) > 1:
            notes.append(
                Note(
                    f"scenario {number}",
                    Fate.NEAR,
                    f"its {len(scenario)} flows run at once there, one after the other here",
                )
            )
    return Conversion(toml, tuple(runs), tuple(_together(notes)))


def _together(notes: Iterable[Note]) -> Iterator[Note]:
    """The notes, each once: what is said of several flows names the first and counts the others."""
    wheres: dict[Note, list[str]] = {}
    for note in notes:
        wheres.setdefault(replace(note, where=""), []).append(note.where)
    for note, those in wheres.items():
        more = "" if len(those) == 1 else f" and {len(those) - 1} more"
        yield replace(note, where=those[0].replace(": ", f"{more}: "))


def _device(root: Node, path: Path, notes: list[Note]) -> Values:
    found = Values()
    host, ssd = (_only(root, name, path) for name in list(DEVICE_SETS)[:2])
    flash = _only(ssd, "Flash_Parameter_Set", path)
    _say_unknown(root, [], path, notes, known=list(DEVICE_SETS)[:2])
    for node, (name, rows) in zip((host, ssd, flash), DEVICE_SETS.items(), strict=True):
        inner = ("Flash_Parameter_Set",) if node is ssd else ()
        _read(node, rows, found, path, ConfigError, notes, known=inner)
        assert node.name == name
    return found


def _only(node: Node, name: str, path: Path) -> Node:
    those = list(node.those(name))
    if len(those) != 1:
        raise ConfigError(
            f"{path}: line {node.line}: found {len(those)} of <{name}> in <{node.name}>, expected one",
            "",
        )
    return those[0]


def _read(
    node: Node,
    rows: Sequence[Element],
    into: Values,
    path: Path,
    error: type[FlashwrightError],
    notes: list[Note],
    where: str = "",
    known: Iterable[str] = (),
) -> None:
    """Read the elements of a set into the values."""
    _say_unknown(node, rows, path, notes, where, known)
    for row in rows:
        those = list(node.those(row.name))
        place = f"{path}: line {(those or [node])[-1].line}: {row.name}"
        if len(those) > 1:
            raise error(f"{place}: found it twice in <{node.name}>, expected it once", "")
        if not those:
            if row.default is None:
                raise error(
                    f"{place}: found none in <{node.name}>, expected {row.kind.expected}", ""
                )
            into.found[row.name] = row.default
            continue
        [child] = those
        if child.children:
            raise error(
                f"{place}: found <{child.children[0].name}> in it, expected {row.kind.expected}", ""
            )
        try:
            into.found[row.name] = row.kind.read(child.text)
        except ValueError:
            found = child.text if len(child.text) < _LONGEST else f"{child.text[:_LONGEST]}..."
            raise error(f"{place}: found {found!r}, expected {row.kind.expected}", "") from None
        into.said[row.name] = child.text


_LONGEST = 60
"""Characters of a value that a message shows."""


def _say_unknown(
    node: Node,
    rows: Sequence[Element],
    path: Path,
    notes: list[Note],
    where: str = "",
    known: Iterable[str] = (),
) -> None:
    """Name the elements that MQSim does not read here."""
    names = {row.name for row in rows} | set(known)
    if node.text:
        why = f"text between the elements of <{node.name}> in {path.name}"
        notes.append(Note(repr(node.text[:_LONGEST]), "not known", why, where))
    for child in node.children:
        if child.name not in names:
            [like] = get_close_matches(child.name, sorted(names), 1) or [""]
            hint = f"; did you mean {like}?" if like else ""
            why = f"line {child.line} of {path.name}, which MQSim does not read in <{node.name}>{hint}"
            notes.append(Note(child.name[:_LONGEST], "not known", why, where))


def _scenarios(
    path: Path | None, device: Values, out: Path, notes: list[Note]
) -> list[list[FlowValues]]:
    """The flows of each scenario."""
    if path is None:
        return []
    root = read_xml(path, "MQSim_IO_Scenarios", WorkloadError)
    _say_unknown(root, [], path, notes, known=("IO_Scenario",))
    scenarios = []
    for number, scenario in enumerate(root.those("IO_Scenario"), 1):
        _say_unknown(scenario, [], path, notes, f"scenario {number}: ", FLOW_SETS)
        nodes = [node for node in scenario.children if node.name in FLOW_SETS]
        if not 1 <= len(nodes) <= _MOST_FLOWS:
            raise WorkloadError(
                f"{path}: line {scenario.line}: found {len(nodes)} flows in a scenario, expected 1 to {_MOST_FLOWS}",
                "",
            )
        flows = []
        for at, node in enumerate(nodes, 1):
            flow = FlowValues(
                device=device,
                flows=len(nodes),
                folder=path.parent,
                out=out,
                label=f"scenario-{number}-flow-{at}",
            )
            where = f"scenario {number}, flow {at}: "
            _read(node, FLOW_SETS[node.name], flow, path, WorkloadError, notes, where)
            for name, count in PARTS.items():
                if flow.ids(name)[-1] >= device.whole(count):
                    raise WorkloadError(
                        f"{path}: line {node.line}: {name}: found {flow.ids(name)[-1]}, expected less than "
                        f"{count} = {device.whole(count)}",
                        "",
                    )
            flows.append(flow)
        _share_out(flows, device)
        scenarios.append(flows)
    if not scenarios:
        raise WorkloadError(f"{path}: found no <IO_Scenario>, expected one", "")
    return scenarios


def _share_out(flows: Sequence[FlowValues], device: Values) -> None:
    """Give each flow its share of the space: flows that have a plane share it equally."""
    if device.word("HostInterface_Type") == "SATA":
        # The drive can't tell flows apart.
        for flow in flows:
            flow.share = Fraction(1, len(flows))
        return
    sets = [[flow.ids(name) for name in PARTS] for flow in flows]
    users = Counter(plane for parts in sets for plane in product(*parts))
    planes = 1
    for count in PARTS.values():
        planes *= device.whole(count)
    for flow, parts in zip(flows, sets, strict=True):
        ways = Counter(users[plane] for plane in product(*parts))
        flow.share = sum((Fraction(n, by) for by, n in ways.items()), Fraction(0)) / planes


def _outcomes(
    rows: Iterable[Element],
    values: Values,
    path: Path,
    error: type[FlashwrightError],
    notes: list[Note],
    where: str = "",
) -> list[Outcome]:
    """What the elements become; what is not the same goes to the notes."""
    found: list[Outcome] = []
    idle: list[str] = []
    for row in rows:
        is_said = row.name in values.said
        try:
            outcomes = list(row.rule(values)) if row.rule else []
        except ValueError as refused:
            name = str(refused)
            raise error(
                f"{path}: {where}{name}: found {values.found[name]}, which can't be played beside the other elements",
                "",
            ) from None
        if row.rule is None and row.fate == Fate.NO_EQUAL and is_said:
            notes.append(Note(values.about(row.name), row.fate, _plain(row.how), where))
        has_effect = row.fate != Fate.NO_EFFECT and Idle() not in outcomes
        if not has_effect and is_said:
            idle.append(row.name)
        if has_effect and not is_said:
            notes.append(Note(row.name, "missing", f"MQSim takes {row.default}", where))
        notes += [
            Note(each.about, each.fate, each.why, where)
            for each in outcomes
            if isinstance(each, Note)
        ]
        found += [each for each in outcomes if not isinstance(each, Note | Idle)]
    if idle:
        notes.append(Note(", ".join(idle), Fate.NO_EFFECT, "beside the other elements", where))
    return found


def _plain(how: str) -> str:
    return how.rstrip(".").replace("`", "")


def _toml(settings: Sequence[Setting], path: Path) -> str:
    """The drive as TOML, with the elements that each value came from."""
    tables: dict[str, list[tuple[str, str]]] = {}
    for each in settings:
        table, _, key = each.key.rpartition(".")
        line = tomli_w.dumps({key: each.value}).strip()
        tables.setdefault(table, []).append((line, each.elements))
    about = f"Converted from MQSim's {path.name}."
    text = tomli_w.dumps({"name": path.stem, "about": about})
    order = list(config_of(completed(text, str(path), path.stem)))
    for table, lines in sorted(
        tables.items(), key=lambda each: order.index(each[0].partition(".")[0])
    ):
        width = max(len(line) for line, _ in lines)
        text += f"\n[{table}]\n" + "".join(
            f"{line:{width}}  # {origin}\n" for line, origin in lines
        )
    return text


def _check(toml: str, settings: Sequence[Setting], path: Path) -> None:
    """Refuse a drive that can't be, by the names of the elements."""
    try:
        _core.config_check(completed(toml, str(path), path.stem))
    except ConfigError as error:
        message = str(error)
        origin = {each.key: each.elements for each in settings}
        for key in sorted(origin, key=len, reverse=True):
            message = re.sub(
                rf"(?<![\w.-]){re.escape(key)}(?![\w-])", f"{key} ({origin[key]})", message
            )
        raise ConfigError(message, "the elements in brackets are what to change") from None


def _run(flow: FlowValues, workload: Path, toml: str, notes: list[Note]) -> Run:
    """A flow as a command."""
    is_trace = "File_Path" in flow.found
    rows = FLOW_SETS[f"IO_Flow_Parameter_Set_{'Trace_Based' if is_trace else 'Synthetic'}"]
    where = flow.label.replace("-flow-", ", flow ").replace("-", " ") + ": "
    found = _outcomes(rows, flow, workload, WorkloadError, notes, where)
    command = ["flashwright", "simulate", "drive.toml"]
    spec = {each.key: each.value for each in found if isinstance(each, Spec)}
    if spec:
        name = spec.pop("")
        text = f"{name}:" + ",".join(f"{key}={value}" for key, value in spec.items())
        try:
            workloads.parse(text)
        except WorkloadError as error:
            raise WorkloadError(f"{workload}: {where}{error}", error.hint) from None
        command += ["--workload", text]
    for each in found:
        if isinstance(each, Option):
            command += [each.name, each.value] if each.value else [each.name]
    precondition = _precondition(flow, is_trace, notes, where)
    command += ["--precondition", precondition]
    for each in found:
        if isinstance(each, Setting):
            command += ["--set", f"{each.key}={each.value}"]
    device = flow.device
    if precondition == "workload" and device.flag("Static_Wearleveling_Enabled"):
        command += ["--set", "wear.policy=none"]
        here = "run.sh leaves it out, since no drive settles before it begins"
        name = "Static_Wearleveling_Threshold"
        notes.append(device.near(name, there="begins at so many erases", here=here))
    if device.flag("Enable_ResponseTime_Logging"):
        period = as_time(device.whole("ResponseTime_Logging_Period_Length")).replace(" ", "")
        command += ["--window", f"time={period}", "--windows-out", f"{flow.label}.csv"]
    command += ["--json", f"{flow.label}.json"]
    return Run(where.removesuffix(": "), tuple(command))


def _precondition(flow: FlowValues, is_trace: bool, notes: list[Note], where: str) -> str:
    device, name = flow.device, "Enabled_Preconditioning"
    if device.flag(name):
        # Reads leave the drive as it is, so there is nothing to wait for.
        return "sequential" if reads_alone(flow) else "workload"
    if not is_trace and flow.whole("Read_Percentage") == 0:
        return "empty"
    notes.append(
        Note(
            device.about(name),
            Fate.NEAR,
            "a read of nothing takes a page there, takes no time here: the drive is filled in order first",
            where,
        )
    )
    return "sequential"
