"""Profiles: what is written reads as the same, what contradicts itself is refused, and commands play on the twin."""

from __future__ import annotations

import tomllib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import SMALL, Cli
from flashwright import Ssd
from flashwright.drive.contradictions import PARAMETERS, reconcile
from flashwright.drive.findings import Verdict
from flashwright.drive.profilefile import TargetFacts
from flashwright.errors import ConfigError, OutputError
from flashwright.probing.probes import PROBES, Finding
from flashwright.target.target import Target
from flashwright.twin.profile import Profile

KIB, MIB = 1 << 10, 1 << 20

# 2,048 pages of 4 KiB at 0.8; its rows are 256 KiB.
TWIN = Ssd.from_text(SMALL, "twin").with_({"host.scheduler": "noop"})
CAPACITY = 6709248  # 1,638 pages: 0.8 of 2,048

# As somebody would write it.
BY_HAND = f"""
profile = 1
made-by = "a hand"

[target]
name = "/dev/sdb"
kind = "block-device"
capacity = "{CAPACITY} B"
block = "512 B"
real-time = true

[probe]
mode = "quick"
seed = 7
seconds = 93.5

[findings.clustered-page]
verdict = "found"
value = "16 KiB"
low = "15.5 KiB"
high = "16.5 KiB"
confidence = 0.98
why = "writes of its multiples are fast"

[findings.clustered-page.figures]
notch_ns = 1.5e5

[findings.clustered-block]
verdict = "found"
value = "4 MiB"
confidence = 0.9

[findings.read-buffer]
verdict = "absent"
confidence = 0.9

[findings.write-buffer]
verdict = "found"
value = "255 KiB"
confidence = 1

[findings.buffer-kind]
verdict = "found"
value = "buffer"
confidence = 0.8

[findings.flush-time]
verdict = "found"
value = "1.25 ms"

[findings.parallel-units]
verdict = "found"
value = 4
unit = "units"

[findings.mapping]
verdict = "unknown"
why = "flat curves"

[declared]
minimum-io-size = 4096
"""
_TWIN_TABLES = SMALL.split("\n\n", 1)[1].replace("[", "[twin.")
WITH_TWIN = BY_HAND + '\n[twin]\nname = "twin"\n\n' + _TWIN_TABLES


def edited(*changes: tuple[str, str]) -> str:
    """The profile with some of its text changed."""
    text = BY_HAND
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def same(one: Finding, other: Finding) -> bool:
    """Whether findings agree in all but their plots; the class itself compares by identity."""
    return all(
        getattr(one, part.name) == getattr(other, part.name)
        for part in fields(Finding)
        if part.name != "plots"
    )


sectors = st.integers(1, 2**30).map(lambda count: count * 512)
confidence = st.floats(0, 1)
figures = st.dictionaries(
    st.text(min_size=1, max_size=12), st.floats(allow_nan=False) | st.integers(-(2**63), 2**63 - 1)
)
lines = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@st.composite
def numbers(
    draw: st.DrawFn, parameter: str, values: st.SearchStrategy[float], unit: str
) -> Finding:
    value = draw(values)
    low = draw(st.none() | st.just(-np.inf) | st.floats(0, 1).map(lambda share: value * share))
    high = draw(st.none() | st.just(np.inf) | st.floats(1, 3).map(lambda share: value * share))
    parts = draw(st.tuples(confidence, lines, figures))
    return Finding(parameter, "found", value, unit, low, high, parts[0], parts[1], (), parts[2])


@st.composite
def words(draw: st.DrawFn, parameter: str, choices: tuple[str, ...]) -> Finding:
    word = draw(st.sampled_from(choices))
    return Finding(parameter, "found", word, "", confidence=draw(confidence), why=draw(lines))


def beyond(finding: Finding, capacity: int) -> bool:
    """Whether it is a size that no drive of this capacity has."""
    size = finding.value if isinstance(finding.value, int | float) else 0
    return finding.unit == "B" and size > capacity


