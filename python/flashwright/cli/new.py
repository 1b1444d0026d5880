"""``flashwright new``: a crate of one's own that builds a wheel of Flashwright with more in its core."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

import flashwright
from flashwright._core import __version__
from flashwright.cli.help import Command, Group
from flashwright.drive.catalogue import catalogue
from flashwright.errors import ArgumentError, ConfigError, OutputError
from flashwright.support.files import reason

__all__ = ["app"]

app = typer.Typer(
    cls=Group,
    help="Begin a crate of your own that builds a wheel of Flashwright with more in its core.",
    rich_markup_mode=None,
    add_completion=False,
)

_TEMPLATE = Path(__file__).parent / "template"
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_IS_URL = re.compile(r".+://.+|[^/]+@[^/]+:.+")
# What a package of ours that holds our code brings along.
_LICENCES = ("LICENSE", "THIRD-PARTY-LICENCES.txt")


@app.callback()
def _several() -> None:
    """Keep the name of what begins, although there is but one."""


@app.command(cls=Command)
def ftl(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="The layer's name, as ftl.scheme will take it: small letters."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Where the crate goes, which must not be there yet; ./NAME by default.",
            rich_help_panel="Output",
        ),
    ] = None,
    core: Annotated[
        str | None,
        typer.Option(
            metavar="PATH|URL[#REVISION]",
            help="Flashwright's sources: their folder, or a Git repository, which is cloned into the crate; by default "
            "those that this Flashwright runs from, if it does.",
            rich_help_panel="Scope",
        ),
    ] = None,
) -> int:
    """Begin a translation layer in Rust: a crate whose wheel is Flashwright with that layer beside its own.

    The layer is one file, at first a page map, and one line that registers it. The wheel has a name and a version of
    its own, and is installed in place of Flashwright, whose sources stay as they are.
    """
    _check_name(name)
    folder = Path(name) if out is None else out
    if folder.exists() or folder.is_symlink():
        raise OutputError(
            f"{folder}: is there already, expected a new folder", "give another --out"
        )
    try:
        try:
            folder.mkdir(parents=True)
            _write(name, folder, _sources(core, folder))
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    except OSError as error:
        raise OutputError(f"{folder}: can't be written: {reason(error)}", "") from None
    print(f"{folder / 'src' / 'layer.rs'}: the layer")
    print(f"{folder / 'README.md'}: how to build and install it")
    return 0


def _check_name(name: str) -> None:
    if _NAME.fullmatch(name) is None:
        raise ArgumentError(
            f"NAME: found {name!r}, expected small letters, digits and single hyphens, such as my-ftl"
        )
    # The other keys of [ftl] would be its table's.
    taken = [scheme.name for scheme in catalogue()["ftl.scheme"]]
    if name in (*taken, "entry-bytes", "foreign", "scheme"):
        raise ArgumentError(
            f"NAME: found {name!r}, which ftl.scheme or a key of [ftl] has, expected another"
        )


def _sources(core: str | None, folder: Path) -> Path:
    """Where the sources of ours are, by an absolute path or within the crate."""
    if core is not None and _IS_URL.fullmatch(core):
        _clone(core, folder / "core")
        root, sources_path = folder / "core", Path("core")
    else:
        # A package that is run from its sources lies in their folder `python`.
        root = Path(flashwright.__file__).parents[2] if core is None else Path(core)
        root = sources_path = root.resolve()
    if not all((root / part).exists() for part in ("crates/core", "python/flashwright")):
        if core is None:
            raise ConfigError(
                "--core: found none, expected Flashwright's sources: this one was installed without",
                "its repository or an unpacked source distribution, as a path or a URL",
            )
        raise ConfigError(
            f"--core: found no crates/core and python/flashwright in {core}, expected Flashwright's sources",
            "its repository, or an unpacked source distribution",
        )
    version = _read(root / "Cargo.toml")["workspace"]["package"]["version"]
    if version != __version__:
        raise ConfigError(
            f"--core: found Flashwright {version} in {core or root}, expected {__version__}, as this command is",
            "use the command of that version, or the sources of this one",
        )
    return sources_path


def _clone(url: str, to: Path) -> None:
    url, _, revision = url.partition("#")
    steps = [["clone", "--quiet", "--", url, str(to)]]
    if revision:
        steps.append(["-C", str(to), "checkout", "--quiet", "--detach", revision])
    for step in steps:
        try:
            done = subprocess.run(["git", *step], capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise ConfigError(f"--core: found no git, expected it for {url}", "") from None
        if done.returncode != 0:
            said = done.stderr.strip().splitlines() or ["git failed"]
            raise ConfigError(f"--core: {url}: {said[-1]}", "")


def _read(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text())


def _write(name: str, folder: Path, core: Path) -> None:
    import tomli_w

    root = folder / core
    for path in sorted(_TEMPLATE.rglob("*.*")):
        to = folder / path.relative_to(_TEMPLATE)
        to.parent.mkdir(exist_ok=True)
        to.write_text(path.read_text().replace("@NAME@", name).replace("@CORE@", str(core)))
    # A wheel holds only what lies in its crate.
    package = Path("python", "flashwright")
    left_out = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(root / package, folder / package, ignore=left_out)
    for each in _LICENCES:
        shutil.copyfile(root / each, folder / each)
    # The versions that ours is tested with.
    shutil.copyfile(root / "Cargo.lock", folder / "Cargo.lock")
    (folder / ".gitignore").write_text("/target/\n/wheels/\n/.venv/\n")
    cargo, project = _cargo(name, core, _read(root / "Cargo.toml")), _project(name, root)
    (folder / "Cargo.toml").write_text(tomli_w.dumps(cargo))
    (folder / "pyproject.toml").write_text(tomli_w.dumps(project))


def _cargo(name: str, core: Path, ours: dict[str, Any]) -> dict[str, Any]:
    """A package that is its own workspace, with the compiler's settings and the versions of ours."""
    workspace = ours["workspace"]
    crates = {each: {"path": str(core / "crates" / each)} for each in ("digest", "ftl", "py")}
    return {
        "package": {
            "name": f"flashwright-ftl-{name}",
            "version": "0.1.0",
            "description": f"Flashwright with the translation layer {name}",
            "edition": workspace["package"]["edition"],
            "rust-version": workspace["package"]["rust-version"],
            "publish": False,
        },
        "workspace": {},
        "lib": {"name": "_core", "crate-type": ["cdylib"]},
        "dependencies": {
            "flashwright-ftl": crates["ftl"],
            "flashwright-py": crates["py"],
            **{each: workspace["dependencies"][each] for each in ("schemars", "serde")},
        },
        "build-dependencies": {"flashwright-digest": crates["digest"]},
        "profile": {"release": ours["profile"]["release"]},
    }


def _project(name: str, root: Path) -> dict[str, Any]:
    """The distribution: all that ours has, under another name."""
    ours = _read(root / "pyproject.toml")
    kept = ("requires-python", "dependencies", "optional-dependencies", "scripts", "entry-points")
    return {
        "build-system": ours["build-system"],
        "project": {
            "name": f"flashwright-ftl-{name}",
            "description": f"Flashwright with the translation layer {name}",
            "dynamic": ["version"],
            "license-files": list(_LICENCES),
            **{key: ours["project"][key] for key in kept},
        },
        "tool": {
            "maturin": {
                "module-name": ours["tool"]["maturin"]["module-name"],
                "python-source": ours["tool"]["maturin"]["python-source"],
                "strip": True,
            }
        },
    }
