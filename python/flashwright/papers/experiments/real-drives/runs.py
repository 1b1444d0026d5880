"""What the claims about real drives rest on: counting models of three drives, and what is played on them."""

from __future__ import annotations

from flashwright.papers import Job, Setting, part

from .cleaning import filled, overwritten, static, two_zone, uniform, zipf, zoned
from .models import MAX, P5520, PE8110, Model

# Pages of a superblock, quick and full; quick runs keep the number of superblocks.
PAGES = (512, 4096)
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