@st.composite
def nothing(draw: st.DrawFn, parameter: str, unit: str) -> Finding:
    verdicts: tuple[Verdict, ...] = ("absent", "unknown")
    verdict = draw(st.sampled_from(verdicts))
    parts = draw(st.tuples(confidence, lines, figures))
    return Finding(parameter, verdict, None, unit, None, None, parts[0], parts[1], (), parts[2])


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    """Profiles without contradictions, whose values have all units and shapes."""
    page = draw(sectors)
    times = st.floats(1e-6, 1e15) | st.integers(1, 2**62)
    found = [
        draw(numbers("clustered-page", st.just(page), "B") | nothing("clustered-page", "B")),
        draw(numbers("clustered-block", st.integers(1, 999).map(lambda k: k * page), "B")),
        draw(numbers("cleaning-interval", st.floats(1, 1e15), "B")),
        draw(numbers("cleaning-stall", times, "ns") | nothing("cleaning-stall", "ns")),
        draw(numbers("flush-time", times, "ns")),
        draw(numbers("parallel-units", st.integers(1, 500), "units")),
        draw(numbers("spare-space", st.floats(1, 3), "")),
        draw(words("mapping", ("page", "log-block")) | nothing("mapping", "")),
    ]
    plain = st.dictionaries(
        lines, st.booleans() | st.integers(0, 9) | lines | st.lists(st.floats(0, 1)), max_size=3
    )
    capacity = draw(st.just(CAPACITY) | st.integers(2**39, 2**40).map(lambda k: k * 512))
    return Profile(
        TargetFacts(draw(lines), "file", capacity, 4096, draw(st.booleans())),
        {
            finding.parameter: finding
            for finding in found
            if draw(st.booleans()) and not beyond(finding, capacity)
        },
        draw(st.sampled_from(["quick", "full", "described"])),
        draw(st.integers(0, 2**63 - 1)),
        draw(st.floats(0, 1e6)),
        draw(plain),
        TWIN if capacity == CAPACITY else None,
        {"random-reads": {"mean": draw(st.floats(0, 1e9))}},
        draw(plain),
        draw(lines),
    )


@settings(max_examples=40, deadline=None, derandomize=True)
@given(profiles())
def test_what_is_written_reads_as_the_same(profile: Profile) -> None:
    back = Profile.from_text(profile.to_toml())
    assert list(back.findings) == list(profile.findings)
    assert all(same(back.findings[name], profile.findings[name]) for name in profile.findings)
    for part in fields(Profile):
        if part.name != "findings":
            assert getattr(back, part.name) == getattr(profile, part.name), part.name
    assert back == profile and back.to_toml() == profile.to_toml()


