"""The streams of random numbers that follow from one seed, each with its own spawn key, so that none is used twice.

The blocks of an audit have keys of three numbers (phase, side, number): `sampling.block_plan`.
"""

from __future__ import annotations

import enum

import numpy as np


class Stream(enum.Enum):
    """What random numbers are for, beside the runs of an audit; the value is the spawn key."""

    SHUFFLE_X = (0,)
    SHUFFLE_Y = (1,)
    SIZING = (2,)
    """The pilot that an audit is sized by."""
    FIRST_RUN = (3,)
    """One run of a version, to see what it returns."""
    TIES = (4,)
    """The order of equal values."""
    BASELINE = (5,)
    """Counts that a baseline keeps; the hash of their name is part of the seed."""
    TRIALS = (1, 0)
    """The pilots of a search, with the number of the pair."""
    PAIRS = (2, 0)
    """The pairs that a search draws."""
    EXAMPLES = (3, 0)
    """The examples of a Hypothesis strategy."""


def sequence_of(seed: int | tuple[int, ...], stream: Stream, number: int = 0) -> np.random.SeedSequence:
    """The seed sequence of a stream; of a search, of its member with a number."""
    key = stream.value if len(stream.value) == 1 else (stream.value[0], number)
    return np.random.SeedSequence(seed, spawn_key=key)


def seed_of(seed: int | tuple[int, ...], stream: Stream, number: int = 0) -> int:
    """A seed of 64 bits for a stream, told from the caller's and from all others."""
    return int(sequence_of(seed, stream, number).generate_state(1, np.uint64)[0])
