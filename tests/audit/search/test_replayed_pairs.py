"""Replays rank pairs in a few runs each; the audit of fresh runs says what holds."""

import os

import numpy as np
import pytest

from dpaudit import PureDP, Replace, Rows, Verdict, find_worst_pair, noise_primitive, replay
from dpaudit.audit.errors import MechanismError, OptionError
from dpaudit.audit.replay.distributions import Distribution
from dpaudit.audit.replay.recorded_run import Runner
from dpaudit.audit.replay.replay_findings import visible_loss
from dpaudit.audit.sampling.sampler import as_sampler
from dpaudit.audit.search.candidates import Candidate
from dpaudit.audit.search.successive_halving import PairScore, Trial, _survivors

FEW = {"claim": 1.0, "adjacency": "add-remove", "runs": 2_000, "search_runs": 2_000, "jobs": 1}


def wrong_in_a_window(rows, rng):
    return sum(5.0 if 0.40 < row < 0.41 else row for row in rows) + rng.laplace()


def right(rows, rng):
    return rng.laplace(np.clip(rows, 0, 1).sum(), 1.0)


def test_a_defect_is_found_in_few_executions_and_the_right_mechanism_is_not_refuted():
    """A window of width .01, found by none of 36 pairs of the unguided search; a bound that is five times too large."""
    found = find_worst_pair(wrong_in_a_window, Rows(), guide="replay", **FEW)
    assert found.is_refuted
    assert found.audit.bound > 3.0
    assert found.replayed > 250
    assert found.runs <= FEW["search_runs"]
    assert f"guide   {found.replayed:,} pairs replayed" in str(found)
    assert len(found.x) + len(found.y) <= 3, "the pair is simple"
    found = find_worst_pair(right, Rows(high=10.0), guide="replay", **FEW | {"alpha": 1e-6})
    assert found.audit.verdict is Verdict.NOT_REFUTED
    assert abs(sum(np.clip(found.x, 0, 1)) - sum(np.clip(found.y, 0, 1))) == 1.0, "the pair is a worst one"


def test_declared_sensitivities_and_lists_of_pairs():
    @noise_primitive(lambda value, sensitivity: Distribution("secret", {"location": value}), sensitivity="sensitivity")
    def secret_noise(value, sensitivity):
        return value + np.random.default_rng(int.from_bytes(os.urandom(4))).laplace()

    def longest(rows):
        return secret_noise(max(rows, default=0.0), sensitivity=1.0)

    pairs = [([0.0], [float(move)]) for move in (1, 2, 7, 3)]
    found = find_worst_pair(longest, pairs, guide="replay", **FEW | {"adjacency": Replace()})
    assert found.y == [7.0]
    assert found.is_refuted


def test_pairs_on_which_it_fails_are_passed_over():
    def fails(rows, rng):
        if len(rows) != 3:
            raise ValueError("three rows are needed")
        return rng.laplace(2 * sum(rows))

    found = find_worst_pair(fails, Rows(), guide="replay", **FEW | {"adjacency": "replace"})
    assert len(found.x) == len(found.y) == 3
    with pytest.raises(MechanismError, match=r"fails failed on all of \d+ replayed pairs; .*ValueError: three rows"):
        find_worst_pair(fails, Rows(size=2), guide="replay", **FEW | {"adjacency": "replace"})


def test_what_it_refuses():
    with pytest.raises(OptionError, match=r'guide=\'replays\' is unknown; use "replay", or None\.'):
        find_worst_pair(right, Rows(), guide="replays", **FEW)

    def searches(rows, rng):
        return find_worst_pair(right, Rows(), guide="replay", **FEW).audit.bound

    with pytest.raises(MechanismError, match="another replay is recording in this process"):
        replay(searches, [1.0], [])


def shown(mechanism, x, y):
    runner = Runner(as_sampler(mechanism), 0)
    with runner.patching():
        on_x = runner.run(x)
        return visible_loss(on_x, runner.run(y, on_x.tape.calls))


