"""The file of a sweep: read and checked."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from flashwright.drive import policies
from flashwright.drive.description import devices, keys_of
from flashwright.errors import FlashwrightError, SweepError
from flashwright.simulation.run import RunSettings
from flashwright.simulation.run_count import expect_run_count
from flashwright.simulation.ssd import Ssd
from flashwright.simulation.variant import OF_RUN
from flashwright.support.files import parse_toml, reason
from flashwright.sweeps.combinations import Description
from flashwright.traces import workloads
from flashwright.traces.tenants import Load, Tenants

__all__ = ["of_file", "read"]


def read(path: Path) -> Description:
    r"""Read the file of a sweep.

    Parameters
    ----------
    path : Path
        A TOML file; docs/reference/sweep-file.md describes it.

    Returns
    -------
    Description

    Raises
    ------
    SweepError
        With what is wrong, where in the file, and the nearest match of a key that is not known.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "cleaning.toml"
    ...     _ = file.write_text('seeds = 2\n[grid]\n"gc.victim" = ["greedy", "fifo"]\n')
    ...     found = read(file)
    >>> found.seeds, [each.label for each in found.combinations()]
    ((1, 2), ['gc.victim=greedy', 'gc.victim=fifo'])
    """
    try:
        tree = parse_toml(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise SweepError(f"{path}: {reason(error)}", "check the path") from None
    except UnicodeDecodeError as error:
        raise SweepError(f"{path}: not text in UTF-8: {error.reason}", "") from None
    except tomllib.TOMLDecodeError as error:
        text = str(error)
        raise SweepError(f"{path}: not TOML: {text[:1].lower()}{text[1:]}") from None
    try:
        return _Reader(path, tree).description()
    except SweepError:
        raise
    except FlashwrightError as error:
        raise of_file(path, error) from None


def of_file(path: Path, error: FlashwrightError) -> SweepError:
    """What is wrong with a sweep, as something wrong with its file: keys of the file for parameters of the call.

    Examples
    --------
    >>> found = SweepError("time_scale: found -1, expected more", parameters=["time_scale"])
    >>> print(of_file(Path("grid.toml"), found))
    grid.toml: time-scale: found -1, expected more
    """
    text = str(error)
    for name in error.parameters:
        text = re.sub(rf"\b{name}\b", name.replace("_", "-"), text)
    return SweepError("\n".join(f"{path}: {line}" for line in text.splitlines()), error.hint)


_TOP = (
    "drive",
    "set",
    "precondition",
    "workload",
    "trace",
    "tenants",
    "alone",
    "requests",
    "warmup",
    "depth",
    "time-scale",
    "verify",
    "seeds",
    "grid",
    "point",
)
_TRACE: dict[str, tuple[type, object]] = {
    "trace": (str, None),
    "format": (str, None),
    "addresses": (str, None),
    "devices": (list, None),
    "overlay": (bool, False),
    "skip-bad-lines": (bool, False),
    "repeat": (int, 1),
    "order": (str, None),
    "time-unit": (str, None),
    "events": (str, "auto"),
    "columns": (str, None),
    "member": (str, None),
}
_WORDS: dict[str, Any] = {
    "order": workloads.Order,
    "time-unit": workloads.TimeUnit,
    "events": workloads.Events,
}


class _Reader:
    def __init__(self, path: Path, tree: dict[str, Any]) -> None:
        self.path = path
        self.tree = tree

    def fault(self, where: str, what: str, hint: str = "") -> SweepError:
        return SweepError(f"{self.path}: {where}: {what}", hint or None)

    def description(self) -> Description:
        for key in self.tree:
            if key not in _TOP:
                raise self.fault(key, _unknown(key, _TOP), "settings of the drive go under [set]")
        drive = self.take("drive", str, "text", "default")
        base = self.drive(drive)
        precondition = self.take("precondition", str, "text", "auto")
        settings = {
            key: self.value("set", key, value)
            for key, value in self.flat("set", self.take("set", dict, "a table", {})).items()
        }
        known = keys_of(base.config)
        for key in settings:
            if key not in known:
                raise self.fault(f"set: {key}", _unknown(key, known))

        def find(name: str) -> Ssd:
            return self.drive(name).with_(settings).precondition(precondition)

        seeds = self.seeds()
        grids, points = self.grids(known), self.points(known)
        if not grids and not points and "seeds" not in self.tree:
            raise SweepError(
                f"{self.path}: found nothing to vary, expected [grid] with lists of values, [[point]] or seeds"
            )
        # Without anything to vary, seeds alone make the runs.
        if not grids and not points:
            grids = [{}]
        return Description(
            find(drive), self.source(), self.run_settings(), seeds, grids, points, find
        )

    def take(self, key: str, kind: type, named: str, default: Any) -> Any:
        value = self.tree.get(key, default)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.fault(key, f"found {_shown(value)}, expected {named}")
        return value

    def drive(self, name: str) -> Ssd:
        """A bundled drive, or a file beside this one."""
        return Ssd.find(name if name in devices() else self.beside(name, name.endswith(".toml")))

    def beside(self, name: str, file: bool) -> str:
        """A path from the folder of the file."""
        path = self.path.parent / name
        return str(path) if file or path.is_file() else name

    def source(self) -> Load:
        if "tenants" in self.tree:
            return self.tenants()
        if "alone" in self.tree:
            raise self.fault("alone", "found without tenants, expected both or neither")
        if "trace" in self.tree and "workload" in self.tree:
            raise self.fault("trace", "found beside workload, expected one of them")
        if "trace" in self.tree:
            return self.workload(
                "trace", {"trace": self.take("trace", str, "the path of a file", "")}
            )
        return self.workload("workload", self.tree.get("workload", "bundled:pgbench"))

    def tenants(self) -> Tenants:
        for key in ("workload", "trace"):
            if key in self.tree:
                raise self.fault("tenants", f"found beside {key}, expected one of them")
        texts = self.take("tenants", list, "a list of texts", [])
        for text in texts:
            if not isinstance(text, str):
                raise self.fault(
                    "tenants",
                    f"found {_shown(text)} among them, expected texts such as zipf:write=1 @ name=writer",
                )
        return Tenants.of(texts, compared=self.take("alone", bool, "true or false", True))

    def workload(self, where: str, value: object) -> workloads.Source:
        """A workload from its text, or a trace from a table that says how to read it."""
        if isinstance(value, str):
            return workloads.find(value)
        if not isinstance(value, dict):
            raise self.fault(
                where, f"found {_shown(value)}, expected text or a table with trace = PATH"
            )
        for key in value:
            if key not in _TRACE:
                raise self.fault(f"{where}: {key}", _unknown(key, _TRACE))
        name = value.get("trace")
        if not isinstance(name, str):
            raise self.fault(where, f"found {_shown(value)}, expected a table with trace = PATH")
        if name.startswith("bundled:"):
            path, label = workloads.bundled(name.removeprefix("bundled:")).path, name
        else:
            path, label = self.beside(name, True), name
        options: dict[str, Any] = {}
        for key, (kind, default) in list(_TRACE.items())[1:]:
            given = value.get(key, default)
            if key in value and not isinstance(given, kind):
                raise self.fault(
                    f"{where}: {key}", f"found {_shown(given)}, expected {_KINDS[kind]}"
                )
            options[key.replace("-", "_")] = given
        for key, literal in _WORDS.items():
            words, given = get_args(literal), options[key.replace("-", "_")]
            if given is not None and given not in words:
                raise self.fault(
                    f"{where}: {key}",
                    f"found {_shown(given)}, expected {', '.join(words[:-1])} or {words[-1]}",
                )
        return replace(workloads.trace(path, **options), name=label)

    def run_settings(self) -> RunSettings:
        scale = self.tree.get("time-scale")
        if scale is not None and (isinstance(scale, bool) or not isinstance(scale, int | float)):
            raise self.fault("time-scale", f"found {_shown(scale)}, expected a number")
        made = RunSettings(
            requests=self.count("requests", 1),
            warmup=self.count("warmup", 0) or 0,
            depth=self.count("depth", 1),
            time_scale=scale,
            verify=self.take("verify", bool, "true or false", False),
        )
        made.to_json("empty")
        return made

    def count(self, key: str, least: int) -> int | None:
        value = self.tree.get(key)
        if value is not None and (
            isinstance(value, bool) or not isinstance(value, int) or value < least
        ):
            raise self.fault(key, f"found {_shown(value)}, expected a whole number from {least} up")
        return value

    def seeds(self) -> tuple[int, ...]:
        found = self.tree.get("seeds", 1)
        if isinstance(found, int):
            try:
                expect_run_count([], 1, found)
            except SweepError as error:
                raise of_file(self.path, error) from None
        seeds = range(1, found + 1) if isinstance(found, int) else found
        if (
            isinstance(found, bool)
            or not isinstance(seeds, range | list)
            or not seeds
            or any(isinstance(s, bool) or not isinstance(s, int) or s < 0 for s in seeds)
        ):
            raise self.fault(
                "seeds", f"found {_shown(found)}, expected how many, from 1 up, or a list of seeds"
            )
        if len(set(seeds)) < len(seeds):
            raise self.fault("seeds", f"found {_shown(found)}, expected each seed once")
        return tuple(seeds)

    def grids(self, known: Sequence[str]) -> list[dict[str, list[object]]]:
        found = []
        for where, table in self.tables("grid", of_one="[grid]"):
            grid: dict[str, list[object]] = {}
            for key, value in self.entries(where, table, known):
                values = value if isinstance(value, list) else [value]
                if not values:
                    raise self.fault(f"{where}: {key}", "found no value, expected at least one")
                grid[key] = [self.value(where, key, each) for each in values]
            found.append(grid)
        return found

    def points(self, known: Sequence[str]) -> list[dict[str, object]]:
        return [
            {key: self.value(where, key, value) for key, value in self.entries(where, table, known)}
            for where, table in self.tables("point", of_one="")
        ]

    def tables(self, key: str, of_one: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """The tables of a key that can be there several times, each with what messages call it."""
        found = self.tree.get(key, [])
        if of_one and isinstance(found, dict):
            tables = [(key, found)]
        elif isinstance(found, list) and all(isinstance(table, dict) for table in found):
            tables = [(f"{key} {nth}", table) for nth, table in enumerate(found, 1)]
        else:
            ways = " or ".join(way for way in (of_one, f"[[{key}]]") if way)
            raise self.fault(key, f"found {_shown(found)}, expected {ways}")
        for where, table in tables:
            if not table:
                raise self.fault(where, "found it empty, expected at least one key")
            yield where, table

    def entries(
        self, where: str, table: Mapping[str, Any], known: Sequence[str]
    ) -> Iterator[tuple[str, Any]]:
        candidates = ["drive", *OF_RUN, *known]
        for key, value in self.flat(where, table).items():
            if key in ("seed", "seeds"):
                raise self.fault(
                    f"{where}: {key}", "found it here, expected seeds at the top of the file"
                )
            if key not in candidates and not key.startswith("workload."):
                raise self.fault(f"{where}: {key}", _unknown(key, candidates))
            yield key, value

    def flat(self, where: str, table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
        """Dotted keys, whether they were written as one text or as tables within each other."""
        flat: dict[str, Any] = {}
        for name, value in table.items():
            key = prefix + name
            if isinstance(value, dict) and not (key == "workload" and "trace" in value):
                inner = self.flat(where, value, f"{key}.")
            else:
                inner = {key: value}
            for each, content in inner.items():
                if each in flat:
                    raise self.fault(f"{where}: {each}", "found it twice, expected each key once")
                flat[each] = content
        return flat

    def value(self, where: str, key: str, value: object) -> object:
        if key == "workload":
            return self.workload(f"{where}: workload", value)
        kinds = (str,) if key in ("drive", "precondition") else (str, int, float, bool, list)
        if not isinstance(value, kinds):
            expected = "text" if len(kinds) == 1 else "text, a number, true or false, or a list"
            raise self.fault(f"{where}: {key}", f"found {_shown(value)}, expected {expected}")
        if isinstance(value, str) and policies.names_a_policy(value):
            return policies.load(value, self.path.parent)
        return value


_KINDS: dict[type, str] = {
    str: "text",
    list: "a list of names",
    bool: "true or false",
    int: "a whole number",
}


def _unknown(key: str, known: Iterable[str]) -> str:
    candidates = list(known)
    last = key.rsplit(".", 1)[-1]
    same_end = [each for each in candidates if each.rsplit(".", 1)[-1] == last]
    near = difflib.get_close_matches(key, candidates, 1) or same_end[:1]
    if not near:
        ends = {each.rsplit(".", 1)[-1]: each for each in candidates}
        near = [ends[end] for end in difflib.get_close_matches(last, ends, 1)]
    return "unknown key" + (f"; did you mean {near[0]}?" if near else "")


def _shown(value: object) -> str:
    """A value as it stands in TOML, about."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, dict):
        return "a table"
    return str(value)
