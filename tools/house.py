"""Figures of the source tree at a commit, or at two commits side by side: ``tools/house.py [REV [REV]]``.

It reads what git has of a commit, never the working tree, and needs nothing beyond the standard library and git.

- *generated*: files whose first five lines say that something writes them, and lock files. *data*: files of a kind that
  is neither code nor prose. Neither counts as code.
- *upward*: imports of a room by one below it, in the order that ``pyproject.toml`` of that commit gives the rooms.
- *circles*: groups of rooms that import each other, directly or through others.
- *number without a name*: a literal in a function of the sources, other than 0, 1, 2 and their negatives, that is
  neither a default nor an argument given by its name. *Named, not explained*: a constant of a module that is a number,
  or several, without a comment on its line or just above, or a docstring below.
- *repeated lines*: lines of code in runs of six that stand elsewhere as well, letter for letter but for indentation.

Tests are counted as files and lines; functions, numbers and repetitions are those of the sources alone. Rust is read by
brackets, not parsed.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
PACKAGE = "python/flashwright/"
LANGUAGES = {
    ".rs": "Rust", ".py": "Python", ".pyi": "Python", ".js": "JavaScript", ".css": "CSS",
    ".html": "HTML", ".j2": "HTML", ".c": "C", ".h": "C", ".sh": "shell", ".md": "prose",
    ".toml": "TOML", ".yml": "TOML", ".cff": "TOML",
}  # fmt: skip
_WRITTEN = re.compile(r"\bwritten by [`'\"\w]", re.IGNORECASE)
_HEAD_LINES = 5
_RUN = 6  # lines of a repetition
_LONGEST = 5  # functions shown
_PLAIN = {0, 1, 2}
_RUST_FN = re.compile(r"\bfn\s+(\w+)")
_RUST_NUMBER = re.compile(
    r"(?<![\w.])(\d[\d_]*(?:\.\d[\d_]*)?(?:e-?\d+)?)(?:_?[iuf]\d+|_?[iu]size)?(?!\w)"
)
_RUST_CONST = re.compile(
    r"^\s*(?:pub(?:\([^)]*\))? )?(?:const|static) [A-Z_0-9]+: [^=]*= ([^;]*\d[^;]*);", re.MULTILINE
)
_RUST_TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|r(\#*)".*?"\1|"(?:\\.|[^"\\])*"|'(?:\\[^']+|[^'\\])'""", re.DOTALL
)


def git(*arguments: str, folder: Path, given: bytes | None = None) -> bytes:
    """What git prints."""
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, input=given, stdout=subprocess.PIPE, check=True).stdout


def files_of(rev: str, folder: Path) -> dict[str, bytes]:
    """The files of a commit, by path."""
    listed = git("ls-tree", "-r", "-z", rev, folder=folder).decode().split("\0")
    entries = [line.split("\t", 1) for line in listed if line and line.split()[1] == "blob"]
    names = {path: about.split()[2] for about, path in entries}
    found = git("cat-file", "--batch", folder=folder, given="\n".join(names.values()).encode())
    files, at = {}, 0
    for path in names:
        end = found.index(b"\n", at)
        size = int(found[at:end].split()[2])
        files[path] = found[end + 1 : end + 1 + size]
        at = end + 1 + size + 1
    return files


def kind_of(path: str, content: bytes) -> str:
    """The language of a file, ``generated``, or ``data``."""
    name = PurePosixPath(path)
    language = LANGUAGES.get(name.suffix, "other" if not name.suffix or "." not in path else "data")
    head = b"\n".join(content.split(b"\n", _HEAD_LINES)[:_HEAD_LINES]).decode(errors="replace")
    if name.suffix == ".lock" or (language != "data" and _WRITTEN.search(head)):
        return "generated"
    if "tests/golden/" in path or (language == "TOML" and "/fixtures/" in path):
        return "data"
    return language


def is_source(path: str) -> bool:
    """Whether a file is one of the programs, not of their tests, studies or examples."""
    parts = PurePosixPath(path).parts
    return parts[0] in ("crates", "python", "papers") and not {
        "tests",
        "tests.rs",
        "benches",
        "fuzz",
        "testing",
    } & set(parts)


def rooms_of(paths: Iterator[str]) -> set[str]:
    """Crates and rooms of the package."""
    found = set()
    for path in paths:
        if crate := re.match(r"crates/([^/]+)/Cargo.toml$", path):
            found.add(f"crates/{crate[1]}")
        elif room := re.match(rf"{PACKAGE}((?!__)\w+)(/|\.py$)", path):
            found.add(PACKAGE + room[1])
    return found


def imports_of(path: str, tree: ast.Module) -> Iterator[str]:
    """The modules of the package that a file names in imports, wherever they stand."""
    here = PurePosixPath(path.removeprefix("python/")).with_suffix("").parts
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(here[: -node.level]) if node.level else ""
            module = ".".join(filter(None, [base, node.module]))
            yield from (f"{module}.{alias.name}" for alias in node.names)