def test_a_profile_that_a_hand_wrote_means_what_it_says() -> None:
    profile = Profile.from_text(edited(('value = "16 KiB"', 'value = " 16KiB"')))
    assert profile.target == TargetFacts("/dev/sdb", "block-device", CAPACITY, 512, True)
    assert profile.findings["clustered-page"].value == 16 * KIB
    assert profile.findings["clustered-page"].low == 15.5 * KIB
    assert profile.findings["clustered-page"].figures == {"notch_ns": 150_000}
    assert profile.findings["flush-time"].value == 1_250_000
    assert (profile.mode, profile.seed, profile.seconds) == ("quick", 7, 93.5)
    assert profile.declared == {"minimum-io-size": 4096}
    assert profile.host_profile() == {
        "clustered-page": "16 KiB",
        "clustered-block": "4 MiB",
        "read-buffer": "none",
        "write-buffer": "255 KiB",
    }
    assert Profile.from_text(WITH_TWIN) != profile


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("profile = 1", "profile = 2", "profile: found 2, expected the layout number 1"),
        ("profile = 1", 'profile = "1"', "profile: found '1', expected the layout number 1"),
        ('made-by = "a hand"', "made-by = 3", "made-by: found 3, expected text"),
        ("[declared]", "[declares]", "declares: found an unknown key; did you mean declared?"),
        ('kind = "block-device"', 'kind = "disk"', "target.kind: found 'disk', expected one of"),
        ('block = "512 B"', 'block = "500 B"', "target.block: found '500 B', expected a size of"),
        ('block = "512 B"', "block = 512", "target.block: found 512, expected a size of whole"),
        ("real-time = true", "real-time = 1", "target.real-time: found 1, expected true or false"),
        (
            'block = "512 B"',
            'block = "512 B"\nblocks = 3',
            "target.blocks: found an unknown key; did you mean block?, expected one of name, kind",
        ),
        ("seed = 7", "seed = -7", "probe.seed: found -7, expected a whole number from 0"),
        ('mode = "quick"', 'mode = "fast"', "probe.mode: found 'fast', expected one of quick,"),
        ("[findings.mapping]", "[findings.maping]", "findings.maping: found an unknown key; did"),
        ('value = "4 MiB"', "", "clustered-block.value: found nothing, expected a value"),
        (
            'verdict = "unknown"',
            'verdict = "unknown"\nvalue = "page"',
            "findings.mapping.value: found 'page', expected none with the verdict unknown",
        ),
        (
            'value = "16 KiB"',
            'value = "64 KiB"',
            "findings.clustered-page.value: found '64 KiB', expected 15.5 KiB to 16.5 KiB",
        ),
        (
            'value = "4 MiB"',
            'value = "4104 KiB"',
            "findings.clustered-block.value: found '4104 KiB', expected a multiple of the "
            "clustered page, 16 KiB",
        ),
        (
            'value = "255 KiB"',
            'value = "254.2 KiB"',
            "findings.write-buffer.value: found '254.2 KiB', expected a multiple of 512 B",
        ),
        (
            'value = "255 KiB"',
            'value = "255 MiB"',
            "findings.write-buffer.value: found '255 MiB', expected at most the drive's 6552 KiB",
        ),
        ('value = "255 KiB"', "value = 261120", "found 261120, expected a size such as"),
        ('value = "255 KiB"', 'value = "255 ms"', "found '255 ms', expected a size such as"),
        ('value = "255 KiB"', 'value = "large"', "found 'large', expected a size such as"),
        ('low = "15.5 KiB"', 'low = "15 ms"', "clustered-page.low: found '15 ms', expected a size"),
        ('value = "1.25 ms"', 'value = "about 1 ms!"', "found 'about 1 ms!', expected a number"),
        ('value = "buffer"', 'value = "fifo"', "found 'fifo', expected buffer or cache"),
        ("confidence = 0.98", "confidence = 98", "confidence: found 98, expected 0 to 1"),
        ("confidence = 0.98", "confidence = true", "confidence: found True, expected a number"),
        ("notch_ns = 1.5e5", 'notch_ns = "much"', "figures.notch_ns: found 'much', expected a num"),
        (
            'verdict = "found"\nvalue = "255 KiB"',
            'verdict = "absent"',
            "findings.buffer-kind.value: found 'buffer', expected none without a write buffer",
        ),
        (
            "[declared]",
            '[findings.prefetch-size]\nverdict = "found"\nvalue = "64 KiB"\n\n[declared]',
            "findings.prefetch-size.value: found '64 KiB', expected none without prefetching",
        ),
        (
            "[declared]",
            '[findings.stripe]\nverdict = "found"\nvalue = "40 KiB"\n\n[declared]',
            "findings.stripe.value: found '40 KiB', expected a multiple of the clustered page",
        ),
        (
            '[findings.read-buffer]\nverdict = "absent"',
            '[findings.read-buffer-least]\nverdict = "found"\nvalue = "512 KiB"\n\n'
            '[findings.read-buffer]\nverdict = "found"\nvalue = "256 KiB"',
            "read-buffer-least.value: found '512 KiB', expected at most the read buffer, 256 KiB",
        ),
    ],
)
def test_an_edit_that_contradicts_is_one_line(old: str, new: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Profile.from_text(edited((old, new)), "drive.toml")
    message = str(caught.value)
    assert "\n" not in message and message.startswith("drive.toml: ")
    assert says in message and caught.value.hint != ConfigError.general_hint


def test_several_faults_are_a_line_each() -> None:
    with pytest.raises(ConfigError) as caught:
        Profile.from_text(edited(("seed = 7", "seed = 0.5"), ("confidence = 1\n", "sure = 1\n")))
    assert len(str(caught.value).splitlines()) == 2


def test_a_twin_of_another_size_is_refused() -> None:
    larger = WITH_TWIN.replace("utilization = 0.8", "utilization = 0.7")
    with pytest.raises(ConfigError, match=r"twin.capacity: found '.*', expected the target's"):
        Profile.from_text(larger)
    with pytest.raises(ConfigError, match=r"profile: twin: gc\.victm: unknown key"):
        Profile.from_text(WITH_TWIN + "\n[twin.gc]\nvictm = 'fifo'\n")
    made = Profile.from_text(WITH_TWIN)
    assert made.twin is not None
    with pytest.raises(ConfigError, match="preconditioned"):
        replace(made, twin=made.twin.precondition("random")).to_toml()


def test_what_could_not_be_read_again_is_not_written(tmp_path: Path) -> None:
    profile = Profile.from_text(BY_HAND)
    path = tmp_path / "drive.toml"
    profile.save(path)
    before = path.read_text()
    block = replace(profile.findings["clustered-block"], value=4 * MIB + 512)
    torn = replace(profile, findings={**profile.findings, "clustered-block": block})
    with pytest.raises(ConfigError, match="a multiple of the clustered page"):
        torn.save(path)
    assert path.read_text() == before and list(tmp_path.iterdir()) == [path]
    assert Profile.from_toml(path) == profile
    with pytest.raises(OutputError):
        profile.save(tmp_path / "nowhere" / "drive.toml")
    mended = replace(torn, findings=reconcile(torn.findings))
    assert mended.findings["clustered-block"].verdict == "unknown"
    assert "a multiple of the clustered page" in mended.findings["clustered-block"].why
    mended.save(path)


def test_findings_that_agree_are_left_as_they_are() -> None:
    findings = Profile.from_text(BY_HAND).findings
    kept = reconcile(findings, CAPACITY)
    assert all(kept[name] is finding for name, finding in findings.items())
    doubtful = {
        "prefetch-size": Finding("prefetch-size", "found", 64 * KIB, "B", confidence=1.0),
        "clustered-page": Finding("clustered-page", "found", 1000, "B", confidence=2.0),
        "mapping": Finding("mapping", "absent", "page"),
    }
    assert {finding.verdict for finding in reconcile(doubtful).values()} == {"unknown"}


def test_numbers_of_numpy_are_written() -> None:
    size: Any = np.int64(16384)
    share: Any = np.float32(0.5)
    page = Finding(
        "clustered-page", "found", size, "B", np.float64(16000), None, np.float64(0.5),
        figures={"share": share},
    )  # fmt: skip
    facts = TargetFacts("a", "file", CAPACITY)
    text = Profile(facts, {page.parameter: page}, calibration={"n": np.int64(3)}).to_toml()
    assert tomllib.loads(text)["findings"]["clustered-page"]["value"] == "16 KiB"
    assert same(Profile.from_text(text).findings["clustered-page"], page)


def test_facts_of_an_open_target() -> None:
    with Target(TWIN) as target:
        facts = TargetFacts.of(target)
    assert facts == TargetFacts("twin", "simulated", CAPACITY, 512, False)
    assert Profile(facts, twin=TWIN).to_toml()


@pytest.fixture
def with_twin(tmp_path: Path) -> Path:
    path = tmp_path / "probed.toml"
    path.write_text(WITH_TWIN)
    return path


def test_commands_play_on_the_twin(command: Cli, with_twin: Path, small: str) -> None:
    load = ("--workload", "uniform:write=0.5", "--requests", 3000, "--json", "-", "-q")
    said = command("simulate", with_twin, *load)
    assert said.status == 0, said.err
    profile = said.json["config"]["host"]["profile"]
    assert profile == Profile.from_text(BY_HAND).host_profile()
    plain = command("simulate", small, *load)
    assert said.json["digest"] == plain.json["digest"]
    both = command("compare", with_twin, "--vary", "host.scheduler=noop,pasa", *load)
    assert both.status == 0, both.err
    layers = [run["host_layers"][0]["scheduler"] for run in both.json["runs"]]
    assert layers == ["noop", "pasa"]
    again = command("replay", f"sim:{with_twin}", *load, "--depth", 4, "--scheduler", "pai")
    assert again.status == 0, again.err


def test_a_replay_takes_the_sizes_of_a_profile(command: Cli, tmp_path: Path) -> None:
    path = tmp_path / "probed.toml"
    path.write_text(BY_HAND)
    load = ("--workload", "uniform:write=1,size=512KiB", "--requests", 200, "--depth", 4)
    cut = command(
        "replay", "sim:default", *load, "--scheduler", "pas", "--profile", path, "--json", "-"
    )
    assert cut.status == 0, cut.err
    # 512 KiB leave in pieces of at most 255 KiB.
    assert cut.json["host_layers"][0]["writes"]["requests"] == 3 * 200


def test_commands_say_what_is_wrong_with_a_profile(command: Cli, tmp_path: Path) -> None:
    path = tmp_path / "probed.toml"
    path.write_text(BY_HAND)
    said = command("simulate", path, "--workload", "uniform")
    assert said.status == 2
    assert said.err.startswith("error: /dev/sdb: found a profile without a twin, expected one")
    path.write_text(edited(("confidence = 0.98", "confidence = 98")))
    for arguments in (
        ("simulate", path, "--workload", "uniform"),
        ("replay", "sim:default", "--workload", "uniform", "--profile", path),
    ):
        said = command(*arguments)
        faults = [line for line in said.err.splitlines() if line.startswith("error: ")]
        assert said.status == 2 and len(faults) == 1
        assert "findings.clustered-page.confidence: found 98, expected 0 to 1" in faults[0]
        assert "hint: it is a share, not a percentage" in said.err


def test_a_profile_knows_what_probes_tell_and_nothing_else() -> None:
    assert set(PARAMETERS) == {name for probe in PROBES for name in probe.PARAMETERS}
