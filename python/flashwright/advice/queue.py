"""How to set up the queue of a drive in its host: our scheduler, that of Linux, and the limits of Linux."""

from __future__ import annotations

import math
import shlex

from flashwright.advice.facts import (
    BEST_REQUEST,
    FS_BLOCK_BYTES,
    Facts,
    rounded_up,
    sized,
)
from flashwright.advice.lines import Line

__all__ = [
    "largest_request",
    "linux_scheduler",
    "own_scheduler",
    "queued_requests",
    "read_ahead",
]

# The largest request that Linux sends, bytes. Measured: a `max_sectors_kb` of 2048 became 1280.
_LARGEST_REQUEST_BYTES = 1280 << 10

# The least `nr_requests` that blk-mq keeps, requests.
_QUEUE_LEAST = 4
# The largest `nr_requests` that is advised. Source: blk-mq refuses more without a scheduler. Chosen: no more with one.
_QUEUE_MOST = 128


def own_scheduler(facts: Facts) -> tuple[Line, str | None]:
    """The scheduler of ours that suits; and its name, unless none is needed or nothing is known."""
    topic = "flashwright scheduler"
    buffers = ("read-buffer", "write-buffer")
    unknown = [name for name in buffers if facts.verdict(name) == "unknown"]
    rests_on: tuple[str, ...]
    if facts.page is not None and facts.page <= FS_BLOCK_BYTES and not unknown:
        sizes = [size for name in buffers if (size := facts.size(name)) is not None]
        if all(size > _LARGEST_REQUEST_BYTES for size in sizes):
            line = facts.line(
                topic,
                f"none: each block of {sized(FS_BLOCK_BYTES)} is whole for the drive, and no buffer is smaller "
                f"than a request of {sized(_LARGEST_REQUEST_BYTES)}, so cutting and aligning gain nothing",
                "clustered-page",
                *buffers,
            )
            return line, None
    any_buffer = any(facts.size(name) is not None for name in buffers)
    if facts.page is not None and (unknown or not any_buffer):
        scheduler, rests_on = "pai", ("clustered-page",)
        what = "what is aligned goes first, the rest waits a little for neighbours"
    elif facts.page is not None:
        scheduler, rests_on = "pasa+pai", ("clustered-page", *buffers)
        what = "requests are cut at clustered pages and to the buffers; what is aligned goes first"
    elif any_buffer and not unknown:
        scheduler, rests_on = "pas", buffers
        what = "requests are cut to the buffers"
    else:
        return facts.silence(topic, "clustered-page", *unknown), None
    settings = [f"host.scheduler={scheduler}"]
    settings += [f"host.profile.{key}={text}" for key, text in facts.profile.host_profile().items()]
    options = " ".join(f"--set {shlex.quote(setting)}" for setting in settings)
    command = f"flashwright replay {facts.disk.path} --trace TRACE {options}"
    text = f"{scheduler}: {what} (Kim et al., section 5)"
    return facts.line(topic, text, *rests_on, commands=(command,)), scheduler


def linux_scheduler(facts: Facts) -> tuple[Line, str | None]:
    """The scheduler of Linux that suits; and its name, if the clustered page is known."""
    topic = "linux scheduler"
    if facts.page is not None and facts.page > FS_BLOCK_BYTES:
        line = facts.line(
            topic,
            f"mq-deadline: adjoining requests meet in its queue and merge, and blocks of {sized(FS_BLOCK_BYTES)} "
            f"are parts of a clustered page of {sized(facts.page)}",
            "clustered-page",
        )
        return line, "mq-deadline"
    if facts.page is not None or facts.verdict("clustered-page") == "absent":
        why = f"none: each block of {sized(FS_BLOCK_BYTES)} is whole for the drive, so that merging gains little"
        return facts.line(topic, why, "clustered-page"), "none"
    return facts.silence(topic, "clustered-page"), None


def largest_request(facts: Facts) -> tuple[Line, int | None]:
    """The largest request of the kernel; and its KiB, unless it stays as it is."""
    topic = "max_sectors_kb"
    if facts.verdict("write-buffer") == "unknown":
        return facts.silence(topic, "write-buffer"), None
    buffer = facts.size("write-buffer")
    if buffer is None:
        return facts.line(topic, "as it is: there is no write buffer to fit", "write-buffer"), None
    pieces, pages = facts.whole_pages(buffer)
    # The kernel takes whole KiB, and no less than a page of memory.
    whole = math.lcm(1024, facts.page or 1)
    pieces = max(pieces // whole * whole, rounded_up(FS_BLOCK_BYTES, whole))
    if pieces > _LARGEST_REQUEST_BYTES:
        most = sized(_LARGEST_REQUEST_BYTES)
        why = f"as it is: Linux cuts requests at {most}, and the write buffer takes {sized(buffer)}"
        return facts.line(topic, why, "write-buffer"), None
    why = (
        f"{pieces >> 10}: the kernel then cuts as PAS does, to the write buffer of {sized(buffer)}"
    )
    return facts.line(topic, why, "write-buffer", *pages), pieces >> 10


def queued_requests(
    facts: Facts, depth: int | None, scheduler: str | None
) -> tuple[Line, int | None]:
    """How many requests the kernel queues for a queue depth under a scheduler; and the number, if it is known."""
    topic = "nr_requests"
    if facts.best_depth is None or depth is None:
        # The units bound the depth from below only, and a limit is about too much.
        missing = "nobody measured bandwidth over queue depth"
        if (finding := facts.finding(BEST_REQUEST)) is not None and finding.why:
            missing = finding.why
        return Line(topic, f"no advice: {missing}", False), None
    if scheduler != "mq-deadline":
        why = "as it is: without a scheduler the drive's own queue is the limit"
        return facts.line(topic, why, facts.best_depth[1]), None
    # As many may wait and merge as are at work.
    count = min(max(2 * depth, _QUEUE_LEAST), _QUEUE_MOST)
    why = f"{count}: twice the queue depth, half at work and half to merge"
    return facts.line(topic, why, facts.best_depth[1]), count


def read_ahead(facts: Facts) -> tuple[Line, int | None]:
    """How far the kernel reads ahead; and the KiB, unless it stays as it is."""
    topic = "read_ahead_kb"
    if facts.verdict("read-buffer") == "unknown":
        return facts.silence(topic, "read-buffer"), None
    buffer = facts.size("read-buffer")
    if buffer is None:
        return facts.line(topic, "as it is: there is no read buffer to fit", "read-buffer"), None
    # Whole pages of memory, and whole clustered pages where they fit; no more than one request.
    size = min(buffer, _LARGEST_REQUEST_BYTES)
    grain = math.lcm(FS_BLOCK_BYTES, facts.page or 1)
    pages: tuple[str, ...] = ()
    if facts.page is not None and grain <= size:
        pages = ("clustered-page",)
    else:
        grain = FS_BLOCK_BYTES
    size = max(size // grain * grain, grain)
    bound = "" if buffer <= size else " as far as one request goes"
    why = f"{size >> 10}: reads ahead fit the read buffer of {sized(buffer)}{bound}"
    return facts.line(topic, why, "read-buffer", *pages), size >> 10
