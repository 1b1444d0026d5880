"""The command line: each command parses, calls the library once, and renders.

One file a command, imported when that command is asked for (``root.py``). Exit status: 0 done; 1 the check that was
asked for failed; 2 bad input or configuration; 130 interrupted by Ctrl-C and 143 by SIGTERM, with what was finished
still written; 141 nobody reads standard output any more.
"""

from __future__ import annotations

import contextlib
import os
import resource
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from flashwright.cli import streams
from flashwright.errors import FlashwrightError
from flashwright.support import interrupts

if TYPE_CHECKING:
    import typer

    app: typer.Typer

__all__ = ["app", "main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit status.

    Parameters
    ----------
    arguments : sequence of str, optional
        Without the program's name; by default the process's own.
    """
    try:
        streams.prepare()
        status = run(sys.argv[1:] if arguments is None else list(arguments))
    except KeyboardInterrupt:
        status = 130
    interrupts.end_quietly()
    sys.exit(status)


def run(arguments: list[str]) -> int:
    """Run the command line and give its exit status."""
    with interrupts.heeded() as heard:
        try:
            status = _run(arguments, heard)
        except KeyboardInterrupt:
            # A second Ctrl-C, or one at the very last moment.
            status = 130
    return heard.status if status == 130 else status


def _run(arguments: list[str], heard: interrupts.Heard) -> int:
    """Carry out the command; whatever goes wrong becomes a line and an exit status."""
    try:
        status = _invoke(arguments or ["--help"])
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        _show_traceback()
        _note("interrupted")
        return 130
    except FlashwrightError as error:
        _show_traceback()
        _error(error, arguments)
        return 2
    except BrokenPipeError:
        # Whoever read our output has gone: nothing is left to say, not even on the way out.
        streams.drop_output()
        return 141
    except SystemExit as stop:
        # Rich leaves so where it meets a broken pipe.
        if isinstance(stop.__context__, BrokenPipeError):
            streams.drop_output()
            return 141
        return stop.code if isinstance(stop.code, int) else 1
    except MemoryError:
        _show_traceback()
        return _out_of_memory()
    except Exception as error:
        _show_traceback()
        if heard.number is not None:
            # Modules that are imported when they are needed take an interruption for a failure of their own.
            _note("interrupted")
            return 130
        return _out_of_memory() if _is_want_of_memory(error) else _failed(error)


def _invoke(arguments: list[str]) -> int:
    if arguments == ["--version"]:
        # Answered here, since a parser takes longer to import than all else that this needs.
        from flashwright.support.core import version_line

        print(version_line())
        return 0
    with interrupts.importing():
        from flashwright.cli import root
        from flashwright.support.arguments import check_text
    for each in arguments:
        check_text("command line", each)
    with _warnings_as_notes():
        return root.invoke(arguments)


@contextlib.contextmanager
def _warnings_as_notes() -> Iterator[None]:
    """Say what the library warns of in a line each, once; warnings of others are shown as ever."""
    with warnings.catch_warnings():
        shown = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *more: Any, **named: Any) -> None:
            if category.__module__.startswith("flashwright."):
                _note(str(message))
            else:
                shown(message, category, *more, **named)

        warnings.showwarning = show
        warnings.filterwarnings("default", ".*don't rely on this twin")
        warnings.filterwarnings("default", ".* is not saved: ")
        warnings.filterwarnings("default", "removed .*, which a process that was killed had left")
        yield


# What the system's loader, the C library and Python say where there is no memory, not all of it as a MemoryError.
_NO_MEMORY = ("failed to map segment", "annot allocate memory", "can't start new thread")
# What the system's loader says of a library that a package of Python is linked with.
_NO_LIBRARY = ": cannot open shared object file"
# Addresses that a process takes with all of our libraries, most of it never used: PyArrow alone maps 1.3 GiB.
_LIBRARIES_MIB = 1536


def _is_want_of_memory(error: BaseException | None) -> bool:
    """Whether an error, or one that it came of, says that memory has ended."""
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        if isinstance(error, MemoryError) or any(words in str(error) for words in _NO_MEMORY):
            return True
        seen.append(error)
        error = error.__cause__ or error.__context__
    return False


def _out_of_memory() -> int:
    """Say that memory has ended, and what limits it; the exit status."""
    hint = "try a smaller drive, fewer --jobs, or no --requests-out"
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    if most == resource.RLIM_INFINITY:
        _fault("out of memory", hint)
    else:
        more = f"a limit above {_LIBRARIES_MIB} MiB, which libraries take alone, or "
        _fault(
            f"out of memory: this process may take {most >> 20} MiB of addresses (`ulimit -v`)",
            hint.replace("try ", "try " + more * (most >> 20 < _LIBRARIES_MIB)),
        )
    return 2


def _failed(error: Exception) -> int:
    """Tell a failure of the system from a fault of this program; the exit status."""
    if isinstance(error, OSError):
        from flashwright.support.files import reason

        where = "the system" if error.filename is None else os.fsdecode(error.filename)
        _fault(f"{where}: {reason(error)}")
        if where == streams.STDOUT:
            streams.drop_output()
        return 2
    library, is_missing, _ = str(error).partition(_NO_LIBRARY)
    if is_missing:
        _fault(
            f"{library}: a library that Python's packages load is not on this machine",
            "install it with the system's packages: libstdc++.so.6 is in Debian's libstdc++6",
        )
        return 2
    first = next(iter(str(error).splitlines()), "")
    _fault(
        f"internal error: {type(error).__name__}{': ' if first else ''}{first}",
        f"this is a bug: please report it with the command that led here; {_TRACEBACK}=1 shows the traceback",
    )
    return 1


_TRACEBACK = "FLASHWRIGHT_TRACEBACK"


def _show_traceback() -> None:
    """For whoever looks for a fault: the exception that is being handled, in full, if asked for."""
    if os.environ.get(_TRACEBACK, "0") not in ("", "0"):
        import traceback

        traceback.print_exc()


def _fault(message: str, hint: str = "") -> None:
    from flashwright.cli.render import errors

    errors.fault(message, hint)


def _error(error: FlashwrightError, arguments: Sequence[str]) -> None:
    from flashwright.cli.render import errors

    message, hint = errors.as_typed(error)
    errors.fault(message, errors.beyond_command(hint, arguments))


def _note(message: str) -> None:
    from flashwright.cli.render import errors

    errors.note(message)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """``app``, with every command's parser."""
        if name != "app":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from flashwright.cli import root

        return root.app
