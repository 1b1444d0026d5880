"""Assess a drive in service: which runs of its model tell what is asked, and playing them within a limit of time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from flashwright.advice.assessment import (
    HALF_PACE,
    PRESENT,
    Assessment,
    Counters,
    Load,
    Trial,
    is_fitted,
)
from flashwright.advice.facts import Facts
from flashwright.advice.host import host_advice, profile_of_model
from flashwright.advice.lines import HostAdvice
from flashwright.drive.trust import MEAN_BOUND, P99_BOUND
from flashwright.endurance.smart import Smart
from flashwright.errors import ConfigError, FlashwrightError
from flashwright.simulation.played import played
from flashwright.simulation.run import RunSettings
from flashwright.simulation.ssd import Ssd
from flashwright.simulation.variant import Maker
from flashwright.simulation.warnings import Gathered
from flashwright.support.core import SECTOR_BYTES, _core
from flashwright.support.progress import Progress
from flashwright.traces import tracefiles, workloads
from flashwright.twin.profile import Profile

__all__ = ["RUNS_OF_SETTINGS", "SECONDS", "Plan", "assess"]

SECONDS = 45.0
"""The limit of time for all runs. Chosen: with all else the answer is there within a minute."""

RUNS_OF_SETTINGS = 2
"""Runs that follow from advice for the host, at most."""

# Shares of the logical space that are left unused in turn.
_LEFT_UNUSED = (0.1, 0.2, 0.3)
# A program or an erase that takes no time, as far as settings go.
_NO_TIME = "1 ns"
# The share of the logical space that a load must leave alone for discards to be played.
_REACH_MOST = 0.95
# The share of the limit that short runs and settings get at least.
_KEPT_SHARE = 0.3
# Requests of a trace that are looked at for their alignment, at most.
_LOOKED_AT = 1_000_000


@dataclass(frozen=True)
class Plan:
    """What an assessment will take.

    Attributes
    ----------
    ssd : Ssd or None
        The model as it is played.
    source : Workload, Trace or None
        What is played.
    settings : RunSettings
        All else.
    load : Load or None
        The load as recorded.
    cycles : int or None
        Erases that a block of the drive takes, by its description.
    trials : tuple of Trial
        The runs that are known before any of them was played.
    failures : dict
        Runs that can't be made, with the reason.
    """

    ssd: Ssd | None
    source: workloads.Source | None
    settings: RunSettings
    load: Load | None
    cycles: int | None = None
    trials: tuple[Trial, ...] = ()
    failures: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        ssd: Ssd | None,
        source: workloads.Source | None,
        settings: RunSettings | None = None,
    ) -> Plan:
        """Which runs tell what is asked.

        Parameters
        ----------
        ssd : Ssd, optional
            The model of the drive. Without a precondition of its own it settles under the load.
        source : Workload or Trace, optional
            The load. Without one nothing is played.
        settings : RunSettings, optional
            All else that makes the runs.

        Raises
        ------
        FlashwrightError
            If the load can't be played on the drive: no such file, larger than the drive.

        Examples
        --------
        >>> plan = Plan.of(Ssd.named("default"), workloads.uniform(), RunSettings(requests=1000))
        >>> [trial.name for trial in plan.trials][:2]
        ['as it is', 'programs and erases in no time']
        """
        made = settings or RunSettings()
        load = None
        if isinstance(source, workloads.Trace):
            load = Load(tracefiles.info(source))
        if ssd is None or source is None:
            return cls(ssd, source, made, load)
        # As for a life, where blocks are not to end within the runs.
        base = ssd.settling().with_(
            {"wear.pe-cycles-max": 0, "wear.pe-cycles-spread": 0, "wear.pe-cycles-weibull": 0}
        )
        plan = cls(base, source, made, load, ssd.config["wear"]["pe-cycles-max"] or None)
        present = plan.trial(PRESENT, "present", {})
        assert present is not None, "nothing is changed"
        # Whatever speaks against the load or the drive is said before anything is played.
        present.variant.begin()
        trials = [present, *plan._of_tails(), *plan._of_reserves(), plan._of_discard()]
        return replace(plan, trials=tuple(each for each in trials if each is not None))

    @property
    def model_bytes(self) -> int | None:
        """The capacity of the model; None without one."""
        return None if self.ssd is None else _core.config_check(self.ssd.toml)[0]

    @property
    def most(self) -> int:
        """Runs at most."""
        return len(self.trials) + RUNS_OF_SETTINGS if self.trials else 0

    def trial(self, name: str, about: Any, changes: dict[str, object], **more: Any) -> Trial | None:
        """A run with some settings changed; None, and a failure, where the drive or the load can't do it.

        Parameters
        ----------
        name, about
            As of :class:`Trial`.
        changes : dict
            What is set, as a comparison takes it.
        **more
            Further attributes of the trial.
        """
        assert self.ssd is not None and self.source is not None
        try:
            variant = Maker(self.ssd, self.source, self.settings).make(changes)
            variant.ssd.check()
        except FlashwrightError as error:
            if not changes:
                raise
            self.failures[name] = str(error).splitlines()[0]
            return None
        return Trial(name, about, variant, **more)

    def _of_tails(self) -> list[Trial | None]:
        """What may limit reads, taken away."""
        assert self.ssd is not None
        if self.ssd.config["timing"]["model"] == "none":
            return []
        trials = []
        if self.load is not None and self.load.info["span_ns"]:
            trials.append(self.trial(HALF_PACE, "tail", {"time-scale": 2.0}))
        no_time: dict[str, object] = {"timing.program": _NO_TIME, "timing.erase": _NO_TIME}
        return [*trials, self.trial("programs and erases in no time", "tail", no_time)]

    def _of_reserves(self) -> list[Trial | None]:
        """The drive with a part of its logical space left unused."""
        return [
            self.trial(f"{left * 100:.0f} % left unused", "reserve", self._used(1 - left))
            for left in _LEFT_UNUSED
        ]

    def _used(self, share: float) -> dict[str, object]:
        """Settings by which the host uses a share of the logical space."""
        assert self.ssd is not None
        logical, pages, _ = _core.config_check(self.ssd.toml)
        return {"capacity.logical": f"{int(pages * share) * (logical // pages)} B"}

    def _of_discard(self) -> Trial | None:
        """The drive with all discarded that lies beyond the load."""
        assert self.ssd is not None
        source = self.source
        if self.load is None or not isinstance(source, workloads.Trace):
            return None
        if is_fitted(source):
            return None
        logical, pages, _ = _core.config_check(self.ssd.toml)
        page = logical // pages
        reach = -(-self.load.info["end_byte"] // page) * page
        if reach > _REACH_MOST * logical:
            return None
        changes: dict[str, object] = {"capacity.logical": f"{reach} B"}
        return self.trial("all beyond the load discarded", "setting", changes, topic="discard")


def assess(
    plan: Plan,
    *,
    readings: Sequence[Smart] = (),
    rating_bytes: float | None = None,
    cycles: int | None = None,
    capacity_bytes: float | None = None,
    known: Profile | None = None,
    seconds: float = SECONDS,
    progress: Callable[[int, int], None] | None = None,
) -> Assessment:
    """Say what a drive does under a load, how long it lasts, and which settings follow.

    Parameters
    ----------
    plan : Plan
        Drive, load and runs.
    readings : sequence of Smart, optional
        What the drive counts, from the oldest reading to the newest.
    rating_bytes : float, optional
        Host bytes that the drive is rated to take.
    cycles : int, optional
        Erases that a block takes; by default the drive's ``wear.pe-cycles-max``.
    capacity_bytes : float, optional
        Of the drive in service, where its model is another size; by default as its SMART data say, else as the model.
    known : Profile, optional
        What probes found; by default what follows from the model.
    seconds : float, optional
        The limit of time. Runs that are not played by then are left out, which the assessment says.
    progress : callable, optional
        Called a few times a second with the runs played, about, and those in all.

    Returns
    -------
    Assessment
        After Ctrl-C what there was until then; ``interrupted`` says so.

    Raises
    ------
    ConfigError
        If there is nothing to go by: neither readings, nor a model and a load.
    SmartError
        If a counter is lower in a newer reading.

    Examples
    --------
    >>> ssd = Ssd.named("default").with_(blocks_per_plane=64)
    >>> plan = Plan.of(ssd, workloads.uniform(write=0.7), RunSettings(requests=50_000))
    >>> found = assess(plan)
    >>> found.present.settled.verdict, len(found.points)
    ('settled', 4)
    """
    if not readings and not plan.trials:
        raise ConfigError(
            "found neither SMART data nor a load with a drive, expected one of them",
            "",
        )
    ends = time.monotonic() + seconds
    counters = Counters.of(readings) if readings else None
    if counters is not None and capacity_bytes is None and counters.now.capacity:
        capacity_bytes, whence = float(counters.now.capacity), "SMART data"
    else:
        whence = "" if capacity_bytes is None else "as given"
    if capacity_bytes is None and plan.model_bytes is not None:
        capacity_bytes, whence = float(plan.model_bytes), "the model"
    made = Assessment(
        plan.ssd,
        plan.source,
        plan.load,
        counters,
        capacity_bytes,
        whence,
        rating_bytes,
        cycles or plan.cycles,
        trials=plan.trials,
        failures=plan.failures,
        seconds=seconds,
    )

    def played_so_far(done: int) -> None:
        if progress is not None:
            progress(done, plan.most)

    made = _with_runs(made, plan.trials, (1 - _KEPT_SHARE) * seconds, played_so_far)
    if plan.ssd is not None and not made.interrupted:
        try:
            profile = known or _described(made, plan.ssd)
            hosted = host_advice(profile, made.spare)
            made = replace(made, hosted=hosted, load=_aligned(plan, profile))
        except KeyboardInterrupt:
            made = replace(made, interrupted=True)
    if made.hosted is not None and made.present is not None:
        trials = _of_settings(plan, made.hosted)
        made = replace(made, trials=(*made.trials, *trials), failures=plan.failures)
        before = len(plan.trials)
        made = _with_runs(
            made, trials, ends - time.monotonic(), lambda done: played_so_far(before + done)
        )
    return replace(made, cautions=tuple(_cautions(made, known)))


def _described(made: Assessment, ssd: Ssd) -> Profile:
    """What follows from the model: with short runs, unless the time is over."""
    bare = replace(ssd, preconditioning=None)
    return Profile.described(bare) if _no_run_ended(made) else profile_of_model(bare)


def _no_run_ended(made: Assessment) -> bool:
    """Whether the limit of time left nothing of the load: short runs of the model are left out then as well."""
    return bool(made.trials) and made.present is None


def _with_runs(
    made: Assessment,
    trials: Sequence[Trial],
    seconds: float,
    progress: Callable[[int], None],
) -> Assessment:
    """The assessment with some runs more."""
    if not trials:
        return made
    # Runs of one beginning are played one after the other, so that this counts about right.
    order = {trial.variant.label: at for at, trial in enumerate(trials)}
    reached = 0

    def under_way(label: str, _: Progress) -> None:
        nonlocal reached
        reached = max(reached, order.get(label, 0))
        progress(reached)

    found = played(
        [trial.variant for trial in trials], progress=under_way, seconds=max(0.0, seconds)
    )
    results, failures = dict(made.results), dict(made.failures)
    for at, trial in enumerate(trials):
        result = found.results.get(at)
        if result is not None and result.json["ended"] != "interrupted":
            results[trial.name] = result.labelled(trial.name)
        elif at in found.errors:
            if trial.about == "present":
                raise found.errors[at]
            failures[trial.name] = str(found.errors[at]).splitlines()[0]
    return replace(
        made,
        results=results,
        failures=failures,
        out_of_time=made.out_of_time or found.out_of_time,
        interrupted=made.interrupted or found.interrupted,
    )


def _of_settings(plan: Plan, hosted: HostAdvice) -> list[Trial]:
    """Runs with what is advised; of what the model has already, with what is advised against."""
    assert plan.ssd is not None
    host = plan.ssd.config["host"]
    trials = []
    advised = hosted.queue.get("scheduler")
    if advised is not None:
        is_own = advised == host["scheduler"]
        other = "mq-deadline" if advised == "none" else "none"
        played_one = other if is_own else advised
        trials.append(
            plan.trial(
                f"scheduler {played_one}",
                "setting",
                {"host.scheduler": played_one},
                topic="linux scheduler",
                is_advised=not is_own,
            )
        )
    if hosted.depth is not None and hosted.depth != host["queue-depth"]:
        changes: dict[str, object] = {"host.queue-depth": hosted.depth}
        trials.append(
            plan.trial(f"queue depth {hosted.depth}", "setting", changes, topic="queue depth")
        )
    return [trial for trial in trials if trial is not None]


def _aligned(plan: Plan, profile: Profile) -> Load | None:
    """The load with the shares of its reads and writes that are not aligned to the drive's pages, where known."""
    unit, source = Facts(profile, None, None).page, plan.source
    if plan.load is None or unit is None or not isinstance(source, workloads.Trace):
        return plan.load
    table = tracefiles.columns(source, requests=_LOOKED_AT)
    kinds = table["kind"].to_numpy(zero_copy_only=False)
    first = table["first_sector"].to_numpy().astype(np.int64) * SECTOR_BYTES
    end = first + table["sectors"].to_numpy().astype(np.int64) * SECTOR_BYTES
    odd = (first % unit != 0) | (end % unit != 0)
    shares = {
        f"{kind}s": float(np.mean(odd[kinds == kind]))
        for kind in ("read", "write")
        if np.any(kinds == kind)
    }
    return replace(plan.load, unaligned=shares)


