"""Write the reference pages from what the program knows of itself, or say which of them are stale.

``make generate`` writes them; ``make check`` fails where one is stale.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

# Before the command line is imported: help is as wide as a page, whatever the terminal.
os.environ.update(COLUMNS="100", TERMINAL_WIDTH="100", NO_COLOR="1")

from option_files import for_command_line, for_python
from schema_pages import rows_of_figures, types_of

from flashwright import _core, cli
from flashwright.characterization import EXPERIMENTS
from flashwright.cli.root import COMMANDS, load
from flashwright.drive import mqsim as other
from flashwright.drive.catalogue import catalogue, shared_keys
from flashwright.drive.description import devices
from flashwright.endurance.smart import names
from flashwright.probing.confidence import caps
from flashwright.probing.limits import PART_TEXT, READS_TEXT
from flashwright.probing.probes import PROBES
from flashwright.simulation.ssd import Ssd
from flashwright.target.question import UNTESTED, of_the_whole, reads_alone

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs"
EXAMPLES = ROOT / "examples"
FAMILIES = ROOT / "tests" / "python" / "smart" / "families.csv"
PACKAGE = ROOT / "python" / "flashwright"
TYPES = PACKAGE / "simulation" / "run_report.py"
HEAD = "<!-- Written by `make generate`; change the code instead. -->\n\n"


def command_paths() -> list[tuple[str, ...]]:
    """The words of every command: the program, each command, each command of a group."""
    paths: list[tuple[str, ...]] = [()]
    for name in (name for group in COMMANDS.values() for name in group):
        command = load(name)
        listed = getattr(command, "commands", {})
        below = [each for each in listed if not listed[each].hidden]
        paths += [(name, each) for each in below] if below else [(name,)]
    return paths


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    cells = ([str(cell).replace("|", "\\|") for cell in line] for line in lines)
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)


def commands() -> str:
    """What each command takes, as its help says it."""
    page = "# Commands\n\n"
    for command in command_paths():
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            cli.run([*command, "--help"])
        text = "\n".join(line.rstrip() for line in said.getvalue().strip().splitlines())
        page += f"## `{' '.join(('flashwright', *command))}`\n\n```text\n{text}\n```\n\n"
    return page.rstrip() + "\n"


def policies() -> str:
    """Everything that can be chosen by name."""
    page = "# What can be chosen by name\n\n`flashwright policies` prints this.\n"
    for key, items in catalogue().items():
        if key != "--workload":
            rows = [(f"`{item.name}`", item.about) for item in items]
            page += f"\n## `{key}`\n\n{table(('name', 'description'), rows)}"
    return page


def workloads() -> str:
    """The generators with their keys."""
    page = (
        "# Workloads\n\nA workload is written `name` or `name:key=value,key=value`. "
        "Each takes keys of its own. Programs above a file system wait for the drive; they pace themselves and take "
        "the file system's keys. All others take those at the end of this page.\n"
    )
    generators = json.loads(_core.workloads())
    programs = [each for each in generators if each["interactive"]]
    others = [each for each in generators if not each["interactive"]]

    def keys(each: dict[str, Any], shared: bool) -> str:
        common = shared_keys(programs if each["interactive"] else others)
        rows = [
            (
                f"`{key['name']}`",
                key["allowed"],
                f"`{key['default']}`" if key["default"] else "",
                key["help"],
            )
            for key in each["keys"]
            if (key["name"] in common) == shared
        ]
        return "\n" + table(("key", "takes", "default", "meaning"), rows) if rows else ""

    for each in generators:
        page += f"\n## `{each['name']}`\n\n{each['about'][:1].upper()}{each['about'][1:]}.\n{keys(each, False)}"
    page += "\n## Keys of the file system below a program\n" + keys(programs[0], True)
    return page + "\n## Keys of all that are no programs\n" + keys(others[0], True)


def settings() -> str:
    """Every key of a drive's description."""
    page = (
        "# Settings of a drive\n\nA drive is a TOML file with these keys, or a bundled drive "
        "([drives](drives.md)) with "
        "some of them changed by `--set KEY=VALUE`. `flashwright devices NAME` prints a drive with every key; "
        "`flashwright schema config` prints this page as a JSON schema. A file may begin with "
        '`base = "NAME"`, a bundled drive or another file, and then holds only what differs from it.\n\n'
        "Every value is checked before a run: a value out of its range is refused with a line that says what was found "
        "and what is expected.\n\n"
    )
    known = json.loads(_core.settings())
    abouts = {
        f"{key.rpartition('.')[0]}.{item.name}": (key, item)
        for key, items in catalogue().items()
        for item in items
        if "." in key
    }
    sections = []
    for each in known["tables"]:
        name = each["path"]
        keys = [key for key in known["keys"] if key["path"].rpartition(".")[0] == name]
        if not keys:
            continue
        title = f"`[{name}]`" if name else "Top-level keys"
        page += f"- [{title}](#{_heading_anchor(title)})\n"
        text = f"\n## {title}\n\n"
        if name in abouts:
            chooser, item = abouts[name]
            text += f'For `{chooser} = "{item.name}"`: {item.about}.\n\n'
        elif name:
            about = each["about"].removeprefix(f"`[{name}]`").removeprefix(":").strip()
            text += f"{about[:1].upper()}{about[1:]}\n\n" if about else ""
        rows = [
            (
                f'<a id="{key["path"]}"></a>`{key["path"]}`',
                _meaning(key),
                _taken(key),
                _quoted(key["default"]) or "left open",
                key["range"] or "",
            )
            for key in keys
        ]
        sections.append(text + table(("key", "meaning", "takes", "default", "range"), rows))
    return page + "".join(sections)


