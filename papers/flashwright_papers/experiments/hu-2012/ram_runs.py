"""Parts of chapters 2 and 3: which runs there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from flashwright_papers import Job, Setting, part
from flashwright_papers.claims import Value

from . import ram_play
from .ram_play import (
    BUILD,
    BY_MODEL,
    EXCHANGE,
    FINANCIAL_1,
    FINANCIAL_2,
    HEAD_1,
    HEAD_MSN,
    IN_ORDER,
    MSN,
    TPC_E,
    TPC_E_DESCRIBED,
    WHOLE_MAP,
)

SIZES_2 = (8, 16, 24, 32, 48, 64)
SIZES_3 = (8, 16, 32, 48, 64, 80)  # chapter 3 looks beyond the 64 MiB of the whole table
SIZES = tuple(sorted({*SIZES_2, *SIZES_3}))
QUICK_2 = (8, 16, 32, 64)
QUICK_3 = (*QUICK_2, 80)
# A quarter of these sizes on the head of Financial 1, as far as that is less than the 14 MiB that it writes.
HEAD_SIZES_2 = (2, 4, 6, 8, 12)
HEAD_SIZES_3 = (2, 4, 8, 12)
TPC_E_DESCRIBED_SIZES = (16, 32, 64)
TPC_E_DESCRIBED_SIZES_3 = (*TPC_E_DESCRIBED_SIZES, 80)
USUAL = 16  # figure 2.8
TABLE_2_1 = 31.4375  # what table 2.1 leaves BPLRU of 32 MiB
THRESHOLDS = (0.1, 0.01, 0.0001, 0.00001)  # beside the 0.001 of all other runs
# Files of real traces; whole ones also packed.
HEADS = {HEAD_1: "financial1-first10k.spc.zst", HEAD_MSN: "msn-fs-150k.disksim.zst"}
WHOLE = {FINANCIAL_1: "Financial1.spc", FINANCIAL_2: "Financial2.spc"}
PACKED = ("", ".zst", ".gz", ".xz")


def whole(setting: Setting, workload: str) -> str | None:
    """The path of a whole real trace, where the user has it and the drive is not scaled down."""
    if setting.quick or workload not in WHOLE:
        return None
    found = (setting.trace(WHOLE[workload] + packed) for packed in PACKED)
    return next((path for path in found if path is not None), None)


def reading(setting: Setting, workload: str) -> dict[str, Any]:
    """What the dissertation leaves open, as the setting gives it, for :func:`ram_play.play`."""
    state = "fill-tpc-e" if workload == TPC_E_DESCRIBED else "fill"
    taken = {"fill": "sequential", "fill-tpc-e": "random"} | setting.given
    named = {name: setting.given[name] for name in ("spare", "locality") if name in setting.given}
    if "table-2-2" in setting.given and workload in ram_play.TABLE_2_2:
        named["table_2_2"] = setting.given["table-2-2"]
    return {"state": taken[state]} | named


def of_manager(setting: Setting, scheme: str) -> dict[str, Any]:
    """The same for a manager of RAM: its settings that the dissertation leaves open."""
    flags: dict[Value, Value] = {"true": True, "false": False}
    given = {
        name.removeprefix(f"{scheme}-"): flags.get(value, value)
        for name, value in setting.given.items()
        if name.startswith(f"{scheme}-")
    }
    return {"manager": given} if given else {}


def jobs(
    setting: Setting, workload: str, schemes: Iterable[str], sizes: Iterable[float], **given: Any
) -> list[Job]:
    """Runs of schemes at sizes of RAM in MiB; what is given here goes before what the setting gives."""
    path = given.pop("path", None) or whole(setting, workload)
    given |= {"path": path} if path else {}
    given = reading(setting, workload) | given
    scale = ram_play.QUICK if setting.quick else setting.divisor
    given |= {"scale": scale} if scale > 1 else {}
    listed = []
    for scheme in schemes:
        for ram in (0,) if scheme == "page" else sizes:
            arguments = {"workload": workload, "scheme": scheme, "ram": ram} | given
            manager = scheme.split()[0]
            arguments |= of_manager(setting, manager)
            if workload == TPC_E_DESCRIBED and manager in ("bplru", "pud-lru"):
                # Under log blocks old data lie in order either way; a fill in random order would linger in the buffer.
                arguments["state"] = "sequential"
            listed.append(Job(ram_play.play, arguments, f"{workload}, {scheme}, {ram:g} MiB"))
    return listed


def base(setting: Setting, workload: str, sizes: Iterable[float] = SIZES) -> list[Job]:
    """What both chapters compare with."""
    sizes = QUICK_3 if setting.quick else sizes
    return jobs(setting, workload, ("page", "bplru", "dftl"), sizes)


def pud_lru(setting: Setting, workload: str, at: float = USUAL, **given: Any) -> list[Job]:
    """PUD-LRU over size, and over its threshold at one size."""
    sizes = given.pop("sizes", QUICK_2 if setting.quick else SIZES_2)
    others = [f"pud-lru {threshold:g}" for threshold in THRESHOLDS]
    return jobs(setting, workload, ["pud-lru"], sizes, **given) + jobs(
        setting, workload, others, [at], **given
    )


def partition(setting: Setting, workload: str) -> list[Job]:
    """What shares the RAM between a buffer and the table."""
    return jobs(setting, workload, ("ap", "gc-arm"), QUICK_3 if setting.quick else SIZES_3)


@part("financial-1", cpu_s=(2, 26))
def financial_1(setting: Setting) -> list[Job]:
    """Page mapping, BPLRU and DFTL."""
    return base(setting, FINANCIAL_1)


@part("financial-1-pud-lru", cpu_s=(2, 32))
def financial_1_pud_lru(setting: Setting) -> list[Job]:
    """PUD-LRU."""
    return pud_lru(setting, FINANCIAL_1)


@part("financial-1-partition", cpu_s=(2, 45))
def financial_1_partition(setting: Setting) -> list[Job]:
    """AP and GC-ARM."""
    return partition(setting, FINANCIAL_1)


@part("table-2.1", cpu_s=(0.3, 2))
def table_2_1(setting: Setting) -> list[Job]:
    """BPLRU with what the tables of BAST leave of 32 MiB."""
    return jobs(setting, FINANCIAL_1, ["bplru"], [TABLE_2_1])


@part("financial-2", cpu_s=(2, 18))
def financial_2(setting: Setting) -> list[Job]:
    """Page mapping, BPLRU and DFTL."""
    return base(setting, FINANCIAL_2)


@part("financial-2-pud-lru", cpu_s=(2, 20))
def financial_2_pud_lru(setting: Setting) -> list[Job]:
    """PUD-LRU."""
    return pud_lru(setting, FINANCIAL_2)


@part("financial-2-partition", cpu_s=(3, 48))
def financial_2_partition(setting: Setting) -> list[Job]:
    """AP and GC-ARM."""
    return partition(setting, FINANCIAL_2)


@part("exchange", cpu_s=(1, 19))
def exchange(setting: Setting) -> list[Job]:
    """Page mapping, BPLRU and DFTL."""
    return base(setting, EXCHANGE)


@part("exchange-pud-lru", cpu_s=(1, 26))
def exchange_pud_lru(setting: Setting) -> list[Job]:
    """PUD-LRU."""
    return pud_lru(setting, EXCHANGE)


@part("exchange-partition", cpu_s=(2, 40))
def exchange_partition(setting: Setting) -> list[Job]:
    """AP and GC-ARM."""
    return partition(setting, EXCHANGE)


@part("build", cpu_s=(1, 21))
def build(setting: Setting) -> list[Job]:
    """Page mapping, BPLRU and DFTL."""
    return base(setting, BUILD, SIZES_2)


@part("build-pud-lru", cpu_s=(2, 34))
def build_pud_lru(setting: Setting) -> list[Job]:
    """PUD-LRU."""
    return pud_lru(setting, BUILD)


@part("msn", cpu_s=(1, 15))
def msn(setting: Setting) -> list[Job]:
    """Page mapping, BPLRU and DFTL."""
    return base(setting, MSN, SIZES_3)


@part("msn-partition", cpu_s=(3, 47))
def msn_partition(setting: Setting) -> list[Job]:
    """AP and GC-ARM."""
    return partition(setting, MSN)


@part("tpc-e", cpu_s=(1, 17))
def tpc_e(setting: Setting) -> list[Job]:
    """Page mapping, BPLRU and DFTL."""
    return base(setting, TPC_E)


@part("tpc-e-pud-lru", cpu_s=(1, 22))
def tpc_e_pud_lru(setting: Setting) -> list[Job]:
    """PUD-LRU."""
    return pud_lru(setting, TPC_E)


@part("tpc-e-partition", cpu_s=(2, 49))
def tpc_e_partition(setting: Setting) -> list[Job]:
    """AP and GC-ARM."""
    return partition(setting, TPC_E)


@part("told", cpu_s=(4, 60))
def tpc_e_described(setting: Setting) -> list[Job]:
    """TPC-E with the order of writes of which section 3.3.2 tells: chapter 2."""
    found = jobs(setting, TPC_E_DESCRIBED, ("page", "bplru", "dftl"), TPC_E_DESCRIBED_SIZES_3)
    return found + pud_lru(setting, TPC_E_DESCRIBED, sizes=TPC_E_DESCRIBED_SIZES)


@part("told-partition", cpu_s=(4, 100))
def tpc_e_described_partition(setting: Setting) -> list[Job]:
    """The same: chapter 3."""
    return jobs(setting, TPC_E_DESCRIBED, ("ap", "gc-arm"), TPC_E_DESCRIBED_SIZES_3)


@part("told-in-order", cpu_s=(1, 20))
def tpc_e_described_in_order(setting: Setting) -> list[Job]:
    """The same on a drive that was filled in order."""
    schemes = ("page", "bplru", "pud-lru", "dftl", "ap", "gc-arm")
    return jobs(setting, TPC_E_DESCRIBED, schemes, [USUAL], state="sequential", varied=IN_ORDER)


@part("spare", cpu_s=(2, 41))
def spare(setting: Setting) -> list[Job]:
    """TPC-E with 1 and 7 % of spare space, which the dissertation does not tell."""
    return [
        job
        for workload in (TPC_E, TPC_E_DESCRIBED)
        for share in (0.01, 0.07)
        for job in jobs(
            setting, workload, ("dftl", "ap", "gc-arm"), [USUAL], spare=share, varied="spare"
        )
    ]


@part("whole-map", cpu_s=(0.2, 3))
def whole_map(setting: Setting) -> list[Job]:
    """DFTL with all of its table in RAM; the blocks that hold it on flash are beside the spare space."""
    pages = ram_play.BLOCKS * ram_play.BLOCK_PAGES * 8 // (ram_play.PAGE_KIB << 10)
    blocks = pages // ram_play.BLOCK_PAGES // (ram_play.QUICK if setting.quick else 1)
    return [
        job
        for workload in (FINANCIAL_1, EXCHANGE)
        for job in jobs(setting, workload, ["dftl"], [64], more_blocks=blocks, varied=WHOLE_MAP)
    ]


def head(
    setting: Setting, workload: str, listed: Callable[..., list[Job]], *rest: Any, **given: Any
) -> list[Job]:
    """Runs of a head where the user has it, over and over and, but in a search, by its model.

    They are always on the whole drive, since the head's addresses do not fit a small one; a quick run has none.
    """
    path = setting.trace(HEADS[workload])
    if path is None or setting.quick:
        return []
    whole_drive = replace(setting, divisor=1)
    return [
        job
        for varied in ("", BY_MODEL)[: 2 if setting == whole_drive else 1]
        for job in listed(whole_drive, workload, *rest, path=path, varied=varied, **given)
    ]


@part("head-financial-1", cpu_s=(0, 32))
def head_financial_1(setting: Setting) -> list[Job]:
    """The first requests of Financial 1: chapter 2."""
    found = head(setting, HEAD_1, jobs, ("page", "bplru", "dftl"), HEAD_SIZES_2)
    return found + head(setting, HEAD_1, pud_lru, USUAL // 4, sizes=HEAD_SIZES_2)


@part("head-financial-1-partition", cpu_s=(0, 27))
def head_financial_1_partition(setting: Setting) -> list[Job]:
    """The same: chapter 3."""
    return head(setting, HEAD_1, jobs, ("ap", "gc-arm"), HEAD_SIZES_3)


@part("head-msn", cpu_s=(0, 25))
def head_msn(setting: Setting) -> list[Job]:
    """The first requests of MSN."""
    return head(setting, HEAD_MSN, jobs, ("page", "bplru", "dftl", "ap", "gc-arm"), SIZES_3)


def _traces(setting: Setting) -> list[tuple[str, str, bool]]:
    """Real traces that there are: name, path, and whether it is whole."""
    found = [(name, setting.trace(file), False) for name, file in HEADS.items()]
    found += [(name, whole(setting, name), True) for name in WHOLE]
    return [(name, path, complete) for name, path, complete in found if path is not None]


@part("statistics", cpu_s=(0.1, 0.1))
def statistics(setting: Setting) -> list[Job]:
    """The columns of table 2.2 of real traces."""
    return [
        Job(ram_play.statistics, {"trace": name, "path": path, "whole": complete}, name)
        for name, path, complete in _traces(setting)
    ]


@part("clusters", cpu_s=(0.1, 0.1))
def clusters(setting: Setting) -> list[Job]:
    """The first 5,000 requests of Financial 1, from its head or the whole of it."""
    found = [(name, path) for name, path, _ in _traces(setting) if name in (HEAD_1, FINANCIAL_1)]
    return [Job(ram_play.clusters, {"trace": name, "path": path}, name) for name, path in found[:1]]


@part("distinct-blocks", cpu_s=(0.3, 0.3))
def distinct_blocks(setting: Setting) -> list[Job]:
    """Figure 3.3 from real traces."""
    return [
        Job(ram_play.distinct_blocks, {"trace": name, "path": path, "whole": complete}, name)
        for name, path, complete in _traces(setting)
        if name != FINANCIAL_2
    ]


@part("table-2.3", cpu_s=(1, 1))
def table_2_3(setting: Setting) -> list[Job]:
    """Table 2.3, write by write."""
    return [
        Job(ram_play.table_2_3, {"manager": manager}, f"table 2.3, {manager}")
        for manager in ("bplru", "pud-lru")
    ]


@part("example-2.2.1", cpu_s=(1, 1))
def example_2_2_1(setting: Setting) -> list[Job]:
    """Update distances of the example."""
    return [Job(ram_play.example_2_2_1, {}, "section 2.2.1")]


@part("tables", cpu_s=(0.5, 0.5))
def tables(setting: Setting) -> list[Job]:
    """Bytes of mapping tables."""
    return [Job(ram_play.tables, {}, "mapping tables")]


@part("counters", cpu_s=(0.1, 0.1))
def counters(setting: Setting) -> list[Job]:
    """Bytes of PUD-LRU's counters."""
    return [Job(ram_play.counters, {}, "counters of blocks")]


@part("figure-3.2", cpu_s=(0.1, 0.1))
def figure_3_2(setting: Setting) -> list[Job]:
    """Pages one at a time and in groups."""
    return [
        Job(ram_play.figure_3_2, {"manager": manager}, f"figure 3.2, {manager}")
        for manager in ("fifo", "gc-arm")
    ]
