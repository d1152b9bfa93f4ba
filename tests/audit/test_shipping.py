"""Mechanisms that a worker process cannot import, pickle or survive."""

from __future__ import annotations

import enum
import os
import threading

import pytest

from dpaudit import PureDP, check
from dpaudit.audit.errors import MechanismError
from dpaudit.audit.shipping import pack


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Holder:
    """A mechanism with a state, of a class that only this file knows."""

    def __init__(self, share):
        self.share = share

    def __call__(self, dataset, rng):
        return Colour.RED if rng.random() < self.share + 0.25 * dataset else Colour.BLUE


def choose(dataset, rng):
    """A function of a test file, which worker processes do not find under its name."""
    return Colour.RED if rng.random() < 0.5 + 0.25 * dataset else Colour.BLUE


@pytest.mark.parametrize("mechanism", [choose, Holder(0.5)], ids=["function", "object"])
def test_what_a_worker_cannot_import_goes_by_value(mechanism):
    results = [check(mechanism, 0, 1, claim=PureDP(0.5), runs=4_000, jobs=jobs) for jobs in (1, 2)]
    assert results[0] == results[1]
    assert results[0].event.values[0] in (Colour.RED, Colour.BLUE)


def test_what_cannot_be_pickled_is_named_with_a_way_out():
    lock = threading.Lock()

    def guarded(dataset, rng):
        with lock:
            return dataset

    with pytest.raises(MechanismError, match=r"guarded or its datasets cannot be sent .* use jobs=1"):
        check(guarded, 0, 1, claim=PureDP(1.0), runs=4_000, jobs=2)
    assert check(guarded, 0, 1, claim=PureDP(1.0), runs=4_000, jobs=1).is_refuted


def test_a_worker_that_dies_is_an_error():
    parent = os.getpid()

    def deadly(dataset, rng):
        if os.getpid() != parent:
            os._exit(3)
        return dataset

    with pytest.raises(MechanismError, match="worker process that ran deadly died"):
        check(deadly, 0, 1, claim=PureDP(1.0), runs=4_000, jobs=2)


def test_equal_parcels_open_to_one_object():
    parcels = [pack({"a": [1, 2]}, [], "m") for _ in range(2)]
    assert parcels[0].open() is parcels[1].open()
