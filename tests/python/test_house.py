"""The figures of the source tree, on a repository that can be counted by hand."""

import subprocess
from pathlib import Path

import pytest
from house import figures

FILES = {
    "pyproject.toml": """
[[tool.importlinter.contracts]]
type = "layers"
layers = ["top", "middle", "bottom"]
""",
    "crates/one/Cargo.toml": "[package]\n",
    "crates/one/src/lib.rs": """/// Explained.
const SIZE: u32 = 512;
const COUNT: u32 = 7;

fn short() -> u32 {
    let text = "17 in a string"; // 18 in a comment
    SIZE + 42 + 0x1
}

fn long(x: (u32, u32)) -> u32 {
    let [a, b] = [x.0, x.1];
    if a > 3 {
        return a;
    }
    b
}

#[cfg(test)]
mod tests {
    fn in_a_test() -> u32 {
        99
    }
}
""",
    "crates/one/tests/all.rs": "fn test() -> u32 {\n    98\n}\n",
    "python/flashwright/__init__.py": '"""Front."""\n__all__ = ["a", "b", "c"]\n',
    "python/flashwright/top.py": "from flashwright.middle import x\n",
    "python/flashwright/middle/__init__.py": "",
    "python/flashwright/middle/x.py": """import flashwright.bottom

_NAMED = 5
_EXPLAINED = 6  # half a dozen


def f(limit: int = 9) -> int:
    return sorted([limit, 30], key=len, size=40)
""",
    "python/flashwright/bottom.py": "def later() -> None:\n    from .top import y\n",
    "docs/page.md": "<!-- Written by `make generate`; change the code instead. -->\n",
    "docs/kept.csv": "a,b\n1,2\n",
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    def git(*arguments: str) -> None:
        subprocess.run(["git", "-C", str(tmp_path), *arguments], check=True)

    git("init", "--quiet")
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    git("add", ".")
    git("-c", "user.name=t", "-c", "user.email=t@t", "commit", "--quiet", "--message", "t")
    (tmp_path / "python" / "flashwright" / "top.py").write_text("not committed, so not counted")
    return tmp_path


def test_a_small_repository_is_counted_as_by_hand(repository: Path) -> None:
    found = figures("HEAD", repository)
    expected = {
        "bytes": f"{sum(map(len, FILES.values())):,}",
        "files": "11",
        "Rust: files, lines": "2, 26",
        "Python: files, lines": "5, 13",
        "TOML: files, lines": "2, 5",
        "generated: files, lines": "1, 1",
        "data: files, lines": "1, 2",
        "crates": "1",
        "rooms of the package": "3",
        # bottom imports top.
        "imports upward": "1",
        "circles of rooms": "1",
        "public names": "3",
        # 42 and 3; not those of tests, strings, constants and fields.
        "Rust: numbers without a name": "2",
        "Rust: named, not explained": "1",
        "Rust: longest function 1": "7 lib.rs:long",
        "Rust: longest function 2": "4 lib.rs:short",
        # 30; not the default, and not the argument with a name.
        "Python: numbers without a name": "1",
        "Python: named, not explained": "1",
        "Python: longest function 1": "2 x.py:f",
        "Python: repeated lines": "0",
    }
    assert {name: found.get(name) for name in expected} == expected


def test_lines_that_stand_twice_are_counted(repository: Path) -> None:
    lines = "".join(f"    first_value_{i} = call(argument)\n" for i in range(6))
    for name in ("one", "two"):
        path = repository / "python" / "flashwright" / "middle" / f"{name}.py"
        path.write_text(f"def {name}() -> None:\n{lines}", encoding="utf-8")
    commit = ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "--quiet", "--message", "t"]
    subprocess.run(["git", "-C", str(repository), "add", "python/flashwright/middle"], check=True)
    subprocess.run(["git", "-C", str(repository), *commit], check=True)
    assert figures("HEAD", repository)["Python: repeated lines"] == "12"
