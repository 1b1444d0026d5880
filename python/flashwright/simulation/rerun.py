"""A result played again from what it says of itself, and whether the digests agree."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import getitem
from pathlib import Path
from typing import Any

from flashwright.drive.policies.handing import find_policy, handed
from flashwright.drive.policies.kinds import Given
from flashwright.errors import SavedStateError, TraceError
from flashwright.simulation.results import RunResult
from flashwright.simulation.run import Run
from flashwright.support.arguments import checked
from flashwright.support.core import _core
from flashwright.support.digests import digest_of_file
from flashwright.support.files import reason
from flashwright.support.progress import Progress
from flashwright.traces import workloads
from flashwright.traces.fingerprint import TraceMark

__all__ = ["Rerun", "rerun"]


@dataclass(frozen=True)
class Rerun:
    """One run of a result, played again.

    Attributes
    ----------
    label : str
        What the run is called.
    digest_then, digest_now : str
        The digests of the result and of the run now: equal where every figure and the state of the drive are.
    same_code : bool
        Whether the simulator that made the result had the same source as this one.
    result : RunResult
        The run now.
    """

    label: str
    digest_then: str
    digest_now: str
    same_code: bool
    result: RunResult

    @property
    def agrees(self) -> bool:
        """Whether the digests are equal."""
        return self.digest_then == self.digest_now


@checked()
def rerun(
    document: Mapping[str, object],
    *,
    trace: Path | None = None,
    policies: Sequence[Given] = (),
    progress: Callable[[str, Progress], None] | None = None,
) -> list[Rerun]:
    """Play the runs of a result again.

    Parameters
    ----------
    document : mapping
        What ``simulate --json`` or ``compare --json`` wrote, or ``RunResult.json``.
    trace : Path, optional
        Where the trace lies now. By default where it lay then; bundled traces are found anywhere.
    policies : sequence, optional
        The policies written in Python that runs used, as they were handed to them: of a result that compares
        several, all of them. Each is known by its class, the digest of its file and its parameters.
    progress : callable, optional
        Called a few times a second with the label of the run that is under way, and where it stands.

    Returns
    -------
    list of Rerun
        In the order of the document.

    Raises
    ------
    SavedStateError
        If a run does not say what made it, or was interrupted.
    PolicyError
        If a policy that it used is not among those given.
    TraceError
        If its trace is not there, or another one.

    Examples
    --------
    >>> from flashwright import Ssd
    >>> before = Ssd.named("default").play("zipf:write=0.7", requests=2000, depth=4, seed=7)
    >>> [again] = rerun(before.json)
    >>> again.agrees, again.same_code
    (True, True)
    """
    runs: Any = document.get("runs", [document])
    if not isinstance(runs, list) or not runs:
        raise SavedStateError(f"runs: found {runs!r:.60}, expected a list of runs", "")
    begun = [_begun(run, trace, policies) for run in runs]
    found = []
    for figures, run in zip(runs, begun, strict=True):
        label = _label(figures)
        result = run.go(
            progress=None if progress is None else partial(progress, label), label=label
        )
        made = figures["run"]["made"]
        found.append(
            Rerun(
                label,
                figures["digest"],
                str(result.json["digest"]),
                made["source_digest"] == _core.source_digest,
                result,
            )
        )
    return found


def _label(figures: Mapping[str, Any]) -> str:
    return str(figures.get("label") or figures["config"]["name"])


def _begun(figures: Mapping[str, Any], trace: Path | None, policies: Sequence[Given]) -> Run:
    try:
        made, digest, ended = figures["run"]["made"], figures["digest"], figures["ended"]
        label, used = _label(figures), figures["policies"]
    except (KeyError, TypeError):
        raise SavedStateError(
            "result: found no digest, or nothing that says what made it, expected what `simulate --json` writes",
            "results of a replay, of a served drive, and of versions before this one can't be played again",
        ) from None
    if made is None or not isinstance(digest, str):
        raise SavedStateError(
            f"{label}: found nothing that says what made it, expected a simulated run",
            "what a device or clients do can't be played again; a recording of it can",
        )
    if ended == "interrupted":
        raise SavedStateError(
            f"{label}: found a run that was interrupted, expected one that came to its end",
            "where it stopped depends on the clock",
        )
    source = copy.deepcopy(made["source"])
    mark = None
    if "trace" in source:
        path = _trace(source["trace"], made["trace_sha256"], trace)
        source["trace"]["path"] = path
        mark = TraceMark(path)
    config, given = copy.deepcopy(figures["config"]), [find_policy(each, policies) for each in used]
    for each in used:
        *parts, name = each["key"].split(".")
        reduce(getitem, parts, config)[name] = each["replaced"]
    toml = _core.config_of_json(json.dumps(config))
    core = _core.Simulation(toml, json.dumps(source), json.dumps(made["options"]), handed(given))
    return Run(core, mark)


def _trace(spec: Mapping[str, Any], sha256: str | None, given: Path | None) -> str:
    """The file of the trace, which is the one that it was."""
    path = str(given) if given is not None else str(spec["path"])
    name = str(spec["name"]) or Path(path).name
    if given is None and name.startswith("bundled:"):
        path = workloads.bundled(name.removeprefix("bundled:")).path
    try:
        found = None if sha256 is None else digest_of_file(path)
    except OSError as error:
        raise TraceError(
            f"{path}: {reason(error)}, expected the trace {name}",
            "say where it lies now",
        ) from None
    if found != sha256:
        raise TraceError(
            f"{path}: found another content than the result was made of (SHA-256 {found}), expected {sha256}",
            "",
        )
    return path