def _heading_anchor(title: str) -> str:
    """The anchor that a heading gets."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def _meaning(key: dict[str, Any]) -> str:
    """What a key means, and what each of its words does."""
    words = [f"`{name}`: {about}" for name, about in key["choices"] if about]
    return " ".join([key["about"], *words])


def _taken(key: dict[str, Any]) -> str:
    """What a key takes, in words."""
    kinds = {
        "flag": "`true` or `false`",
        "whole": "whole number",
        "real": "number",
        "time": "time",
        "size": "size",
        "rate": "rate",
        "text": "text",
    }
    taken = (
        key["takes"]
        or kinds.get(key["kind"])
        or ", ".join(f"`{name}`" for name, _ in key["choices"])
    )
    return f"{taken}, or `{key['or']}`" if key["or"] else taken


def _quoted(value: str) -> str:
    """A value as code; nothing for none."""
    return f"`{value}`" if value else ""


def drives() -> str:
    """The bundled drives: what each is, and what of it differs from the defaults, with its source."""
    page = (
        "# Bundled drives\n\nEach drive with the settings in which it differs from the defaults; what each key means "
        "is in [the settings](settings.md). `flashwright devices NAME` prints a drive with every key.\n"
    )
    defaults = {
        key["path"]: tomllib.loads(f"value = {key['default']}")["value"]
        for key in json.loads(_core.settings())["keys"]
        if key["default"]
    }
    texts = dict(_core.devices())
    for name in devices():
        drive = Ssd.named(name)
        origins = _origins(texts[name])
        rows = [
            (
                f"[`{key}`](settings.md#{key})",
                f"`{json.dumps(value)}`",
                f"`{json.dumps(defaults[key])}`" if key in defaults else "left open",
                origins.get(key, ""),
            )
            for key, value in _leaves(tomllib.loads(drive.toml))
            if key not in ("name", "about") and value != defaults.get(key)
        ]
        page += f"\n## `{name}`\n\n{drive.config['about'].strip()}\n\n"
        head = ("key", "value", "default", "source")
        page += table(head, rows) if rows else "Every setting is the default.\n"
    return page


def _leaves(tree: dict[str, Any], path: str = "") -> Iterable[tuple[str, Any]]:
    """Every value of a TOML tree with its dotted key."""
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{path}{name}.")
        else:
            yield path + name, value


def _origins(text: str) -> dict[str, str]:
    """Where each value of a drive's file comes from: the comment in its line."""
    found, section = {}, ""
    for line in text.splitlines():
        if heading := re.match(r"\[([\w.-]+)\]", line):
            section = heading[1] + "."
        elif setting := re.match(r"([\w-]+) = [^#]*#\s*(.+)", line):
            found[section + setting[1]] = setting[2]
    return found


