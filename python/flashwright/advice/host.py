"""Advice for the host of a drive: what follows from a profile for requests, schedulers, space and file systems.

Each line of advice names the findings that it rests on, and is as certain as the least certain of them. A finding that
is unknown yields no advice but a sentence that says so. Of a drive that is a model, findings follow from its
description.
"""

from __future__ import annotations

from dataclasses import replace

from flashwright.advice.facts import BEST_DEPTH, BEST_REQUEST, BEST_SIZE, Facts
from flashwright.advice.layout import (
    discard,
    file_systems,
    partition_of,
    spare_space,
    utilization_for,
)
from flashwright.advice.lines import BlockDevice, HostAdvice
from flashwright.advice.queue import (
    largest_request,
    linux_scheduler,
    own_scheduler,
    queued_requests,
    read_ahead,
)
from flashwright.advice.requests import alignment, queue_depth, request_size, write_size
from flashwright.advice.short_runs import best_request
from flashwright.advice.space import Advice
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
    facts = Facts(profile, spare, device)
    depth_line, depth = queue_depth(facts)
    own_line, own = own_scheduler(facts)
    linux_line, linux = linux_scheduler(facts)
    largest_line, largest_kib = largest_request(facts)
    queued_line, queued = queued_requests(facts, depth, linux)
    ahead_line, ahead_kib = read_ahead(facts)
    spare_line, reserve_bytes = spare_space(facts)
    partition_line, partition = partition_of(facts, reserve_bytes)
    file_system_lines, mkfs = file_systems(facts)
    lines = (
        alignment(facts),
        request_size(facts),
        write_size(facts),
        depth_line,
        own_line,
        linux_line,
        largest_line,
        queued_line,
        ahead_line,
        spare_line,
        partition_line,
        *file_system_lines,
        discard(facts),
    )
    # In the order in which they have to be made: the kernel sets requests anew when the scheduler changes.
    settings = {
        "scheduler": linux,
        "max_sectors_kb": largest_kib,
        "nr_requests": queued,
        "read_ahead_kb": ahead_kib,
    }
    queue = {name: str(value) for name, value in settings.items() if value is not None}
    size = None if facts.best_size is None else int(facts.best_size[0])
    return HostAdvice(profile, device, lines, queue, own, size, depth, partition, mkfs)