def _costs_more(made: Assessment) -> bool:
    """Whether more reserve costs write amplification on the model."""
    found = [point.value("write-amplification") for _, point in made.points]
    known = [value for value in found if value is not None]
    return bool(known) and max(known) > (1 + MEAN_BOUND) * known[0]


def _cautions(made: Assessment, known: Profile | None) -> list[Gathered]:
    """What is to be kept in mind, beside what the runs warn of."""
    found: list[Gathered] = []

    def add(code: str, text: str, mend: str | None = None) -> None:
        found.append(Gathered(code, text, mend, (), 0))

    if made.interrupted:
        add("interrupted", "interrupted: only what was finished is here")
    if made.out_of_time:
        add(
            "out-of-time",
            f"the limit of {made.seconds:g} s cut {len(made.left_out)} of {len(made.trials)} runs short: "
            f"{'; '.join(made.left_out)}",
            "--time-limit with more seconds",
        )
    from_model_alone = made.hosted is not None and known is None and made.ssd is not None
    if from_model_alone and _no_run_ended(made):
        add(
            "no-short-runs",
            "no run of the load ended in time, so short runs were left out: advice for its host rests on none",
        )
    for name, why in made.failures.items():
        add("not-played", f"{name}: can't be played: {why}")
    if known is not None and known.twin_record and made.trials:
        add(
            "twin",
            f"the model is a twin, which may be off by {MEAN_BOUND:.0%} ({P99_BOUND:.0%} at p99)",
        )
    for doubt in () if known is None else known.twin_doubts:
        add("twin-doubt", f"don't rely on the model's figures: {doubt}")
    if made.load is not None and made.load.is_brief:
        span = made.load.info["span_ns"] / 1e9
        add(
            "brief",
            f"the trace is {span:.3g} s long: figures a day and years assume that its pace lasts all day",
        )
    for each in () if made.load is None else made.load.info["doubts"]:
        add("trace", each["text"], each["mend"] or None)
    for note in () if made.load is None else made.load.info["notes"]:
        add("trace", note)
    model = made.model_bytes
    if made.is_other_size and model is not None and made.capacity_bytes is not None:
        add(
            "other-size",
            f"the model has {model / 1e9:.3g} GB, the drive {made.capacity_bytes / 1e9:.3g} GB: the load touches "
            "another share of it, so that cleaning may cost less or more; only the years are scaled",
        )
    elif made.capacity_from == "the model" and made.even is not None:
        add(
            "capacity",
            "nobody said the capacity of the drive: years are of one as large as the model",
            "--capacity",
        )
    if made.even is not None:
        add(
            "even-wear",
            "life by the model assumes that all blocks wear evenly; uneven wear ends a drive sooner",
            "`flashwright lifetime forecast`",
        )
    if made.ssd is not None and made.ssd.config["slc"]["cache"] != "none" and _costs_more(made):
        add(
            "slc-cache",
            "with more reserve write amplification is higher: free blocks serve as an SLC cache, and what is folded "
            "out of it is programmed again",
        )
    ratio = made.over_counted
    if ratio is not None and abs(ratio - 1) > MEAN_BOUND:
        add(
            "model-off",
            f"the model's write amplification is {ratio:.2f} times that by counters: the load is another than that of "
            "the time counted, or the model is off",
        )
    for line in made.advised:
        cost = made.cost(line.topic)
        if cost is not None:
            add(
                "advice-costs",
                f"{line.topic}: on the model, what is advised makes {cost[0]} of reads {cost[1] * 100:.0f} % longer: "
                "under this load the other choice is better there",
            )
    for note in () if made.counters is None else made.counters.now.notes:
        add("smart", note)
    drive = None if made.present is None else made.present.json["drive"]
    for caution in () if drive is None else drive["cautions"]:
        add("drive", str(caution))
    for violation in () if made.present is None else made.present.violations:
        add("violation", violation)
    return found
