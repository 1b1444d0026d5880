"""How to set up the queue: a scheduler, and what Linux has for the drive."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator

from flashwright.advice.lines import Line
from flashwright.advice.topics.known import (
    BEST_REQUEST,
    FS_BLOCK_BYTES,
    Known,
    rounded_up,
    sized,
)

__all__ = ["Queue"]

# Linux sends no larger request whatever is asked: 2048 became 1280.
_LARGEST_REQUEST_BYTES = 1280 << 10

# blk-mq keeps at least 4 requests, and refuses more than 128 without a scheduler; ours: no more with one either.
_QUEUE_LEAST, _QUEUE_MOST = 4, 128


class Queue(Known):
    """Advice for the drive's queue in its host."""

    def own_scheduler(self) -> Iterator[Line]:
        """Which scheduler of ours suits."""
        topic = "flashwright scheduler"
        buffers = ("read-buffer", "write-buffer")
        unknown = [name for name in buffers if self.verdict(name) == "unknown"]
        rests_on: tuple[str, ...]
        if self.page is not None and self.page <= FS_BLOCK_BYTES and not unknown:
            sizes = [size for name in buffers if (size := self.size(name)) is not None]
            if all(size > _LARGEST_REQUEST_BYTES for size in sizes):
                yield self.line(
                    topic,
                    f"none: each block of {sized(FS_BLOCK_BYTES)} is whole for the drive, and no buffer is smaller "
                    f"than a request of {sized(_LARGEST_REQUEST_BYTES)}, so cutting and aligning gain nothing",
                    "clustered-page",
                    *buffers,
                )
                return
        any_buffer = any(self.size(name) is not None for name in buffers)
        if self.page is not None and (unknown or not any_buffer):
            self.scheduler, rests_on = "pai", ("clustered-page",)
            what = "what is aligned goes first, the rest waits a little for neighbours"
        elif self.page is not None:
            self.scheduler, rests_on = "pasa+pai", ("clustered-page", *buffers)
            what = (
                "requests are cut at clustered pages and to the buffers; what is aligned goes first"
            )
        elif any_buffer and not unknown:
            self.scheduler, rests_on = "pas", buffers
            what = "requests are cut to the buffers"
        else:
            yield self.silence(topic, "clustered-page", *unknown)
            return
        settings = [f"host.scheduler={self.scheduler}"]
        settings += [
            f"host.profile.{key}={text}" for key, text in self.profile.host_profile().items()
        ]
        options = " ".join(f"--set {shlex.quote(setting)}" for setting in settings)
        command = f"flashwright replay {self.disk.path} --trace TRACE {options}"
        text = f"{self.scheduler}: {what} (Kim et al., section 5)"
        yield self.line(topic, text, *rests_on, commands=(command,))

    def linux_scheduler(self) -> Iterator[Line]:
        """Which scheduler of Linux suits."""
        topic = "linux scheduler"
        if self.page is not None and self.page > FS_BLOCK_BYTES:
            self.queue["scheduler"] = "mq-deadline"
            yield self.line(
                topic,
                f"mq-deadline: adjoining requests meet in its queue and merge, and blocks of {sized(FS_BLOCK_BYTES)} "
                f"are parts of a clustered page of {sized(self.page)}",
                "clustered-page",
            )
        elif self.page is not None or self.verdict("clustered-page") == "absent":
            self.queue["scheduler"] = "none"
            yield self.line(
                topic,
                f"none: each block of {sized(FS_BLOCK_BYTES)} is whole for the drive, so that merging gains little",
                "clustered-page",
            )
        else:
            yield self.silence(topic, "clustered-page")

    def largest_request(self) -> Iterator[Line]:
        """Where the kernel cuts requests."""
        topic = "max_sectors_kb"
        if self.verdict("write-buffer") == "unknown":
            yield self.silence(topic, "write-buffer")
            return
        buffer = self.size("write-buffer")
        if buffer is None:
            yield self.line(topic, "as it is: there is no write buffer to fit", "write-buffer")
            return
        pieces, pages = self.whole_pages(buffer)
        # The kernel takes whole KiB, and no less than a page of memory.
        whole = math.lcm(1024, self.page or 1)
        pieces = max(pieces // whole * whole, rounded_up(FS_BLOCK_BYTES, whole))
        if pieces > _LARGEST_REQUEST_BYTES:
            yield self.line(
                topic,
                f"as it is: Linux cuts requests at {sized(_LARGEST_REQUEST_BYTES)}, and the write buffer takes "
                f"{sized(buffer)}",
                "write-buffer",
            )
            return
        self.queue["max_sectors_kb"] = str(pieces >> 10)
        yield self.line(
            topic,
            f"{pieces >> 10}: the kernel then cuts as PAS does, to the write buffer of {sized(buffer)}",
            "write-buffer",
            *pages,
        )

    def requests(self) -> Iterator[Line]:
        """How many requests the kernel queues."""
        topic = "nr_requests"
        if self.best_depth is None or self.depth is None:
            # The units bound the depth from below only, and a limit is about too much.
            missing = "nobody measured bandwidth over queue depth"
            if (finding := self.finding(BEST_REQUEST)) is not None and finding.why:
                missing = finding.why
            yield Line(topic, f"no advice: {missing}", False)
        elif self.queue.get("scheduler") != "mq-deadline":
            yield self.line(
                topic,
                "as it is: without a scheduler the drive's own queue is the limit",
                self.best_depth[1],
            )
        else:
            # As many may wait and merge as are at work.
            count = min(max(2 * self.depth, _QUEUE_LEAST), _QUEUE_MOST)
            self.queue["nr_requests"] = str(count)
            yield self.line(
                topic,
                f"{count}: twice the queue depth, half at work and half to merge",
                self.best_depth[1],
            )

    def read_ahead(self) -> Iterator[Line]:
        """How far the kernel reads ahead."""
        topic = "read_ahead_kb"
        if self.verdict("read-buffer") == "unknown":
            yield self.silence(topic, "read-buffer")
            return
        buffer = self.size("read-buffer")
        if buffer is None:
            yield self.line(topic, "as it is: there is no read buffer to fit", "read-buffer")
            return
        # Whole pages of memory, and whole clustered pages where they fit; no more than one request.
        size = min(buffer, _LARGEST_REQUEST_BYTES)
        grain = math.lcm(FS_BLOCK_BYTES, self.page or 1)
        pages: tuple[str, ...] = ()
        if self.page is not None and grain <= size:
            pages = ("clustered-page",)
        else:
            grain = FS_BLOCK_BYTES
        size = max(size // grain * grain, grain)
        self.queue["read_ahead_kb"] = str(size >> 10)
        bound = "" if buffer <= size else " as far as one request goes"
        yield self.line(
            topic,
            f"{size >> 10}: reads ahead fit the read buffer of {sized(buffer)}{bound}",
            "read-buffer",
            *pages,
        )
