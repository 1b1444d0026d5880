"""Run the commands that README.md and the pages of docs/ show, and write beneath each what it prints.

``python tools/record_pages.py`` records all pages, with names only those: ``python tools/record_pages.py README
how-to/reserve-space``. Pages that another tool writes are left to it.

A fenced ``sh`` or ``python`` block is run as it stands. The comment above it may say ``<!-- not run: REASON -->``, or
``<!-- saved as FILE -->``, which later blocks of the page then find. A ``text`` block shows lines of what the block
before it printed; the comment above it says which, as a regular expression: ``<!-- shows: ^run|^gc -->``. ``…`` stands
for lines left out. ``<!-- shows make demo: … -->`` takes the lines from the command of that target of the Makefile.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
WRITTEN_BY_A_TOOL = "<!-- Written by "
PAGES = [
    ROOT / "README.md",
    *(
        path
        for path in sorted((ROOT / "docs").rglob("*.md"))
        if not path.read_text(encoding="utf-8").startswith(WRITTEN_BY_A_TOOL)
    ),
]
COLUMNS = 100
GAP = "…"

_BLOCK = re.compile(
    r"(?:^<!-- (?P<comment>(?:[^-]|-(?!->))*) -->\n)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
# It tells of the machine, not of the drive.
_TIMES = re.compile(r"^(simulator|player) ")


@dataclass(frozen=True)
class Block:
    """A fenced block: its kind, its text, and the comment above it."""

    kind: str
    text: str
    comment: str
    start: int
    """Where its text begins, in characters of the page."""

    @property
    def why_not_run(self) -> str | None:
        """Why a block of commands is not run; None if it is."""
        return self._said("not run: ")

    @property
    def saved_as(self) -> str | None:
        """The file that the block is, for later blocks of the page; None if it is none."""
        return self._said("saved as ")

    def _said(self, prefix: str) -> str | None:
        return self.comment.removeprefix(prefix) if self.comment.startswith(prefix) else None

    @property
    def shows(self) -> tuple[str | None, str] | None:
        """The target of the Makefile, if one is named, and the expression for the lines shown."""
        found = re.fullmatch(r"shows(?: make (\w+))?: (.*)", self.comment)
        return None if found is None else (found[1], found[2])


@dataclass(frozen=True)
class Example:
    """A block of commands and the block that shows what it prints."""

    commands: str
    shown: Block | None
    expression: str = ""


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    return [
        Block(found["kind"], found["text"], (found["comment"] or "").strip(), found.start("text"))
        for found in _BLOCK.finditer(page)
    ]


def name_of(path: Path) -> str:
    """What a page is called: its path below docs/ without its ending."""
    below = path.relative_to(ROOT / "docs") if path.is_relative_to(ROOT / "docs") else path
    return below.with_suffix("").as_posix().removeprefix(f"{ROOT.as_posix()}/")


def not_run(page: str) -> list[str]:
    """Why blocks of commands are not run."""
    return [b.why_not_run for b in blocks(page) if b.why_not_run is not None]


def examples(page: str) -> list[Example]:
    """What is to be run, and which lines are shown of it.

    Raises
    ------
    ValueError
        If a block shows lines and nothing says of what.
    """
    found: list[Example] = []
    files = ""
    for block in blocks(page):
        if block.saved_as is not None:
            files += f"cat > {shlex.quote(block.saved_as)} <<'SAVED'\n{block.text}SAVED\n"
            continue
        if block.kind in ("sh", "python") and block.why_not_run is None:
            script = (
                block.text if block.kind == "sh" else f"python - <<'PYTHON'\n{block.text}PYTHON\n"
            )
            found.append(Example(files + script, None))
        elif block.kind == "text" and block.shows is not None:
            target, expression = block.shows
            if target is not None:
                found.append(Example(_recipe(target), block, expression))
            elif found and found[-1].shown is None:
                found[-1] = Example(found[-1].commands, block, expression)
            else:
                raise ValueError(f"no command stands before the block that shows {expression!r}")
    return found


def _recipe(target: str) -> str:
    lines = (ROOT / "Makefile").read_text(encoding="utf-8")
    body = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", lines, re.MULTILINE)
    assert body is not None, target
    return "".join(
        line.removeprefix("\t").removeprefix("@").replace("$(BIN)/", "") + "\n"
        for line in body[1].splitlines()
    )


def run(commands: str) -> str:
    """What commands print, run in a folder of their own that looks like the repository.

    Raises
    ------
    RuntimeError
        If one of them fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        for name in ("experiments", "examples", "docs"):
            (Path(folder) / name).symlink_to(ROOT / name)
        python = shlex.quote(sys.executable)
        script = (
            f'set -e\nflashwright() {{ {python} -m flashwright "$@"; }}\npython() {{ {python} "$@"; }}\n'
            + commands
        )
        environment = os.environ | {
            "COLUMNS": str(COLUMNS),
            "NO_COLOR": "1",
            # Scripts that the commands write call it too, where functions of this shell do not reach.
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "PYTHONPATH": os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")]),
        }
        said, faults = Path(folder) / ".stdout", Path(folder) / ".stderr"
        with said.open("w") as out, faults.open("w") as err:
            # A group of its own: where a command fails, those in the background would go on.
            shell = subprocess.Popen(
                ["bash", "-c", script],
                stdout=out,
                stderr=err,
                cwd=folder,
                env=environment,
                start_new_session=True,
            )
            try:
                status = shell.wait()
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(shell.pid, signal.SIGKILL)
        if status:
            raise RuntimeError(f"{commands}exit status {status}\n{faults.read_text()}")
        return said.read_text()


def selected(output: str, expression: str) -> str:
    """The lines of an output that match, with a mark where others are left out between them."""
    shown: list[str] = []
    skipped = False
    for line in output.splitlines():
        if _TIMES.match(line) or not re.search(expression, line):
            skipped = skipped or bool(line.strip(" ─"))
            continue
        if skipped and shown and line.strip():
            shown.append(GAP)
        skipped = False
        shown.append(line.rstrip())
    return "\n".join(shown).strip("\n") + "\n"


def main() -> int:
    """Record; 1 if a command fails, whose page then keeps its outputs of before."""
    wanted = sys.argv[1:]
    failed = 0
    for path in PAGES:
        if wanted and name_of(path) not in wanted:
            continue
        page = path.read_text(encoding="utf-8")
        made, at = "", 0
        try:
            for each in examples(page):
                if each.shown is not None:
                    new = selected(run(each.commands), each.expression)
                    made += page[at : each.shown.start] + new
                    at = each.shown.start + len(each.shown.text)
        except (RuntimeError, ValueError) as error:
            failed += 1
            print(f"{path.name}: {error}", file=sys.stderr)
        else:
            path.write_text(made + page[at:], encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
