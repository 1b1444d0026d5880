"""``flashwright lifetime simulate`` and ``forecast``: played to the end of life, or until its end can be told."""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from flashwright._core import __version__
from flashwright.cli.options import (
    DEFAULT_TRACE,
    LeftOut,
    RunOptions,
    add_options,
    check_snapshots,
    refuse_passing,
)
from flashwright.cli.outputs import ResultOptions, SavingOptions
from flashwright.cli.render import errors, page, put_json, put_page, units
from flashwright.endurance import lifetime as life
from flashwright.endurance.pages import decimal, in_years
from flashwright.errors import WorkloadError
from flashwright.simulation.results import RunResult
from flashwright.simulation.run import Run, RunInterrupted
from flashwright.simulation.ssd import Ssd
from flashwright.support.bars import Bar
from flashwright.support.core import _core

__all__ = ["forecast", "simulate"]

# The drive's end ends the run, and nobody knows beforehand which request that is.
_RunOptions = Annotated[RunOptions, LeftOut("requests", "closeup", "tenant", "no_alone")]
# A minute is as long as people wait, and reading a trace and filling the drive take some of it; half of the rest goes
# to the first answer, which large drives need to settle.
_TIME_LIMIT_S, _EVEN_SHARE = 45.0, 0.5
_UNEVEN = (
    "blocks wear unevenly: forecasts of such drives were up to 28 % too low and 15 % too high in "
    "experiments/lifetime; --against-full plays to the end"
)
_Device = Annotated[
    str | None,
    typer.Argument(
        metavar="[DEVICE]", help="A bundled drive (`flashwright devices`) or a TOML file."
    ),
]
_Cycles = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Erases that a block takes; by default DEVICE's wear.pe-cycles-max.",
        rich_help_panel="Scope",
    ),
]
_WriteRate = Annotated[
    str | None,
    typer.Option(
        metavar="RATE",
        help="For years: 20MB/s, 2TB/day or 0.5dwpd (drive writes a day).",
        rich_help_panel="Scope",
    ),
]


_TimeLimit = Annotated[
    float,
    typer.Option(
        metavar="SECONDS",
        help="Stop after so long, and answer from what was played; a life takes hours of play on a large drive.",
        rich_help_panel="Scope",
    ),
]


@add_options
def simulate(
    run: _RunOptions,
    output: ResultOptions,
    saving: SavingOptions,
    device: _Device = None,
    cycles: _Cycles = None,
    write_rate: _WriteRate = None,
    time_limit: _TimeLimit = _TIME_LIMIT_S,
) -> int:
    """Play a workload until the drive can't be written any more, and say what it took."""
    ends = _ends(time_limit)
    saving.check()
    output.check(saving.checkpoint)
    _check_rate(write_rate)
    made = _begin(run, output, saving, device, cycles)
    return _to_the_end(made, output, _rate(write_rate, made), saving, ends)


@add_options
def forecast(
    run: _RunOptions,
    output: ResultOptions,
    device: Annotated[
        str,
        typer.Argument(
            metavar="DEVICE", help="A bundled drive (`flashwright devices`) or a TOML file."
        ),
    ],
    cycles: _Cycles = None,
    write_rate: _WriteRate = None,
    measure_share: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="Share of the erase budget to play at least.",
            rich_help_panel="Scope",
        ),
    ] = 0.1,
    against_full: Annotated[
        bool,
        typer.Option(
            "--against-full", help="Play on to the end and say the error.", rich_help_panel="Scope"
        ),
    ] = False,
    time_limit: _TimeLimit = _TIME_LIMIT_S,
) -> int:
    """Say at once how long a drive lasts if it wears evenly, then play it until its end can be extrapolated.

    The first answer is cycles x flash / write amplification. The second sees how unevenly blocks wear.
    """
    output.check()
    _check_rate(write_rate)
    if not 0 <= measure_share < 1:
        raise WorkloadError(f"--measure-share: found {measure_share}, expected 0 to below 1", "")
    ends = _ends(time_limit)
    made = _begin(run, output, SavingOptions(), device, cycles, timed=False)
    rate = _rate(write_rate, made)
    try:
        even = _at_once(run, made, output, rate, _EVEN_SHARE * time_limit)
        left = math.inf if against_full else max(ends - time.monotonic(), 0.0)
        return _fast_forward(made, output, rate, measure_share, against_full, even, left)
    except KeyboardInterrupt:
        errors.note("interrupted before there was a forecast")
        return 130


def _ends(time_limit: float) -> float:
    """When a time limit is over, on the monotonic clock."""
    if not time_limit > 0:
        raise WorkloadError(f"--time-limit: found {time_limit:g}, expected seconds above 0", "")
    return time.monotonic() + time_limit


def _at_once(
    run: RunOptions, made: Run, output: ResultOptions, rate: _Rate | None, seconds: float
) -> life.EvenWear | None:
    """The answer by even wear, said as soon as it is there."""
    with Bar(output.bar, "even wear", "requests/s") as bar:
        found = life.even_wear(
            Ssd(made.toml), run.source(), run.settings(), seconds=seconds, progress=bar.update
        )
    if found is not None and not output.quiet:
        errors.note(f"{_even(found, rate)}; refining")
    return found


