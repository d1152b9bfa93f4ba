"""A seed fixes every count for any distribution of the work; no two streams are equal."""

import itertools
import os
import subprocess
import sys
import threading
from dataclasses import replace

import joblib
import numpy as np
import pytest

from dpaudit import PureDP, check
from dpaudit.audit.errors import MechanismError
from dpaudit.audit.events.events import Intervals
from dpaudit.audit.events.outputs import Raised
from dpaudit.audit.sampling import workers
from dpaudit.audit.sampling.draw import count_events, count_pairs, parts, plan_blocks
from dpaudit.audit.sampling.output_hashes import fingerprint
from dpaudit.audit.sampling.sampler import as_sampler
from dpaudit.audit.sampling.tasks import PairCounts

POSITIVE = Intervals(((0.0, np.inf),))
SHAPES = {"x": (), "y": ()}


def made_here():
    """Return mechanisms that are sent to other processes by value, because workers cannot import this module."""

    def noisy(dataset, size, rng):
        return dataset + rng.normal(size=size)

    def one_noisy(dataset, rng):
        if rng.random() < 0.1:
            raise ValueError("at times")
        return dataset + rng.normal()

    return noisy, one_noisy


noisy, one_noisy = made_here()


def plan(mechanism=noisy, seed=5, jobs=1):
    return plan_blocks(as_sampler(mechanism), 0.0, 0.5, seed, jobs)


def counted(mechanism=noisy, runs=150_000, seed=5, jobs=1, event=POSITIVE):
    """Return the counts of a main phase as plain lists."""
    sampler = as_sampler(mechanism)
    shapes = SHAPES if sampler.is_block else None
    sides = count_events(plan(mechanism, seed, jobs), event, shapes, runs)
    return [(side.counts.tolist(), side.sizes.tolist(), side.fingerprints.tolist()) for side in sides]


@pytest.mark.parametrize(
    ("mechanism", "runs", "backend"),
    [(noisy, 150_000, "threading"), (noisy, 150_000, "loky"), (one_noisy, 2_500, "loky")],
)
def test_workers_and_backends_change_nothing(mechanism, runs, backend):
    with joblib.parallel_config(backend=backend, n_jobs=2):
        assert counted(mechanism, runs, jobs=None) == counted(mechanism, runs, jobs=1)


def test_counts_are_those_of_the_blocks_drawn_one_by_one():
    work = plan()
    x, y = count_events(work, POSITIVE, SHAPES, 150_000)
    for side, name in ((x, "x"), (y, "y")):
        blocks = [work.draw("main", name, i, size) for i, size in enumerate(side.sizes.tolist())]
        assert side.counts.tolist() == [int((block >= 0).sum()) for block in blocks]
        assert side.fingerprints.tolist() == [fingerprint(block) for block in blocks]
    assert abs(x.counts.sum() / 150_000 - 0.5) < 6 * 0.5 / np.sqrt(150_000)
    work = plan_blocks(as_sampler(one_noisy), 0.0, 0.5, 5, 1).in_blocks(1)
    drawn = [[work.draw("main", name, 7 + number, 1) for number in range(300)] for name in "xy"]
    rare = Intervals(((1.0, 2.0),)), Intervals(((-np.inf, -1.0),))
    for events in ((POSITIVE, None), (None, POSITIVE)):  # the blocks have the counts of the event that there is
        pairs, *sides, final = count_pairs(work, events, None, 300, first_block=7, rare=rare, final=(POSITIVE,))
        assert pairs == PairCounts.of(events, rare, *map(np.concatenate, drawn))
        for side, blocks in zip(sides, drawn, strict=True):
            assert side.counts.tolist() == [POSITIVE.count(block) for block in blocks]
            assert side.raised == {"ValueError": sum(block[0] == Raised("ValueError") for block in blocks)}
        assert final.totals[:, 0].tolist() == [side.counts.sum() for side in sides]


