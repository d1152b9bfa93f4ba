"""The registry of mistakes in training: losses, repeated runs that expose them, canaries that do, and their parts."""

import math

import numpy as np
import pytest
from scipy import stats

from dpaudit import Verdict, check
from dpaudit.mechanisms.faulty.flaw import Flaw
from dpaudit.mechanisms.faulty.training import (
    TRAINING_FAULTS,
    BatchNormalised,
    ClippedByGroup,
    ClippedByLastNorm,
    ClippedMean,
    RepeatedNoise,
    SharedNoise,
    SumOfClippedMicrobatches,
    SumOfUnclipped,
    standardised_columns,
)
from dpaudit.mechanisms.training.canaries import canary_run
from dpaudit.mechanisms.training.dp_sgd import dp_sgd_claim
from dpaudit.mechanisms.training.models import Batch, FixedGradients
from dpaudit.mechanisms.training.train import Recipe, ShuffledBatches

FAULTS = {fault.name: fault for fault in TRAINING_FAULTS}
ONE_RUN = [name for name, fault in FAULTS.items() if fault.canaries is not None]
MISSED = 1e-3  # false-alarm probability of each audit, of a right training or beyond the true loss


@pytest.mark.parametrize("name", FAULTS)
def test_the_entry_is_complete(name):
    fault = FAULTS[name]
    fault.adjacency.check(fault.x, fault.y, 1)
    assert isinstance(fault.wrong, Flaw)
    assert fault.wrong.claimed.claim == fault.right.claim == fault.wrong.claim
    assert fault.wrong.adjacency == fault.right.adjacency
    assert len(str(fault.wrong)) <= 72
    assert fault.source.endswith(".")
    assert ("one run" in fault.exposed_by) == (fault.canaries is not None)
    assert "repeated runs" in fault.exposed_by
    assert fault.pair_epsilon > fault.claimed_epsilon + 1
    assert fault.true_epsilon >= fault.pair_epsilon
    assert fault.true_epsilon == math.inf or not fault.is_unbounded


def test_names_are_unique():
    assert len(FAULTS) == len(TRAINING_FAULTS) >= 16


@pytest.mark.parametrize("name", FAULTS)
def test_repeated_runs_refute_it_and_its_bound_is_below_the_loss(name):
    fault = FAULTS[name]
    result = check(fault.wrong, fault.x, fault.y, runs=fault.runs, alpha=MISSED, jobs=1)
    assert result.verdict is Verdict.REFUTED
    if fault.loss_is == "exact":
        assert result.bound <= fault.pair_epsilon


@pytest.mark.parametrize("name", FAULTS)
def test_repeated_runs_do_not_refute_the_right_training(name):
    fault = FAULTS[name]
    result = check(fault.right, fault.x, fault.y, runs=min(fault.runs, 4_000), alpha=MISSED, jobs=1)
    assert result.verdict is not Verdict.REFUTED


@pytest.mark.parametrize("name", ONE_RUN)
def test_one_run_with_canaries_separates_them_further_than_the_claim_allows(name):
    """Right guesses beyond the largest share that the claim's ε and δ allow; random, with alarm 1e-6 for the right."""
    fault = FAULTS[name]
    refuted = []
    for training in (fault.right, fault.wrong):
        run = canary_run(training, fault.no_records, fault.canaries, seed=2)
        order = np.argsort(run.scores)
        guesses = 100
        right = run.included[order[-guesses:]].sum() + (~run.included[order[:guesses]]).sum()
        share = 1 / (1 + math.exp(-fault.claimed_epsilon))
        slack = len(run.scores) * fault.delta / (1 + math.exp(fault.claimed_epsilon))
        refuted.append(bool(stats.binom(2 * guesses, share).sf(right - 1) + slack < 0.05))
    assert refuted == [False, True]


