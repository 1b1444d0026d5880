"""What is given wrongly is told in a line by an error of this package, never by a traceback from below."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flashwright
from conftest import Cli
from flashwright import Profile, Run, RunSettings, Ssd, Target, cli, smart, tracefiles, workloads
from flashwright import policies as written
from flashwright.cli.render.errors import as_typed
from flashwright.cli.root import COMMANDS, load
from flashwright.errors import ArgumentError, FlashwrightError, WorkloadError
from flashwright.simulation.run import PlaySettings
from flashwright.sweeps.sweep import Sweep

OPTIONS = [each.name for each in fields(RunSettings)]
DRIVE = Ssd.named("default")
RESULT = DRIVE.play("uniform", requests=100)


def begun() -> Run:
    return Run.create(DRIVE.toml, "empty", workloads.uniform(), RunSettings(requests=10))


# What calls below are made of.
NAMES: dict[str, Any] = {
    **{name: getattr(flashwright, name) for name in flashwright.__all__},
    "Sweep": Sweep,
    "Path": Path,
    "begun": begun,
    "math": math,
    "written": written,
    "ssd": DRIVE,
    "result": RESULT,
    "uniform": workloads.uniform(),
    "vary": {"gc.victim": ["greedy", "fifo"]},
    "drive": lambda: Target("sim:default"),
    "Profile": Profile,
    "flashwright": flashwright,
    "smart": smart,
    "tracefiles": tracefiles,
}

# A call, and what is said of it; where nothing is said here, only that it is one line of ours.
CALLS: list[tuple[str, str]] = [
    (
        "ssd.play(5)",
        "play: workload: found 5, expected a Workload, a Trace, a Tenants, text or a list of "
        "a Tenant, a Workload, a Trace or text",
    ),
    (
        "ssd.play('uniform', requests=1.5)",
        "play: requests: found 1.5, expected a whole number or None",
    ),
    (
        "ssd.play('uniform', requests='x')",
        "play: requests: found 'x', expected a whole number or None",
    ),
    (
        "ssd.play('uniform', requests=True)",
        "play: requests: found True, expected a whole number or None",
    ),
    ("ssd.play('uniform', requests=-1)", "requests: found -1, expected a whole number from 1 up"),
    ("ssd.play('uniform', seed=-1)", "seed: found -1, expected a whole number from 0 up"),
    ("ssd.play('uniform', seed=2**70)", ""),
    (
        "ssd.play('uniform', time_scale=math.nan)",
        "play: time_scale: found nan, expected a number or None",
    ),
    ("ssd.play('uniform', warmup=None)", "play: warmup: found None, expected a whole number"),
    ("ssd.play('uniform', window=5)", "play: window: found 5, expected text or None"),
    (
        "ssd.play('uniform', snapshots='x')",
        "play: snapshots: found 'x', expected a whole number or None",
    ),
    (
        "ssd.play('uniform', closeup=(1,))",
        "play: closeup: found (1,), expected a tuple of 2 (a whole number, a whole number) or None",
    ),
    ("ssd.play('uniform', verify='x')", "play: verify: found 'x', expected True or False"),
    (
        "ssd.play('uniform', progress=5)",
        "play: progress: found 5, expected a function of 1 value or None",
    ),
    (
        "ssd.play('uniform', nonsense=5)",
        f"play: nonsense: unknown, expected one of {', '.join(PlaySettings.__annotations__)}",
    ),
    ("ssd.play()", "play: missing a required argument: 'workload'"),
    (
        "result.latency_ns.quantile('x')",
        "quantile: q: found 'x', expected a number or a list of numbers",
    ),
    ("result.latency_ns.quantile(2)", "quantile: q: found 2, expected a number from 0 to 1"),
    ("result.latency_ns.quantile([0.5, 2])", "quantile: q: found 2, expected a number from 0 to 1"),
    ("result.latency_ns.quantile(math.nan)", ""),
    ("result.report(5)", "report: path: found 5, expected a path"),
    (
        "compare(ssd, uniform, {'gc.victim': 'greedy'})",
        "compare: vary: found {'gc.victim': 'greedy'}, expected a mapping of texts to lists of values",
    ),
    ("compare(ssd, uniform, {5: ['greedy']})", ""),
    ("compare(ssd, uniform, ['gc.victim'])", ""),
    ("compare(ssd, uniform, {'gc.victim': []})", ""),
    ("compare('default', uniform, vary)", "compare: ssd: found 'default', expected an Ssd"),
    (
        "compare(ssd, uniform, vary, request=5)",
        f"compare: request: unknown, expected one of {', '.join(OPTIONS)}; did you mean requests?",
    ),
    (
        "compare(ssd, uniform, vary, requests='x')",
        "compare: requests: found 'x', expected a whole number or None",
    ),
    ("sweep(ssd, uniform, {'gc.victim': 'greedy'})", ""),
    (
        "sweep(ssd, uniform, vary, seeds='x')",
        "sweep: seeds: found 'x', expected a whole number or a list of whole numbers",
    ),
    ("sweep(ssd, uniform, vary, seeds=[-1])", "seed: found -1, expected a whole number from 0 up"),
    ("sweep(ssd, uniform, vary, seeds=0)", ""),
    ("sweep(ssd, uniform, vary, jobs='x')", ""),
    ("sweep(ssd, uniform, vary, store=5)", "sweep: store: found 5, expected a path or None"),
    ("sweep(ssd, uniform, points=[5])", ""),
    ("sweep(ssd, uniform, vary, nonsense=5)", ""),
    ("Sweep.from_toml(5)", "from_toml: path: found 5, expected a path"),
    ("Ssd.named(3)", "named: name: found 3, expected text"),
    ("Ssd.find(None)", "find: name: found None, expected text"),
    ("Ssd.from_toml(3)", "from_toml: path: found 3, expected a path"),
    ("Ssd.from_toml('/')", ""),
    ("ssd.with_(5)", "with_: settings: found 5, expected a mapping of texts to values or None"),
    ("ssd.with_('gc.victim=fifo')", ""),
    ("ssd.with_({5: 'fifo'})", ""),
    (
        "ssd.with_({'gc.victim': object})",
        "gc.victim: found <class 'object'>, expected text or a number",
    ),
    ("ssd.with_({'gc.victim': b'fifo'})", "gc.victim: found b'fifo', expected text or a number"),
    ("ssd.with_({'gc.victim': {'a': {'b': 1}}})", ""),
    ("ssd.with_({'gc.victim': ['greedy']})", ""),
    ("ssd.with_({'geometry': 5})", ""),
    ("ssd.with_({'geometry.channels': 2**80})", ""),
    ("ssd.with_({'geometry.channels': -1})", ""),
    ("ssd.with_({'capacity.utilization': math.nan})", ""),
    ("ssd.with_(victim=None)", ""),
    (
        "ssd.with_settings('gc.victim=fifo')",
        "with_settings: settings: found 'gc.victim=fifo', expected a list of texts",
    ),
    ("ssd.precondition(5)", "precondition: spec: found 5, expected text"),
    ("workloads.uniform(write='x')", ""),
    ("workloads.uniform(write=math.nan)", ""),
    ("workloads.uniform(depth=1.5)", ""),
    ("workloads.parse(5)", "parse: spec: found 5, expected text"),
    ("workloads.trace(5)", "trace: path: found 5, expected a path"),
    ("workloads.trace('bundled:pgbench', addresses='x')", ""),
    ("workloads.trace('bundled:pgbench', devices='7.0')", ""),
    ("workloads.trace('bundled:pgbench', repeat='x')", ""),
    ("tracefiles.info(5)", ""),
    ("tracefiles.columns('bundled:pgbench', requests=1.5)", ""),
    ("tracefiles.convert('bundled:pgbench', 5)", ""),
    ("tracefiles.convert('bundled:pgbench', '/nonexistent/x.fwt')", ""),
    ("Target(5)", ""),
    ("Target('sim:default', seed=-1)", "Target: seed: found -1, expected a whole number from 0 up"),
    ("Target('sim:default', seed=1.5)", ""),
    ("Target('/nonexistent')", ""),
    ("drive().play('erase', [0], 4096)", ""),
    ("drive().play('write', 'x', 4096)", ""),
    ("drive().play('write', [0], 'x')", ""),
    ("drive().play('write', [-1], 4096)", ""),
    ("drive().play('write', [0], 4096, depth='x')", ""),
    ("drive().idle('x')", "idle: nanos: found 'x', expected a number"),
    ("drive().idle(-1)", ""),
    ("probe(5)", ""),
    ("probe('sim:default', mode='x')", "probe: mode: found 'x', expected quick or full"),
    (
        "probe('sim:default', only='mapping')",
        "probe: only: found 'mapping', expected a list of texts",
    ),
    ("probe('sim:default', only=['nope'])", ""),
    ("probe('sim:default', seed=-1)", "probe: seed: found -1, expected a whole number from 0 up"),
    ("probe('sim:default', time_limit=-1)", ""),
    ("probe('sim:default', state=5)", ""),
    ("characterize('sim:default', 'fills')", ""),
    ("characterize('sim:default', mode='x')", ""),
    ("characterize('sim:default', time_limit_s='x')", ""),
    ("replay('sim:default', 5)", ""),
    ("replay(5, uniform)", ""),
    ("replay('sim:default', uniform, seed=-1)", ""),
    ("replay('sim:default', uniform, settings='gc.victim=fifo')", ""),
    ("replay('sim:default', uniform, profile=5)", ""),
    ("advise(5, uniform)", ""),
    ("advise(ssd, uniform, utilizations='x')", ""),
    ("advise(ssd, uniform, utilizations=[math.nan])", ""),
    ("advise(ssd, uniform, targets=[5])", ""),
    (
        "advise(ssd, uniform, jobs=0)",
        "advise: jobs: found 0, expected a whole number from 1 to 4,096",
    ),
    ("advise(ssd, uniform, write_rate='x')", ""),
    ("reproduce('dftl')", ""),
    ("reproduce([5])", ""),
    ("reproduce(['nope'])", ""),
    ("smart.read('/nonexistent')", ""),
    ("Profile.from_toml(5)", ""),
    ("table(5)", ""),
    ("Run.load(5)", ""),
    ("Run.load(Path('/nonexistent'))", "/nonexistent: no such file or directory"),
    ("Run.create(ssd.toml, 'empty', uniform, 5)", ""),
    ("RunSettings(requests='x')", "requests: found 'x', expected a whole number or None"),
    ("begun().step(-1)", ""),
    ("begun().go(stop_after=0)", ""),
    ("begun().go(checkpoint=5)", ""),
    ("written.load(5)", "load: text: found 5, expected text"),
    # Whatever can be gone through is looked at value by value, now or as the values come.
    (
        "probe('sim:default', only=range(2))",
        "probe: only: found range(0, 2), expected a list of texts",
    ),
    ("smart.read_drives(bytearray(b'q'))", ""),
    ("smart.read_drives(iter([1]))", ""),
    ("table(range(3))", ""),
    ("table(iter([1]))", ""),
    ("compare(ssd, uniform, iter([1]))", ""),
    ("smart.figures([], None)", "figures: readings: found none, expected one or more"),
    ("flashwright.lifetime.writable(1e9, iter([0.5]), 1000)", ""),
    ("flashwright.lifetime.writable(1e9, ['x'], 1000)", ""),
    ("workloads.postmark(memory=object)", ""),
    # A function that can't be called as it will be.
    ("probe('sim:default', progress=lambda: 0)", ""),
    # No file has such a name.
    ("result.report('x' * 500)", ""),
    ("result.to_parquet('x' * 500)", ""),
]


@pytest.mark.parametrize(("call", "said"), CALLS, ids=[call for call, _ in CALLS])
def test_a_wrong_argument_is_told_in_a_line(call: str, said: str) -> None:
    with pytest.raises(FlashwrightError) as refused:
        eval(call, NAMES)
    message = str(refused.value)
    assert len(message.splitlines()) == 1 and message[-1] != ".", message
    assert message == said or not said


def test_what_is_right_passes() -> None:
    of_numpy: dict[str, Any] = {"requests": np.int64(50), "depth": np.int32(2)}
    plain = DRIVE.play("uniform", **of_numpy, time_scale=None)
    assert plain.json["measured"]["requests"] == 50
    assert DRIVE.with_({"geometry.channels": np.int64(2), "capacity.utilization": np.float64(0.5)})
    shares: Any = (0.5, np.float32(1))
    assert list(RESULT.latency_ns.quantile(shares)) == [0.5, 1.0]
    assert len(
        flashwright.compare(DRIVE, "uniform", {"gc.victim": ("greedy", "fifo")}, requests=10)
    )
    assert DRIVE.with_settings(text for text in ["gc.victim=fifo"])


def test_a_wrong_argument_is_a_type_error_too() -> None:
    with pytest.raises(TypeError):
        Ssd.named(3)  # type: ignore[arg-type]
    assert issubclass(ArgumentError, FlashwrightError) and not issubclass(
        ArgumentError, WorkloadError
    )


DEEP = "[" * 20_000
NESTED = [
    "geometry = 5",
    "geometry = []",
    "[geometry]\nchannels = { a = 1 }",
    "[geometry]\nchannels = [4]",
    "[geometry.channels.more]\nx = 1",
    "name = { a = 1 }",
    "gc = [[1]]",
    "[[gc]]\nvictim = 'greedy'",
    "[gc]\nvictim = 1979-05-27",
    "[gc]\nvictim = nan",
    "seeds = { a = 1 }",
    "seeds = [[1]]",
    "[grid]\n'gc.victim' = { a = 1 }",
    "[grid]\n'gc.victim' = [[1]]",
    "grid = 5",
    "drive = []",
    "drive = 'default'\nworkload = { uniform = 1 }",
    "drive = 'default'\nrequests = 'x'",
    "drive = 'default'\nrequests = 1.5",
    "drive = 'default'\nseeds = true",
    "profile = 5",
    "profile = []",
    "[profile]\nversion = 1\ntarget = []",
    "[profile]\ntarget = { name = [] }\n[findings]\nx = 1",
    "[findings]\nmapping = 5",
    "[profile.findings.mapping]\nvalue = { a = [ { } ] }",
    "[host]\nprofile = []",
    "a = " + DEEP + "]" * len(DEEP),
    "a = " + DEEP,
    "a = " + "{ a = " * 5000,
    "[" + ".".join(["a"] * 5000) + "]",
    "a" * 1_000_000,
    "\0",
    "",
]
UNREADABLE: list[bytes] = [
    b"\xff\xfe\x00",
    b"name = '\xff'",
    b"\x00" * 5000,
    b"\xef\xbb\xbfname = 5",
]

FILES: dict[str, Callable[[Path], list[object]]] = {
    "drive": lambda path: ["simulate", path, "--workload", "uniform", "--requests", 10],
    "sweep": lambda path: ["sweep", path, "--plan"],
    "target": lambda path: ["probe", f"sim:{path}", "--plan"],
    "profile": lambda path: [
        *("replay", "sim:default", "--workload", "uniform", "--requests", 10),
        *("--scheduler", "parallelism-aware", "--profile", path),
    ],
    "against": lambda path: ["probe", "sim:default", "--against", path],
    "smart": lambda path: ["lifetime", "smart", path],
    "trace": lambda path: ["simulate", "default", "--trace", path],
    "info": lambda path: ["trace", "info", path],
    "policy": lambda path: ["simulate", "default", "--policy", f"{path}:Mine"],
    "resume": lambda path: ["simulate", "--resume", path],
}


def refused(command: Cli, arguments: list[object]) -> None:
    said = command(*arguments)
    assert "internal error" not in said.err, said.err
    assert said.status == 0 or (said.status == 2 and said.err.startswith("error: ")), said


@pytest.mark.parametrize("kind", list(FILES))
def test_files_with_odd_content(kind: str, command: Cli, tmp_path: Path) -> None:
    path = tmp_path / "odd.toml"
    for content in [*(text.encode() for text in NESTED), *UNREADABLE]:
        path.write_bytes(content)
        refused(command, FILES[kind](path))


@pytest.mark.parametrize("kind", list(FILES))
def test_folders_and_what_is_not_there(kind: str, command: Cli, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.toml", Path("/dev/null"), tmp_path / "a" / "b.toml"):
        said = command(*FILES[kind](path))
        # A drive of which nothing is said is the default one.
        assert said.status == 2 or str(path) == "/dev/null", (path, said)
        assert "internal error" not in said.err, said.err


def test_a_fault_of_the_program_is_one_line(
    command: Cli, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("nobody foresaw this")

    monkeypatch.setattr("flashwright.cli.devices.bundled", broken)
    said = command("devices")
    assert said.status == 1
    assert said.err == (
        "error: internal error: KeyError: 'nobody foresaw this'\n"
        "hint: this is a bug: please report it with the command that led here; "
        "FLASHWRIGHT_TRACEBACK=1 shows the traceback\n"
    )
    monkeypatch.setenv("FLASHWRIGHT_TRACEBACK", "1")
    assert cli.run(["devices"]) == 1
    assert "Traceback (most recent call last):" in capfd.readouterr().err


def test_a_library_that_the_machine_lacks_is_named(
    command: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ImportError(
            "libstdc++.so.6: cannot open shared object file: No such file or directory"
        )

    monkeypatch.setattr("flashwright.cli.devices.bundled", broken)
    said = command("devices")
    assert (said.status, said.err) == (
        2,
        "error: libstdc++.so.6: a library that Python's packages load is not on this machine\n"
        "hint: install it with the system's packages: libstdc++.so.6 is in Debian's libstdc++6\n",
    )


SSD = Ssd.named("default")
# What is called in Python, what is said there, and what the command line says of the same.
FACES: list[tuple[Callable[[], object], str, str]] = [
    (
        lambda: SSD.play("uniform", requests=10, depth=2, time_scale=2.0),
        "depth and time_scale: found both, expected one of them",
        "--depth and --time-scale: found both, expected one of them",
    ),
    (
        lambda: flashwright.replay("/dev/null", "uniform", settings=["gc.victim=fifo"]),
        "settings: gc.victim: found with a device or file, expected only with sim:DEVICE; "
        "of a real drive only the schedulers before it can be set; see also queue_depth=",
        "--set: gc.victim: found with a device or file, expected only with sim:DEVICE; "
        "of a real drive only the schedulers before it can be set; see also --queue-depth",
    ),
    (
        lambda: SSD.with_settings(["host.scheduler=elevator"]),
        'settings: host.scheduler: found "elevator", expected ',
        '--set: host.scheduler: found "elevator", expected ',
    ),
    (
        lambda: flashwright.replay("sim:default", "uniform", time_limit=-3.0),
        "time_limit: found -3, expected a number from 0.000001 to 1,000,000; time_scale=0.5 plays ",
        "--time-limit: found -3, expected a number from 0.000001 to 1,000,000; --time-scale 0.5 plays ",
    ),
    (
        lambda: flashwright.probe(SSD, only=["none"]),
        "only: found 'none', expected one of plausible, ",
        "--only: found 'none', expected one of plausible, ",
    ),
    (
        lambda: flashwright.replay(SSD, "uniform", seed=-1),
        "replay: seed: found -1, expected ",
        "--seed: found -1, expected ",
    ),
    (
        lambda: workloads.trace("/no/such/file"),
        "/no/such/file: there is no such file; ",
        "/no/such/file: there is no such file; ",
    ),
    (
        lambda: SSD.play(workloads.trace("bundled:pgbench", format="sbc"), requests=9),
        'there is no trace format "sbc"; did you mean "spc"?; ',
        'there is no trace format "sbc"; did you mean "spc"?; ',
    ),
]


@pytest.mark.parametrize(("call", "in_python", "typed"), FACES, ids=[row[1] for row in FACES])
def test_errors_name_parameters_and_the_command_line_its_options(
    call: Callable[[], object], in_python: str, typed: str
) -> None:
    with pytest.raises(FlashwrightError) as error:
        call()
    assert f"{error.value}; {error.value.hint}".startswith(in_python)
    assert "; ".join(as_typed(error.value)).startswith(typed)


def test_what_is_in_quotes_or_a_key_stays_as_it_is() -> None:
    said = WorkloadError(
        "depth: found 'depth', expected gc.depth=4 or uniform:depth=4",
        "such as depth=4 or `depth=8`",
        parameters=["depth"],
    )
    assert as_typed(said) == (
        "--depth: found 'depth', expected gc.depth=4 or uniform:depth=4",
        "such as --depth 4 or `--depth 8`",
    )


def test_no_message_of_the_library_names_an_option() -> None:
    """Python has no options; those of other programs, and of commands that a hint spells out, are none of ours."""
    home = Path(flashwright.__file__).parent
    groups = [load(name) for names in COMMANDS.values() for name in names]
    commands = [
        each for group in groups for each in getattr(group, "commands", {"": group}).values()
    ]
    ours = {option for each in commands for param in each.params for option in param.opts}
    said = [
        (path.relative_to(home), option)
        for path in home.rglob("*.py")
        if path.relative_to(home).parts[0] not in ("cli", "papers")
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Raise)
        for text in ast.walk(call)
        if isinstance(text, ast.Constant) and isinstance(text.value, str)
        for option in re.findall(r"--[a-z][a-z-]*", re.sub("`.*?`", "", text.value))
        if option in ours
    ]
    assert said == []
