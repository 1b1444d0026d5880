"""Advice for the host of a drive: what follows from a profile for requests, schedulers, space and file systems.

Each line of advice names the findings that it rests on, and is as certain as the least certain of them. A finding that
is unknown yields no advice but a sentence that says so. Of a drive that is a model, findings follow from its
description.
"""

from __future__ import annotations

from dataclasses import replace

from flashwright.advice.lines import BlockDevice, HostAdvice
from flashwright.advice.short_runs import best_request
from flashwright.advice.space import Advice
from flashwright.advice.topics.known import BEST_DEPTH, BEST_REQUEST, BEST_SIZE
from flashwright.advice.topics.layout import Space, utilization_for
from flashwright.advice.topics.linux import Queue
from flashwright.advice.topics.requests import Requests
from flashwright.simulation.ssd import Ssd
from flashwright.twin.profile import Profile

__all__ = ["BEST_DEPTH", "BEST_SIZE", "host_advice", "profile_of_model", "utilization_for"]


def profile_of_model(ssd: Ssd) -> Profile:
    """What is known of a drive that is a model: its description, and which requests suit it by short runs.

    Parameters
    ----------
    ssd : Ssd
        The drive.

    Examples
    --------
    >>> profile = profile_of_model(Ssd.named("default").with_(blocks_per_plane=32))
    >>> advice = host_advice(profile)
    >>> [line.topic for line in advice.lines if not line.given]
    []
    >>> advice.depth > 8
    True
    """
    described = Profile.described(ssd)
    return replace(described, findings={**described.findings, BEST_REQUEST: best_request(ssd)})


def host_advice(
    profile: Profile, spare: Advice | None = None, *, device: BlockDevice | None = None
) -> HostAdvice:
    """Say what a profile means for the drive's host.

    Parameters
    ----------
    profile : Profile
        What is known of the drive.
    spare : Advice, optional
        What its twin's utilisation costs a workload (:func:`flashwright.advise`), to go by that for the space
        to reserve. Without it the profile's findings have to do.
    device : BlockDevice, optional
        The disk that commands name; by default the one that was probed.

    Returns
    -------
    HostAdvice

    Examples
    --------
    >>> from flashwright import Ssd
    >>> advice = host_advice(Profile.described(Ssd.named("ssd-a")))
    >>> advice.queue
    {'scheduler': 'mq-deadline', 'max_sectors_kb': '240', 'read_ahead_kb': '256'}
    >>> advice.mkfs["mkfs.ext4"]
    '-b 4096 -E stride=4,stripe-width=1024'
    """
    if device is None and profile.target.kind == "block-device":
        device = BlockDevice.parse(profile.target.name)
    return _Adviser(profile, spare, device).advice()


class _Adviser(Requests, Queue, Space):
    """Goes through the topics in their order."""

    def advice(self) -> HostAdvice:
        lines = tuple(
            line
            for topic in (
                self.alignment, self.request_size, self.write_size, self.queue_depth,
                self.own_scheduler, self.linux_scheduler, self.largest_request, self.requests,
                self.read_ahead, self.space, self.layout, self.file_systems, self.discard,
            )
            for line in topic()
        )  # fmt: skip
        size = None if self.best_size is None else int(self.best_size[0])
        return HostAdvice(
            self.profile, self.device, lines, self.queue, self.scheduler, size, self.depth,
            self.partition, self.mkfs,
        )  # fmt: skip
