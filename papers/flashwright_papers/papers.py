"""Papers, read from their folders."""

from __future__ import annotations

import ast
import hashlib
import importlib
import os
import sys
import tomllib
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, get_args

from flashwright.errors import ConfigError
from flashwright.support.digests import digest_of_code, digest_of_file, modules_of
from flashwright.support.files import parse_toml
from flashwright.sweeps.points import Point
from flashwright_papers.claims import (
    Basis,
    Cause,
    Claim,
    Exhibit,
    Job,
    Jobs,
    Judge,
    Kind,
    Open,
    Setting,
    Verdict,
)

__all__ = ["Paper", "folder_of_papers", "papers", "play"]

# Papers of any folder are imported under this name: hyphens keep their folders from being packages of their own.
_PACKAGE = "flashwright_experiments"
_OURS = Path(__file__).resolve().parent / "experiments"
_EXHIBIT = {each.name for each in fields(Exhibit)} - {"paper"}
_REQUIRED = ("id", "entry", "where", "kind", "says", "rule")


@dataclass(frozen=True)
class Part:
    """Jobs that claims rest on.

    Attributes
    ----------
    name : str
        Its name, ``"paper/part"``.
    jobs : callable
        Lists its jobs for a setting.
    cpu_s : (float, float)
        What they take, quick and full.
    """

    name: str
    jobs: Jobs
    cpu_s: tuple[float, float]


@dataclass(frozen=True)
class Judging:
    """A judge with what it answers and what it needs."""

    judge: Judge
    ids: tuple[str, ...]
    needs: tuple[str, ...]


@dataclass(frozen=True)
class Paper:
    """A source, as its folder describes it.

    Attributes
    ----------
    name : str
        The folder's name.
    title, cited : str
        What it is called, and who wrote it when and where.
    claims : tuple of Claim
        In the order of its files.
    parts : mapping of str to Part
        By name within the paper.
    judges : mapping of str to Judging
        By claim.
    open : tuple of Open
        What the source leaves open.
    search_divisor : int
        By what a search divides drive, RAM and requests.
    exhibits : tuple of Exhibit
        Its figures and tables, in its order.
    """

    name: str
    title: str
    cited: str
    claims: tuple[Claim, ...]
    parts: Mapping[str, Part]
    judges: Mapping[str, Judging]
    open: tuple[Open, ...] = ()
    search_divisor: int = 1
    exhibits: tuple[Exhibit, ...] = ()


def folder_of_papers(folder: str | os.PathLike[str] | None = None) -> Path:
    """Where the papers are.

    Parameters
    ----------
    folder : path, optional
        The folder; without it ``FLASHWRIGHT_EXPERIMENTS``, or the papers that come with this package.

    Returns
    -------
    Path
        A folder that holds at least one paper.

    Raises
    ------
    ConfigError
        If it holds none.

    Examples
    --------
    >>> [path.parent.name for path in sorted(folder_of_papers().glob("*/paper.toml"))]
    ['container-marking', 'dftl', 'hu-2012', 'hu-2012-anomalies', 'kim-2011', 'real-drives']
    """
    path = Path(folder or os.environ.get("FLASHWRIGHT_EXPERIMENTS") or _OURS)
    if not any(path.glob("*/paper.toml")):
        raise ConfigError(
            f"experiments: found no papers in {path}, expected folders that hold a paper.toml",
            "without experiments= and FLASHWRIGHT_EXPERIMENTS, the papers that come with Flashwright are used",
            parameters=["experiments"],
        )
    return path.resolve()


def papers(folder: str | os.PathLike[str] | None = None) -> dict[str, Paper]:
    """All papers, by name.

    Parameters
    ----------
    folder : path, optional
        As :func:`folder_of_papers` takes it.

    Raises
    ------
    ConfigError
        If a file of a paper has a fault.
    """
    root = folder_of_papers(folder)
    folders = [path.parent for path in sorted(root.glob("*/paper.toml"))]
    for each in folders:  # first of all, so that they can import from each other
        _package(each)
    read = {each.name: _read(each) for each in folders}
    for paper in read.values():
        for judging in paper.judges.values():
            for need in judging.needs:
                _find_part(read, paper.name, need)
    return read


def _find_part(read: Mapping[str, Paper], paper: str, need: str) -> Part:
    owner, _, name = need.rpartition("/")
    found = read.get(owner or paper)
    if found is None or name not in found.parts:
        raise ConfigError(
            f"{paper}: a judge needs the part {need!r}, which no file of {owner or paper} has", ""
        )
    return found.parts[name]


