"""What tests of several folders share."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from dpaudit import experiments
from dpaudit.audit.procedures import conclude, sequential
from dpaudit.audit.procedures.detectable_excess import Detectable
from dpaudit.audit.sampling import batches

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


@pytest.fixture
def without_resolution(monkeypatch):
    """States 0.1 as the smallest detectable excess, which takes up to most of a small audit's time.

    It decides neither what is refuted nor which planted fault is found, and has tests of its own. A very large one is a
    finding, so tests that nothing is found in an honest mechanism keep the real one.
    """
    for name in ("detectable", "detectable_by_guesses", "detectable_sequentially"):
        monkeypatch.setattr(conclude, name, lambda *_, **options: Detectable(0.1, "event"))


@pytest.fixture
def without_pages(monkeypatch):
    """Writes a word in place of HTML pages, whose figures take up to most of the time of a small audit.

    For commands whose results and messages are tested, and not their pages.
    """
    monkeypatch.setattr("dpaudit.reports.pages.html_page.html", lambda *_, **__: "page")


@pytest.fixture
def learned_seldom(monkeypatch):
    """Lets sequential audits learn events anew only when their runs have tripled, which halves the time they take.

    They make the same runs, so health checks, stores and workers see the same blocks; only the bets are worse.
    """
    monkeypatch.setattr(sequential, "_OFTEN", 3.0)


@pytest.fixture
def looked_seldom(monkeypatch):
    """Lets the batches of sequential audits grow by 30% each, not 6%: a quarter of the looks, in half the time.

    Not for tests of the batches, of stopping early, of time limits, or of dependence within the calls of a batch.
    """
    monkeypatch.setattr(batches, "_GROWTH", 1.3)
