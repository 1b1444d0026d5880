"""What tells look-alikes apart: each of these models fooled the rule as it was without that arm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flashwright.drive.findings import Finding
from flashwright.probing.confidence import Cap, capped, caps, claim_of
from flashwright.probing.probes import PROBES
from flashwright.probing.probes.flush import Flush
from flashwright.probing.probes.mapping import Mapping, alternating_writes
from flashwright.probing.probes.parallelism import Parallelism
from flashwright.probing.probes.parallelism.measurements import UnitMeasurements
from flashwright.probing.probes.slc_cache import SlcCache
from flashwright.probing.session import probe
from flashwright.simulation.ssd import Ssd
from flashwright.target.question import UNTESTED, Context
from flashwright.target.target import Target
from othermakes import KIB, MIB, Borrowed, Metered, Mirrored, Model, PageMapped
from recovery import drawn

PAGE = {"clustered-page": Finding("clustered-page", "found", 16 * KIB, "B", confidence=1.0)}


def ask(
    probe: Any, model: Model | Ssd, known: dict[str, Finding] | None = None
) -> dict[str, Finding]:
    with Target(model) as target:
        context = Context(target, "quick", known=PAGE if known is None else known)
        found = probe.run(context)
        assert target.bytes_written <= 1.1 * probe.cost(context).bytes_written
        assert target.bytes_read <= 1.1 * probe.cost(context).bytes_read
    return {one.parameter: one for one in found}


# Confidence


def test_no_verdict_is_surer_than_its_kind_was_right() -> None:
    sure = Finding("clustered-page", "found", 16384, "B", confidence=1.0)
    cap = caps()[claim_of(sure)]
    finding = capped(sure)
    assert finding.confidence == cap.confidence < 1 and finding.figures["evidence_share"] == 1.0
    assert finding.value == sure.value and finding.verdict == sure.verdict
    unsure = Finding("clustered-page", "found", 16384, "B", confidence=0.6)
    assert capped(unsure) is unsure
    assert capped(Finding("of-no-probe", "found", 1, confidence=1.0)).confidence == UNTESTED


def test_caps_are_of_parameters_that_there_are_and_rest_on_families() -> None:
    known = {name for probe in PROBES for name in probe.PARAMETERS}
    for kind, cap in caps().items():
        assert kind.split(":")[0] in known, kind
        assert isinstance(cap, Cap) and 0 <= cap.right <= cap.claims and cap.families >= 1
        # Twenty drives of four families do not make anybody surer than that.
        assert cap.confidence < (0.99 if cap.families > 4 else 0.95), kind
    # What was right on every family and on many of our own drives keeps more.
    assert caps()["clustered-page: a value"].confidence > 0.9 > UNTESTED


def test_a_session_reports_capped_findings() -> None:
    found = probe("sim:ssd-a", mode="quick", only=["clustered-page"])["clustered-page"]
    assert found.confidence <= caps()[claim_of(found)].confidence < found.figures["evidence_share"]


# Mapping


def test_a_cache_of_free_blocks_makes_no_logs() -> None:
    found = ask(Mapping(), Borrowed())["mapping"]
    assert found.verdict == "unknown", found.why
    assert found.figures["in_order_over_random_in_turns"] < 1.3
    assert "does not ask where they go" in found.why


def test_logs_are_still_found() -> None:
    only = ["clustered-page", "mapping"]
    found = probe(drawn(5012), mode="quick", drive_time=1e6, only=only)["mapping"]
    assert found.value == "log-block"
    assert found.figures["in_order_over_random_in_turns"] > 3


def test_turns_need_random_writes_to_become_slow_again() -> None:
    speeds = iter([9.0] * 20)
    none = alternating_writes(1.0, 4, lambda first: 9.0, lambda: next(speeds))
    assert none.gain == 0 and "show nothing" in none.text


# Units and stripes


def test_a_limit_of_bytes_makes_no_single_unit() -> None:
    found = ask(Parallelism(), Metered())
    assert found["stripe"].verdict == "unknown", found["stripe"].why
    assert "heat or a limit of bytes" in found["stripe"].why
    assert found["parallel-units"].value in (None, 4)


def test_places_that_recur_late_are_no_units() -> None:
    found = ask(Parallelism(), Mirrored())["parallel-units"]
    assert found.verdict == "unknown" and "of a stripe over members" in found.why, found.why
    assert found.figures["random_pairs_over_expected"] == pytest.approx(2, rel=0.3)


def test_a_drift_in_time_is_no_function_of_distance() -> None:
    """A drive that becomes slower from read to read: no distance differs from another."""

    class Drifting(PageMapped):
        def serve(self, kind: int, offset: int, size: int, at: float) -> float:
            return at + 1e5 * (1 + at / 1e9)

    with Target(Drifting()) as target:
        asked = UnitMeasurements(Context(target, "quick", known=PAGE), 16 * KIB)
        level = np.median(asked._at_distances(1, 40), axis=1)
    trend = np.corrcoef(np.arange(level.size), level)[0, 1]
    assert abs(trend) < 0.5
    assert level.max() < 1.35 * level.min()


# The SLC cache


@pytest.mark.parametrize("seed", [5021, 5023])
def test_parts_of_pages_make_no_cache(seed: int) -> None:
    """Clustered pages of 48 and 40 KiB, of which 128 KiB are no multiple."""
    only = ["clustered-page", "slc-cache"]
    found = probe(drawn(seed), mode="quick", drive_time=1e6, only=only)
    assert found["slc-cache"].verdict == "absent", found["slc-cache"].why


def test_without_a_known_page_no_cache_is_claimed() -> None:
    known = ask(SlcCache(), PageMapped(slc_share=0.1))["slc-cache"]
    assert known.verdict == "found"
    found = ask(SlcCache(), PageMapped(slc_share=0.1), {})["slc-cache"]
    assert found.verdict == "unknown" and "the clustered page is not known" in found.why


# Flushes


class Behind(PageMapped):
    """Writes end in RAM; a flush waits for their programs, which begin after `idles_ns`."""

    def __init__(self, program_ns: float, idles_ns: float) -> None:
        super().__init__("behind", 64 * MIB)
        self.took, self.idles_ns, self.due = program_ns, idles_ns, 0.0

    def renew(self) -> None:
        super().renew()
        self.due = 0.0

    def serve(self, kind: int, offset: int, size: int, at: float) -> float:
        if kind == 1:
            self.due = at + 20e3 + self.took
            return at + 20e3 * self.jitter()
        return max(at + 10e3, self.due if kind == 3 else 0.0)


@pytest.mark.parametrize(("program_ns", "said"), [(800e3, "yes"), (30e3, None)])
def test_a_flush_shows_itself_without_the_size_of_the_buffer(
    program_ns: float, said: str | None
) -> None:
    figures = {
        "flush_after_write_ns": 10e3 + program_ns,
        "flush_of_nothing_ns": 10e3,
        "read_ns": 60e3,
    }
    buffer = Finding("write-buffer", "unknown", unit="B", figures=figures)
    found = ask(Flush(), Behind(program_ns, 0.0), {"write-buffer": buffer})
    assert found["flush-honoured"].value == said
    assert found["write-buffer-drain"].value == ("eager" if said else None)
