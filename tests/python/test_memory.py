"""Where memory ends: an error, in a process of Python that goes on. Each process has a limit of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FEW_THREADS = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
# What was freed goes back at once: else a try under a limit lives on what the try before it left in the process.
NOTHING_KEPT = {
    **FEW_THREADS,
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": "65536",
    "MALLOC_TRIM_THRESHOLD_": "65536",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
MIB = 1 << 20

# What may be taken beyond what the process has, and the work that is tried with it, again and again in one process.
LIMITED = f"""
import json, resource, sys
import numpy, pyarrow
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parent)!r})
from nbdclient import Nbd, NbdError
from flashwright import Ssd, serve, workloads
from flashwright.errors import ConfigError
from flashwright.simulation.run import Run, RunSettings
from flashwright.traces.compare import statistics
from flashwright.traces.models import fit_trace, generate

def rows(folder):
    settings = RunSettings(requests=600_000, keep_requests=True)
    run = Run.create(Ssd.named("default").toml, "empty", workloads.uniform(write=1), settings)
    while not run.step(100_000):
        pass
    return run.result().requests().num_rows

def saved(folder):
    settings = RunSettings(requests=300_000, keep_requests=True)
    run = Run.create(Ssd.named("default").toml, "empty", workloads.uniform(write=1), settings)
    run.step(300_000)
    run.save(folder / "run")
    return (folder / "run").stat().st_size > 0

def fitted(folder):
    return len(fit_trace("bundled:pgbench").text) > 0

def analysed(folder):
    return statistics("bundled:pgbench", requests=300_000)["writes"] > 0

def drawn(folder):
    return generate("uniform:write=1", requests=2_000_000, capacity="1 GiB").num_rows

def served(folder):
    large = Ssd.named("default").with_({{"geometry.blocks-per-plane": 512}})
    with serve(large, f"unix:{{folder / 'nbd'}}") as drive, Nbd(drive.uris[0]) as client:
        try:
            for at in range(150):
                client.write(at << 20, (b"%8d" % at) * (1 << 17))
        except NbdError as error:
            assert error.errno == 5, error
            assert all(client.read(each << 20, 4096)[:8] == b"%8d" % each for each in range(at))
            resource.setrlimit(resource.RLIMIT_AS, whole)
            raise MemoryError from None
    return at

folder, work = Path(sys.argv[1]), globals()[sys.argv[2]]
whole = resource.getrlimit(resource.RLIMIT_AS)
expected = work(folder)
ends = []
for more in json.loads(sys.argv[3]):
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + (more << 20), whole[1]))
    try:
        ends.append(work(folder) == expected)
    except (MemoryError, ConfigError) as error:
        assert isinstance(error, MemoryError) or "tables need" in str(error), error
        ends.append(None)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, whole)
assert work(folder) == expected
print(json.dumps(ends))
"""


@pytest.mark.parametrize("work", ["rows", "saved", "fitted", "analysed", "drawn", "served"])
def test_memory_that_ends_is_an_error_and_not_the_end_of_the_process(
    tmp_path: Path, work: str
) -> None:
    """With much it does what it does without a limit, with little it raises MemoryError; afterwards all works."""
    limits = [0, 1, 8, 16, 24, 32, 48, 64, 96, 128, 192, 2048]
    said = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path), work, json.dumps(limits)],
        capture_output=True, text=True, timeout=300, check=False, env=NOTHING_KEPT,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    ends = json.loads(said.stdout)
    assert None in ends and ends[-1] is True and False not in ends, f"{ends}\n{said.stderr}"


def test_a_command_with_little_memory_ends_in_one_line() -> None:
    """From what the interpreter needs to start to what the command needs."""
    program = (
        "import resource, sys; most = int(sys.argv.pop(1)) << 20; "
        "resource.setrlimit(resource.RLIMIT_AS, (most, most)); "
        "from flashwright import cli; sys.exit(cli.run(sys.argv[1:]))"
    )
    ends = {}
    for most in range(48, 112, 4):
        said = subprocess.run(
            [sys.executable, "-c", program, str(most), "simulate", "default", "--requests", "2000",
             "--workload", "uniform:write=1", "--quiet", "--json", "-"],
            capture_output=True, text=True, timeout=120, check=False, env=FEW_THREADS,
        )  # fmt: skip
        faults = [line for line in said.stderr.splitlines() if line.startswith("error: ")]
        ends[most] = said.returncode
        assert said.returncode in (0, 2) and "Traceback" not in said.stderr, (most, said.stderr)
        if said.returncode:
            assert len(faults) == 1 and "memory" in faults[0] and "internal" not in faults[0], (
                most,
                said.stderr,
            )
    assert ends[48] == 2 and ends[108] == 0, ends


CHECKED = """
import resource
from flashwright import Ssd

def peak_kib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

Ssd.named("default").check()
ssd, before = Ssd.named("fusion-iodrive"), peak_kib()
ssd.check()
print(peak_kib() - before)
"""


def test_a_drive_is_checked_without_its_tables() -> None:
    """Those of the largest bundled drive take 715 MiB; what it has for each block is little."""
    said = subprocess.run(
        [sys.executable, "-c", CHECKED],
        stdout=subprocess.PIPE, text=True, timeout=120, check=True, env=NOTHING_KEPT,
    )  # fmt: skip
    assert int(said.stdout) < 16 << 10
