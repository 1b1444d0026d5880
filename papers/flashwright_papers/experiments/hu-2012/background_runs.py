"""Chapter 1: sizes of mapping tables, what merges erase, and caches that know flash."""

from __future__ import annotations

import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from flashwright import Ssd, workloads
from flashwright_papers import Job, Setting, part

from .ram_play import TPC_E, write_share

Row = dict[str, Any]

GOLDEN = Path(__file__).parent / "golden"
SEED = 1
# The thesis names one write frontier, and planes that take turns.
PLACEMENT = {"policy": "single", "allocation": "dynamic"}

# Mapping tables -------------------------------------------------------------------------------------


def table(scheme: str, page_kib: int, block_pages: int, logical_mib: int, entry_bytes: int) -> Row:
    """The mapping table of a drive, as its translation layer counts it."""
    channels, dies = 4, 2
    # 6 % of spare space, and what cleaning keeps.
    blocks = -(-logical_mib * 1024 * 106 // (100 * page_kib * block_pages * channels * dies)) + 8
    ssd = Ssd.named("default").with_(
        {
            "geometry.channels": channels,
            "geometry.dies-per-channel": dies,
            "geometry.blocks-per-plane": blocks,
            "geometry.pages-per-block": block_pages,
            "geometry.page-size": f"{page_kib} KiB",
            "capacity.logical": f"{logical_mib} MiB",
            "ftl.scheme": scheme,
            "ftl.entry-bytes": entry_bytes,
            "timing.model": "none",
            **{f"placement.{key}": value for key, value in PLACEMENT.items()},
        }
    )
    found = ssd.play("uniform:write=1", requests=1, seed=SEED, window="off").json
    return {
        "scheme": scheme,
        "block_pages": block_pages,
        "entry_bytes": entry_bytes,
        "page_kib": page_kib,
        "logical_pages": found["drive"]["logical_pages"],
        "ram_bytes": found["scheme"]["ram_bytes"],
        "translation_pages": found["scheme"]["extra"].get("translation_pages"),
    }


BLOCK_PAGES = (32, 64, 128, 256)


@part("background-tables", cpu_s=(2.5, 2.5))
def tables(setting: Setting) -> list[Job]:
    """The drive of section 1.2.1, page and block maps by pages a block, and DFTL's translation pages."""
    listed = [
        {"scheme": "page", "page_kib": 2, "block_pages": 64, "logical_mib": 128 << 10, "entry_bytes": 16}
    ]  # fmt: skip
    listed += [
        {"scheme": scheme, "page_kib": 4, "block_pages": n, "logical_mib": 2048, "entry_bytes": 4}
        for n in BLOCK_PAGES
        for scheme in ("page", "block")
    ]
    listed += [
        {"scheme": "dftl", "page_kib": 4, "block_pages": 64, "logical_mib": mib, "entry_bytes": 8}
        for mib in (1024, 1025)
    ]
    return [
        Job(table, each, f"table of {each['scheme']}, {each['block_pages']} pages a block")
        for each in listed
    ]


# Merges ---------------------------------------------------------------------------------------------

_SUFFIXES = {"host": "", "gc": "g", "merge": "m", "padding": "p", "translation": "t", "wear": "w"}
_KINDS = {"reads": "R", "programs": "P", "erases": "E", "oob_reads": "O"}


def worked(
    scheme: str, config: Mapping[str, Any], settings: Sequence[str], steps: Sequence[Row]
) -> Row:
    """A worked example, request by request: the flash operations of each as the example writes them."""
    given = [f"{key}={text(value)}" for key, value in flat({"placement": PLACEMENT, **config})]
    ssd = Ssd.named("default").with_settings([*given, f'ftl.scheme="{scheme}"', *settings])
    requests = [each for each in steps if "precondition" not in each]
    if len(requests) < len(steps):
        ssd = ssd.precondition("sequential")
    page = ssd.config["geometry"]["page-size"]
    sectors = int(page.split()[0]) * 2
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "steps.mqsim"
        lines = []
        for number, each in enumerate(requests):
            kind = "write" if "write" in each else "read"
            first, pages = each[kind] if isinstance(each[kind], list) else (each[kind], 1)
            lines.append(
                f"{number * 10**9} 0 {first * sectors} {pages * sectors} {int(kind == 'read')}\n"
            )
        path.write_text("".join(lines))
        trace = workloads.trace(path, format="mqsim", addresses="reject")
        for number, each in enumerate(requests):
            flash = ssd.play(trace, warmup=number, requests=1, seed=SEED).json["flash"]
            found.append(
                {
                    "request": "writes" if "write" in each else "reads",
                    "expected": counted(each["expect"]),
                    "found": {
                        letter + suffix: flash[kind][cause]
                        for kind, letter in _KINDS.items()
                        for cause, suffix in _SUFFIXES.items()
                        if flash[kind][cause]
                    },
                }
            )
    return {"scheme": scheme, "settings": list(settings), "steps": found}


def counted(words: str) -> dict[str, int]:
    """Operations by kind and cause of text such as ``4Rm 4Pm 2Em 1P``."""
    found = {}
    for word in words.split():
        digits = len(word) - len(word.lstrip("0123456789"))
        found[word[digits:]] = int(word[:digits])
    return found


def flat(table: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    """Leaves of nested tables, by dotted key."""
    listed: list[tuple[str, Any]] = []
    for key, value in table.items():
        name = f"{before}{key}"
        listed += flat(value, f"{name}.") if isinstance(value, Mapping) else [(name, value)]
    return listed


def text(value: Any) -> str:
    """A setting as TOML has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else str(value)


def conflicts(replacement_blocks: int, lone: bool) -> Row:
    """Erases by request where one page of a full block is written again and again, under update blocks.

    Without `lone`, pages of other offsets go before it, so that the update block cannot be completed in place.
    """
    steps: list[Row] = [{"precondition": [0, 8]}]
    steps += [{"write": page, "expect": ""} for page in ((5, 5) if lone else (6, 5, 5))]
    config = {
        "geometry.channels": 1,
        "geometry.dies-per-channel": 1,
        "geometry.blocks-per-plane": 6,
        "geometry.pages-per-block": 4,
        "geometry.page-size": "4 KiB",
        "capacity.logical": "32 KiB",
        "wear.free-block": "fifo",
        "ftl.replacement.replacement-blocks-max": replacement_blocks,
    }
    order = "any" if lone else "ascending"
    row = worked("replacement", config, [f'geometry.program-order="{order}"'], steps)
    return {
        "scheme": "one update block",
        "lone": lone,
        "erases": [step["found"].get("Em", 0) for step in row["steps"]],
    }


EXAMPLES = {
    "block-rewrite": ("any", "ascending"),
    "replacement-chain": ("any", "ascending"),
    "bast-merges": ("any", "ascending"),
}


@part("background-merges", cpu_s=(1.5, 1.5))
def merges(setting: Setting) -> list[Job]:
    """The worked examples of block mapping, replacement blocks and BAST, and conflicts with one update block."""
    listed = []
    for name, columns in EXAMPLES.items():
        golden = tomllib.loads((GOLDEN / f"{name}.toml").read_text(encoding="utf-8"))
        steps = golden["step"]
        # A trace here has no trims: up to the first.
        trim = next((n for n, step in enumerate(steps) if "trim" in step), len(steps))
        for column in columns:
            listed.append(
                Job(
                    worked,
                    {
                        "scheme": golden["schemes"][0],
                        "config": golden["config"],
                        "settings": golden["columns"][column],
                        "steps": [plain(step, column) for step in steps[:trim]],
                    },
                    f"{name}, {column}",
                )
            )
    listed += [
        Job(conflicts, {"replacement_blocks": 1, "lone": lone}, "conflicts with one update block")
        for lone in (True, False)
    ]
    return listed


def plain(step: Mapping[str, Any], column: str) -> Row:
    """What a step does, and what it must cost in a column."""
    found = {key: step[key] for key in ("precondition", "write", "read") if key in step}
    expect = step.get("expect", "")
    return found | {"expect": expect[column] if isinstance(expect, Mapping) else expect}


# Caches ---------------------------------------------------------------------------------------------


def destaged(manager: str, write: float, requests: int) -> Row:
    """Pages that a cache of 8 MiB writes back on a small page-mapped drive, by share of writes."""
    ssd = Ssd.named("hu-2012").with_(
        {
            "geometry.blocks-per-plane": 400,
            "capacity.logical": "180 MiB",
            "ram.manager": manager,
            "ram.size": "8 MiB",
        }
    )
    run = ssd.precondition("sequential").play(
        workloads.zipf(write=write), requests=requests, seed=SEED, window="off"
    )
    return {
        "manager": manager,
        "write": write,
        "pages_destaged": run.json["buffer"]["pages_destaged"],
        "pages_dropped": run.json["buffer"]["pages_dropped"],
        "erases": run.json["flash"]["erases"]["total"],
        "service_ms": run.json["service_time_ns"]["all"]["mean"] / 1e6,
    }


WRITES = (0.2, 0.4, 0.6, 0.8, 1.0)


@part("background-clean-first", cpu_s=(0.5, 1))
def clean_first(setting: Setting) -> list[Job]:
    """CFLRU and LRU by share of writes."""
    return [
        Job(
            destaged,
            {"manager": manager, "write": write, "requests": 20_000 if setting.quick else 100_000},
            f"{manager}, {100 * write:.0f} % writes",
        )
        for write in WRITES
        for manager in ("cflru", "lru")
    ]


QUICK = 16  # by what a quick run divides drive, RAM and requests
BLOCKS, LOGS, KEPT = 65_536, 655, 4
# Stand-ins: what is played, and requests before measuring and measured: caches that let single pages go merge for each.
STAND_INS = {
    "Financial1": ("stand-in:trace=financial1", 50_000, 100_000),
    "Exchange": ("stand-in:trace=exchange,variant=hu12", 20_000, 30_000),
    "TPC-E": ("stand-in:trace=tpc-e,variant=hu12", 50_000, 70_000),
}
# The head of a real trace: requests, how often it is played before measuring and measured, and MiB of RAM, since it
# writes only 14 MiB.
HEAD = ("financial1-first10k.spc.zst", 10_000, 6, 6, 4)
MANAGERS = ("bplru", "cflru", "fab")


def buffered(
    manager: str,
    workload: str,
    ram_kib: int,
    scale: int,
    warmup: int,
    requests: int,
    spec: str | None = None,
    path: str | None = None,
    repeat: int = 1,
    state: str = "sequential",
    spare: float = 0.03,
) -> Row:
    """A manager of RAM over BAST on the dissertation's drive, filled once in order, 3 % of spare space."""
    blocks, logs = BLOCKS // scale, LOGS // scale
    ssd = Ssd.named("hu-2012").with_(
        {
            "geometry.blocks-per-plane": blocks + round(spare * blocks) + KEPT,
            "capacity.logical": f"{blocks * 512} KiB",
            "ftl.scheme": "bast",
            "ftl.bast.log-blocks": logs,
            "ram.manager": manager,
            "ram.size": f"{ram_kib} KiB",
        }
    )
    source: Any = (
        spec
        if path is None
        else workloads.trace(path, format="spc", addresses="wrap", repeat=repeat)
    )
    run = ssd.precondition(state).play(
        source, requests=requests, warmup=warmup, seed=SEED, window="off"
    )
    service_ns = run.json["service_time_ns"]["all"]["mean"]
    return {
        "manager": manager,
        "workload": workload,
        "ram_mib": ram_kib / 1024,
        "erases": run.json["flash"]["erases"]["total"],
        "response_ms": run.json["response_time_ns"]["all"]["mean"] / 1e6,
        "service_ms": service_ns / 1e6,
        # One operation at a time: at 1 the drive does not keep up, and the response tells how long was played.
        "load": service_ns * requests / run.json["measured"]["duration_ns"],
    }


def _placed(spec: str, setting: Setting) -> str:
    """A stand-in as the setting has it: where its addresses lie, and of TPC-E how many requests write."""
    if "tpc-e" in spec:
        table_2_2 = str(setting.given.get("table-2-2", "reads"))
        if table_2_2 == "reads":
            return spec
        return f"{spec},write={write_share(TPC_E, table_2_2):.4f}"
    if setting.given.get("locality", "head") == "head":
        return spec
    return f"{spec}-statistics-only" if "variant=" in spec else f"{spec},variant=statistics-only"


@part("background-buffers", cpu_s=(1, 8))
def buffers(setting: Setting) -> list[Job]:
    """BPLRU, CFLRU and FAB on the three stand-ins, and on the head of the real trace where it is at hand."""
    scale = QUICK if setting.quick else setting.divisor
    ram = int(setting.given.get("buffers-ram", 16)) * 1024 // scale
    named = (("fill", "state"), ("spare", "spare"))
    taken = {argument: setting.given[name] for name, argument in named if name in setting.given}
    workloads_: dict[str, Row] = {
        f"{name} (stand-in)": {
            "spec": _placed(spec, setting),
            "warmup": warmup // scale,
            "requests": requests // scale,
            "ram_kib": ram,
        }
        for name, (spec, warmup, requests) in STAND_INS.items()
    }
    file, length, before, measured, head_mib = HEAD
    if (path := setting.trace(file)) is not None:
        before, measured = (1, 1) if setting.quick else (before, measured)
        workloads_["Financial1, first 10,000 requests"] = {
            "path": path,
            "repeat": before + measured,
            "warmup": before * length,
            "requests": measured * length,
            "ram_kib": max(1024, head_mib * 1024 // scale),  # room for two blocks
        }
    return [
        Job(
            buffered,
            {"manager": manager, "workload": name, "scale": scale} | given | taken,
            f"{manager}, {name}",
        )
        for name, given in workloads_.items()
        for manager in MANAGERS
    ]
