"""What the tests of stores share."""

import sqlite3

import pytest

from dpaudit.audit.sampling.block_plan import Plan


@pytest.fixture(autouse=True)
def without_waiting_for_the_disk(monkeypatch):
    """Leaves it to the operating system when a store's pages reach the disk, on which most tests would only wait.

    It matters only after a loss of power, which no test simulates: what a killed process has written is kept.
    """
    connect = sqlite3.connect

    def connected(*arguments, **options):
        file = connect(*arguments, **options)
        file.execute("PRAGMA synchronous = OFF")
        return file

    monkeypatch.setattr(sqlite3, "connect", connected)


def recorded(patch):
    """The draws from now on as (phase, side, number, size)."""
    seen, real = [], Plan.draw

    def draw(plan, phase, side, number, size, shape=None):
        outputs = real(plan, phase, side, number, size, shape)
        seen.append((phase, side, number, size))
        return outputs

    patch.setattr(Plan, "draw", draw)
    return seen


@pytest.fixture
def drawn(monkeypatch):
    return recorded(monkeypatch)
