"""What the claims about real drives rest on: models of drives, and what is played on them."""

from __future__ import annotations

from flashwright_papers import Job, Setting, part

from .cache import fill, paused
from .cleaning import filled, overwritten, static, two_zone, uniform, zipf, zoned
from .latency import latency, saturated
from .models import CACHED, MAX, P5520, PE8110, Model

# Where only counts are simulated: pages of a superblock, quick and full; quick runs keep the number of superblocks.
PAGES = (512, 4096)
# Where time passes: rows of a superblock in quick runs; full ones have those of the description.
ROWS_QUICK = {MAX.name: 3, P5520.name: 1, PE8110.name: 2}
ASKED = {
    MAX.name: (10_000, 30_000, 60_000),
    P5520.name: (10_000, 40_000, 80_000),
    PE8110.name: (10_000, 20_000, 40_000, 60_000),
}
# Seconds of the model: a minute of the drive is about one.
PAUSE_S = 5.0
USED = (0.5, 0.7, 0.9)
PATTERNS = {
    "uniform": uniform(),
    "Zipf 0.4": zipf(0.4),
    "Zipf 0.8": zipf(0.8),
    "two-zone 70/30": two_zone(70),
    "two-zone 90/10": two_zone(90),
    "static 20 %": static(20),
    "static 60 %": static(60),
}
ZONES = {
    "1 active of 8 GiB": (1, 8),
    "4 active of 8 GiB": (4, 8),
    "16 active of 8 GiB": (16, 8),
    "1 active of 1 GiB": (1, 1),
    "1 active of 4 GiB": (1, 4),
}
# Several active zones wander for capacities, in the records as here, and with most data static seeds differ by 3 %: so
# many runs are averaged.
SEEDS = (1, 2, 3, 4)
CAPACITIES_OF_SHARES = CAPACITIES_OF_ZONES = 4
# The records have 5 to 9.
CAPACITIES_OF_PATTERNS = 7


def pages(setting: Setting) -> int:
    return PAGES[0 if setting.quick else 1]


def _patterns(model: Model, names: tuple[str, ...], setting: Setting) -> list[Job]:
    return [
        Job(
            overwritten,
            {
                "drive": model.name,
                "text": model.text,
                "load": name,
                "workload": PATTERNS[name],
                "capacities": CAPACITIES_OF_PATTERNS,
                "pages": pages(setting),
                "seed": seed,
            },
            f"{model.name}, {name}, seed {seed}",
        )
        for name in names
        for seed in SEEDS
    ]


def _zones(model: Model, setting: Setting) -> list[Job]:
    return [
        Job(
            zoned,
            {
                "drive": model.name,
                "text": model.text,
                "load": name,
                "active": active,
                "zone_gib": size,
                "capacity_gib": model.capacity_gib,
                "capacities": CAPACITIES_OF_ZONES,
                "pages": pages(setting),
                "seed": seed,
            },
            f"{model.name}, {name}, seed {seed}",
        )
        for name, (active, size) in ZONES.items()
        for seed in SEEDS
    ]


@part("shares", cpu_s=(1, 2))
def shares(setting: Setting) -> list[Job]:
    """P2 on the 7450 MAX."""
    return [
        Job(
            overwritten,
            {
                "drive": MAX.name,
                "text": MAX.text,
                "load": f"uniform, {100 * used:.0f} % used",
                "workload": uniform(),
                "capacities": CAPACITIES_OF_SHARES,
                "pages": pages(setting),
                "used": used,
            },
            f"{MAX.name}, {100 * used:.0f} % used",
        )
        for used in USED
    ]


@part("fills", cpu_s=(1, 1))
def fills(setting: Setting) -> list[Job]:
    """The fill in order of P2 on the 7450 MAX."""
    return [
        Job(
            filled,
            {"drive": MAX.name, "text": MAX.text, "used": used, "pages": pages(setting)},
            f"{MAX.name}, fill of {100 * used:.0f} %",
        )
        for used in USED
    ]


@part("max-zones", cpu_s=(4, 30))
def max_zones(setting: Setting) -> list[Job]:
    """P3 on the 7450 MAX."""
    return _zones(MAX, setting)


@part("p5520-zones", cpu_s=(4, 35))
def p5520_zones(setting: Setting) -> list[Job]:
    """P3 on the P5520."""
    return _zones(P5520, setting)


@part("pe8110-zones", cpu_s=(4, 35))
def pe8110_zones(setting: Setting) -> list[Job]:
    """P3 on the PE8110."""
    return _zones(PE8110, setting)


@part("max-patterns", cpu_s=(3, 20))
def max_patterns(setting: Setting) -> list[Job]:
    """P1 on the 7450 MAX."""
    return _patterns(MAX, tuple(name for name in PATTERNS if name != "uniform"), setting)