def _read(folder: Path) -> Paper:
    about = _toml(folder / "paper.toml")
    if not {"title", "cited"} <= set(about) <= {"title", "cited", "open", "search-divisor"}:
        raise ConfigError(
            f"{folder.name}/paper.toml: found {', '.join(sorted(about))}, expected title and cited, and perhaps "
            "open and search-divisor",
            "",
        )
    claims = tuple(
        _claim(folder, file, number, entry)
        for file in sorted(folder.glob("*.toml"))
        if file.name != "paper.toml"
        for number, entry in enumerate(_toml(file).get("claim", []), 1)
    )
    parts: dict[str, Part] = {}
    judges: dict[str, Judging] = {}
    for file in sorted(folder.glob("*.py")):
        if file.stem == "__init__":
            continue
        module = _module(folder, file.stem)
        for value in vars(module).values():
            if getattr(value, "__module__", None) != module.__name__:
                continue
            if hasattr(value, "__part__"):
                name, cpu_s = value.__part__
                if name in parts:
                    raise ConfigError(f"{folder.name}: two functions list the part {name!r}", "")
                parts[name] = Part(f"{folder.name}/{name}", value, cpu_s)
            if hasattr(value, "__claims__"):
                ids, needs = value.__claims__
                for id_ in ids:
                    if id_ in judges:
                        raise ConfigError(f"{folder.name}: two judges answer {id_}", "")
                    judges[id_] = Judging(value, ids, needs)
    known = {each.id for each in claims}
    for id_ in judges.keys() - known:
        raise ConfigError(f"{folder.name}: a judge answers {id_}, which no TOML file lists", "")
    for each in claims:
        if (each.verdict is None) == (each.id not in judges):
            raise ConfigError(
                f"{folder.name}: {each.id} has {'neither' if each.verdict is None else 'both'} a judge "
                f"{'nor' if each.verdict is None else 'and'} a verdict, expected one of them",
                "",
            )
    left_open = tuple(_open(folder, entry) for entry in about.get("open", []))
    divisor = about.get("search-divisor", 1)
    exhibits = _exhibits(folder, known)
    return Paper(
        folder.name,
        about["title"],
        about["cited"],
        claims,
        parts,
        judges,
        left_open,
        divisor,
        exhibits,
    )


def _exhibits(folder: Path, known: set[str]) -> tuple[Exhibit, ...]:
    """The figures and tables that a paper's folder lists, if it lists any."""
    path = folder / "exhibits.toml"
    if not path.is_file():
        return ()
    found: dict[str, Exhibit] = {}
    for number, entry in enumerate(_toml(path).get("exhibit", []), 1):
        where = f"{folder.name}/exhibits.toml: exhibit {entry.get('name', number)}"
        if not {"name", "shows"} <= set(entry) <= _EXHIBIT:
            raise ConfigError(
                f"{where}: found {', '.join(sorted(entry))}, expected name and shows, and of "
                "claims (with panels) and drawing one",
                "",
            )
        lists = {key: tuple(entry.get(key, ())) for key in ("claims", "panels")}
        each = Exhibit(folder.name, **{**entry, **lists})
        if bool(each.claims) == bool(each.drawing):
            raise ConfigError(
                f"{where}: found both or neither of claims and drawing, expected one", ""
            )
        for id_ in each.claims:
            if id_ not in known:
                raise ConfigError(
                    f"{where}: found the claim {id_}, which no file of {folder.name} has", ""
                )
        if each.name in found:
            raise ConfigError(f"{where}: listed twice", "")
        found[each.name] = each
    return tuple(found.values())


def _open(folder: Path, entry: Mapping[str, Any]) -> Open:
    known = {each.name for each in fields(Open)}
    if set(entry) != known:
        raise ConfigError(
            f"{folder.name}/paper.toml: open {entry.get('name', '')}: found {', '.join(sorted(entry))}, "
            f"expected {', '.join(sorted(known))}",
            "",
        )
    why = " ".join(entry["why"].split())
    return Open(**{**entry, "others": tuple(entry["others"]), "why": why})


