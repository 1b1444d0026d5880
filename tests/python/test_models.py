"""Models fitted to traces: the command, the calls, and what bad input is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import Cli
from flashwright import Ssd, errors, fit_trace, workloads
from flashwright.traces.models import generate

PAGES = 300


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """600 writes of 4 KiB to pages in a scattered order, twice, a millisecond apart."""
    path = tmp_path_factory.mktemp("models") / "trace.spc"
    lines = (f"0,{i * 7 % PAGES * 8},4096,w,{i / 1000:.3f}\n" for i in range(2 * PAGES))
    path.write_text("".join(lines))
    return path


def test_the_command_fits_and_its_model_plays(command: Cli, trace: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.toml"
    done = command("trace", "fit", trace, "-o", model)
    assert done.out.startswith(f"{model}: ") and "600 requests: 0 reads, 600 writes" in done.out
    assert str(trace) not in model.read_text()
    printed = command("trace", "fit", trace, "-o", "-")
    assert printed.out == model.read_text()
    run = command(
        "simulate", "--workload", f"model:{model}", "--requests", "500", "--json", "-"
    ).json
    assert run["requests"]["write"] == 500
    head = command("trace", "fit", trace, "-o", model, "--requests", "200", "-q")
    assert head.out == "" and "requests = 200" in model.read_text()
    small = command("trace", "fit", trace, "-o", model, "--kind", "statistics")
    assert small.status == 0 and "[mix]" in model.read_text()
    wrong = command("trace", "fit", trace, "-o", model, "--kind", "bootstrap")
    assert (wrong.status, wrong.err.count("\n")) == (2, 1)
    assert "--kind: found 'bootstrap', expected sequence or statistics" in wrong.err


def test_python_fits_generates_and_plays(trace: Path, tmp_path: Path) -> None:
    model = fit_trace(trace)
    assert model.figures["footprint"]["pages"] == PAGES
    file = model.save(tmp_path / "model.toml")
    workload = workloads.model(file, scale=0.5, depth=4)
    assert workload.label is not None and "600 requests of a trace, in segments" in workload.label
    table = generate(workload, requests=700, capacity="1GiB", seed=3)
    assert table.num_rows == 700 and table == generate(
        workload, requests=700, capacity="1GiB", seed=3
    )
    assert table != generate(workload, requests=700, capacity="1GiB", seed=4)
    run = Ssd.named("default").play(workload, requests=400)
    assert run.json["requests"]["write"] == 400


def test_what_is_new_lies_on_new_pages(tmp_path: Path) -> None:
    """The recording reads no page twice; what is played hardly does."""
    fitted = fit_trace("bundled:sqlite", requests=40_000, kind="statistics")
    model = workloads.model(fitted.save(tmp_path / "model.toml"))
    capacity = fitted.figures["footprint"]["most-regions"] * 2**22
    table = generate(model, requests=40_000, capacity=capacity, seed=2).to_pydict()
    requests = zip(table["kind"], table["first_sector"], strict=True)
    reads = [first // 8 for kind, first in requests if kind == "read"]
    assert len(reads) - len(set(reads)) < len(reads) / 200


def test_a_sequence_plays_what_the_trace_asks_for(tmp_path: Path) -> None:
    """A round of it has the trace's sizes and kinds, and its sequential requests but where segments meet."""
    fitted = fit_trace("bundled:pgbench", requests=10_000)
    model = workloads.model(fitted.save(tmp_path / "model.toml"))
    table = generate(model, requests=10_000, capacity="8GiB", seed=2)
    kinds = table["kind"].to_pylist()
    for kind, name in (("read", "reads"), ("write", "writes"), ("flush", "flushes")):
        assert kinds.count(kind) == fitted.figures["fitted"][name]
    first, sectors = table["first_sector"].to_pylist(), table["sectors"].to_pylist()
    covered = {first[i] // 8 + page for i in range(10_000) for page in range(-(-sectors[i] // 8))}
    assert len(covered) == fitted.figures["footprint"]["pages"]


def test_a_changed_model_is_refused(trace: Path, tmp_path: Path) -> None:
    file = fit_trace(trace).save(tmp_path / "model.toml")
    spec = workloads.model(file).spec
    file.write_text(file.read_text() + "# a remark\n")
    with pytest.raises(errors.WorkloadError, match="the file was changed"):
        workloads.parse(spec)


def test_what_cannot_be_fitted_or_played_is_told_in_one_line(
    command: Cli, trace: Path, tmp_path: Path
) -> None:
    short = tmp_path / "short.spc"
    short.write_text("0,0,4096,w,0.0\n" * 20)
    model = tmp_path / "model.toml"
    said = command("trace", "fit", short, "-o", model)
    assert said.status == 2 and not model.exists()
    assert "found 20 reads, writes and trims, expected at least 100" in said.err
    assert command("trace", "fit", trace, "-o", tmp_path / "none" / "model.toml").status == 2
    none = command("trace", "fit", trace, "-o", model, "--requests", "0")
    assert none.status == 2 and "--requests: found 0, expected 1 or more" in none.err
    command("trace", "fit", trace, "-o", model, "--kind", "statistics")
    model.write_text(model.read_text().replace("\nforced = 0", "\nforced = 3"))
    edited = command("simulate", "--workload", f"model:{model}", "--requests", "10")
    assert edited.status == 2
    assert f"{model}: mix.forced: found 3, expected a share from 0 to 1" in edited.err
    for line in (said, none, edited):
        assert line.err.count("\n") <= 2, line.err
    with pytest.raises(errors.ArgumentError, match="capacity"):
        generate("uniform", requests=10, capacity=100)
    with pytest.raises(errors.WorkloadError, match="a program that waits for a drive"):
        generate("postmark", requests=10, capacity="1GiB")