@pytest.mark.parametrize("mechanism", [noisy, one_noisy])
def test_blocks_are_many_whatever_the_number_of_runs(mechanism):
    """The main phase has at least half of the runs; the block size depends only on runs and shape."""
    sampler = as_sampler(mechanism)
    sizes = []
    for runs in (100, 1_000, 20_000, 10**8):
        work = plan_blocks(sampler, 0.0, 0.5, 5, 1, runs=runs)
        assert work.block == plan_blocks(sampler, 0.0, 0.5, 6, 2, runs=runs).block
        assert runs // 2 >= 32 * work.block
        assert work.for_pilot(runs // 20).block <= work.block
        sizes.append(work.block)
    assert sizes == sorted(sizes)
    assert sizes[-1] == plan(mechanism).block
    if mechanism is noisy:
        assert sizes == [1, 15, 79, 131_072]


def test_a_task_of_small_blocks_has_as_many_runs_as_a_large_block():
    work = plan_blocks(as_sampler(noisy), 0.0, 0.5, 5, 1, runs=100_000)
    assert work.blocks_of_task == 131_072 // 391
    assert plan_blocks(as_sampler(one_noisy), 0.0, 0.5, 5, 1, runs=100_000).blocks_of_task == 1
    with joblib.parallel_config("threading", n_jobs=2):
        many = count_events(replace(work, jobs=None), POSITIVE, SHAPES, 95_000)
    for side, other in zip(count_events(work, POSITIVE, SHAPES, 95_000), many, strict=True):
        assert side.counts.tolist() == other.counts.tolist()
        assert side.stretches.tolist() == other.stretches.tolist()
        assert (side.stretches.any(axis=1) == (np.arange(len(side.counts)) % 8 == 0)).all()


def test_tasks_hold_all_blocks_in_order():
    for least, n_blocks in itertools.product((1, 335), (1, 256, 257, 600, 20_000)):
        sizes = list(range(n_blocks))
        tasks = list(parts(sizes, n_blocks, least))
        assert [size for _, task in tasks for size in task] == sizes
        assert [first for first, _ in tasks] == [task[0] for _, task in tasks]
        assert min(len(task) for _, task in [*tasks[:-1], (0, sizes[:least])]) >= min(least, n_blocks)


def test_progress_adds_up():
    for runs in (1, 400_001):
        finished = []
        count_events(plan(jobs=2), POSITIVE, SHAPES, runs, progress=finished.append)
        assert sum(finished) == 2 * runs
        assert min(finished) > 0


@pytest.mark.parametrize(
    ("configured", "jobs", "is_here"), [(1, None, True), (None, None, True), (2, None, False), (2, 1, True)]
)
def test_workers_are_those_asked_for_or_those_of_parallel_config(configured, jobs, is_here):
    threads = set()

    def noting(dataset, size, rng):
        threads.add(threading.get_ident())
        return rng.normal(size=size)

    with joblib.parallel_config(n_jobs=configured):
        count_events(plan(noting, jobs=jobs), POSITIVE, SHAPES, 500_000)
    assert (threads == {threading.get_ident()}) == is_here


def test_a_shape_that_changes_names_block_and_seed():
    def grows(dataset, size, rng):
        """Vectors in every block on y except the first, which its stream identifies."""
        values = rng.normal(size=size)
        return np.stack([values, values], axis=1) if values[0] > 0 else values

    said = r"grows returned outputs of shape \(2,\) .*chunk \d+ of the main runs on .*seed 11"
    with pytest.raises(MechanismError, match=said) as e:
        count_events(plan(grows, seed=11, jobs=2), POSITIVE, SHAPES, 2_000_000)
    assert e.value.facts["shape"] == (2,)


@pytest.fixture
def long_at_once(monkeypatch):
    """Treat every phase of a few tasks as long; return the parcels for processes."""
    sent = []
    monkeypatch.setattr("dpaudit.audit.sampling.workers._MANY", 2)
    monkeypatch.setattr("dpaudit.audit.sampling.workers._LONG", 0.0)
    real = workers._for_processes

    def noted(plan):
        sent.append(real(plan))
        return sent[-1]

    monkeypatch.setattr(workers, "_for_processes", noted)
    return sent


def test_long_audits_of_block_samplers_use_processes_and_give_the_same(long_at_once):
    assert counted(noisy, 600_000, jobs=2) == counted(noisy, 600_000, jobs=1)
    assert [parcel is not None for parcel in long_at_once] == [True]


def test_threads_stay_where_they_are_asked_for_or_needed(long_at_once, monkeypatch):
    with joblib.parallel_config("threading", n_jobs=2):
        assert counted(noisy, 600_000, jobs=None) == counted(noisy, 600_000, jobs=1)
    lock = threading.Lock()

    def unsent(dataset, size, rng):
        with lock:
            return dataset + rng.normal(size=size)

    kept = []

    def stateful(dataset, size, rng):
        kept.append(size)
        return dataset + rng.normal(size=size)

    for mechanism in (unsent, stateful):
        assert counted(mechanism, 600_000, jobs=2) == counted(noisy, 600_000, jobs=1)
    monkeypatch.setattr(workers, "_LARGE", 10)
    assert counted(noisy, 600_000, jobs=2) == counted(noisy, 600_000, jobs=1)
    assert long_at_once == [None] * 4


def ends_its_process(dataset, rng):
    if rng.random() < 1e-3:
        os._exit(3)
    return rng.laplace()


def test_every_backend_gives_the_same_result_and_ends_the_audit_of_a_worker_that_dies():
    """The pool of `multiprocessing` itself would wait for ever."""
    with joblib.parallel_config("multiprocessing", n_jobs=2), pytest.raises(MechanismError, match="died"):
        check(ends_its_process, 0, 1, claim=PureDP(1.0), runs=4_000, seed=1)
    options = {"claim": PureDP(1.0), "runs": 4_000, "seed": 1, "floating_point": "ignore"}
    with joblib.parallel_config("multiprocessing", n_jobs=2):
        found = check(noisy, 0, 1, **options)
    assert found == check(noisy, 0, 1, jobs=1, **options)


def test_a_worker_whose_parent_has_gone_ends_at_its_first_task():
    gone = subprocess.run(
        [sys.executable, "-S", "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    code = f"from dpaudit.audit.sampling.workers import _end_with; _end_with({int(gone.stdout)}); print('still here')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (1, b"")


@pytest.mark.parametrize("seed", [0, 10**60])
def test_streams_are_those_of_numpys_seed_sequence_by_phase_side_and_number(seed):
    """A store and a message name blocks that a later version must draw again."""
    keys = {(0, 0): ("pilot", "x"), (0, 1): ("pilot", "y"), (1, 1): ("main", "y")}
    for key, number in itertools.product(keys, (0, 1, 64, 2**32 + 5)):
        own = plan(seed=seed).generator(*keys[key], number)
        other = np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(*key, number))))
        assert own.random(3).tolist() == other.random(3).tolist()
        assert own.spawn(1)[0].random() == other.spawn(1)[0].random()
