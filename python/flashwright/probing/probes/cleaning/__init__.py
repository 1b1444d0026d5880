"""How often a drive stops to clean, for how long, and how much spare space it has.

Three findings, of two states of the drive::

    empty, written in order on and on             steady state, written at random

    latency  ______________|___|___|___           latency  __|____|_|_____|___|____
             capacity  spare   block              bytes      ->  <- interval; height: stall

The spare space is what an empty drive takes in order beyond its capacity before long writes begin to recur with the
clustered block. That needs a page map, a known clustered block and a purge. What the drive keeps for cleaning itself is
not in it.

Interval and stall are of random writes in steady state. ``stalls`` sorts long writes into kinds by how long they take,
and finds out what each kind goes by: bytes (as cleaning does), requests, or time. There is no verdict where no kind
goes by bytes, where most writes are long, where stalls depend on places, or where they come irregularly.
"""

from flashwright.probing.probes.cleaning.probe import Cleaning

__all__ = ["Cleaning"]