def mqsim() -> str:
    """The elements of MQSim's files, and what they become."""
    page = (
        "# Elements of MQSim\n\n`flashwright convert mqsim` reads these "
        "([how](../how-to/coming-from.md#mqsim)). Where an element is missing, what MQSim takes is taken; without one "
        "it must be there. What is said of MQSim was read in its source at commit 7ec40e3.\n"
    )
    for name, elements in other.SETS.items():
        rows = [
            (f"`{each.name}`", each.ours or "-", str(each.fate), each.how, _default(each))
            for each in elements
        ]
        page += f"\n## `{name}`\n\n{table(('element', 'here', 'is', 'how', 'if missing'), rows)}"
    return page


def _default(element: other.Element) -> str:
    if element.default is None:
        return ""
    return f"`{str(element.default).lower() if isinstance(element.default, bool) else element.default}`"


def probes() -> str:
    """The probes and the experiments: what each asks and what it tells."""
    page = (
        "# Probes and experiments\n\n`flashwright probe TARGET --plan` says what each probe would read and write on a "
        "drive.\n\n## Probes\n\n"
    )
    rows = [
        (
            f"`{probe.NAME}`",
            probe.ABOUT,
            ", ".join(f"`{name}`" for name in probe.PARAMETERS),
            "yes" if reads_alone(probe) else "needs writes",
            "nothing" if of_the_whole(probe) == probe.PARAMETERS else "the same",
        )
        for probe in PROBES
    ]
    page += table(
        ("name", "what it asks", "what it tells", "with `--read-only`", "of a part of a drive"),
        rows,
    )
    page += (
        "\n### The drive's own time\n\nQuick mode takes at most 30 minutes on the drive's clock, full mode 8 hours. "
        "Each probe is sure of a share of that, and what later ones are not expected to need goes to the first that "
        "can use it. A probe whose part runs out gives what it has; of the rest it says how long it would need. One "
        "that cannot come to a verdict in what is left is not begun. A plan tells the bytes at most, and the time and "
        "the bytes that a probe takes on most drives. The bundled drives one by one: `experiments/truth-recovery`.\n"
    )
    part = PART_TEXT.format(what="a range (`--range`) or a partition")
    page += (
        f"\n### With less than all of a drive\n\n- {READS_TEXT} With `--read-only` the target must hold data: of 256 "
        "places that are looked at nine in ten at least, or nothing is told. `parallel-units` needs commands that "
        "are queued. A simulated drive is written once in order first.\n"
        f"- {part} Each probe discards the range first; the rest of a simulated drive is empty. `--save` writes a "
        "profile without a model.\n"
    )
    page += (
        "\n### Confidence\n\nA confidence is a rate of being right. It is the share of resamplings, or of independent "
        "checks, that give the verdict, but no more than the share of such verdicts that were right on drives of known "
        "truth: makes of other drives that rules may be tuned on, and our own, with families held out in turn "
        "(`experiments/alien-drives`). Drives of one family count as fewer than they are, since one thing fools a rule "
        "on all of them. A kind of verdict that is not in the table was never tested, and claims "
        f"{UNTESTED} at most. In a result the figure `evidence_share` keeps what the probe itself said.\n\n"
    )
    page += table(
        ("verdict", "at most", "right", "of claims", "families"),
        [
            (
                f"`{kind}`",
                f"{cap.confidence:.2f}",
                str(cap.right),
                str(cap.claims),
                str(cap.families),
            )
            for kind, cap in caps().items()
        ],
    )
    page += "\n## Experiments\n\n`flashwright characterize TARGET` carries them out.\n\n"
    return page + table(
        ("name", "description"), [(f"`{each.NAME}`", each.ABOUT) for each in EXPERIMENTS]
    )


