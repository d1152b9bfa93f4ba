"""A dask cluster of separate processes gives the same counts as one process, and its errors are explained."""

import logging
import os
import signal
from concurrent.futures import CancelledError
from dataclasses import replace

import joblib
import numpy as np
import pytest

from dpaudit import PureDP, check
from dpaudit.audit.errors import MechanismError
from dpaudit.audit.sampling import workers
from dpaudit.audit.sampling.draw import plan_blocks
from dpaudit.audit.sampling.pickling import pack
from dpaudit.audit.sampling.sampler import as_sampler
from dpaudit.audit.sampling.tasks import DrawBlocks
from dpaudit.audit.sampling.workers import _in_cluster, spread

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.usefixtures("learned_seldom", "looked_seldom")

HERE = os.getpid()


@pytest.fixture(scope="module")
def two_workers():
    """A cluster of two worker processes, which cannot import this module."""
    logger = logging.getLogger("distributed")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # the tests kill workers on purpose
    with distributed.Client(n_workers=2, threads_per_worker=1, dashboard_address=":0") as client:
        yield client
    logger.setLevel(level)


def made_here(home=HERE):
    """Return mechanisms that are sent to other processes by value."""

    def block(dataset, size, rng):
        return dataset + rng.laplace(size=size)

    def looped(dataset, rng):
        return dataset + rng.laplace()

    def deadly(dataset, rng):
        if os.getpid() != home:
            os.kill(os.getpid(), signal.SIGKILL)
        return dataset + rng.laplace()

    def raising(dataset, size, rng):
        if size > 1 and rng.random() < 0.2:
            raise ValueError("at times")
        return dataset + rng.laplace(size=size)

    return block, looped, deadly, raising


BLOCK, LOOPED, DEADLY, RAISING = made_here()


def audited(mechanism=LOOPED, runs=1_000, **options):
    return check(mechanism, 0.0, 1.0, claim=PureDP(1.0), runs=runs, seed=3, bits=False, **options)


def same(result, other):
    """Whether two results are equal except for their environment."""
    return replace(result, environment=other.environment) == other


@pytest.mark.parametrize(
    ("mechanism", "options"),
    [
        (LOOPED, {"runs": 2_000}), (BLOCK, {"runs": 8_000, "sequential": True}), (BLOCK, {"runs": 150_000, "cells": 8}),
    ],
    ids=["looped", "block, sequential", "cells"],
)  # fmt: skip
def test_every_backend_gives_the_same(two_workers, monkeypatch, mechanism, options):
    monkeypatch.setattr("dpaudit.audit.procedures.sequential._KEPT_NUMBERS", 4_000)  # beyond that, workers count
    alone = audited(mechanism, jobs=1, **options)
    with joblib.parallel_config("dask"):
        assert same(audited(mechanism, **options), alone)
    for backend in ("threading", "loky") if "cells" in options else ():
        with joblib.parallel_config(backend, n_jobs=2):
            assert same(audited(mechanism, **options), alone)


def test_the_work_is_done_there(two_workers):
    def whose(dataset, rng):
        return os.getpid()

    plan = plan_blocks(as_sampler(whose), 0, 1, 0, None)
    with joblib.parallel_config("dask"):
        drawn = [
            outputs
            for _, (outputs,) in spread(plan, [DrawBlocks("x", first=number, sizes=(1,)) for number in range(8)])
        ]
    assert set(np.concatenate(drawn).tolist()) <= {*two_workers.run(os.getpid).values()}


def test_one_worker_is_this_process(two_workers):
    with joblib.parallel_config("dask"):
        assert audited(DEADLY, jobs=1).counts == audited(jobs=1).counts


def test_a_block_that_raises_is_named(two_workers):
    with joblib.parallel_config("dask"), pytest.raises(MechanismError, match=r"at times.*draw_block\(mechanism, ."):
        audited(RAISING, runs=10_000_000)


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


def test_noise_that_cannot_be_drawn_again_stays_here(two_workers):
    """A worker may die to avoid an output, and the second draw of its blocks would have different noise."""

    def picky(dataset, rng, home=HERE):
        if os.getpid() != home:
            os.kill(os.getpid(), signal.SIGKILL)
        return dataset + np.random.default_rng().laplace()

    with joblib.parallel_config("dask"):
        assert audited(picky, runs=400).runs == 400


def test_a_mechanism_that_kills_its_workers_ends_the_audit_after_the_time_limit(two_workers, monkeypatch):
    monkeypatch.setattr(workers, "_START", 2.0)
    two_workers.wait_for_workers(2)  # joblib does without a cluster that has one core
    with (
        joblib.parallel_config("dask"),
        pytest.raises(MechanismError, match=r"a cluster lost the workers that ran it. Unfinished: block \d of the"),
    ):
        audited(DEADLY, runs=4_000, block_seconds=0.2)


def test_other_versions_are_refused():
    parcel = pack((0, None), [], "m")
    with pytest.raises(MechanismError, match=r"a worker of the cluster has other versions.*\('numpy', '0.1'\),\) here"):
        _in_cluster((("numpy", "0.1"),), parcel, parcel)


def test_a_lost_scheduler_ends_the_audit(two_workers, monkeypatch):
    def lost(*_, **__):
        raise CancelledError("scheduler-connection-lost")  # as the futures of a client without a scheduler

    monkeypatch.setattr(workers, "_in_processes", lost)
    said = r"cannot be reached \(scheduler-connection-lost\). Unfinished: block 0 of the"
    with joblib.parallel_config("dask"), pytest.raises(MechanismError, match=said):
        audited()
