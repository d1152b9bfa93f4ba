"""What tests of several folders share."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from dpaudit import experiments

# An installed copy, against which `pytest` runs without `make`, has no benchmarks, whose mechanisms some tests use.
experiments.__path__.append(str(Path(__file__).parents[1] / "experiments"))


def pytest_collection_finish():
    """Keeps the garbage collector from scanning thousands of collected tests over and over."""
    gc.freeze()
    gc.set_threshold(20_000, 50, 50)


@pytest.fixture(autouse=True, scope="module")
def without_older_objects():
    """Leaves out of sight of the collector, and of replays, what earlier files of tests have imported."""
    gc.collect()
    gc.freeze()