def order_of(files: Mapping[str, bytes]) -> list[str]:
    """The rooms as the import rule orders them, from the top."""
    settings = tomllib.loads(files["pyproject.toml"].decode()) if "pyproject.toml" in files else {}
    contracts = settings.get("tool", {}).get("importlinter", {}).get("contracts", [])
    layers: list[str] = next((each["layers"] for each in contracts if each["type"] == "layers"), [])
    return [room for layer in layers for room in re.split(r"\s*[|:]\s*", layer)]


def between_rooms(modules: Mapping[str, ast.Module]) -> set[tuple[str, str]]:
    """Which room imports which."""
    rooms = {name.split("/")[2].removesuffix(".py") for name in modules}
    pairs = set()
    for path, tree in modules.items():
        own = path.split("/")[2].removesuffix(".py")
        for name in imports_of(path, tree):
            parts = name.split(".")
            if parts[0] == "flashwright" and len(parts) > 1 and parts[1] in rooms - {own}:
                pairs.add((own, parts[1]))
    return {(a, b) for a, b in pairs if not a.startswith("__")}


def circles_of(pairs: set[tuple[str, str]]) -> list[set[str]]:
    """Groups of rooms of which each reaches each other."""
    reached = {a: {b for c, b in pairs if c == a} for a, _ in pairs}
    while True:
        more = {
            a: found.union(*(reached.get(b, set()) for b in found)) for a, found in reached.items()
        }
        if more == reached:
            break
        reached = more
    groups: list[set[str]] = []
    for room, found in reached.items():
        group = {other for other in found if room in reached.get(other, ())}
        if group and group not in groups:
            groups.append(group)
    return groups


