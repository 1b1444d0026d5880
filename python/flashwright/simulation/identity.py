"""What a run depends on, and names by which runs that differ can be told apart.

Runs are the same where all that they depend on is: the drive, its policies with their source and parameters, what is
played and how it is read, the seed and the other settings. Names are for people: where several that differ would have
the same one, each gets what it differs in (a parameter, a part of its path), or a number.
"""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from collections.abc import Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Any

from flashwright.drive import policies
from flashwright.simulation.run import RunSettings
from flashwright.support.names import distinct_names
from flashwright.traces import workloads
from flashwright.traces.tenants import Load, Tenants

__all__ = ["beginning_of_run", "identity_of", "identity_of_run", "name_of", "names_of", "plain"]


def name_of(source: Load) -> str:
    """What a workload is called among what is varied.

    Examples
    --------
    >>> name_of(workloads.uniform(write=0.5)), name_of(workloads.bundled("pgbench"))
    ('uniform:write=0.5', 'bundled:pgbench')
    """
    if isinstance(source, workloads.Workload | Tenants):
        return source.spec
    return source.name or source.path


def plain(value: object) -> object:
    """A value that is varied, as tables and JSON can have it: a policy or a workload by its name."""
    if isinstance(value, policies.Policy | type):
        return policies.name_of(value)
    return (
        name_of(value)
        if isinstance(value, workloads.Workload | workloads.Trace | Tenants)
        else value
    )


def identity_of(value: object) -> str:
    """What a value that is varied makes of a run, as text: equal for values that make the same run.

    Examples
    --------
    >>> identity_of(workloads.uniform(write=0.5)) == identity_of(workloads.parse("uniform:write=50%"))
    True
    """
    if isinstance(value, policies.Policy | type):
        return policies.identity_of(value)
    if isinstance(value, workloads.Workload):
        return value.spec
    if isinstance(value, workloads.Trace):
        spec = json.loads(value.spec_json())
        return json.dumps({**spec, "name": "", "path": os.path.abspath(value.path)})
    if isinstance(value, Tenants):
        own = [[identity_of(each.source), {**each.to_json(), "source": None}] for each in value.all]
        return json.dumps([own, value.alone, value.compared])
    return json.dumps(value, default=repr)


def identity_of_run(
    toml: str, preconditioning: str | None, source: Load, settings: RunSettings
) -> str:
    """What a run depends on, as a digest.

    Parameters
    ----------
    toml : str
        The drive's configuration.
    preconditioning : str or None
        What is done to it first.
    source : Workload or Trace
        What is played.
    settings : RunSettings
        All else, policies written in Python included.

    Examples
    --------
    >>> run = "", "empty", workloads.uniform()
    >>> identity_of_run(*run, RunSettings(seed=1)) == identity_of_run(*run, RunSettings(seed=2))
    False
    """
    own = {
        each.name: getattr(settings, each.name)
        for each in fields(settings)
        if each.name != "policies"
    }
    parts = [
        toml,
        preconditioning or "empty",
        identity_of(source),
        own,
        [policies.identity_of(policy) for policy in settings.policies],
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def beginning_of_run(
    toml: str, preconditioning: str | None, source: object, seed: int, verify: bool
) -> str:
    """What the preconditioned drive of a run depends on, as a hash; empty for drives that are not preconditioned.

    Runs for which it is equal may begin with the same drive; whether they do is for the simulator to decide.

    Parameters
    ----------
    toml : str
        The drive's configuration.
    preconditioning : str or None
        What is done to it first.
    source : object
        What is played, as JSON can hold it.
    seed : int
        The seed of the run.
    verify : bool
        Whether reads are checked.

    Examples
    --------
    >>> beginning_of_run("", "random", "uniform", 1, False) == beginning_of_run("", "random", "zipf", 1, False)
    True
    >>> beginning_of_run("", "workload", "uniform", 1, False) == beginning_of_run("", "workload", "zipf", 1, False)
    False
    """
    if preconditioning in (None, "empty"):
        return ""
    drive, host = _state_of_drive(toml)
    beginning: list[object] = [drive, preconditioning, seed, verify]
    if str(preconditioning).startswith(("auto", "workload")):
        beginning += [source, host]
    text = json.dumps(beginning, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@lru_cache(maxsize=1024)
def _state_of_drive(text: str) -> tuple[str, str]:
    """The parts of a configuration: what preconditioning depends on, and what it does if the workload preconditions."""
    drive = tomllib.loads(text)
    host = [drive.pop("host", {}), drive.pop("controller", {})]
    host[0].pop("queue-depth", None)
    drive.pop("name", None)
    first, second = (json.dumps(part, sort_keys=True, default=str) for part in (drive, host))
    return first, second


def names_of(values: Sequence[object]) -> list[object]:
    """What each of some values is called; those that differ have different names.

    Numbers and plain texts stay what they are. Policies of the same name are told apart by the parameters in which they
    differ, or by their files; traces by how they are read.

    Parameters
    ----------
    values : sequence
        Of one key that is varied.

    Examples
    --------
    >>> trace = workloads.bundled("pgbench")
    >>> names_of(["uniform", trace, workloads.trace("bundled:pgbench", addresses="dense")])
    ['uniform', 'bundled:pgbench (addresses=None)', 'bundled:pgbench (addresses=dense)']
    """
    names = [plain(value) for value in values]
    named = [at for at, value in enumerate(values) if names[at] is not value]
    unlike = distinct_names(
        [str(names[at]) for at in named],
        [identity_of(values[at]) for at in named],
        [_details(values[at]) for at in named],
    )
    for at, name in zip(named, unlike, strict=True):
        names[at] = name
    return names


def _details(value: object) -> dict[str, object]:
    """What is known of a policy or a workload."""
    if isinstance(value, policies.Policy | type):
        return policies.details_of(value)
    if isinstance(value, workloads.Trace):
        own: dict[str, Any] = {each.name: getattr(value, each.name) for each in fields(value)}
        del own["name"]
        return {**own, "path": os.path.abspath(value.path)}
    return {}
