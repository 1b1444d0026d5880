"""The claims of Kim et al. (2011) about Filebench (Figure 10)."""

from __future__ import annotations

from collections.abc import Sequence

from flashwright_papers import Answer, Line, Plot, Verdict, claim
from flashwright_papers import Found as Rows

from .judging import BOTH, LITTLE, THREE, Found, apply_rule, letter, mostly, per_cent, title
from .play import CONFIGURATIONS, DRIVES, NOOP, PAI, PASA
from .runs import PROFILES


def figure_10(found: Found, configurations: Sequence[str]) -> list[Plot]:
    """Filebench, normalised to NoPAS-NOOP."""
    x = list(range(len(DRIVES)))
    return [
        Plot(
            f"Filebench, {load}: as Figure 10", "drive", "bandwidth over NoPAS-NOOP",
            [Line(c, x, [1 + found.bench(drive, load, c) for drive in DRIVES]) for c in configurations],
            ticks=[(at, title(drive)) for at, drive in enumerate(DRIVES)],
            levels=[("NoPAS-NOOP", 1.0)], points=True,
        )
        for load in PROFILES
    ]  # fmt: skip


def points_of(found: Found, configuration: str) -> dict[tuple[str, str], float]:
    """Gains of a configuration by drive and profile."""
    return {(d, load): found.bench(d, load, configuration) for d in DRIVES for load in PROFILES}


@claim("K16", needs="filebench")
def k16(rows: Rows) -> Answer:
    """The sign of NoPAS-PAI on all drives and profiles."""

    def rule(found: Found) -> tuple[Verdict, str]:
        over = points_of(found, PAI)
        signs = [gain > 0 for gain in over.values()]
        by_load = "; ".join(
            f"{load} {per_cent(over[d, load] for d in DRIVES)} %" for load in PROFILES
        )
        return (
            Verdict.of(mostly(signs), 2 * sum(signs) > len(signs)),
            f"{by_load} (A to D); above at {sum(signs)} of {len(signs)} points",
        )

    return apply_rule(rows, rule, lambda found: figure_10(found, (PAI,)))


@claim("K17", needs="filebench")
def k17(rows: Rows) -> Answer:
    """PAS or PASA improve on NoPAS-PAI but on C, most in OLTP."""

    def rule(found: Found) -> tuple[Verdict, str]:
        further = [
            max(found.bench(d, load, c, PAI) for c in BOTH) > 0 for d in THREE for load in PROFILES
        ]
        still = [
            max(found.bench("ssd-c", load, c, PAI) for c in BOTH) <= 2 * LITTLE for load in PROFILES
        ]
        peaks = {
            d: max(PROFILES, key=lambda load, d=d: max(found.bench(d, load, c) for c in BOTH))
            for d in THREE
        }
        best = "; ".join(
            f"{load} {per_cent(max(found.bench(d, load, c) for c in BOTH) for d in DRIVES)} %"
            for load in PROFILES
        )
        return (
            Verdict.of(
                mostly(further) and mostly(still) and all(load == "oltp" for load in peaks.values()),
                2 * sum(further) > len(further) and mostly(still),
            ),
            f"above NoPAS-PAI at {sum(further)} of {len(further)} points of A, B, D; on C more than 10 % above at "
            f"{len(still) - sum(still)} of {len(still)}; better of both over NoPAS-NOOP: {best} (A to D); largest in "
            + ", ".join(f"{load} ({letter(d)})" for d, load in peaks.items()),
        )  # fmt: skip

    return apply_rule(rows, rule, lambda found: figure_10(found, BOTH))


@claim("K18", needs=("filebench", "filebench-oltp"))
def k18(rows: Rows) -> Answer:
    """The gain of PASA-PAI on D with OLTP, read as an increase or as a normalised bandwidth."""

    def rule(found: Found) -> tuple[Verdict, str]:
        over = {c: points_of(found, c) for c in BOTH}
        d = over[PASA]["ssd-d", "oltp"]
        most, at = max((gain, (c, key)) for c in BOTH for key, gain in over[c].items())
        return (
            # The band of section 10: 0.3 of the percentage, for either reading of it.
            Verdict.of(any(abs(d - said) <= 0.3 * said for said in (2.21, 3.21)), d > LITTLE),
            f"D, OLTP, PASA-PAI {100 * d:+.0f} %; most {100 * most:+.0f} % ({title(at[1][0])}, {at[1][1]}, {at[0]})",
        )  # fmt: skip

    larger = {
        (row["drive"], row["io"], row["configuration"]): row["overall_mb_per_s"]
        for row in rows["filebench-oltp"]
        if not row["error"]
    }
    sizes = dict.fromkeys(io for _, io, _ in larger)
    more = "OLTP with larger requests, PASA-PAI: " + "; ".join(
        f"{io.replace('iB', ' iB').replace('K i', 'Ki').replace('M i', 'Mi')} "
        + ", ".join(
            f"{letter(d)} {per_cent((larger[d, io, PASA] / larger[d, io, NOOP] - 1,))} %"
            for d in ("ssd-a", "ssd-d")
        )
        for io in sizes
    )

    def plots(found: Found) -> list[Plot]:
        oltp = figure_10(found, tuple(CONFIGURATIONS))[-1]
        return [
            Plot(
                oltp.title, oltp.x, oltp.y, oltp.lines, ticks=oltp.ticks, points=True,
                levels=[*oltp.levels, ("321 % as normalised bandwidth", 3.21)],
            )
        ]  # fmt: skip

    return apply_rule(rows, rule, plots, more)