@pytest.mark.parametrize(
    ("mechanism", "low", "high"),
    [
        (lambda x, rng: rng.laplace(x, 2.0), 1.5, 1.5),
        (lambda x, rng: x + rng.laplace(0.0, 2.0), 1.5, 1.5),
        (lambda x, rng: rng.normal(x, 3.0), 3.0, 4.0),
        (lambda x, rng: rng.laplace(0.0, 1.0 + x), 1.0, 20.0),
        (lambda x, rng: rng.laplace(np.full(4, x), 2.0).sum(), 6.0, 6.0),
        (lambda x, rng: rng.uniform(x, x + 6.0), 5.0, 20.0),
        (lambda x, rng: rng.choice(2, p=[0.5 + x / 10, 0.5 - x / 10]), 0.9, 1.0),
        (lambda x, rng: (rng.laplace(7.0), x), 20.0, 20.0),
        (lambda x, rng: rng.laplace(size=1 + int(x > 1)).sum(), 1.0, 1.0),
        (lambda x, rng: rng.laplace(7.0) if x < 1 else 1 / 0, 20.0, 20.0),
    ],
)
def test_visible_losses(mechanism, low, high):
    """Of a shift the loss; of Gaussian noise that of a rare value; of a hair's breadth next to none."""
    assert low <= shown(mechanism, 0.0, 3.0) <= high + 1e-12
    assert PureDP(0.0).parameter <= shown(mechanism, 3.0, 3.0) <= 1e-12


def a_trial(number, score, deviation, promise):
    score = PairScore(score, deviation, score)
    return Trial(Candidate(f"pair {number}", number, None, promise=promise), number, score=score)


def test_what_a_replay_shows_decides_where_runs_do_not():
    best, promising, worse = (a_trial(0, 0.22, 0.1, 0.0), a_trial(1, 0.15, 0.05, 2.1), a_trial(2, 0.05, 0.05, 5.0))
    assert _survivors([best, promising], 1, 1.0) == [promising]
    assert _survivors([best, promising, worse], 2, 1.0) == [best, worse], "the most promising pair stays in the search"
    assert _survivors([best, worse], 1, 1.0) == [best], "but for what its runs do not show"
    silent = [a_trial(number, 0.0, 0.0, promise) for number, promise in enumerate((0.0, 1.5, 0.5))]
    assert _survivors(silent, 1, 1.0) == silent[1:2]
    plain = [a_trial(number, score, 0.1, 0.0) for number, score in enumerate((0.1, 0.3, 0.2))]
    assert _survivors(plain, 1, 1.0) == plain[1:2]
    assert _survivors([], 1, 1.0) == []


def test_a_pair_that_surely_breaks_the_claim_is_audited():
    """Not one that may lose more by chance; beside a claim that neither exceeds surely, the larger score counts."""
    rough, sure = a_trial(0, 1.41, 0.40, 0.0), a_trial(1, 1.03, 0.016, 0.0)
    assert _survivors([rough, sure], 1, 1.0) == [sure]
    assert _survivors([rough, sure], 1, 1.1) == [rough], "the sure pair does not exceed the claim"
    assert _survivors([rough, sure], 1, 0.5) == [rough], "both exceed the claim surely"
    assert _survivors([rough, a_trial(2, 1.02, 0.016, 0.0)], 1, 1.0) == [rough], "barely surer"
    surest, less = a_trial(3, 1.02, 0.001, 0.0), a_trial(4, 2.5, 0.4, 0.0)
    assert _survivors([a_trial(5, 3.0, 1.5, 0.0), surest, less], 1, 1.0) == [less], "two standard errors suffice"
    promising = a_trial(6, 1.8, 0.6, 2.1)
    assert _survivors([promising, sure], 1, 1.0) == [sure], "a replay does not outweigh what the runs show"