def _even(found: life.EvenWear, rate: _Rate | None) -> str:
    """The answer by even wear in words."""
    least, most = found.least, found.most
    takes = decimal(found.end.host_bytes)
    by = f"write amplification {units.number(found.write_amplification)}"
    if found.interval is not None:
        takes += f" ({decimal(least.host_bytes)} to {decimal(most.host_bytes)})"
        by += f" ({units.number(found.interval[0])} to {units.number(found.interval[1])})"
    if rate is not None:
        takes += f", {in_years(found.end.years(rate.bytes_per_s))} at {decimal(rate.bytes_per_s)}/s"
    state = {"settled": "settled", "never-cleaned": "without cleaning"}.get(
        found.settled, f"NOT settled: {found.settled}"
    )
    return f"{takes} if all blocks wear evenly: {found.end.cycles:,} cycles x flash / {by}, {state}"


@dataclass(frozen=True)
class _Rate:
    """What the host writes, and for how many years if they were said."""

    bytes_per_s: float
    years: float | None


def _check_rate(text: str | None) -> None:
    """Refuse what is no rate before a drive is made."""
    if text is not None:
        life.parse_rating(text, 1.0, "write_rate")


def _rate(text: str | None, made: Run) -> _Rate | None:
    """What the host writes a second."""
    if text is None:
        return None
    return _Rate(*life.parse_rating(text, _core.config_check(made.toml)[0], "write_rate"))


def _figures(end: life.Endurance, rate: _Rate | None) -> dict[str, Any]:
    return life.figures(end, None if rate is None else rate.bytes_per_s)


def _begin(
    run: RunOptions,
    output: ResultOptions,
    saving: SavingOptions,
    device: str | None,
    cycles: int | None,
    *,
    timed: bool = True,
) -> Run:
    if saving.resume is not None:
        made = saving.load([*run.given(), *([] if cycles is None else ["--cycles"])], device)
        if Ssd(made.toml).config["wear"]["pe-cycles-max"] == 0:
            raise WorkloadError(
                f"{saving.resume}: the saved run's drive has no limit of erases, "
                "expected one of `flashwright lifetime`",
                "",
            )
        return made
    if device is None:
        raise WorkloadError(
            "DEVICE: found nothing, expected a drive",
            "such as `flashwright lifetime simulate default --cycles 3000`",
        )
    check_snapshots(run, output)
    ssd = run.drive(device)
    if cycles is not None:
        ssd = ssd.with_({"wear.pe-cycles-max": cycles})
    if not timed:
        # A forecast reads erases and writes alone.
        ssd = ssd.untimed()
    source = run.source()
    refuse_passing(source, saving)
    made = life.begin(ssd, source, run.settings())
    if run.workload is None and run.trace is None and not output.quiet:
        errors.note(f"neither --trace nor --workload: playing {DEFAULT_TRACE}, again and again")
    return made


def _to_the_end(
    made: Run,
    output: ResultOptions,
    rate: _Rate | None,
    saving: SavingOptions,
    ends: float,
) -> int:
    interrupted = False
    try:
        with Bar(output.bar, "life", "erases/s") as bar:
            result = life.play_to_end(
                made,
                progress=bar.update,
                stop_after=saving.stop_after,
                time_limit_s=max(ends - time.monotonic(), 0.0),
                checkpoint=saving.checkpoint,
                checkpoint_every=saving.checkpoint_every,
            )
    except RunInterrupted as stop:
        interrupted = True
        if stop.result is None:
            errors.note("interrupted before anything was measured")
            return 130
        result = stop.result
    end = life.Endurance.of(result)
    ended = result.json["ended"] == "worn-out"
    used = _used(result, end)
    document = {
        "version": __version__,
        "method": "simulated",
        "ended": result.json["ended"],
        "budget_used": used,
        **_figures(end, rate),
        "run": result.json,
    }
    put_json(document, output.json)
    put_page(lambda: result, output)
    if not output.silent:
        head = "until its end" if ended else f"so far ({units.share(used)} of its erases)"
        _show(result, end, rate, [("written", head)])
    if interrupted:
        errors.note("interrupted; the figures cover what was finished")
        return 130
    if not ended and time.monotonic() >= ends:
        errors.note(
            f"the time limit has passed at {units.share(used)} of its erases; --time-limit gives it longer, "
            "--checkpoint lets it go on later, and `flashwright lifetime forecast` says where it ends"
        )
    return 1 if result.violations else 0


def _used(result: RunResult, end: life.Endurance) -> float:
    """Share of the erase budget that is used up."""
    return float(result.erases_per_block.mean()) / end.cycles


