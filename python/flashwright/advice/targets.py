"""Targets of advice: a figure and the limit that it is to keep, as people write them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from flashwright.endurance import amounts
from flashwright.errors import ConfigError, FlashwrightError
from flashwright.support.core import _core

__all__ = ["METRICS", "Target"]


@dataclass(frozen=True)
class _Metric:
    """A figure that can be a target: whether less is better, and how its values are written."""

    less: bool
    example: str
    read: Callable[[str], float]


def _plain(text: str) -> float:
    return float(text.replace("_", "").replace(",", ""))


def _time(text: str) -> float:
    return float(_core.time_read(text))


def _rate(text: str) -> float:
    return amounts.parse_rate(text, name="throughput")


_METRICS = {
    "write-amplification": _Metric(True, "2", _plain),
    "write-amplification-bytes": _Metric(True, "2", _plain),
    "mean": _Metric(True, "500us", _time),
    "p99": _Metric(True, "5ms", _time),
    "p99.9": _Metric(True, "20ms", _time),
    "iops": _Metric(False, "10000", _plain),
    "throughput": _Metric(False, "100MB/s", _rate),
    "life": _Metric(False, "5y", amounts.parse_years),
}

METRICS = tuple(_METRICS)
"""What a target can be about."""

_ALSO = {
    "wa": "write-amplification",
    "waf": "write-amplification",
    "write-amplification-factor": "write-amplification",
    "average": "mean",
    "latency": "mean",
    "mean-latency": "mean",
    "p999": "p99.9",
    "bandwidth": "throughput",
    "bw": "throughput",
    "lifetime": "life",
    "years": "life",
}
"""Other words for figures, in small letters, with hyphens."""


def _figure(word: str) -> str | None:
    """The figure that a word means."""
    name = re.sub(r"[\s_-]+", "-", word.strip().lower())
    name = _ALSO.get(name, name)
    return name if name in _METRICS else None


def _nearest(word: str) -> str:
    """The known word that is most like one that is not, as a question; empty if none is."""
    near = difflib.get_close_matches(word.strip().lower(), [*_METRICS, *_ALSO], 1)
    return f"did you mean {near[0]}? " if near else ""


@dataclass(frozen=True)
class Target:
    """A limit that a figure is to keep.

    Attributes
    ----------
    metric : str
        One of :data:`METRICS`.
    limit : float
        Nanoseconds for times, bytes a second for throughput, years for life.
    text : str
        Figure and limit, as messages name it.
    write_rate : str or None
        For life: the rate that it is for, if the target says so, as of ``life>=1dwpd,5y``.

    Examples
    --------
    >>> Target.parse("p99 <= 5ms")
    Target(metric='p99', limit=5000000.0, text='p99<=5ms')
    >>> Target.parse("life>=5y").allows(4.9), Target.parse("WAF <= 2").allows(1.9)
    (False, True)
    >>> Target.parse("life >= 1dwpd,5y").limit, Target.parse("life >= 1dwpd,5y").write_rate
    (5.0, '1dwpd')
    """

    metric: str
    limit: float
    text: str
    write_rate: str | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, text: str) -> Target:
        """A target as the command line takes it.

        Raises
        ------
        ConfigError
            If it is none, or its limit is on the wrong side.
        """
        found = re.fullmatch(r"\s*([^<>=≤≥]*[^<>=≤≥\s])\s*(<=|>=|≤|≥)\s*(.+?)\s*", text)
        name = None if found is None else _figure(found[1])
        if found is None or name is None:
            near = "" if found is None else _nearest(found[1])
            raise ConfigError(
                f"target: found {text!r}, expected FIGURE<=LIMIT or FIGURE>=LIMIT",
                f"{near}figures are {', '.join(_METRICS)}; such as write-amplification<=2 or WA<=2, p99<=5ms, "
                "life>=5y",
                parameters=["target"],
            )
        metric, sign = _METRICS[name], "<=" if found[2] in ("<=", "≤") else ">="
        if (sign == "<=") != metric.less:
            raise ConfigError(
                f"target: found {text!r}, expected {name}{'<=' if metric.less else '>='}LIMIT",
                f"{'less' if metric.less else 'more'} of it is better",
                parameters=["target"],
            )
        rate, amount = None, found[3]
        if name == "life" and (
            rated := re.fullmatch(r"(.+?)(?:,|/| for | over )\s*([^,/]+)", amount)
        ):
            rate, amount = rated[1].strip(), rated[2]
        try:
            limit = metric.read(amount)
            if rate is not None:
                amounts.parse_rate(rate, 1.0)
        except (ValueError, FlashwrightError):
            limit = float("nan")
        if not 0 < limit < float("inf"):
            also = " or life>=1dwpd,5y" if name == "life" else ""
            raise ConfigError(
                f"target: found {text!r}, expected a limit such as {name}{sign}{metric.example}{also}",
                "",
                parameters=["target"],
            )
        return cls(name, limit, f"{name}{sign}{''.join(found[3].split())}", rate)

    def with_margin(self, share: float) -> Target:
        """The same with a margin, for figures of a model that may be off by that share of the limit.

        Parameters
        ----------
        share : float
            Of the limit.

        Examples
        --------
        >>> Target.parse("write-amplification<=2").with_margin(0.1)
        Target(metric='write-amplification', limit=1.8, text='write-amplification<=2 with 10% to spare')
        """
        factor = 1 - share if self.less else 1 + share
        text = f"{self.text} with {share:.0%} to spare"
        return Target(self.metric, self.limit * factor, text, self.write_rate)

    @property
    def less(self) -> bool:
        """Whether less is better."""
        return _METRICS[self.metric].less

    def allows(self, value: float | None) -> bool:
        """Whether the figure keeps the limit; a figure that there is not does not."""
        if value is None:
            return False
        return value <= self.limit if self.less else value >= self.limit
