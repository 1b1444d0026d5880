"""``flashwright new``: a crate that builds a wheel with a layer of one's own.

``-m long`` builds it, and plays the layer beside its native twin.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from conftest import Cli
from flashwright._core import __version__

ROOT = Path(__file__).parents[2]


def read(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text())


def test_a_crate_of_its_own(command: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    said = command("new", "ftl", "my-ftl2", "--core", ROOT, "--out", folder)
    assert (said.status, said.err) == (0, "")
    assert said.out.splitlines() == [
        f"{folder}/src/layer.rs: the layer",
        f"{folder}/README.md: how to build and install it",
    ]
    ours, cargo = read(ROOT / "pyproject.toml"), read(folder / "Cargo.toml")
    project = read(folder / "pyproject.toml")
    assert cargo["package"]["name"] == project["project"]["name"] == "flashwright-ftl-my-ftl2"
    for key in ("dependencies", "optional-dependencies", "scripts", "entry-points"):
        assert project["project"][key] == ours["project"][key]
    package = folder / project["tool"]["maturin"]["python-source"] / "flashwright"
    assert (package / "__init__.py").is_file() and not [*package.glob("*.so")]
    assert 'register::<layer::PageMap>("my-ftl2")' in (folder / "src" / "lib.rs").read_text()
    for path in (*folder.glob("*.*"), *folder.glob("src/*")):
        assert "@NAME@" not in path.read_text(), path
    # Every crate and version is there: nothing of the lock file but its own package is new.
    process = subprocess.run(
        ["cargo", "metadata", "--format-version=1", "--offline"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    found = {(each["name"], each["version"]) for each in json.loads(process.stdout)["packages"]}
    locked = {(each["name"], each["version"]) for each in read(ROOT / "Cargo.lock")["package"]}
    assert found - locked == {("flashwright-ftl-my-ftl2", "0.1.0")}
    assert any(name == "flashwright-py" for name, _ in found)


def repository(folder: Path, version: str = __version__) -> Path:
    """What `new` reads of our sources, as a Git repository whose first commit has another version."""

    def git(*step: str) -> None:
        identity = ("-c", "user.name=n", "-c", "user.email=e@example.org")
        subprocess.run(["git", *identity, "-C", folder, *step], check=True, capture_output=True)

    for part in ("crates/core", "python/flashwright"):
        (folder / part).mkdir(parents=True)
        (folder / part / "kept").touch()
    for name in ("Cargo.lock", "pyproject.toml", "LICENSE", "THIRD-PARTY-LICENCES.txt"):
        shutil.copyfile(ROOT / name, folder / name)
    text = (ROOT / "Cargo.toml").read_text()
    git("init", "--quiet")
    for nth, found in enumerate(("9.9.9", version)):
        (folder / "Cargo.toml").write_text(
            text.replace(f'version = "{__version__}"', f'version = "{found}"', 1)
        )
        git("add", "--all")
        git("commit", "--quiet", "--message", f"{nth}")
        git("tag", f"v{nth}")
    return folder


def test_sources_from_a_repository(command: Cli, tmp_path: Path) -> None:
    url, folder = f"file://{repository(tmp_path / 'ours')}", tmp_path / "mine"
    assert command("new", "ftl", "mine", "--core", f"{url}#v1", "--out", folder).status == 0
    assert read(folder / "Cargo.toml")["dependencies"]["flashwright-py"] == {
        "path": "core/crates/py"
    }
    assert (folder / "core" / "crates").is_dir()
    shutil.rmtree(folder)
    for core, expected in (
        (f"{url}#v0", f"found Flashwright 9.9.9 in {url}#v0, expected {__version__}"),
        (f"{url}#v7", "error: --core: "),
        (f"file://{tmp_path}/none", "error: --core: "),
        (tmp_path, f"found no crates/core and python/flashwright in {tmp_path}"),
    ):
        said = command("new", "ftl", "mine", "--core", core, "--out", folder)
        assert said.status == 2 and said.out == "" and expected in said.err
        assert len([line for line in said.err.splitlines() if line.startswith("error: ")]) == 1
        assert not folder.exists()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("", "NAME: found '', expected small letters, digits and single hyphens"),
        ("My", "NAME: found 'My'"),
        ("a--b", "NAME: found 'a--b'"),
        ("../x", "NAME: found '../x'"),
        ("9lives", "NAME: found '9lives'"),
        ("page", "NAME: found 'page', which ftl.scheme or a key of [ftl] has, expected another"),
        ("entry-bytes", "NAME: found 'entry-bytes', which"),
    ],
)
def test_names_that_cannot_be(
    command: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    said = command("new", "ftl", name, "--core", ROOT)
    assert said.status == 2 and expected in said.err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_stays(command: Cli, tmp_path: Path) -> None:
    said = command("new", "ftl", "mine", "--core", ROOT, "--out", tmp_path)
    assert said.status == 2 and f"{tmp_path}: is there already, expected a new folder" in said.err
    (tmp_path / "file").touch()
    said = command("new", "ftl", "mine", "--core", ROOT, "--out", tmp_path / "file" / "mine")
    assert said.status == 2 and "can't be written: not a directory" in said.err.lower()


# Without what takes the compiler long.
QUICK = {
    "CARGO_PROFILE_RELEASE_LTO": "off",
    "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16",
    "CARGO_PROFILE_RELEASE_DEBUG": "false",
    "CARGO_PROFILE_RELEASE_OPT_LEVEL": "1",
}
FOLLOWED = [
    "--set=placement.policy=single", "--set=placement.allocation=dynamic", "--set=gc.victim=greedy",
]  # fmt: skip
LOAD = ["--workload=zipf:write=0.7,trim=0.02", "--requests=60000", "--precondition=random"]


@pytest.mark.long
def test_the_wheel_has_the_layer_and_all_else(command: Cli, tmp_path: Path) -> None:
    folder, site = tmp_path / "mine", tmp_path / "site"
    assert command("new", "ftl", "mine", "--core", ROOT, "--out", folder).status == 0
    environment = {**os.environ, "CARGO_TARGET_DIR": str(ROOT / "target" / "new"), **QUICK}

    def done(*words: object, **more: str) -> str:
        process = subprocess.run(
            [*map(str, words)],
            cwd=folder,
            env={**environment, **more},
            capture_output=True,
            text=True,
            check=False,
        )
        assert process.returncode == 0, process.stderr
        return process.stdout

    done("maturin", "build", "--release", "--offline", "--out", "wheels", PATH=_path())
    [wheel] = (folder / "wheels").iterdir()
    assert wheel.name.startswith("flashwright_ftl_mine-0.1.0-cp311-abi3-")
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index")
    done(*pip, "--target", site, wheel)

    def mine(*words: object) -> str:
        return done(sys.executable, "-m", "flashwright", *words, PYTHONPATH=str(site))

    assert mine("--version") == f"flashwright {__version__} with flashwright-ftl-mine 0.1.0\n"
    assert "a page map, one open block a plane, greedy cleaning" in mine("policies")
    report = json.loads(
        mine(
            "compare", "default", *FOLLOWED, *LOAD, "--verify", "--json=-",
            "--vary=ftl.scheme=page,mine", "--set=geometry.blocks-per-plane=64",
        )
    )  # fmt: skip
    native, own = report["runs"]
    assert own["config"]["ftl"]["scheme"] == "mine" and own["violations"] == []
    assert own["gc"]["collections"] > 1_000
    for figures in ("digest", "host", "flash", "gc", "response_time_ns", "wear", "scheme"):
        assert own[figures] == native[figures], figures
    # Its settings are keys like ours.
    report = json.loads(
        mine(
            "compare", "default", *FOLLOWED, *LOAD, "--json=-", "--set=geometry.blocks-per-plane=64",
            "--set=ftl.scheme=mine", "--vary=ftl.mine.spare-blocks=0,3",
        )
    )  # fmt: skip
    assert [run["config"]["ftl"]["mine"] for run in report["runs"]] == [
        {"spare-blocks": 0},
        {"spare-blocks": 3},
    ]
    assert report["runs"][0]["digest"] == own["digest"] != report["runs"][1]["digest"]
    # A description, a sweep in processes of its own, and a served drive.
    drive = folder / "drive.toml"
    drive.write_text(
        'base = "default"\n[geometry]\nblocks-per-plane = 64\n[ftl]\nscheme = "mine"\n'
    )
    sweep = folder / "sweep.toml"
    sweep.write_text(
        'drive = "drive.toml"\nprecondition = "random"\nworkload = "uniform:write=1"\nrequests = 4_000\n'
        'seeds = 2\n[grid]\nftl.scheme = ["page", "mine"]\n[set]\nplacement.policy = "single"\n'
        'placement.allocation = "dynamic"\ngc.victim = "greedy"\n'
    )
    assert "mine" in mine("sweep", sweep, "--jobs", "2", "--store", folder / "points")
    mine("serve", drive, "--nbd", f"unix:{tmp_path}/sock", "--run", "true")
    refused = subprocess.run(
        [
            sys.executable,
            "-m",
            "flashwright",
            "simulate",
            str(drive),
            *LOAD,
            "--checkpoint",
            str(folder / "kept"),
        ],
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 2
    assert "the state of the layer mine is not part of a saved run" in refused.stderr


def _path() -> str:
    """Programs of this Python's environment first."""
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
