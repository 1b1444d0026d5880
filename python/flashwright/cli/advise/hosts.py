"""``flashwright advise host``: advice for a drive's host, and the files that hold it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flashwright._core import __version__
from flashwright.advice.files import write_files
from flashwright.advice.lines import HostAdvice
from flashwright.cli.advise.options import HostOptions
from flashwright.cli.outputs import ResultOptions
from flashwright.cli.render import Shown, errors, page, put_json, put_page, units
from flashwright.drive.description import devices
from flashwright.drive.profilefile import is_profile
from flashwright.drive.trust import warn_of_twin
from flashwright.support.files import is_file
from flashwright.twin.profile import Profile

__all__ = ["host_alone_advice", "read_profile", "show_host", "write"]


def read_profile(device: str) -> Profile | None:
    """The profile in the file of that name; None if that is no file or none of a profile."""
    path = Path(device)
    if device in devices() or not is_file(device):
        return None
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        # Whoever reads it as a drive says so.
        return None
    return Profile.from_text(text, device) if is_profile(text) else None


def write(hosted: HostAdvice | None, options: HostOptions) -> list[Path]:
    """Write the files that were asked for, and say which."""
    if hosted is None or options.write_to is None:
        return []
    return write_files(hosted, options.write_to, force=options.force)


def host_alone_advice(hosted: HostAdvice, options: HostOptions, output: ResultOptions) -> int:
    """Advice for the host from a profile, without a run."""
    twin = hosted.profile.twin
    if twin is not None:
        # None of this rests on it, but whoever reads the profile is told.
        warn_of_twin(hosted.profile.twin_record, hosted.profile.target.name)
    document: dict[str, Any] = {
        "version": __version__,
        "config": None if twin is None else twin.config,
        "workload": None,
        "precondition": None,
        "seed": None,
        "targets": [],
        "points": [],
        "knee": None,
        "knee_rule": None,
        "recommended": None,
        "nearest": [],
        "undecided": [],
        "failures": {},
        "notes": [],
        "warnings": [],
        "host_advice": hosted.document(),
    }
    written = write(hosted, options)
    put_json(document, output.json)

    def shown() -> Shown:
        from flashwright.advice.pages import host_advice_page

        return host_advice_page(hosted, document)

    put_page(shown, output)
    if not output.silent:
        page.console().print(page.grid([("advise", hosted.profile.target.name)]))
        show_host(hosted)
    if not output.quiet:
        for path in written:
            errors.note(f"wrote {path}")
    return 0


def show_host(hosted: HostAdvice) -> None:
    """Print what a drive's host should do."""
    out = page.console()
    table = page.plain_table(
        page.Column("for the host", 100, number=False),
        page.Column("advice", 100, number=False),
        page.Column("rests on", 50, number=False),
        page.Column("source", 55, number=False),
        page.Column("confidence", 60),
    )
    for line in hosted.lines:
        sure = "" if line.confidence is None else units.share(line.confidence)
        table.add_row(line.topic, line.text, ", ".join(line.rests_on), line.source, sure)
    out.print(table)
    commands = [command for line in hosted.lines for command in line.commands]
    if commands:
        out.print("commands, which nobody has run:")
        for command in commands:
            # Unfolded, so that they can be copied.
            out.print(f"  {command}", soft_wrap=True)