def figures() -> str:
    """Every figure of the JSON of a run."""
    page = (
        "# Figures\n\n`flashwright simulate --json FILE` and `flashwright replay --json FILE` write one document; "
        "`flashwright schema run` prints its JSON Schema. Both commands write all of these paths. A figure that "
        "does not apply is `null`, never missing and never 0. Units stand last in a name; a share or a "
        "ratio has the unit 1. `{a, b}` stands for each of these names, `[]` for each item of a list. In Python the "
        "document is `RunResult.json`, and `flashwright.simulation.run_report.Report` its type.\n"
    )
    for section, rows in rows_of_figures(json.loads(_core.schema_run())):
        cells = [(f"`{path}`", unit, meaning, null) for path, unit, meaning, null in rows]
        heading = f"`{section}`" if section else "The run"
        page += f"\n## {heading}\n\n{table(('path', 'unit', 'meaning', 'null'), cells)}"
    return page


def report_types() -> str:
    """The types of the JSON of a run, as a module."""
    return (
        '"""The types of the JSON of a run; ``docs/reference/figures.md`` lists the same figures.\n\n'
        'Written by ``make generate`` from the types of the core; change those instead.\n"""\n\n'
        "from __future__ import annotations\n\n"
        "from typing import Any, Literal, TypeAlias, TypedDict\n\n"
        '__all__ = ["Report"]\n\n\n' + types_of(json.loads(_core.schema_run()), "Report")
    )


def formatted(code: str) -> str:
    """Python as `make format` lays it out."""
    ruff = [sys.executable, "-m", "ruff", "format", "--config", str(ROOT / "pyproject.toml"), "-"]
    return subprocess.run(ruff, input=code, capture_output=True, text=True, check=True).stdout


def gallery() -> str:
    """The examples with what they print."""
    page = (
        "# Gallery\n\nEach example answers one question and runs in a few seconds. They are files in "
        "[examples](../../examples); run them in that folder. They have cells (`# %%`), so VS Code opens them as "
        "notebooks, and so does Jupyter with Jupytext. The tests run each and compare its output with the one shown. "
        "Most print with pandas (`pip install 'flashwright[pandas]'`).\n\n"
    )
    sections = []
    for path in sorted(EXAMPLES.glob("[0-9]*.py")):
        cells = _cells(path.read_text(encoding="utf-8"))
        title, _, prose = cells[0][1].removeprefix("# ").partition("\n")
        heading = f"{path.stem[:2]}. {title}"
        page += f"- [{title}](#{_heading_anchor(heading)})\n"
        parts = [f"## {heading}", prose.strip()]
        parts += [f"```python\n{text}\n```" if code else text for code, text in cells[1:]]
        printed = path.with_suffix(".out").read_text(encoding="utf-8").rstrip()
        parts.append(
            f"[`examples/{path.name}`](../../examples/{path.name}) prints\n\n```text\n{printed}\n```"
        )
        sections.append("\n\n".join(parts))
    return page + "\n" + "\n\n".join(sections) + "\n"


def _cells(script: str) -> list[tuple[bool, str]]:
    """The cells of a script: whether each is code, and its text without the marks."""
    cells = []
    for cell in script.split("# %%")[1:]:
        head, _, body = cell.partition("\n")
        code = "[markdown]" not in head
        lines = body.strip().splitlines()
        if not code:
            lines = [line.removeprefix("#").removeprefix(" ") for line in lines]
        cells.append((code, "\n".join(lines)))
    return cells


