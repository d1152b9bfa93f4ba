"""What tests of several folders share."""

import gc
import signal
from importlib import import_module
from pathlib import Path

import pytest

import dpaudit

ROOT = Path(__file__).resolve().parents[1]

# An installed copy, against which `pytest` runs without `make`, does not have what audits dpaudit itself.
if Path(dpaudit.__file__).resolve().parent != ROOT:
    for name in ("mechanisms", "experiments"):
        import_module(f"dpaudit.{name}").__path__.append(str(ROOT / name))


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
def interruptible():
    """Ctrl-C interrupts, also where the tests were started in the background or by nohup, which ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)
