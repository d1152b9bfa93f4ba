"""Streams of random numbers derived from one random seed; distinct spawn keys keep them independent.

The blocks of runs have keys of three numbers (phase, side, number); see `sampling.block_plan`.

The level of a randomised test is a probability over outputs *and* coins. Coins that the seed fixes meet outputs that it
fixes too: one seed is one experiment, whose result never varies. Outputs that the seed does not determine vary from
audit to audit, so coins that it determined would be the same in all of them, and the test would not have its level. The
coins of such outputs therefore depend on the outputs as well (`seed_of_coins`).

Proof: docs/proofs/guesses.md
"""

from __future__ import annotations

import enum
import hashlib

import numpy as np


@enum.unique
class Stream(enum.Enum):
    """Uses of random numbers other than the runs of an audit; the value is the spawn key."""

    SHUFFLE_X = (0,)
    SHUFFLE_Y = (1,)
    SIZING = (2,)  # the pilot that determines the size of an audit
    FIRST_RUN = (3,)  # one run of a version, which shows its kind of output
    TIES = (4,)  # the order of equal values
    BASELINE = (5,)  # counts kept by a baseline; the hash of their name is part of the seed
    COINS = (6,)  # the datasets of the runs of a test of both directions
    BIN_ORDER = (10,)  # the order of the runs that a test of divergences counts in bins
    CANARIES = (8,)  # the order of canaries of equal scores, and the pairs of a fixed split
    CLAMPS = (11,)  # the runs that show whether a mechanism clamps its numbers
    BATCHES = (4, 0)  # the datasets of the runs of a batch that is bet on, numbered by batch
    TRIALS = (1, 0)  # the independent runs on the pair that a search chose, numbered by pair
    COUPLED = (7,)  # the pilots of a search, the same for all pairs
    PAIRS = (2, 0)  # the pairs drawn by a search
    SIMPLER = (5, 0)  # the audits of simpler pairs than the refuted one, numbered in turn
    BATCH_SAMPLER = (9, 0)  # the runs of a batch sampler that is checked, numbered in turn
    REQUESTS = (10, 0)  # the requests to a privacy filter that is checked
    EXAMPLES = (3, 0)  # the examples of a Hypothesis strategy


def sequence_of(seed: int | tuple[int, ...], stream: Stream, number: int = 0) -> np.random.SeedSequence:
    """Return the seed sequence of a stream; `number` counts the members of a numbered stream."""
    key = stream.value if len(stream.value) == 1 else (stream.value[0], number)
    return np.random.SeedSequence(seed, spawn_key=key)


def seed_of(seed: int | tuple[int, ...], stream: Stream, number: int = 0) -> int:
    """Return a 64-bit seed for a stream, different from the caller's seed and from those of other streams."""
    return int(sequence_of(seed, stream, number).generate_state(1, np.uint64)[0])


def seed_of_coins(seed: int, *seen: bytes) -> int:
    """Return a 128-bit seed for coins that meet these outputs, or counts and hashes of them.

    Equal outputs meet equal coins, others meet other ones.
    """
    content = hashlib.blake2b(digest_size=16)
    for part in (str(seed).encode(), *seen):
        content.update(len(part).to_bytes(8, "little"))
        content.update(part)
    return int.from_bytes(content.digest(), "little")
