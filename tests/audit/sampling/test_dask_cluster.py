"""A dask cluster of separate processes gives the same counts as one process, and its errors are explained."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from functools import partial

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
from dpaudit.experiments.bench.scale.dask_speed import local_cluster

pytestmark = pytest.mark.usefixtures("learned_seldom", "looked_seldom")

HERE = os.getpid()


# Importing dask and numpy takes seconds of each new process, so one process imports them and forks all others.
NURSERY = """
import importlib, json, os, sys
import dask
import distributed.cli.dask_scheduler, distributed.cli.dask_worker
import dpaudit.audit.procedures.check, dpaudit.audit.sampling.workers

for line in sys.stdin:
    number, module, arguments, settings = json.loads(line)
    if number:
        os.waitpid(number, 0)
    else:
        number = os.fork()
        if not number:
            null = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(null, stream)
            os.environ.update(settings)
            dask.config.refresh()
            importlib.import_module(module).main(arguments)
    print(number, flush=True)
"""


class Nursery:
    """Starts processes of a cluster as forks of a process that has imported what they need."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, "-c", NURSERY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, *request):
        print(json.dumps(request), file=self.process.stdin, flush=True)
        return int(self.process.stdout.readline())

    def start(self, module, arguments, settings):
        return Forked(self, self.ask(0, module, arguments, settings))

    def close(self):
        self.process.communicate()


@dataclass(frozen=True)
class Forked:
    nursery: Nursery
    pid: int

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)

    def wait(self):
        self.nursery.ask(self.pid, None, None, None)


@pytest.fixture(scope="module")
def cluster():
    """Return a context in which a cluster runs."""
    logger = logging.getLogger("distributed")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # the tests kill workers on purpose
    nursery = Nursery()
    try:
        yield partial(local_cluster, start=nursery.start)
    finally:
        nursery.close()
        logger.setLevel(level)


@pytest.fixture(scope="module")
def two_workers(cluster, tmp_path_factory):
    with cluster(tmp_path_factory.mktemp("cluster"), 2) as started:
        yield started


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

    def hanging(dataset, rng):
        if os.getpid() != home:
            time.sleep(20.0)
        return dataset + rng.laplace()

    def raising(dataset, size, rng):
        if size > 1 and rng.random() < 0.2:
            raise ValueError("at times")
        return dataset + rng.laplace(size=size)

    return block, looped, deadly, hanging, raising


BLOCK, LOOPED, DEADLY, HANGING, RAISING = made_here()


def audited(mechanism=LOOPED, runs=4_000, **options):
    return check(mechanism, 0.0, 1.0, claim=PureDP(1.0), runs=runs, seed=3, bits=False, **options)


def same(result, other):
    """Whether two results are equal except for their environment."""
    return replace(result, environment=other.environment) == other


@pytest.mark.usefixtures("without_resolution")
@pytest.mark.parametrize(
    ("mechanism", "options"),
    [
        (LOOPED, {}),
        (BLOCK, {"runs": 400_000}),
        (BLOCK, {"runs": 10_000, "sequential": True}),
        (LOOPED, {"runs": 6_000, "sequential": True}),
        (BLOCK, {"runs": 300_000, "cells": 8}),
    ],
    ids=["looped", "block", "block, sequential", "looped, sequential", "cells"],
)
def test_every_backend_gives_the_same(two_workers, monkeypatch, mechanism, options):
    monkeypatch.setattr("dpaudit.audit.procedures.sequential._KEPT_NUMBERS", 4_000)  # beyond that, workers count
    alone = audited(mechanism, jobs=1, **options)
    with joblib.parallel_config("dask"):
        assert same(audited(mechanism, **options), alone)
    for backend in ("threading", "loky") if "sequential" in options or "cells" in options else ():
        with joblib.parallel_config(backend, n_jobs=2):
            assert same(audited(mechanism, **options), alone)


def test_the_work_is_done_there(two_workers):
    def whose(dataset, rng):
        return os.getpid()

    plan = plan_blocks(as_sampler(whose), 0, 1, 0, None)
    with joblib.parallel_config("dask"):
        drawn = [outputs for _, (outputs,) in spread(plan, [DrawBlocks("x", number, (1,)) for number in range(8)])]
    assert set(np.concatenate(drawn).tolist()) <= {process.pid for process in two_workers[1][1:]}


def test_one_worker_is_this_process(two_workers):
    with joblib.parallel_config("dask"):
        assert audited(DEADLY, jobs=1).counts == audited(jobs=1).counts


def test_a_block_that_raises_is_named(two_workers):
    with joblib.parallel_config("dask"), pytest.raises(MechanismError, match=r"at times.*draw_block\(mechanism, ."):
        audited(RAISING, runs=10_000_000)


