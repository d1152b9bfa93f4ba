"""Workers: processes that cannot import, pickle or survive a mechanism, a cluster, Ctrl-C, and outputs of megabytes."""

import enum
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError

import joblib
import numpy as np
import pytest

from dpaudit import PureDP, check
from dpaudit.audit.errors import MechanismError
from dpaudit.audit.sampling import draw, workers
from dpaudit.audit.sampling.block_plan import KEPT, bytes_of_one, most_kept, refuse_too_much
from dpaudit.audit.sampling.draw import draw_pilot, plan_blocks
from dpaudit.audit.sampling.pickling import pack
from dpaudit.audit.sampling.sampler import as_sampler
from dpaudit.audit.sampling.workers import _in_cluster

from ...processes import has_ended
from ..stand_ins import noisy


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Holder:
    """A mechanism with state, of a class that only this file defines."""

    def __init__(self, share):
        self.share = share

    def __call__(self, dataset, rng):
        return Colour.RED if rng.random() < self.share + 0.25 * dataset else Colour.BLUE


def test_what_a_worker_cannot_import_goes_by_value():
    results = [check(Holder(0.5), 0, 1, claim=PureDP(0.5), runs=400, jobs=jobs) for jobs in (1, 2)]
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


SLOW = """
import os, time
from dpaudit import PureDP, check
def slow(dataset, rng):
    open(f"worker-{os.getpid()}", "w").close()
    time.sleep(0.2)
    return dataset + rng.laplace()
if __name__ == "__main__":
    check(slow, 0, 1, claim=PureDP(1.0), runs=10_000, jobs=2)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL on this system")
def test_worker_processes_end_with_a_process_that_is_killed(tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    with subprocess.Popen([sys.executable, "slow.py"], cwd=tmp_path) as parent:
        workers_of, end = set(), time.monotonic() + 60
        while len(workers_of) < 2 and time.monotonic() < end:
            time.sleep(0.1)
            workers_of = {int(path.name.partition("-")[2]) for path in tmp_path.glob("worker-*")} - {parent.pid}
        parent.kill()
    assert len(workers_of) == 2
    assert all(has_ended(number, seconds=20.0) for number in workers_of)


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
    assert errors.splitlines()[-1].startswith("dpaudit.audit.errors.Interrupted: slow: interrupted after ")


SETTINGS = {"claim": PureDP(1.0), "jobs": 1, "seed": 1, "floating_point": "ignore"}


@pytest.mark.parametrize(
    ("outputs", "least", "most"),
    [
        (np.zeros((10, 100)), 800, 800), (np.array(["x" * 10**6] * 9, dtype=object), 10**6, 10**6 + 200),
        (np.fromiter([("a",) * 1_000] * 3, dtype=object, count=3), 8_000, 9_000), (np.zeros(0), 1, 1),
    ],
)  # fmt: skip
def test_bytes_of_an_output(outputs, least, most):
    assert least <= bytes_of_one(outputs) <= most


def test_a_cut_pilot_is_told_and_the_audit_goes_on(monkeypatch):
    monkeypatch.setattr(draw, "most_kept", lambda size, name: 55)
    result = check(lambda x, size, rng: x + rng.laplace(size=(size, 500)), 0, 1, **SETTINGS, runs=120)
    assert result.pilot_runs == 55
    said = "3.91 KiB, so events were learned from 55 runs on each dataset and not from 60"
    assert any(said in note for note in result.notes)


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


HERE = os.getpid()


@pytest.fixture(scope="module")
def two_workers():
    """A cluster of two worker processes, which cannot import this module."""
    distributed = pytest.importorskip("distributed")
    logger = logging.getLogger("distributed")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # the tests kill workers on purpose
    with distributed.Client(n_workers=2, threads_per_worker=1, dashboard_address=":0") as client:
        yield client
    logger.setLevel(level)


def looped(dataset, rng):
    return dataset + rng.laplace()


def audited(mechanism=looped, runs=400, **options):
    return check(mechanism, 0.0, 1.0, claim=PureDP(1.0), runs=runs, seed=3, floating_point="ignore", **options)


def test_every_backend_gives_the_same(two_workers):
    """Also with cells, in which workers count; threads and processes are those of this machine."""
    for options in ({}, {"mechanism": noisy, "runs": 150_000, "bins": 8}):
        alone = audited(jobs=1, **options)
        for backend in ("dask", "threading", "loky"):
            with joblib.parallel_config(backend, **({} if backend == "dask" else {"n_jobs": 2})):
                assert audited(**options) == alone


def test_a_worker_that_is_killed_changes_nothing(two_workers, tmp_path):
    """dask draws its blocks again, from the same seeds."""

    def dies_once(dataset, rng, died=str(tmp_path / "died"), home=HERE):
        if os.getpid() != home and not os.path.exists(died):
            os.mkdir(died)
            os.kill(os.getpid(), signal.SIGKILL)
        return dataset + rng.laplace()

    with joblib.parallel_config("dask"):
        assert audited(dies_once).counts == audited(jobs=1).counts
    assert (tmp_path / "died").exists()


def test_noise_that_cannot_be_drawn_again_stays_here(two_workers, tmp_path):
    """A worker may die to avoid an output, and the second draw of its blocks would have different noise."""

    def elsewhere(dataset, rng, folder=tmp_path, home=HERE):
        if os.getpid() != home:
            (folder / "elsewhere").touch()
        return dataset + np.random.default_rng().laplace()

    two_workers.wait_for_workers(2)  # joblib does without a cluster that has one core
    with joblib.parallel_config("dask"):
        assert audited(elsewhere).runs == 400
    assert not (tmp_path / "elsewhere").exists()


def test_other_versions_are_refused():
    parcel = pack((0, None), [], "m")
    with pytest.raises(MechanismError, match=r"a worker of the cluster has other versions.*\('numpy', '0.1'\),\) here"):
        _in_cluster((("numpy", "0.1"),), parcel, parcel)


def test_a_lost_scheduler_ends_the_audit(monkeypatch):
    def lost(*_, **__):
        raise CancelledError("scheduler-connection-lost")  # as the futures of a client without a scheduler

    monkeypatch.setattr(workers, "_in_processes", lost)
    said = r"cannot be reached \(scheduler-connection-lost\). Unfinished: block 0 of the"
    with pytest.raises(MechanismError, match=said):
        audited(jobs=2)
