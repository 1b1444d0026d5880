"""Drives: a description, what is done to it first, and playing a workload on it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from flashwright.drive.description import config_of, devices, keys_of
from flashwright.drive.drivefiles import read_file, read_text
from flashwright.errors import ArgumentError, ConfigError
from flashwright.simulation.results import RunResult
from flashwright.simulation.run import PlaySettings, Run, RunSettings, describes_options
from flashwright.support.arguments import checked, plain
from flashwright.support.core import _core
from flashwright.support.files import is_file
from flashwright.support.progress import Progress
from flashwright.traces import workloads
from flashwright.traces.tenants import Load, Tenant, as_load

__all__ = ["Ssd"]


@dataclass(frozen=True)
class Ssd:
    """A drive as described: its configuration and what is done to it before a run.

    Values of this type never change, can be compared, hashed and pickled, and hold no state of a run:
    each run builds its drive anew.

    Attributes
    ----------
    toml : str
        The whole configuration, every default written out.
    preconditioning : str or None
        What is done to the drive before a run. None leaves it to the call: :meth:`play` begins with an erased drive;
        :func:`flashwright.compare`, :func:`flashwright.advise` and sweeps take ``"auto"``.

    Examples
    --------
    >>> ssd = Ssd.named("default").with_(victim="fifo")
    >>> ssd
    Ssd(4 GiB, 4 channels x 2 dies, page, victim=fifo)
    >>> run = ssd.precondition("sequential").play("uniform:write=0.7", requests=20_000, depth=8)
    >>> run.json["measured"]["requests"]
    20000
    """

    toml: str
    preconditioning: str | None = None

    @classmethod
    @checked()
    def named(cls, name: str) -> Ssd:
        """A bundled drive.

        Parameters
        ----------
        name : str
            One of :func:`devices`.

        Raises
        ------
        ConfigError
            If there is none of that name.
        """
        return cls(_core.config_bundled(name))

    @classmethod
    @checked()
    def find(cls, name: str) -> Ssd:
        """A bundled drive, or the one in a TOML file.

        Parameters
        ----------
        name : str
            One of :func:`devices`, or the path of a file.

        Raises
        ------
        ConfigError
            If it is neither, or with every fault of the file.
        """
        if name not in devices() and ("/" in name or name.endswith(".toml") or is_file(name)):
            return cls.from_toml(name)
        try:
            return cls.named(name)
        except ConfigError as error:
            raise ConfigError(
                f"drive: {error}", "a drive is one of these names or the path of a TOML file"
            ) from None

    @classmethod
    @checked()
    def from_toml(cls, path: str | os.PathLike[str]) -> Ssd:
        """A drive described in a TOML file; what it leaves out takes its default.

        Parameters
        ----------
        path : path
            The file. Its key ``base`` may name what to start from: a bundled drive, or a file, by a path that is
            relative to this one (``./mine.toml``). Of a profile, the twin is taken, whose schedulers go by what was
            found (:class:`flashwright.Profile`).

        Raises
        ------
        ConfigError
            With every fault of the file.
        """
        return cls(read_file(Path(path)))

    @classmethod
    def from_text(cls, text: str, name: str = "text") -> Ssd:
        r"""A drive described in TOML text.

        Parameters
        ----------
        text : str
            The description; what it leaves out takes its default.
        name : str, optional
            What messages call it.

        Examples
        --------
        >>> Ssd.from_text("[geometry]\nchannels = 8").config["geometry"]["channels"]
        8
        """
        return cls(read_text(text, name, name))

    @property
    def config(self) -> dict[str, Any]:
        """The configuration as nested dicts; sizes and times are text with their unit.

        What the description leaves to the translation layer (``gc.victim = "default"``) has its name here.
        """
        return config_of(self.toml)

    @property
    def name(self) -> str:
        """The drive's short name, for reports."""
        return str(self.config["name"])

    @checked()
    def with_(self, settings: Mapping[str, object] | None = None, /, **by_name: object) -> Ssd:
        """The same drive with some settings changed.

        Parameters
        ----------
        settings : mapping, optional
            Values by dotted key, such as ``{"gc.victim": "fifo"}``.
        **by_name
            Values by the last part of the key, with ``_`` for ``-``, where only one key ends so:
            ``victim="fifo"``, ``pages_per_block=256``, ``utilization=0.8``.

        Returns
        -------
        Ssd

        Raises
        ------
        ConfigError
            With everything that is wrong with the settings.

        Examples
        --------
        >>> Ssd.named("default").with_({"timing.read": "75 us"}, channels=2)
        Ssd(2 GiB, 2 channels x 2 dies, page, victim=greedy)
        """
        changes = dict(settings or {})
        changes.update({self._full_key(name): value for name, value in by_name.items()})
        try:
            return self.with_settings(
                [f"{key}={_toml(key, value)}" for key, value in changes.items()]
            )
        except ConfigError as error:
            raise ConfigError(str(error).replace("settings: ", "")) from None

    @checked()
    def with_settings(self, settings: Iterable[str]) -> Ssd:
        """The same drive with settings given as the command line takes them.

        Parameters
        ----------
        settings : iterable of str
            Texts of the form ``KEY=VALUE``, with dotted keys.

        Examples
        --------
        >>> Ssd.named("default").with_settings(["gc.victim=fifo"])
        Ssd(4 GiB, 4 channels x 2 dies, page, victim=fifo)
        """
        listed = list(settings)
        for each in listed:
            if not isinstance(each, str):
                raise ArgumentError(f"with_settings: settings: found {each!r:.40}, expected text")
        try:
            return replace(self, toml=_core.config_with(self.toml, listed))
        except ConfigError as error:
            raise of_settings(error) from None

    def _full_key(self, name: str) -> str:
        last = name.replace("_", "-")
        found = [path for path in keys_of(self.config) if path == last or path.endswith("." + last)]
        if len(found) == 1:
            return found[0]
        if not found:
            return last
        raise ConfigError(f"{name}: could be {' or '.join(found)}; give the dotted key in a dict")

    @checked()
    def precondition(self, spec: str) -> Ssd:
        """The same drive, preconditioned before each run. No time passes and nothing of it is measured.

        Parameters
        ----------
        spec : str
            ``workload``: filled once, then the workload itself, not measured, until write amplification has settled
            under it. ``auto``: ``workload`` where that can be played beforehand, else ``sequential``. ``empty``: an
            erased drive.
            ``sequential``: filled once, in order. ``random``, ``random:capacities=3``: one bare fill in random order,
            then uniform writes. ``workload:scaled``: as ``workload``, but begun as a copy of a small drive that has
            settled. ``steady``: uniform writes until the SNIA's rule holds.
            ``steady:laid-out``: that state, laid out as theory describes it; for large drives.

        Returns
        -------
        Ssd

        Examples
        --------
        >>> Ssd.named("default").precondition("random:capacities=3").preconditioning
        'random:capacities=3'
        """
        return replace(self, preconditioning=_core.precondition_read(spec))

    def settling(self) -> Ssd:
        """The same drive, preconditioned by ``auto`` if nothing was said: for answers that are about settled drives.

        Examples
        --------
        >>> ssd = Ssd.named("default")
        >>> ssd.settling().preconditioning, ssd.precondition("empty").settling().preconditioning
        ('auto', 'empty')
        """
        return self if self.preconditioning is not None else self.precondition("auto")

    def untimed(self) -> Ssd:
        """The same drive without times, where that changes no decision of its translation layer: for wear alone.

        Which operation a die takes next is left out with the times. A drive that cleans when it is idle, or whose
        buffers empty with time, keeps them.

        Examples
        --------
        >>> Ssd.named("enterprise-tlc").untimed().config["timing"]["model"]
        'none'
        >>> Ssd.named("default").with_({"gc.schedule": "background"}).untimed().config["timing"]["model"]
        'parallel'
        """
        plain = self.with_({"timing.model": "none", "timing.die-order": "fifo"})
        try:
            plain.check()
        except ConfigError:
            return self
        return plain

    def check(self) -> None:
        """Find out whether the drive can be built, which reading its description does not show.

        Raises
        ------
        ConfigError
            With every fault found.
        """
        _core.config_check(self.toml)

    @checked(policies=None)
    @describes_options
    def play(
        self,
        workload: Load | str | Iterable[Tenant | workloads.Source | str],
        *,
        progress: Callable[[Progress], None] | None = None,
        **settings: Unpack[PlaySettings],
    ) -> RunResult:
        """Play a workload on the drive.

        Parameters
        ----------
        workload : Workload, Trace, Tenants, iterable or str
            What to play; text as ``--workload`` takes it, or ``"bundled:NAME"``. Several of them, or
            :class:`~flashwright.traces.tenants.Tenant`, or texts as ``--tenant`` takes them, are played at once, and
            each alone too, to compare with (``Tenants.of(…, compared=False)`` leaves that out).
        progress : callable, optional
            Called a few times a second.
        **settings
            Those of :class:`~flashwright.simulation.run.PlaySettings`, as follows.
        OPTIONS
        policies : sequence, optional
            Policies written in Python (:mod:`flashwright.policies`), classes or objects, at most one of each kind. Each
            takes the place of the one that the drive's configuration names.

        Returns
        -------
        RunResult

        Raises
        ------
        FlashwrightError
            If the drive, the workload or a setting does not fit; a :class:`flashwright.errors.PolicyError` if a policy
            raises, or answers what can't be done.
        RunInterrupted
            On Ctrl-C, with the result of what was finished; it is a ``KeyboardInterrupt``.

        Examples
        --------
        >>> ssd = Ssd.named("default")
        >>> run = ssd.play(workloads.uniform(), requests=10_000, seed=7)
        >>> run.write_amplification, run.settled.verdict  # the drive began empty
        (1.0, 'transient')
        """
        source = as_load(workload)
        made = RunSettings(**settings)
        return Run.create(self.toml, self.preconditioning or "empty", source, made).go(
            progress=progress
        )

    def __repr__(self) -> str:
        c = self.config
        g = c["geometry"]
        page = _bytes(g["page-size"])
        dies = g["channels"] * g["dies-per-channel"]
        flash = dies * g["planes-per-die"] * g["blocks-per-plane"] * g["pages-per-block"] * page
        return (
            f"Ssd({_size(flash)}, {g['channels']} channels x {g['dies-per-channel']} dies, "
            f"{c['ftl']['scheme']}, victim={c['gc']['victim']})"
        )


def of_settings(error: ConfigError) -> ConfigError:
    """What the core says of settings in the command line's words, in those of Python."""
    return ConfigError(
        str(error).replace("--set: ", "settings: "), error.hint, parameters=["settings"]
    )


def _toml(key: str, value: object) -> str:
    number = plain(value)
    try:
        return str(number) if isinstance(number, float) else json.dumps(number)
    except (TypeError, ValueError):
        raise ArgumentError(f"{key}: found {value!r}, expected text or a number") from None


_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def _bytes(text: str) -> int:
    """Bytes of a size as the core writes it."""
    number, unit = text.split()
    return round(float(number) * _UNITS[unit])


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} TiB"
