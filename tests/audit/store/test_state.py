"""Mechanisms with state are not copied to other processes, where they would repeat their noise."""

import functools
import importlib
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas as pd
import pytest
from joblib.externals.loky import get_reusable_executor

from dpaudit import PureDP, check
from dpaudit.audit.errors import StoreError
from dpaudit.audit.sampling.draw import draw_pilot, plan_blocks
from dpaudit.audit.sampling.sampler import as_sampler


class Own:
    """Noise from the object's own generator."""

    def __init__(self):
        self.rng = np.random.default_rng(1)

    def __call__(self, dataset):
        return dataset + self.rng.laplace()


def closure():
    rng = np.random.default_rng(1)
    return lambda dataset: dataset + rng.laplace()


def in_pairs():
    """Like a sampler that generates two numbers and keeps one for the next call."""
    kept = []

    def mechanism(dataset, rng):
        if not kept:
            kept.extend(rng.laplace(size=2).tolist())
        return dataset + kept.pop()

    return mechanism


MODULE = """
import random
import numpy as np
import pandas as pd

np.random.seed(1)
random.seed(1)
OWN = np.random.default_rng(1)

def by_own(dataset):
    return dataset + OWN.laplace()

def by_numpy(dataset):
    return dataset + np.random.laplace()
"""


@pytest.fixture(scope="module")
def noisy(tmp_path_factory):
    """Import a module that seeds its generators on import, in workers too."""
    folder = tmp_path_factory.mktemp("state")
    (folder / "noisy_module_of_a_test.py").write_text(MODULE)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        patch.setenv("PYTHONPATH", os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]))
        get_reusable_executor().shutdown()  # workers of another test do not know the folder
        yield importlib.import_module("noisy_module_of_a_test")
        sys.modules.pop("noisy_module_of_a_test")


class BlockOwn:
    def __init__(self):
        self.rng = np.random.default_rng(1)

    def sample(self, dataset, size, rng):
        return dataset + self.rng.laplace(size=size)


@pytest.mark.parametrize("make", [Own, "by_own", "by_numpy"])
def test_noise_is_never_repeated(make, noisy):
    mechanism = getattr(noisy, make) if isinstance(make, str) else make()
    with joblib.parallel_config("loky"):
        plan = plan_blocks(as_sampler(mechanism), 0.0, 1.0, 0, 2)
        first = draw_pilot(plan, 2_000)
        second = draw_pilot(plan, 3_000, first_block=2)
    noise = np.concatenate([block - side for blocks in (first, second) for side in (0, 1) for block in blocks[side]])
    assert len(noise) == 10_000
    assert len(np.unique(noise.round(9))) > 9_990


class Settings(NamedTuple):
    scale: float
    limits: tuple[float, float] = (0.0, 0.1)


@dataclass(frozen=True)
class Frozen:
    scale: float
    settings: Settings = field(default=Settings(0.1))
    table: Any = None

    def __call__(self, dataset, rng):
        return dataset + rng.laplace(scale=self.scale) + self.offset

    @functools.cached_property
    def offset(self):
        return 0.1 * self.settings.scale


@dataclass
class Drifting:
    scale: float

    def __call__(self, dataset, rng):
        self.scale *= 1.0 + 1e-15
        return dataset + rng.laplace(scale=self.scale)


def with_settings(settings, dataset, rng):
    return dataset + rng.laplace(scale=settings.scale)


STATELESS = [
    lambda dataset: dataset + np.random.default_rng().laplace(), Frozen(0.1, table=pd.DataFrame({"a": [0.1]})),
    functools.partial(with_settings, Settings(0.1)),
]  # fmt: skip
STATEFUL = [Own(), closure(), in_pairs(), functools.partial(Drifting(0.1))]


@pytest.mark.parametrize("mechanism", [*STATELESS, *STATEFUL], ids=range(7))
def test_state_is_what_a_run_changes(mechanism):
    assert plan_blocks(as_sampler(mechanism), 0.0, 1.0, 0, 2).is_stateful == (mechanism in STATEFUL)


@pytest.mark.parametrize("is_installed", [False, True])
def test_state_of_the_mechanisms_own_module_counts(noisy, monkeypatch, tmp_path, is_installed):
    if is_installed:
        monkeypatch.setattr("dpaudit.audit.sampling.object_identity._PLACES", (Path(noisy.__file__).parent,))
    assert plan_blocks(as_sampler(noisy.by_own), 0.0, 1.0, 0, 2).is_stateful
    with pytest.raises(StoreError, match="by_own keeps state from run to run"):
        check(noisy.by_own, 0.0, 1.0, claim=PureDP(1.0), runs=1_000, jobs=1, store=tmp_path)


def test_a_result_says_that_one_process_drew_all():
    """Threads share an object and its state, processes do not."""
    result = check(Own(), 0.0, 1.0, claim=PureDP(1.0), runs=600, jobs=2, alpha=1e-6)
    assert "the mechanism keeps state from run to run, so one process drew all runs" in str(result)
    assert not result.findings
    threads = check(BlockOwn(), 0.0, 1.0, claim=PureDP(1.0), runs=300_000, jobs=2, alpha=1e-6)
    assert "one process" not in str(threads)
    assert not any(each.is_refuted for each in (result, threads))
