"""The checks detect randomness shared by the runs of a call, reused noise, and streams shared by workers."""

import importlib
import math
import os
import sys

import joblib
import numpy as np
import pytest
from joblib.externals.loky import get_reusable_executor
from scipy import stats

from dpaudit import PureDP, Verdict, check
from dpaudit.audit.health.findings import HealthCheck
from dpaudit.audit.health.run_independence import equal_pairs, examine
from dpaudit.audit.sampling.output_hashes import MARKS, n_stretches, stretch_length, stretch_marks
from dpaudit.audit.sampling.tasks import no_blocks

UNSTEADY, SERIAL, REPEATED = (
    HealthCheck.UNSTEADY_HITS,
    HealthCheck.SERIAL_DEPENDENCE,
    HealthCheck.REPEATED_BLOCKS,
)
P = 1.0 / (1.0 + math.exp(-1.0))


def audit(mechanism, runs, **settings):
    return check(mechanism, 0, 1, claim=PureDP(1.0), **{"runs": runs, "jobs": 1, "bits": False, **settings})


def checks(result):
    return {finding.check for finding in result.findings}


def one_rate_a_call(dataset, size, rng):
    """Randomised response of epsilon 1 whose probability is random and shared by the runs of a call."""
    rate = rng.beta(4_000 * P, 4_000 * (1 - P))
    return (rng.random(size) < rate) ^ bool(dataset)


def wider_rate_a_call(dataset, size, rng):
    """The same with √2 times the spread, for the smaller calls of sequential audits."""
    rate = rng.beta(2_000 * P, 2_000 * (1 - P))
    return (rng.random(size) < rate) ^ bool(dataset)


def one_scale_a_call(dataset, size, rng):
    return dataset + rng.gamma(50.0, 1 / 50.0) * rng.laplace(scale=2.0, size=size)


def balanced(dataset, size, rng):
    """A stratified sampler: one quantile for each part of the unit interval, in random order."""
    uniform = (rng.permutation(size) + rng.random(size)) / size
    return dataset - 2.0 * np.sign(uniform - 0.5) * np.log(1.0 - 2.0 * np.abs(uniform - 0.5))


