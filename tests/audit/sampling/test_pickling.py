"""Mechanisms that a worker process cannot import, pickle or survive."""

from __future__ import annotations

import enum
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import pytest

from dpaudit import PureDP, check
from dpaudit.audit.errors import MechanismError
from dpaudit.audit.sampling import workers
from dpaudit.audit.sampling.pickling import pack


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Holder:
    """A mechanism with state, of a class that only this file defines."""

    def __init__(self, share):
        self.share = share

    def __call__(self, dataset, rng):
        return Colour.RED if rng.random() < self.share + 0.25 * dataset else Colour.BLUE


def choose(dataset, rng):
    """A function of a test file, which worker processes cannot import."""
    return Colour.RED if rng.random() < 0.5 + 0.25 * dataset else Colour.BLUE


@pytest.mark.parametrize("mechanism", [choose, Holder(0.5)], ids=["function", "object"])
def test_what_a_worker_cannot_import_goes_by_value(mechanism):
    results = [check(mechanism, 0, 1, claim=PureDP(0.5), runs=400, jobs=jobs) for jobs in (1, 2)]
    assert results[0] == results[1]
    assert results[0].event.values[0] in (Colour.RED, Colour.BLUE)


def test_what_cannot_be_pickled_is_named_with_a_way_out():
    lock = threading.Lock()

    def guarded(dataset, rng):
        with lock:
            return dataset

    with pytest.raises(MechanismError, match=r"guarded or its datasets cannot be sent .* use jobs=1"):
        check(guarded, 0, 1, claim=PureDP(1.0), runs=400, jobs=2)
    assert check(guarded, 0, 1, claim=PureDP(1.0), runs=400, jobs=1).is_refuted


def test_a_worker_that_dies_is_an_error():
    parent = os.getpid()

    def deadly(dataset, rng):
        if os.getpid() != parent:
            os._exit(3)
        return dataset

    with pytest.raises(MechanismError, match="worker process that ran deadly died"):
        check(deadly, 0, 1, claim=PureDP(1.0), runs=4_000, jobs=2)


def test_a_worker_opens_a_parcel_once_and_lets_go_of_its_bytes():
    one, other = (pack({"a": [1, 2]}, [], "m") for _ in range(2))
    sent = pickle.loads(pickle.dumps(one))
    assert sent.open_once() is one.open_once()
    assert one.open_once() is not other.open_once()
    assert one.open() == other.open()
    assert one.open() is not one.open()
    bytes_held = weakref.ref(sent.content)
    del sent
    assert bytes_held() is None


def test_datasets_are_packed_once_for_all_batches(monkeypatch):
    """Both phases and all batches of a sequential audit share the parcel."""
    packed = []
    monkeypatch.setattr(workers, "pack", lambda *args, **more: packed.append(1) or pack(*args, **more))
    data = list(range(1_000))
    settings = {"claim": PureDP(1.0), "runs": 400, "jobs": 2, "seed": 1, "bits": False}
    check(lambda rows, rng: rows[0] + rng.laplace(), data, [1, *data[1:]], **settings)
    assert len(packed) == 1


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL on this system")
def test_worker_processes_end_with_a_process_that_is_killed(tmp_path):
    program = tmp_path / "slow.py"
    program.write_text(
        "import os, time\n"
        "from dpaudit import PureDP, check\n"
        "def slow(dataset, rng):\n"
        "    open(f'worker-{os.getpid()}', 'w').close()\n"
        "    time.sleep(0.2)\n"
        "    return dataset + rng.laplace()\n"
        "if __name__ == '__main__':\n"
        "    check(slow, 0, 1, claim=PureDP(1.0), runs=10_000, jobs=2)\n"
    )
    with subprocess.Popen([sys.executable, program], cwd=tmp_path) as parent:
        workers_of = set()
        end = time.monotonic() + 60
        while len(workers_of) < 2 and time.monotonic() < end:
            time.sleep(0.1)
            workers_of = {int(path.name.partition("-")[2]) for path in tmp_path.glob("worker-*")} - {parent.pid}
        parent.kill()
    assert len(workers_of) == 2
    end = time.monotonic() + 20
    while any(map(is_running, workers_of)) and time.monotonic() < end:
        time.sleep(0.1)
    assert not any(map(is_running, workers_of))


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not (state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z")  # a zombie process