_RULES = {
    "life used": {
        "left": "in %, in the normalised value; in the raw one where the normalised value stands at 100 or 0",
        "left-used": "in %, in the normalised value; the raw one is the percentage used",
        "left-fine": "in hundredths of a percent, in the raw value",
        "used": "in %, in the raw value",
        "wear": "counts down from 100, in the normalised value alone",
        "erases": "mean erases, over the rated ones where both are there",
        "erases-packed": "mean erases, in the upper bits of the raw value",
        "cycles": "erases that a block is rated for",
    },
    "written by the host": {"written": "in the unit given"},
    "written to the flash": {
        "flash": "in the unit given",
        "host-pages": "pages programmed for the host",
        "own-pages": "pages programmed by the drive itself",
    },
    "hours": {"hours": "unpacked by the name and by how smartctl prints it"},
}


def smart() -> str:
    """What is read from each family of drives in smartmontools' data base."""
    families: dict[str, list[dict[str, str]]] = {}
    with FAMILIES.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            families.setdefault(row["family"], []).append(row)
    page = (
        "# SMART attributes of SATA drives\n\n"
        f"What `lifetime smart` and `--smart` read, by the names that smartctl gives attributes ({names.source()}, "
        f"{len(families)} families of flash drives). Device statistics go first where a drive has them. A family "
        "without an entry in a column does not say it there.\n\n## How each kind is read\n\n"
    )
    kinds = [
        (figure, kind, rule) for figure, rules in _RULES.items() for kind, rule in rules.items()
    ]
    page += table(("for", "kind", "read"), kinds)
    page += (
        "\n`Total_LBAs_Written` is also the name for drives that smartctl does not know. There its unit is taken from "
        "device statistics or a second counter that agrees, and where sectors are implausible and nothing agrees it is "
        "unknown. Attributes of kind `none` sound like one of these and are not read.\n\n## Families\n\n"
    )
    lines = []
    for family, entries in families.items():
        cells = [
            ", ".join(filter(None, map(_read_as, _of_kinds(entries, rules))))
            for rules in _RULES.values()
        ]
        apart = ", ".join(
            f"{each['id']} {each['name']}" for each in entries if each["kind"] == "none"
        )
        lines.append((family, *(cell or "-" for cell in cells), apart or "-"))
    return page + table(("family", *_RULES, "not read"), lines)


def _of_kinds(entries: Sequence[dict[str, str]], rules: Iterable[str]) -> list[dict[str, str]]:
    """The attributes of a family that are of some kinds."""
    return [each for each in entries if each["kind"] in rules]


def _read_as(entry: dict[str, str]) -> str:
    units = {
        "0": "sectors",
        str(2**20): "MiB",
        str(2**25): "32 MiB",
        str(2**30): "GiB",
        str(10**9): "GB",
    }
    counts = entry["kind"] in ("written", "flash")
    how = units.get(entry["unit"], "unit not known") if counts else entry["kind"]
    return f"{entry['id']} {entry['name']} ({how})"


PAGES = {
    "reference/commands.md": commands,
    "reference/policies.md": policies,
    "reference/workloads.md": workloads,
    "reference/settings.md": settings,
    "reference/drives.md": drives,
    "reference/probes.md": probes,
    "reference/figures.md": figures,
    "reference/smart.md": smart,
    "reference/mqsim.md": mqsim,
    "how-to/gallery.md": gallery,
}


def main() -> int:
    """Write the pages and the types, or with ``--check`` only compare them."""
    check = "--check" in sys.argv[1:]
    stale = []
    written = {FOLDER / name: HEAD + make() for name, make in PAGES.items()}
    written[TYPES] = report_types()
    options = json.loads(_core.schema_options())
    written[PACKAGE / "simulation" / "run_options.py"] = formatted(for_python(options))
    written[PACKAGE / "cli" / "runflags.py"] = formatted(for_command_line(options))
    for path, text in written.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(str(path.relative_to(ROOT)))
            if not check:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
    if not check and any(name.endswith(".py") for name in stale):
        # Help is made of these files, so that the pages of commands may be stale now.
        return subprocess.run([sys.executable, __file__], check=False).returncode
    if stale:
        print(("stale, run `make generate`: " if check else "written: ") + ", ".join(stale))
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
