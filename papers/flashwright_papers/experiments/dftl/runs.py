"""What the claims of the DFTL paper rest on: the parts, as lists of jobs.

play.py has what a job plays, so that changing this file plays nothing again.
"""

from __future__ import annotations

import itertools
import tomllib
from pathlib import Path
from typing import Any

from flashwright_papers import Job, Setting, part

from .fault import faulty_fast
from .play import (
    CELLO,
    FINANCIAL,
    SCHEMES,
    STAND_INS,
    TPCH,
    WEBSEARCH,
    WITHOUT_HEADS,
    compare,
    compare_head,
    compare_replayed,
    extra_space,
    golden,
    map_bytes,
    one_page_requests,
    random_overwrites,
    rates,
    sram,
    statistics,
    table_on_flash,
    window,
)
from .release import HEAD, dftl_in_python, fast_in_python, served

FINANCIAL_HEAD, WEBSEARCH_HEAD = (
    "first 10,000 requests of Financial1",
    "first 50,000 requests of WebSearch1",
)


HEADS = {
    FINANCIAL_HEAD: ("financial1-first10k.spc.zst", "spc"),
    WEBSEARCH_HEAD: ("websearch1-first50k.flashsim.zst", "flashsim"),
}


PLAIN = ("full", "erased")


VICTIMS = ("greedy", "cost-benefit")


def divisor(setting: Setting) -> int:
    """By what region and requests are divided."""
    return 4 if setting.quick else setting.divisor


def region(setting: Setting) -> int:
    """Pages of the active region: 1 GiB if nothing else is given, or a part of it."""
    return (int(setting.given.get("region", 1024)) << 9) // divisor(setting)


def few(setting: Setting, requests: int) -> int:
    """A number of requests, or the part of it that goes with the region."""
    return requests // divisor(setting)


def stand_ins(setting: Setting) -> dict[str, str]:
    """What is played for each workload."""
    return STAND_INS if setting.given.get("locality", "head") == "head" else WITHOUT_HEADS


def how(setting: Setting) -> dict[str, Any]:
    """What is given for the drive in place of what is taken."""
    named = {"extra": "extra", "cmt-entries": "cmt"}
    return {named[name]: value for name, value in setting.given.items() if name in named}


@part("comparison", cpu_s=(7, 21))
def comparison(setting: Setting) -> list[Job]:
    """The workloads of Table 3 on drives that are full and erased."""
    listed = []
    for (name, spec), state in itertools.product(stand_ins(setting).items(), PLAIN):
        playing = {"requests": few(setting, 600_000)}
        playing["warmup"] = few(setting, 100_000) if state == "full" else 0
        arguments = {
            "workload": name,
            "source": {"spec": spec},
            "pages": region(setting),
            "state": state,
            "playing": playing,
        } | how(setting)
        listed.append(Job(compare, arguments, f"{name}, {state}"))
    for (name, (file, kind)), state in itertools.product(HEADS.items(), PLAIN):
        path = setting.trace(file)
        if path is not None:
            arguments = {"workload": name, "path": path, "format": kind, "state": state}
            listed.append(Job(compare_head, arguments, f"{name}, {state}"))
    return listed


@part("replayed", cpu_s=(4, 13))
def replayed(setting: Setting) -> list[Job]:
    """The same on drives on which the trace was written once before."""
    return [
        Job(
            compare_replayed,
            {
                "workload": name,
                "spec": stand_ins(setting)[name],
                "pages": region(setting),
                "requests": few(setting, 300_000),
            }
            | how(setting),
            f"{name}, written once first",
        )
        for name in (FINANCIAL, CELLO, TPCH, WEBSEARCH)
    ]


@part("replayed-seeds", cpu_s=(4, 13))
def replayed_seeds(setting: Setting) -> list[Job]:
    """Financial with other seeds, where G16 is near a bound."""
    return [
        Job(
            compare_replayed,
            {
                "workload": FINANCIAL,
                "spec": stand_ins(setting)[FINANCIAL],
                "pages": region(setting),
                "requests": few(setting, 300_000),
                "seed": seed,
            }
            | how(setting),
            f"{FINANCIAL}, written once first, seed {seed}",
        )
        for seed in (2, 3, 4, 5)
    ]


@part("fault", cpu_s=(8, 32))
def with_the_fault(setting: Setting) -> list[Job]:
    """The same on FAST with the fault of the authors' release."""
    return [
        Job(
            faulty_fast,
            {
                "workload": name,
                "spec": stand_ins(setting)[name],
                "pages": region(setting),
                "requests": few(setting, 300_000),
            }
            | how(setting),
            f"{name}, FAST with the release's fault",
        )
        for name in (FINANCIAL, CELLO, TPCH)
    ]


