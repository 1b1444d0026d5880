"""Everything that can go wrong, as exceptions; the compiled core raises these too.

Each has a message of one line (one line a fault where several were found) that says where, what was
found and what is allowed, and a ``hint`` that says what to try. Both call parameters by their names in Python;
``parameters`` lists them, and the command line turns them into its options.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

__all__ = [
    "ArgumentError",
    "ConfigError",
    "DeviceError",
    "FlashwrightError",
    "InternalError",
    "Interrupted",
    "MissingPackageError",
    "MissingResultError",
    "OutOfSpaceError",
    "OutputError",
    "PolicyError",
    "SavedStateError",
    "ServeError",
    "SweepError",
    "TargetError",
    "TraceError",
    "VerifyError",
    "WorkloadError",
    "WornOutError",
]


class FlashwrightError(Exception):
    """The root of all exceptions of this package.

    Parameters
    ----------
    message : str
        What is wrong, and where.
    hint : str, optional
        What to try; the class brings a general one.
    parameters : sequence of str, optional
        The parameters that the message and the hint name.

    Examples
    --------
    >>> from flashwright import Ssd
    >>> try:
    ...     Ssd.named("default").with_({"gc.victim": "gredy"})
    ... except FlashwrightError as error:
    ...     print(error)
    gc.victim: found "gredy", expected greedy...; did you mean "greedy"?
    """

    general_hint: ClassVar[str] = ""
    general_parameters: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self, message: str, hint: str | None = None, *, parameters: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.hint = self.general_hint if hint is None else hint
        self.parameters = (*parameters, *(self.general_parameters if hint is None else ()))


class ArgumentError(FlashwrightError, TypeError):
    """A call was given something else than its signature takes."""

    general_hint = "`help(...)` of the call says what it takes"


class ConfigError(FlashwrightError):
    """A drive's description can't be used; the message names everything that is wrong."""

    general_hint = "`flashwright devices default` prints a whole drive description"


class WorkloadError(FlashwrightError):
    """A workload, precondition or setting of a run can't be read or does not fit the drive."""

    general_hint = "`flashwright policies` lists the workloads with their keys"


class TraceError(FlashwrightError):
    """A trace can't be read, does not fit the drive, or can't be written."""

    general_hint = "`flashwright trace info FILE` shows what is in a trace; see also format=, columns= and addresses="
    general_parameters = ("format", "columns", "addresses")


class DeviceError(FlashwrightError):
    """The drive refused a request."""


class WornOutError(DeviceError):
    """The drive could not take a write that it had to take, such as one of its preconditioning."""

    general_hint = (
        "give it more spare space (capacity.utilization) or endurance (wear.pe-cycles-max)"
    )


class VerifyError(DeviceError):
    """A read gave back something else than was last written, or the drive's state contradicts itself."""

    general_hint = (
        "this is a bug of the simulator: please report it with the command or script that led here"
    )


class PolicyError(FlashwrightError):
    """A policy written in Python can't be taken, raised an exception, or answered what can't be done.

    The exception that it raised is its ``__cause__``, with the traceback.
    """

    general_hint = "docs/how-to/policies-in-python.md says what a policy is asked and may answer"


class OutOfSpaceError(PolicyError):
    """A translation layer written in Python can't place what the host writes; its ``write`` raises it.

    The run then ends as that of a native layer that is full or at the end of its life, with the state of the blocks.

    Parameters
    ----------
    message : str, optional
        For whoever calls the layer by hand; the run tells of its blocks.
    """

    def __init__(self, message: str = "no page can be placed") -> None:
        super().__init__(message)


class TargetError(FlashwrightError):
    """A device or a file can't be played on, or must not be written to."""

    general_hint = "TARGET is a block device, a file, or sim:DEVICE"


class SavedStateError(FlashwrightError):
    """A saved run can't be read."""

    general_hint = "run it again from the start"


class ServeError(FlashwrightError):
    """A drive can't be served as was asked, or a server can't be reached."""

    general_hint = "`flashwright serve --help` lists the options"


class SweepError(FlashwrightError):
    """The file of a sweep has a fault, or its points can't be computed as was asked."""

    general_hint = (
        "docs/reference/sweep-file.md describes the file and the ways to compute its points"
    )


class OutputError(FlashwrightError):
    """A file can't be written."""

    general_hint = "check that the folder exists and may be written to"


class MissingPackageError(FlashwrightError):
    """A package that only some calls need is not installed."""

    general_hint = "install it beside Flashwright"


class MissingResultError(FlashwrightError, KeyError):
    """There is no result of that name."""

    # KeyError shows what it is given as Python writes it.
    __str__ = FlashwrightError.__str__


class Interrupted(KeyboardInterrupt):
    """Ctrl-C while something long was going; what was finished is the ``result``.

    It is a ``KeyboardInterrupt`` and no :class:`FlashwrightError`, for nothing went wrong: code that catches the latter
    and goes on, say with the next of several drives, still ends on Ctrl-C.

    Examples
    --------
    >>> issubclass(Interrupted, KeyboardInterrupt), issubclass(Interrupted, Exception)
    (True, False)
    """


class InternalError(FlashwrightError):
    """The compiled core met a state that it holds for impossible."""

    general_hint = "this is a bug: please report it with the command or script that led here"