def _show(
    result: RunResult,
    end: life.Endurance,
    rate: _Rate | None,
    head: list[tuple[str, str]],
) -> None:
    wear = result.json["wear"]["erases_per_block"]
    rows = [
        ("drive", f"{result.json['config']['name']}, {end.cycles:,} erases a block"),
        ("workload", result.json["workload"]),
        *page.warnings([result]),
        *head,
        ("data endurance", f"{decimal(end.host_bytes)} of host writes"),
        ("drive writes", units.number(end.drive_writes, 1)),
        ("endurance efficiency", units.number(end.efficiency)),
        ("write amplification", units.number(result.write_amplification)),
        *page.by_bytes(result.json),
        (
            "erases per block",
            f"{units.count(wear['min'])} to {units.count(wear['max'])}, mean {units.number(wear['mean'], 1)}, "
            f"stdev {units.number(wear['stdev'], 1)}; {units.count(result.json['wear']['blocks_worn_out'])} worn out",
        ),
    ]
    if rate is not None:
        lasts, asked = end.years(rate.bytes_per_s), ""
        if rate.years is not None:
            verdict = "enough" if lasts >= rate.years else "NOT enough"
            asked = f"; {verdict} for the {rate.years:g} years asked"
        rows.append(("life", f"{in_years(lasts)} at {decimal(rate.bytes_per_s)}/s{asked}"))
    page.console().print(page.grid(rows))


def _fast_forward(
    made: Run,
    output: ResultOptions,
    rate: _Rate | None,
    share: float,
    against_full: bool,
    even: life.EvenWear | None,
    seconds: float,
) -> int:
    quiet = output.bar
    with Bar(quiet, "life", "erases/s") as bar:
        found = life.forecast(made, progress=bar.update, share_min=share, seconds=seconds)
    result = made.result()
    ended = result is not None and result.json["ended"] == "worn-out"
    full = None
    if against_full:
        with Bar(quiet, "to the end", "erases/s") as bar:
            full = life.Endurance.of(life.play_to_end(made, progress=bar.update))
    if found is None and not ended:
        return _even_alone(even, result, output, rate)
    assert result is not None, "what came to its end, or was erased several times, was measured"
    if found is None:
        errors.note(
            "the drive came to its end before its cleaning was steady: this is no extrapolation"
        )
    end = life.Endurance.of(result, found)
    error = None if full is None else end.host_bytes / full.host_bytes - 1
    document = {
        "version": __version__,
        "method": "simulated" if found is None else "extrapolated",
        **_figures(end, rate),
        "forecast": None if found is None else asdict(found),
        "even_wear": _even_figures(even, rate),
        "full": None if full is None else _figures(full, rate),
        "error": error,
        "run": result.json,
    }
    put_json(document, output.json)
    put_page(lambda: result, output)
    if not output.silent:
        head = [] if even is None else [("even wear", _even(even, rate))]
        if found is not None:
            steady = "steady" if found.steady else "NOT steady"
            head = [
                (
                    "extrapolated",
                    f"from {units.share(found.share)} of its erases; cleaning {steady}",
                ),
                (
                    "by",
                    f"write amplification {units.number(found.write_amplification)}, erases' stdev "
                    f"{units.number(found.spread, 2)}, its square growing as their mean to the "
                    f"{units.number(found.growth, 2)}: {units.number(found.unused, 1)} erases a block unused",
                ),
            ]
            if found.uneven:
                head.insert(0, ("warning", _UNEVEN))
        if full is not None and error is not None:
            head.append(
                (
                    "played to the end",
                    f"{decimal(full.host_bytes)}: the forecast is off by {error * 100:+.1f} %",
                )
            )
        _show(result, end, rate, head)
    return 0


def _even_figures(even: life.EvenWear | None, rate: _Rate | None) -> dict[str, Any] | None:
    """The documented figures of the answer by even wear."""
    if even is None:
        return None
    low, high = even.interval or (None, None)
    return {
        "write_amplification": even.write_amplification,
        "write_amplification_low": low,
        "write_amplification_high": high,
        "settled": even.settled,
        "host_bytes": even.end.host_bytes,
        "host_bytes_low": even.least.host_bytes,
        "host_bytes_high": even.most.host_bytes,
        "years": None if rate is None else even.end.years(rate.bytes_per_s),
    }


def _even_alone(
    even: life.EvenWear | None,
    result: RunResult | None,
    output: ResultOptions,
    rate: _Rate | None,
) -> int:
    """Answer by even wear, where the time was too short to see blocks wear; give the exit status."""
    if even is None:
        raise WorkloadError(
            "--time-limit: has passed before write amplification was measured, so there is no answer yet",
            "give it more seconds, or a drive with fewer blocks (geometry.blocks-per-plane)",
        )
    document = {
        "version": __version__,
        "method": "even-wear",
        **_figures(even.end, rate),
        "forecast": None,
        "even_wear": _even_figures(even, rate),
        "full": None,
        "error": None,
        "run": None if result is None else result.json,
    }
    put_json(document, output.json)
    if result is not None:
        put_page(lambda: result, output)
    if not output.silent:
        end = even.end
        rows = [
            ("even wear", _even(even, rate)),
            ("data endurance", f"{decimal(end.host_bytes)} of host writes"),
            ("drive writes", units.number(end.drive_writes, 1)),
        ]
        page.console().print(page.grid(rows))
    if not output.quiet:
        errors.note(
            "the time limit has passed before each block was erased twice: uneven wear is not seen, and ends a drive "
            "sooner; --time-limit gives it longer"
        )
    return 0