@part("p5520-patterns", cpu_s=(3, 22))
def p5520_patterns(setting: Setting) -> list[Job]:
    """P1 on the P5520."""
    names = ("uniform", "Zipf 0.4", "Zipf 0.8", "static 20 %", "static 60 %")
    return _patterns(P5520, names, setting)


@part("pe8110-patterns", cpu_s=(3, 20))
def pe8110_patterns(setting: Setting) -> list[Job]:
    """P1 on the PE8110."""
    names = ("uniform", "Zipf 0.4", "Zipf 0.8", "static 20 %", "static 60 %")
    return _patterns(PE8110, names, setting)


def _times(model: Model, patterns: tuple[str, ...], setting: Setting) -> list[Job]:
    """Patterns and zones with times: one seed, whose speed repeats as write amplification does."""
    shared = {
        "drive": model.name,
        "text": model.text,
        "rows": ROWS_QUICK[model.name] if setting.quick else None,
    }
    played = [
        Job(
            overwritten,
            shared
            | {"load": name, "workload": PATTERNS[name], "capacities": CAPACITIES_OF_PATTERNS},
            f"{model.name}, {name}, with times",
        )
        for name in patterns
    ]
    zones = [
        Job(
            zoned,
            shared
            | {
                "load": name,
                "active": active,
                "zone_gib": size,
                "capacity_gib": model.capacity_gib,
                "capacities": CAPACITIES_OF_ZONES,
            },
            f"{model.name}, {name}, with times",
        )
        for name, (active, size) in ZONES.items()
    ]
    return played + zones


def _latencies(model: Model, setting: Setting) -> list[Job]:
    shared = {"drive": model.name, "text": model.text}
    intervals, interval_s = (1, 0.4) if setting.quick else (5, 2.1)
    loads = [
        Job(
            latency,
            shared | {"asked": asked, "intervals": intervals, "interval_s": interval_s},
            f"{model.name}, {asked:,} a second",
        )
        for asked in ASKED[model.name]
    ]
    requests = 100_000 if setting.quick else 1_000_000
    return [*loads, Job(saturated, shared | {"requests": requests}, f"{model.name}, saturated")]


@part("max-times", cpu_s=(8, 110))
def max_times(setting: Setting) -> list[Job]:
    """P1, P2 and P3 on the 7450 MAX, with times."""
    used = [
        Job(
            overwritten,
            {
                "drive": MAX.name,
                "text": MAX.text,
                "load": f"uniform, {100 * used:.0f} % used",
                "workload": uniform(),
                "capacities": CAPACITIES_OF_SHARES,
                "rows": ROWS_QUICK[MAX.name] if setting.quick else None,
                "used": used,
            },
            f"{MAX.name}, {100 * used:.0f} % used, with times",
        )
        for used in USED
    ]
    return used + _times(MAX, tuple(name for name in PATTERNS if name != "uniform"), setting)


@part("p5520-times", cpu_s=(15, 120))
def p5520_times(setting: Setting) -> list[Job]:
    """P1 and P3 on the P5520, with times."""
    return _times(P5520, ("uniform", "Zipf 0.4", "Zipf 0.8", "static 20 %", "static 60 %"), setting)


@part("pe8110-times", cpu_s=(8, 110))
def pe8110_times(setting: Setting) -> list[Job]:
    """P1 and P3 on the PE8110, with times."""
    return _times(
        PE8110, ("uniform", "Zipf 0.4", "Zipf 0.8", "static 20 %", "static 60 %"), setting
    )


@part("max-latency", cpu_s=(5, 40))
def max_latency(setting: Setting) -> list[Job]:
    """P4 on the 7450 MAX."""
    return _latencies(MAX, setting)


@part("p5520-latency", cpu_s=(5, 40))
def p5520_latency(setting: Setting) -> list[Job]:
    """P4 on the P5520."""
    return _latencies(P5520, setting)


@part("pe8110-latency", cpu_s=(5, 40))
def pe8110_latency(setting: Setting) -> list[Job]:
    """P4 on the PE8110."""
    return _latencies(PE8110, setting)


@part("slc", cpu_s=(5, 10))
def slc(_: Setting) -> list[Job]:
    """P7 on drives with an SLC cache: the fill, and a pause on the way."""
    fills = [
        Job(fill, {"drive": each.name, "text": each.text}, f"{each.name}, fill") for each in CACHED
    ]
    pauses = [
        Job(
            paused,
            {
                "drive": each.name,
                "text": each.text,
                "share": each.past_cache,
                "share_after": 0.02,
                "pause_s": PAUSE_S,
            },
            f"{each.name}, with a pause",
        )
        for each in CACHED
    ]
    return fills + pauses