@pytest.mark.parametrize("name", ONE_RUN)
def test_the_scores_of_one_run_have_the_mean_of_their_law(name):
    """Included canaries add rate × steps × (what clipping leaves of them), in clipping norms, to the right scores."""
    fault = FAULTS[name]
    run = canary_run(fault.right, fault.no_records, fault.canaries, seed=2)
    rate, steps, sigma = fault.right.sampling.rate, fault.right.steps, fault.right.noise_multiplier
    spread = math.sqrt(steps * (sigma**2 + rate * (1 - rate)))
    gap = run.scores[run.included].mean() - run.scores[~run.included].mean()
    assert abs(gap - rate * steps) < 6 * spread / math.sqrt(len(run.scores) / 4)


def gradients(*rows):
    table = np.array(rows, dtype=float)
    model = FixedGradients((1,) * table.shape[1])
    batch = Batch(table, np.zeros(len(table)), np.ones((1, len(table)), dtype=bool))
    return model.blocks(np.zeros((1, model.n_parameters)), batch), batch.is_in


def test_what_wrong_gradients_return():
    blocks, everything = gradients((3.0, 4.0), (0.0, 0.5))
    assert SumOfUnclipped()(blocks, everything).tolist() == [[3.0, 4.5]]
    assert np.allclose(ClippedMean(1.0)(blocks, everything), np.array([1.5, 2.25]) / math.hypot(1.5, 2.25))
    assert ClippedMean(1.0)(blocks, ~everything).tolist() == [[0.0, 0.0]]
    assert ClippedByGroup(1.0)(blocks, everything).tolist() == [[1.0, 1.5]]
    assert ClippedByLastNorm(1.0)(blocks, everything).tolist() == [[0.75, 1.5]]
    assert np.allclose(SumOfClippedMicrobatches(1.0, 1)(blocks, everything), [[0.6, 1.3]])
    assert np.allclose(SumOfClippedMicrobatches(1.0, 2)(blocks, everything), ClippedMean(1.0)(blocks, everything))


def test_standardised_records_and_batches():
    rows = np.array([[1.0, 2.0], [3.0, 2.0]])
    assert standardised_columns(rows).tolist() == [[-1.0, 0.0], [1.0, 0.0]]
    is_in = np.array([[True, True], [True, False]])
    batch = Batch(rows, np.zeros(2), is_in)
    block = BatchNormalised(FixedGradients((2,))).blocks(np.zeros((2, 2)), batch)[0]
    assert np.allclose(block.weighted_sum(np.array([[1.0, 0.0], [1.0, 0.0]])), [[-1.0, 0.0], [0.0, 0.0]], atol=1e-4)


def test_what_wrong_noise_repeats():
    rng = np.random.default_rng(0)
    shared = SharedNoise(1.0, 2)(np.zeros((3, 4)), 0, rng)
    assert np.array_equal(shared[:, :2], shared[:, 2:])
    assert len(np.unique(shared[:, :2])) == 6
    rule = RepeatedNoise(1.0, 2).begun()
    noise = [rule(np.zeros((3, 1)), step, rng) for step in range(4)]
    assert np.array_equal(noise[:2], noise[2:])
    assert not np.array_equal(noise[0], noise[1])
    other = rule.begun()
    assert not np.array_equal(other(np.zeros((3, 1)), 0, rng), noise[0])


def test_a_dropped_last_batch_is_on_the_safe_side_for_zeroed_records():
    """Not a mistake there: its bound is that of whole epochs, and a record is in fewer batches."""
    whole, dropped = (ShuffledBatches(4, 6, drop_last=drop) for drop in (False, True))
    claims = [
        dp_sgd_claim(sampling, 2.0, sampling.per_epoch, neighbours="replace_special") for sampling in (whole, dropped)
    ]
    assert claims[0] == claims[1]
    masks = [list(each.batches(500, 6, each.per_epoch, np.random.default_rng(0))) for each in (whole, dropped)]
    assert np.sum(masks[0]) == 6 * 500
    assert np.sum(masks[1]) == 4 * 500


def test_mistakes_survive_pickling_where_their_parts_do():
    import pickle

    for fault in TRAINING_FAULTS:
        copy = pickle.loads(pickle.dumps(fault.wrong))
        assert copy == fault.wrong
        assert isinstance(copy.recipe, Recipe)