def _toml(path: Path) -> dict[str, Any]:
    try:
        return parse_toml(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: {error}", "") from None


def _claim(folder: Path, file: Path, number: int, entry: Mapping[str, Any]) -> Claim:
    where = f"{folder.name}/{file.name}: claim {entry.get('id', number)}"
    known = {each.name for each in fields(Claim)} - {"paper"}
    for key, value in entry.items():
        if key not in known:
            raise ConfigError(f"{where}: found {key}, expected {', '.join(sorted(known))}", "")
        if not isinstance(value, str):
            raise ConfigError(f"{where}: {key}: found {value!r}, expected text", "")
    for key in _REQUIRED:
        if not entry.get(key):
            raise ConfigError(f"{where}: found no {key}", "")
    if entry["kind"] not in get_args(Kind):
        raise ConfigError(
            f"{where}: kind: found {entry['kind']!r}, expected {', '.join(get_args(Kind))}", ""
        )
    values = {key: " ".join(value.split()) for key, value in entry.items()}
    basis = values.get("basis", "")
    if basis not in get_args(Basis):
        known_bases = ", ".join(filter(None, get_args(Basis)))
        raise ConfigError(f"{where}: basis: found {basis!r}, expected {known_bases}", "")
    if bool(basis) != bool(values.get("because")):
        raise ConfigError(f"{where}: found one of basis and because, expected both or neither", "")
    causes = [each.strip() for each in values.pop("causes", "").split(",") if each.strip()]
    for each in causes:
        if each not in list(Cause):
            raise ConfigError(f"{where}: causes: found {each!r}, expected {', '.join(Cause)}", "")
    verdict = values.pop("verdict", None)
    try:
        return Claim(
            paper=folder.name,
            verdict=None if verdict is None else Verdict(verdict),
            causes=tuple(map(Cause, causes)),
            **values,  # type: ignore[arg-type]
        )
    except ValueError as error:
        raise ConfigError(f"{where}: {error}", "") from None


def _package(folder: Path) -> str:
    """The name under which a paper's files are imported, so that they can import each other."""
    name = f"{_PACKAGE}.{folder.name.replace('-', '_')}"
    for package, path in ((_PACKAGE, folder.parent), (name, folder)):
        if package not in sys.modules:
            module = types.ModuleType(package)
            module.__path__ = [str(path)]
            sys.modules[package] = module
    if Path(sys.modules[name].__path__[0]) != folder:
        raise ConfigError(f"{folder}: another folder of that name was read before", "")
    return name


def _module(folder: Path, stem: str) -> types.ModuleType:
    return importlib.import_module(f"{_package(folder)}.{stem}")


def play(
    folder: str, module: str, function: str, arguments: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Do one job, in whatever process: the function is found by the names of its paper and file."""
    found: Callable[..., Mapping[str, Any]] = getattr(_module(Path(folder), module), function)
    return found(**arguments)


def points_of(part: Part, setting: Setting) -> list[Point]:
    """The jobs of a part as points to compute.

    The key of each holds the digests of the simulator, of the file with the job's function, of what that file imports
    from the paper's folder, and of the traces named in its arguments.
    """
    return [_point(part, job, setting) for job in part.jobs(setting)]


def _point(part: Part, job: Job, setting: Setting) -> Point:
    module = sys.modules[job.function.__module__]
    stem = module.__name__.rpartition(".")[2]
    folder = Path(str(module.__file__)).parent
    digests = [_of_simulator(), _of_modules(str(module.__file__))]
    if setting.traces is not None:
        under = str(setting.traces.resolve()) + os.sep
        digests += [
            digest_of_file(value)
            for value in job.arguments.values()
            if isinstance(value, str) and value.startswith(under)
        ]
    return Point(
        f"{__name__}:play",
        {"module": stem, "function": job.function.__name__, "arguments": dict(job.arguments)},
        f"{part.name}: {job.label or job.function.__name__}",
        " ".join(digests),
        {"folder": str(folder)},
    )


# What shapes no result: what people see, and how runs are handed out and kept.
_NO_RESULTS = {
    "__main__",
    "bars",
    "cli",
    "pages",
    "progressbar",
    "report",
    "sweeps",
}


@cache
def _of_simulator() -> str:
    return digest_of_code(
        *(name for name in modules_of("flashwright") if _NO_RESULTS.isdisjoint(name.split(".")))
    )


@cache
def _of_modules(path: str) -> str:
    """The digest of a file and of those of its folder that it imports, however far."""
    folder = Path(path).parent
    seen: dict[str, str] = {}
    queue = [Path(path).stem]
    while queue:
        stem = queue.pop()
        if stem not in seen and (folder / f"{stem}.py").is_file():
            seen[stem], siblings = _code(str(folder / f"{stem}.py"))
            queue += siblings
    return hashlib.sha256("".join(seen[stem] for stem in sorted(seen)).encode()).hexdigest()


@cache
def _code(path: str) -> tuple[str, list[str]]:
    """The digest of a file without what shapes no row, and the files beside it that it imports.

    No row is shaped by comments, docstrings and how long parts take. Imports are ``from . import runs`` and
    ``from .runs import play``.
    """
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    siblings: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            siblings += [node.module] if node.module else [each.name for each in node.names]
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = []
        if isinstance(node, ast.FunctionDef | ast.Module) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return hashlib.sha256(ast.unparse(tree).encode()).hexdigest(), siblings