@part("extra-space", cpu_s=(3, 6))
def extra(setting: Setting) -> list[Job]:
    """What more than 3 % beside the active region does."""
    return [
        Job(
            extra_space,
            {
                "spec": stand_ins(setting)[FINANCIAL],
                "state": state,
                "pages": region(setting),
                "requests": few(setting, 300_000),
            }
            | how(setting)
            | {"extra": share},
            f"{100 * share:.0f} % beside, {state}",
        )
        for state in PLAIN
        for share in (0.07, 0.15, 0.30)
    ]


@part("rates", cpu_s=(15, 27))
def growing_rates(setting: Setting) -> list[Job]:
    """Figure 9: workloads A and B at growing rates."""
    return [
        Job(
            rates,
            {
                "workload": workload,
                "state": state,
                "scheme": scheme,
                "victim": victim,
                # An overload shows by its length, so quick runs have fewer rates and no fewer requests.
                "pages": 1 << 16,
                "requests": 60_000,
                "warmup": 40_000,
                "steps": list(range(0, 21, 2 if setting.quick else 1)),
            }
            | how(setting),
            f"{workload}, {scheme} {victim}, {state}",
        )
        for workload in ("dftl-a", "dftl-b")
        for state in PLAIN
        for scheme, victim in SCHEMES
        if (scheme, victim) != ("page", "cost-benefit")
    ]


@part("window", cpu_s=(1, 2))
def single_requests(setting: Setting) -> list[Job]:
    """Figure 10: single requests."""
    return [
        Job(
            window,
            {
                "spec": stand_ins(setting)[FINANCIAL],
                "state": state,
                "pages": region(setting),
                "requests": few(setting, 100_000),
                "warmup": few(setting, 50_000),
            }
            | how(setting),
            f"single requests, {state}",
        )
        for state in PLAIN
    ]


@part("sram", cpu_s=(8, 25))
def growing_sram(setting: Setting) -> list[Job]:
    """Figure 11: a growing cache of the mapping."""
    return [
        Job(
            sram,
            {
                "workload": name,
                "spec": stand_ins(setting)[name],
                "state": state,
                "victim": victim,
                "pages": region(setting),
                "requests": few(setting, 200_000),
            },
            f"{name}, cache of {victim}, {state}",
        )
        for name in (FINANCIAL, TPCH)
        for state in PLAIN
        for victim in VICTIMS
    ]


@part("maps", cpu_s=(1, 1))
def maps(setting: Setting) -> list[Job]:
    """Sizes of mapping tables."""
    return [Job(map_bytes, {"scheme": scheme}, f"16 GiB, {scheme}") for scheme in ("page", "block")]


@part("table-on-flash", cpu_s=(1, 1))
def on_flash(setting: Setting) -> list[Job]:
    """DFTL's table."""
    return [Job(table_on_flash, {}, "1 GiB, dftl")]


@part("schemes", cpu_s=(1, 1))
def classes(setting: Setting) -> list[Job]:
    """The schemes of Table 2."""
    names = ("replacement", "bast", "fast", "superblock", "last", "dftl", "page")
    return [Job(random_overwrites, {"scheme": name}, f"overwrites, {name}") for name in names]


@part("figure-5", cpu_s=(1, 1))
def figure_5(setting: Setting) -> list[Job]:
    """The worked example of Figure 5, which the tests of the core play too."""
    file = Path(__file__).parent / "golden" / "dftl-figure-5.toml"
    golden_trace = tomllib.loads(file.read_text(encoding="utf-8"))
    steps = [
        {k: v for k, v in step.items() if k in ("read", "write")} for step in golden_trace["step"]
    ]
    return [Job(golden, {"config": golden_trace["config"], "steps": steps}, "figure 5")]


@part("one-page", cpu_s=(1, 1))
def one_page(setting: Setting) -> list[Job]:
    """Requests of one page."""
    return [Job(one_page_requests, {}, "requests of one page")]


@part("heads", cpu_s=(1, 1))
def heads(setting: Setting) -> list[Job]:
    """Statistics of the heads of real traces that are there."""
    return [
        Job(statistics, {"workload": name, "path": path, "format": kind}, name)
        for name, (file, kind) in HEADS.items()
        if (path := setting.trace(file)) is not None
    ]


@part("release", cpu_s=(12, 12))
def against_the_release(setting: Setting) -> list[Job]:
    """The head of the trace that the authors' release has, on three schemes and their twins in Python."""
    path = setting.trace(HEAD)
    if path is None:
        return []
    drives = [
        Job(served, {"path": path, "scheme": scheme}, f"the release's head, {scheme}")
        for scheme in ("page", "dftl", "fast")
    ]
    # The release cleans when a block that it opens leaves fewer than 3, the Rust scheme one block sooner.
    lists = [
        Job(dftl_in_python, {"path": path, "order": order, "kept": kept}, f"DFTL's twin, {order}")
        for order, kept in (("number", 3), ("recency", 4))
    ]
    logs = [
        Job(fast_in_python, {"path": path, "missing_copy": each}, f"FAST's twin, {each}")
        for each in (False, True)
    ]
    return [*drives, *lists, *logs]
