"""Workers: processes that cannot import, pickle or survive a mechanism, Ctrl-C, and outputs of megabytes."""

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

import numpy as np
import pytest

from dpaudit import PureDP, check
from dpaudit.audit.errors import MechanismError
from dpaudit.audit.events.scores import Weighted
from dpaudit.audit.sampling import draw, workers
from dpaudit.audit.sampling.block_plan import KEPT, bytes_of_one, most_kept, refuse_too_much
from dpaudit.audit.sampling.draw import draw_pilot, plan_blocks
from dpaudit.audit.sampling.pickling import pack
from dpaudit.audit.sampling.sampler import as_sampler


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


SCRIPT = """
import signal
import time
from dpaudit import PureDP, check

def slow(rows, rng):
    time.sleep(0.001)
    return len(rows) + rng.laplace()

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # programs in the background start without it
    from dpaudit.audit.sampling import workers
    started = workers._parallel
    def announced(*arguments):
        print("workers", flush=True)
        return started(*arguments)
    workers._parallel = announced
    check(slow, [1, 1], [1], claim=PureDP(1.0), runs=1_000_000, jobs=2)
"""


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="the signals of POSIX are needed")
def test_workers_that_start_print_no_traceback(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    process = subprocess.Popen(
        [sys.executable, "script.py"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "workers\n"
    time.sleep(0.3)  # while the workers import their modules
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode != 0
    assert errors.count("Traceback") == 1
    assert errors.rstrip().endswith("KeyboardInterrupt")


SETTINGS = {"claim": PureDP(1.0), "jobs": 1, "seed": 1, "bits": False}


@pytest.mark.parametrize(
    ("outputs", "least", "most"),
    [
        (np.zeros((10, 100)), 800, 800), (np.array(["x" * 10**6] * 9, dtype=object), 10**6, 10**6 + 200),
        (np.fromiter([("a",) * 1_000] * 3, dtype=object, count=3), 8_000, 9_000), (np.zeros(0), 1, 1),
    ],
)  # fmt: skip
def test_bytes_of_an_output(outputs, least, most):
    assert least <= bytes_of_one(outputs) <= most


def test_of_large_outputs_few_are_kept_and_drawn_at_a_time():
    def texts(dataset, rng):
        return "x" * 10**6 + str(rng.integers(3))

    plan = plan_blocks(as_sampler(texts), 0, 1, 1, 1, runs=10_000)
    assert plan.may_keep(500) == plan.most_kept == KEPT // plan.output_bytes == 134
    assert plan.block <= 33
    assert plan.for_pilot(134).block <= 33


def test_a_cut_pilot_is_told_and_the_audit_goes_on(monkeypatch):
    def vectors(dataset, size, rng):
        return dataset + rng.laplace(size=(size, 500))

    monkeypatch.setattr(draw, "most_kept", lambda size, name: 55)
    result = check(vectors, 0, 1, **SETTINGS, runs=120)
    assert result.pilot_runs == 55
    assert result.is_refuted  # 500 coordinates together show the leak that one coordinate hides
    assert any(
        "3.91 KiB, so events were learned from 55 runs on each dataset and not from 60" in n for n in result.notes
    )


def test_sequential_audits_keep_no_more(monkeypatch):
    monkeypatch.setattr(draw, "most_kept", lambda size, name: 100)
    result = check(lambda d, rng: d + rng.laplace(), 0, 1, **SETTINGS, runs=400, sequential=True)
    assert result.runs == 400
    assert any("learned from 100 runs on each dataset and not from 400" in note for note in result.notes)


def test_what_cannot_be_held_is_refused():
    with pytest.raises(MechanismError, match=r"an output of big takes 47\.7 MiB, and fewer than 32 of them fit"):
        check(lambda d, rng: "x" * 50_000_000, 0, 1, **SETTINGS, runs=100, name="big")
    with pytest.raises(MechanismError, match="return a part or a summary"):
        most_kept(KEPT, "big")
    with pytest.raises(MechanismError, match="must be held together take more than 1 GiB; use fewer runs"):
        refuse_too_much((1 << 30) + 1, "big")


def test_outputs_that_grow_are_refused_while_they_are_drawn():
    """The first output is small, so nothing is cut by its size."""
    drawn, large = [], "x" * 30_000_000  # one text, which nevertheless counts each time

    def growing(dataset, rng):
        drawn.append(1)
        return "x" if len(drawn) < 4 else large

    plan = plan_blocks(as_sampler(growing), 0, 1, 1, 1, runs=1_000, is_stateful=True)
    with pytest.raises(MechanismError, match="must be held together"):
        draw_pilot(plan.in_blocks(8), 200)
    assert len(drawn) < 100


def test_a_long_weighted_sum_is_the_same_for_a_row_alone():
    rng = np.random.default_rng(1)
    vectors = rng.laplace(size=(7, 20_001))
    score = Weighted(tuple(rng.normal(size=20_001).tolist()))
    together = score.values(vectors)
    assert [float(score.values(vectors[i : i + 1])[0]) for i in range(7)] == together.tolist()
    assert score.values(np.asfortranarray(vectors)).tolist() == together.tolist()
    assert together == pytest.approx(vectors @ np.array(score.weights))
