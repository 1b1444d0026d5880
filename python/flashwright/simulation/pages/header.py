"""What the header of a report says of the drive: that which was played, with every setting laid over it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flashwright.drive.description import config_of, devices
from flashwright.report import text
from flashwright.simulation.pages.view import RunView, dig, number
from flashwright.support.core import _core

_VALUES_SHOWN = 4
_CHANGES_SHOWN = 8


@dataclass(frozen=True)
class Header:
    """What is said of the drives of all runs.

    Attributes
    ----------
    names
        Their names, each once.
    about
        The bundled model's own description; None where a run changed what it may speak of.
    changed
        What the runs set differently from the bundled model that they start from, as ``key = value``; only what
        all of them share.
    facts
        Names and values: what all runs share, and of the rest what it varies over.
    """

    names: Sequence[str]
    about: str | None
    changed: Sequence[str]
    facts: list[tuple[str, str]]


def header(runs: Sequence[RunView]) -> Header:
    """What the header says.

    Parameters
    ----------
    runs
        The runs of the report, at least one.

    Returns
    -------
    Header
    """
    names = dict.fromkeys(str(name) for run in runs if (name := dig(run.json, "config.name")))
    abouts = {str(about) for run in runs if (about := dig(run.json, "config.about"))}
    changes = [_changes(run) for run in runs]
    about = abouts.pop() if len(abouts) == 1 and not any(changes) else None
    shared = [
        f"{key} = {value}"
        for key, value in (changes[0] or {}).items()
        if all(own is not None and own.get(key) == value for own in changes)
    ]
    if len(shared) > _CHANGES_SHOWN:
        shared = [*shared[:_CHANGES_SHOWN], f"{len(shared) - _CHANGES_SHOWN} more"]
    varied = _varied(runs)
    shown_values = {shown for _, shown in varied}
    facts = [(name, over([show(run) for run in runs])) for name, show in _FACTS]
    # What a comparison varied is named by its key, once.
    kept = [
        (name, shown) for name, shown in facts if shown is not None and shown not in shown_values
    ]
    return Header(list(names), about, shared, [*kept, *varied])


def over(values: Sequence[str | None]) -> str | None:
    """A value that all runs share, or what it varies over; None where no run has it.

    Examples
    --------
    >>> over(["4 GiB", "4 GiB"]), over(["page", "fast", "page"]), over([None])
    ('4 GiB', 'varies: page, fast', None)
    >>> over(["16 KiB", None]), over(list("abcdef"))
    ('varies: 16 KiB, none', 'varies: a, b, c, d and 2 more')
    """
    found = list(dict.fromkeys(value for value in values if value is not None))
    if not found:
        return None
    if len(found) == 1 and None not in values:
        return found[0]
    if None in values:
        found.append("none")
    left = len(found) - _VALUES_SHOWN
    more = f" and {left} more" if left > 0 else ""
    return f"varies: {', '.join(found[:_VALUES_SHOWN])}{more}"


def _varied(runs: Sequence[RunView]) -> list[tuple[str, str]]:
    """The keys that a comparison varied, with their values."""
    keys = dict.fromkeys(key for run in runs for key in run.varied)
    shown = {
        key: over([text.setting(run.varied[key]) if key in run.varied else None for run in runs])
        for key in keys
    }
    return [(key, value) for key, value in shown.items() if value is not None]


def _changes(run: RunView) -> dict[str, str] | None:
    """What differs from the bundled model that the drive's description is of; None where there is no such model."""
    config = dig(run.json, "config")
    about = dig(run.json, "config.about")
    if not isinstance(config, Mapping) or not about:
        return None
    bundled = _bundled(str(about))
    if bundled is None:
        return None
    own = text.flatten({key: value for key, value in config.items() if key not in _WORDS})
    theirs = text.flatten(bundled)
    # A result of another version may lack a key or have one more, which is no change of this run.
    return {key: own[key] for key in own if key in theirs and own[key] != theirs[key]}


_WORDS = ("name", "about")


@functools.cache
def _bundled(about: str) -> Mapping[str, Any] | None:
    """The configuration of the bundled model that a description is of."""
    configs = (config_of(_core.config_bundled(name)) for name in devices())
    return next((config for config in configs if config["about"] == about), None)


# What is said of a drive, from its configuration alone ---------------------------------------------


def _flash(run: RunView) -> str | None:
    names = ("channels", "dies-per-channel", "planes-per-die", "blocks-per-plane", "pages-per-block")  # fmt: skip
    counts = [number(run.json, f"config.geometry.{name}") for name in names]
    size = dig(run.json, "config.geometry.page-size")
    if size is None or any(count is None for count in counts):
        return None
    channels, dies, planes, blocks, pages = (int(count or 0) for count in counts)
    parts = [
        _times(channels, "channel"),
        f"{_times(dies, 'die')} each",
        *([f"{_times(planes, 'plane')} a die"] if planes > 1 else []),
        f"{_times(blocks, 'block')} a {'plane' if planes > 1 else 'die'}",
        f"{_times(pages, 'page')} of {size} a block",
    ]
    return ", ".join(parts)


def _times(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def _capacity(run: RunView) -> str | None:
    logical = number(run.json, "drive.logical_bytes")
    pages = number(run.json, "drive.logical_pages")
    physical = number(run.json, "drive.physical_pages")
    if logical is None or not pages or not physical:
        return None
    flash = text.size_bytes(physical * logical / pages)
    return f"{text.size_bytes(logical)} of {flash} of flash, {text.share(round(1 - pages / physical, 4))} spare"


def _setting(path: str) -> Callable[[RunView], str | None]:
    def shown(run: RunView) -> str | None:
        value = dig(run.json, path)
        return None if value is None else text.setting(value)

    return shown


def _ram(run: RunView) -> str | None:
    manager = dig(run.json, "config.ram.manager")
    if manager in (None, "none"):
        return None
    size = dig(run.json, "config.ram.size")
    return f"{manager}, {size}"


_FACTS: tuple[tuple[str, Callable[[RunView], str | None]], ...] = (
    ("flash", _flash),
    ("capacity", _capacity),
    ("mapping", _setting("config.ftl.scheme")),
    ("cleaning", _setting("config.gc.victim")),
    ("RAM", _ram),
    ("timing", _setting("config.timing.model")),
)