def noise_again(dataset, size, rng):
    return dataset + rng.permutation(np.repeat(rng.laplace(size=size // 5 + 1), 5)[:size])


def pool(dataset, size, rng):
    return dataset + rng.choice(rng.laplace(size=size), size)


def rounded_pool(dataset, size, rng):
    """Outputs that often repeat, but more often within a block."""
    return np.round(pool(dataset, size, rng), 3)


@pytest.mark.parametrize(
    ("mechanism", "runs", "expected", "sequential"),
    [
        (one_rate_a_call, 1_000_000, UNSTEADY, False),
        (wider_rate_a_call, 1_000_000, UNSTEADY, True),
        (one_scale_a_call, 200_000, UNSTEADY, False),
        (one_scale_a_call, 200_000, UNSTEADY, True),
        (balanced, 60_000, UNSTEADY, False),
        (balanced, 60_000, SERIAL, True),  # in calls of few runs, a run that has a stratum takes it from the next one
        (balanced, 400_000, UNSTEADY, True),
        (noise_again, 20_000, SERIAL, False),
        (noise_again, 20_000, SERIAL, True),
        (pool, 20_000, SERIAL, False),
        (pool, 20_000, SERIAL, True),
        (rounded_pool, 40_000, SERIAL, False),
        (rounded_pool, 40_000, SERIAL, True),
    ],
)
def test_randomness_that_a_call_shares_is_found(mechanism, runs, expected, sequential):
    result = audit(mechanism, runs, sequential=sequential)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert expected in checks(result)
    if mechanism is pool or (mechanism is one_scale_a_call and not sequential):  # one for each check
        assert expected not in checks(audit(mechanism, runs, sequential=sequential, ignore=expected.value))


def test_a_rate_that_a_call_shares_does_no_harm_where_it_cannot_be_found():
    """No test detects it at 20,000 runs, but many calls keep refutations near alpha (.05; false alarm: 1e-6)."""
    results = [audit(one_rate_a_call, 20_000, seed=seed) for seed in range(20)]
    assert sum(result.is_refuted for result in results) <= stats.binom.isf(1e-6, 20, 0.07)
    assert not any(result.findings for result in results)


def test_what_can_be_found_of_a_shared_rate_is_little_at_twenty_thousand_runs():
    """The most powerful test between normal laws of variances 1 and 1 + (b − 1)/4001, over all block sizes."""
    best = 0.0
    for blocks in (1, 2, 4, 8, 16, 32, 64, 128, 256):
        effect = 1.0 + (19_000 / blocks - 1.0) / 4_001.0
        best = max(best, float(stats.chi2.sf(stats.chi2.isf(1e-8, 2 * blocks) / effect, 2 * blocks)))
    assert 1e-3 < best < 0.05


MANY = {
    "numbers": lambda d, size, rng: d + rng.laplace(size=size),
    "thousands": lambda d, size, rng: np.round(d + rng.laplace(size=size), 3),
    "integers": lambda d, size, rng: d + rng.geometric(0.5, size),
    "coins": lambda d, size, rng: rng.random(size) < 0.4 + 0.1 * d,
    "vectors": lambda d, size, rng: np.round(d + rng.laplace(size=(size, 2)), 1),
    "words": lambda d, size, rng: [f"id{number}" for number in rng.integers(2_000, size=size)],
}


def drawn(name, rng, sizes):
    return [np.array(MANY[name](0, size, rng), dtype=object if name == "words" else None) for size in sizes]


@pytest.mark.parametrize("name", MANY)
def test_false_alarms_at_a_level_that_can_be_seen(name):
    """All checks of one pilot at .002: at most nine per side and two of both; the test fails with probability 1e-7."""
    rng, alarms = np.random.default_rng(4), 0
    sizes = [64] * 31 + [16]
    for _ in range(40):
        pilot = drawn(name, rng, sizes), drawn(name, rng, sizes)
        alarms += bool(examine(pilot, (no_blocks(), no_blocks()), frozenset(), alpha=0.002))
    assert alarms <= stats.binom.isf(1e-7, 40, 20 * 0.002)


def test_equal_pairs_are_one_for_each_output():
    blocks = [np.array([1.0, 2.0, 2.0, 5.0]), np.array([1.0, 3.0, 4.0, 4.0])]
    assert equal_pairs(blocks) == (2, 3, [4, 4])
    words = [np.array(["a", "b", "b"], dtype=object), np.array(["a", None, None], dtype=object)]
    assert equal_pairs(words) == (2, 3, [3, 3])
    assert equal_pairs([np.array([[1, 2], [1, 2]]), np.array([[2, 1], [3, 3]])]) == (1, 1, [2, 2])
    assert equal_pairs([np.array([np.nan, np.nan]), np.arange(2.0)])[1] == 0


@pytest.mark.parametrize("kind", ["float", "int", "word", "vector"])
def test_stretches_are_known_wherever_they_lie(kind):
    rng = np.random.default_rng(0)
    stream = rng.laplace(size=6_000)
    if kind == "int":
        stream = np.rint(20 * stream).astype(np.int64)
    elif kind == "word":
        stream = np.array([f"{value:.3f}" for value in stream], dtype=object)
    elif kind == "vector":
        stream = stream.reshape(-1, 2)
    here = set(stretch_marks(stream[:1024]))
    assert len(here - {0}) == MARKS
    assert here & set(stretch_marks(stream[200:1224]))
    assert not here & set(stretch_marks(stream[1024:2048]))
    assert stretch_marks(stream[:1024]) == stretch_marks(stream[:1024].copy())


def test_stretches_of_short_blocks_and_of_constants():
    assert [stretch_length(size) for size in (1, 31, 32, 63, 64, 255, 256, 10**6)] == [0, 0, 16, 16, 32, 64, 128, 128]
    assert [n_stretches(size) for size in (31, 32, 256, 10**6)] == [0, 17, 129, 897]
    assert stretch_marks(np.arange(20.0)) == (0,) * MARKS
    assert len(set(stretch_marks(np.ones(300))) - {0}) <= 1
    assert len(set(stretch_marks(np.arange(300) % 2)) - {0}) == 2


def test_blocks_with_a_stretch_in_common_are_found_by_whatever_their_heads_are():
    rng = np.random.default_rng(7)
    stream = rng.laplace(size=200_000)
    independent = [rng.laplace(size=1024) for _ in range(12)]
    other = [rng.laplace(size=1024) for _ in range(12)]
    none = no_blocks(), no_blocks()
    assert examine((independent, other), none, frozenset()) == ()
    shifted = [*independent, stream[5_000:6_024], stream[5_400:6_424]]
    (finding,) = examine((shifted, other), none, frozenset())
    assert finding.check is REPEATED
    assert "2 of 14 blocks of runs on x contain a stretch of outputs of another block" in finding.message
    assert examine((shifted, other), none, frozenset({REPEATED})) == ()


def test_a_stream_of_a_module_that_workers_share_is_found_in_later_audits_too(tmp_path, monkeypatch):
    """Each worker imports the module from disk, so each has a copy of the same generator.

    A worker waits for the other before its first run, so that a busy machine does not leave all runs to one of them.
    """
    (tmp_path / "stream_of_a_module.py").write_text("import numpy as np\nrng = np.random.default_rng(42)\n")
    (tmp_path / "uses_that_stream.py").write_text(
        f"""
import os, pathlib, time
import stream_of_a_module

others = set()

def noisy(dataset):
    if os.getpid() != {os.getpid()} and len(others) < 2:
        folder, until = pathlib.Path({str(tmp_path)!r}), time.monotonic() + 60
        (folder / f"{{os.getpid()}}.worker").touch()
        while len(others) < 2 and time.monotonic() < until:
            time.sleep(0.02)
            others.update(folder.glob("*.worker"))
    return dataset + stream_of_a_module.rng.laplace()
"""
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    get_reusable_executor().shutdown()
    try:
        uses_that_stream = importlib.import_module("uses_that_stream")
        with joblib.parallel_config("loky", n_jobs=2):
            found = [audit(uses_that_stream.noisy, 8_000, jobs=2, seed=seed) for seed in range(3)]
        assert REPEATED in checks(found[0])
        assert any(REPEATED in checks(result) for result in found[1:])
    finally:
        get_reusable_executor().shutdown()
        for name in ("uses_that_stream", "stream_of_a_module"):
            sys.modules.pop(name, None)