def test_a_block_that_hangs_is_named(cluster, tmp_path):
    """It needs a separate cluster, because dask does not stop a hanging task."""
    with (
        cluster(tmp_path, 1),
        joblib.parallel_config("dask"),
        pytest.raises(MechanismError, match=r"longer than 0\.2 seconds.*block \d of the"),
    ):
        audited(HANGING, block_seconds=0.2)


def killing(worker, number, real=workers._Wait.result):
    """Return a replacement of `real` that kills a worker once so many results have come back."""
    fetched = []

    def result(wait, future):
        fetched.append(real(wait, future))
        if len(fetched) == number:
            worker.kill()
        return fetched[-1]

    return result


def test_a_worker_that_is_killed_changes_nothing_and_a_cluster_without_workers_is_left(cluster, tmp_path, monkeypatch):
    """The other worker redraws its blocks, and the store is also unchanged."""
    alone = audited(runs=8_000, jobs=1)
    with cluster(tmp_path, 2) as (client, (_, first, _)), joblib.parallel_config("dask"):
        with monkeypatch.context() as patch:
            patch.setattr(workers._Wait, "result", killing(first, 60))  # of about 260
            assert same(audited(runs=8_000, store=tmp_path / "store"), alone)
        assert len(client.scheduler_info()["workers"]) == 1
        monkeypatch.setattr(workers, "_LONELY", 0.3)
        monkeypatch.setattr(workers, "_LOOKED_AFTER", 0.1)
        with (
            joblib.parallel_config("dask", wait_for_workers_timeout=0.1),
            pytest.raises(MechanismError, match="has had no worker for 0 seconds"),
        ):
            audited(DEADLY)
    assert same(audited(runs=8_000, store=tmp_path / "store", jobs=1), alone)


def test_a_mechanism_that_kills_its_workers_ends_the_audit(cluster, tmp_path):
    with (
        cluster(tmp_path, 2, deaths=0),
        joblib.parallel_config("dask"),
        pytest.raises(MechanismError, match=r"every worker of the cluster that ran block \d+ of the .* died"),
    ):
        audited(DEADLY)


def test_lost_noise_that_cannot_be_drawn_again_ends_the_audit(cluster, tmp_path):
    """A worker dies as if to avoid an output: a second draw would have different noise."""

    def picky(dataset, rng, died=str(tmp_path / "died"), home=HERE):
        if os.getpid() != home:
            with contextlib.suppress(FileExistsError):  # the other worker was first
                os.mkdir(died)
                os.kill(os.getpid(), signal.SIGKILL)
        return dataset + np.random.default_rng().laplace()

    with (
        cluster(tmp_path, 2),
        joblib.parallel_config("dask"),
        pytest.raises(MechanismError, match=r"was lost after it began block.*whose noise does not come from `rng`"),
    ):
        audited(picky)


def test_what_has_come_back_is_not_drawn_again_and_what_is_lost_is_not_waited_for(cluster, tmp_path, monkeypatch):
    """A worker dies when most tasks are done, and the other completes the rest; then it dies with results in it."""
    drawn = tmp_path / "drawn"
    drawn.write_text("")

    def noted(dataset, size, rng, path=str(drawn)):
        with open(path, "a") as file:
            file.write("x")
        time.sleep(0.01)
        return dataset + rng.laplace(size=size)

    plan = plan_blocks(as_sampler(noted), 0.0, 1.0, 0, None)
    tasks = [DrawBlocks("x", number, (5,)) for number in range(60)]
    before = len(drawn.read_text())
    with cluster(tmp_path, 2) as (_, (_, first, second)), joblib.parallel_config("dask", wait_for_workers_timeout=0.1):
        for count, _ in enumerate(spread(plan, tasks)):
            if count == 40:
                first.kill()
        assert len(drawn.read_text()) - before <= 60 + 2 + 12  # two draws check replayability, some results are lost
        monkeypatch.setattr(workers, "_LONELY", 0.3)
        monkeypatch.setattr(workers, "_LOOKED_AFTER", 0.1)
        results = spread(plan_blocks(as_sampler(LOOPED), 0.0, 1.0, 0, None), tasks[:20])
        next(results)
        second.kill()
        with pytest.raises(MechanismError, match="has had no worker"):
            list(results)


def test_other_versions_are_refused():
    parcel = pack((None, [], (("numpy", "0.1"),)), [], "m")
    with pytest.raises(MechanismError, match=r"a worker of the cluster has other versions.*\('numpy', '0.1'\),\) here"):
        _in_cluster(parcel, 0, None)