def public_names(tree: ast.Module) -> int:
    """Length of ``__all__``."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return len(ast.literal_eval(node.value))
    return 0


def _number(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Constant)
        and type(node.value) in (int, float)
        and node.value not in _PLAIN
    )


def python_numbers(tree: ast.Module, lines: list[str]) -> tuple[int, int]:
    """Numbers without a name, and named ones that nothing explains."""
    functions, named = [], list[ast.expr | None]()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            functions.append(node)
            named += [*node.args.defaults, *node.args.kw_defaults, *node.decorator_list]
        elif isinstance(node, ast.keyword):
            named.append(node.value)
    spared = {id(part) for each in named if each is not None for part in ast.walk(each)}
    bare = {id(part) for each in functions for part in ast.walk(each) if _number(part)} - spared
    unexplained = 0
    for node, after in zip_longest(tree.body, tree.body[1:]):
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
            continue
        is_number = all(
            isinstance(
                part,
                (
                    ast.Constant,
                    ast.UnaryOp,
                    ast.BinOp,
                    ast.Tuple,
                    ast.operator,
                    ast.unaryop,
                    ast.Load,
                ),
            )
            for part in ast.walk(node.value)
        ) and any(_number(part) for part in ast.walk(node.value))
        above = lines[node.lineno - 2].lstrip().startswith("#") if node.lineno > 1 else False
        beside = any("#" in line for line in lines[node.lineno - 1 : node.end_lineno])
        below = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        unexplained += is_number and not (above or beside or below)
    return len(bare), unexplained


def rust_code(text: str) -> str:
    """The text with comments and strings as spaces, and without the tests at its end; line numbers stay."""
    text = re.split(
        r"^#\[cfg\(test\)\]\n(?:pub(?:\(crate\))? )?mod \w+ \{", text, flags=re.MULTILINE
    )[0]
    return _RUST_TOKEN.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def rust_functions(code: str) -> Iterator[tuple[str, int, int]]:
    """Name, first and last character of each function that has a body."""
    for found in _RUST_FN.finditer(code):
        depth, at = 0, found.end()
        while at < len(code) and not (depth == 0 and code[at] in "{;"):
            depth += (code[at] in "([") - (code[at] in ")]")
            at += 1
        if at == len(code) or code[at] == ";":
            continue
        depth = 0
        while at < len(code):
            depth += (code[at] == "{") - (code[at] == "}")
            if depth == 0:
                yield found[1], found.start(), at
                break
            at += 1


def rust_numbers(text: str, code: str) -> tuple[int, int]:
    """As :func:`python_numbers`."""
    bodies: set[int] = set()
    for _, start, end in rust_functions(code):
        bodies.update(range(start, end))
    named = {at for found in _RUST_CONST.finditer(code) for at in range(*found.span())}
    bare = 0
    for found in _RUST_NUMBER.finditer(code):
        value = float(found[1].replace("_", ""))
        bare += found.start() in bodies and found.start() not in named and value not in _PLAIN
    lines, unexplained = text.split("\n"), 0
    for found in _RUST_CONST.finditer(code):
        values = [float(one[1].replace("_", "")) for one in _RUST_NUMBER.finditer(found[1])]
        at = code.count("\n", 0, found.start(1))
        above = at > 0 and lines[at - 1].lstrip().startswith(("//", "#["))
        explained = above or "//" in lines[at]
        unexplained += any(value not in _PLAIN for value in values) and not explained
    return bare, unexplained


def repeated(texts: Mapping[str, str]) -> int:
    """Lines of code that stand in runs which stand elsewhere as well."""
    places: defaultdict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    for path, text in texts.items():
        lines = enumerate(text.split("\n"))
        code = [(at, line.strip()) for at, line in lines if len(re.findall(r"\w", line)) > 2]
        code = [
            (at, line)
            for at, line in code
            if not line.startswith(("//", "#", "use ", "import ", "from "))
        ]
        for first in range(len(code) - _RUN + 1):
            run = code[first : first + _RUN]
            places[tuple(line for _, line in run)].extend((path, at) for at, _ in run)
    return len({place for found in places.values() if len(found) > _RUN for place in found})


def figures(rev: str, folder: Path = ROOT) -> dict[str, str]:
    """All figures of a commit, by what they are called, as they are shown."""
    files = files_of(rev, folder)
    kinds = {path: kind_of(path, content) for path, content in files.items()}
    lines: Counter[str] = Counter()
    for path, content in files.items():
        lines[kinds[path]] += content.count(b"\n")
    count, found = (
        Counter(kinds.values()),
        {"commit": git("describe", "--always", rev, folder=folder).decode().strip()},
    )
    found["bytes"] = f"{sum(map(len, files.values())):,}"
    found["files"] = f"{len(files):,}"
    for kind in [*dict.fromkeys(LANGUAGES.values()), "other", "generated", "data"]:
        found[f"{kind}: files, lines"] = f"{count[kind]:,}, {lines[kind]:,}"
    rooms = rooms_of(iter(files))
    found["crates"] = str(sum(room.startswith("crates/") for room in rooms))
    found["rooms of the package"] = str(sum(room.startswith(PACKAGE) for room in rooms))

    sources = [path for path in files if is_source(path)]
    rust = {path: files[path].decode() for path in sources if kinds[path] == "Rust"}
    python = {
        path: files[path].decode()
        for path in sources
        if kinds[path] == "Python" and path.endswith(".py")
    }
    trees = {path: ast.parse(text) for path, text in python.items()}
    package = {path: tree for path, tree in trees.items() if path.startswith(PACKAGE)}
    pairs, order = between_rooms(package), order_of(files)
    upward = {
        (a, b) for a, b in pairs if a in order and b in order and order.index(a) > order.index(b)
    }
    found["imports upward"] = str(len(upward)) if order else "no order"
    found["circles of rooms"] = str(len(circles_of(pairs)))
    found["public names"] = str(public_names(trees[f"{PACKAGE}__init__.py"]) if package else 0)

    codes = {path: rust_code(text) for path, text in rust.items()}
    numbers = {
        "Rust": [rust_numbers(rust[path], code) for path, code in codes.items()],
        "Python": [python_numbers(tree, python[path].split("\n")) for path, tree in trees.items()],
    }
    for language, counted in numbers.items():
        found[f"{language}: numbers without a name"] = f"{sum(bare for bare, _ in counted):,}"
        found[f"{language}: named, not explained"] = f"{sum(named for _, named in counted):,}"
        found[f"{language}: repeated lines"] = (
            f"{repeated(rust if language == 'Rust' else python):,}"
        )
    lengths = {
        "Rust": [
            (code.count("\n", start, end) + 1, f"{PurePosixPath(path).name}:{name}")
            for path, code in codes.items()
            for name, start, end in rust_functions(code)
        ],
        "Python": [
            (
                (node.end_lineno or node.lineno) - node.lineno + 1,
                f"{PurePosixPath(path).name}:{node.name}",
            )
            for path, tree in trees.items()
            for node in ast.walk(tree)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        ],
    }
    for language, functions in lengths.items():
        for nth, (length, name) in enumerate(sorted(functions, reverse=True)[:_LONGEST], 1):
            found[f"{language}: longest function {nth}"] = f"{length} {name}"
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "rev", nargs="*", default=["HEAD"], help="one or two commits; HEAD if left out"
    )
    revs = parser.parse_args().rev
    if len(revs) > 2:
        parser.error(f"found {len(revs)} commits, expected one or two")
    columns = [figures(rev) for rev in revs]
    names = list(dict.fromkeys(name for column in columns for name in column))
    wide = max(map(len, names))
    for name in names:
        print(f"{name:<{wide}}", *(f"{column.get(name, '-'):>40}" for column in columns), sep="  ")


if __name__ == "__main__":
    main()
