"""One training with canaries: the coins, the laws of the scores, and canaries as a matrix of directions."""

import math

import numpy as np
import pytest
from scipy import stats

from dpaudit.audit.errors import ClaimError, OptionError
from dpaudit.mechanisms.faulty.training.registry import TRAINING_FAULTS
from dpaudit.mechanisms.training.batches import FullBatch, PoissonBatches, ShuffledBatches
from dpaudit.mechanisms.training.canaries import DiracCanaries, JointBlock, SphereCanaries
from dpaudit.mechanisms.training.canary_run import canary_run, record_canary_run
from dpaudit.mechanisms.training.dp_sgd import DPSGD
from dpaudit.mechanisms.training.models import FixedGradients, LogisticRegression, OneHiddenLayer
from dpaudit.mechanisms.training.records import breast_cancer_records, digits_records

ALARM, M = 1e-8, 4000
ROWS = breast_cancer_records()
NOTHING = np.empty((0, 1))


def training(**changes):
    given = {
        "model": LogisticRegression(31), "sampling": PoissonBatches(0.5), "noise_multiplier": 2.0, "steps": 4,
        "clip": 0.5, "batch_size": 285.0,
    }  # fmt: skip
    return DPSGD(**{**given, **changes})


def bare(**changes):
    return training(model=FixedGradients(), **changes)


def test_a_seed_fixes_everything():
    first, second, third = (canary_run(training(), ROWS, DiracCanaries(50, 0.5), seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.scores, second.scores)
    assert np.array_equal(first.included, second.included)
    assert first.mean_loss == second.mean_loss
    assert not np.array_equal(first.scores, third.scores)
    assert not np.array_equal(first.included, third.included)
    assert first.claim == training().claim


def test_the_arrays_cannot_be_written_to():
    run = canary_run(training(), ROWS, DiracCanaries(50, 0.5))
    assert run.scores.shape == run.included.shape == (50,)
    for array in (run.scores, run.included):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@pytest.mark.parametrize("probability", [0.5, 0.2])
def test_coins_have_the_probability(probability):
    run = canary_run(bare(steps=1), NOTHING, DiracCanaries(M), probability=probability)
    limits = stats.binom(M, probability)
    assert limits.ppf(ALARM / 2) <= run.included.sum() <= limits.isf(ALARM / 2)
    assert run.mean_loss == 0.0


@pytest.mark.parametrize(
    "canaries",
    [DiracCanaries(M, 0.5), DiracCanaries(M, 9.0), DiracCanaries(M, 9.0, spread=3), DiracCanaries(M, 0.5, M + 7)],
    ids=str,
)
def test_scores_are_the_worst_case_one_for_each_canary(canaries):
    """Sums of four noisy steps: a binomial mixture for included canaries, normal for the others. Random: alarm 1e-8."""
    run = canary_run(training(), ROWS, canaries, seed=3)
    scale, uses = 2.0 * math.sqrt(4), range(5)
    weights = stats.binom.pmf(uses, 4, 0.5)

    def cdf(z):
        return sum(weight * stats.norm.cdf(z, k, scale) for k, weight in zip(uses, weights, strict=True))

    assert stats.kstest(run.scores[run.included], cdf).pvalue > ALARM
    assert stats.kstest(run.scores[~run.included], stats.norm(0, scale).cdf).pvalue > ALARM
    assert stats.kstest(run.scores[run.included], stats.norm(0, scale).cdf).pvalue < ALARM


def test_the_ratio_tells_more_than_the_sum():
    tr = bare(noise_multiplier=0.5, steps=8, sampling=PoissonBatches(0.1))
    areas = []
    for score in ("sum", "ratio"):
        run = canary_run(tr, NOTHING, DiracCanaries(M, 0.5), score=score)
        found = stats.mannwhitneyu(run.scores[run.included], run.scores[~run.included]).statistic
        areas.append(found / run.included.sum() / (~run.included).sum())
    assert 0.5 < areas[0] < areas[1] - 0.02
    assert areas[1] < 1


def test_canaries_on_the_models_own_parameters():
    """With fewer unused parameters than canaries the last ones share those of the model."""
    tr = training(model=LogisticRegression(31), steps=2)
    run = canary_run(tr, ROWS, DiracCanaries(40, 0.5, 20))
    shared = np.abs(run.scores[20:]) > 12  # gradients of the records add up there
    assert shared.any()
    assert not (np.abs(run.scores[:20]) > 30).any()
    with pytest.raises(OptionError, match="52 canaries need as many parameters, but there are 51"):
        canary_run(tr, ROWS, DiracCanaries(52, 0.5, 20))


@pytest.mark.parametrize("canaries", [DiracCanaries(7, 2.0, 9), DiracCanaries(12, 2.0, 9), SphereCanaries(6, 2.0, 5)])
def test_blocks_of_canaries_are_their_gradients(canaries):
    """Norms, sums and projections agree with the matrix of gradients, over all groups of parameters."""
    model_groups = [(0, 3), (3, 4)]
    groups = [*model_groups, *canaries.groups(4)]
    blocks = [canaries.block(group, 4) for group in groups]
    project = canaries.projector(4)
    size = groups[-1][1]
    directions = np.array([project(unit) for unit in np.eye(size)]).T
    assert np.allclose(np.linalg.norm(directions, axis=1), 1.0)
    weights = np.random.default_rng(0).random((1, canaries.m))
    for (low, high), block in zip(groups, blocks, strict=True):
        part = 2.0 * directions[:, low:high]
        if block is None:
            assert not part.any()
            continue
        assert block.size == high - low
        assert np.allclose(block.squared_norms()[0], (part**2).sum(axis=1), rtol=1e-5)
        assert np.allclose(block.weighted_sum(weights)[0], weights[0] @ part, rtol=1e-5)


def test_spread_canaries_have_a_part_in_each_group():
    canaries = DiracCanaries(5, 6.0, spread=4)
    groups = canaries.groups(2)
    assert groups == ((2, 7), (7, 12), (12, 17), (17, 22))
    total = np.concatenate([canaries.block(group, 2).weighted_sum(np.eye(5)[[1]]) for group in groups], axis=1)
    assert np.linalg.norm(total) == pytest.approx(6.0)
    vector = np.concatenate([np.zeros(2), total[0]])
    assert np.allclose(canaries.projector(2)(vector), [0, 6.0, 0, 0, 0])


def test_a_joint_block_keeps_records_and_canaries_apart():
    canaries = DiracCanaries(3, 2.0)
    block = JointBlock(3, 2, 3, None, canaries.block((0, 3), 0))
    assert block.squared_norms().tolist() == [[0.0, 0.0, 4.0, 4.0, 4.0]]
    assert block.weighted_sum(np.array([[5.0, 5.0, 1.0, 0.0, 0.5]])).tolist() == [[1.0, 0.0, 2.0]]
    assert JointBlock(3, 2, 3, None, None).weighted_sum(np.ones((1, 5))).tolist() == [[0.0, 0.0, 0.0]]


def test_random_directions_interfere_a_little():
    tr = bare(sampling=FullBatch(), noise_multiplier=0.01, steps=1)
    run = canary_run(tr, NOTHING, SphereCanaries(50, 0.5, 4999))
    inside, outside = run.scores[run.included], run.scores[~run.included]
    assert np.abs(inside - 1).max() < 0.6
    assert np.abs(outside).max() < 0.6
    assert 0.02 < outside.std() < 0.2  # √(25/5000) is .07


def test_shuffled_batches_hold_each_canary_once_an_epoch():
    tr = bare(sampling=ShuffledBatches(100, 1000), noise_multiplier=0.01, steps=20, neighbours="replace_special")
    run = canary_run(tr, NOTHING, DiracCanaries(1000, 0.5))
    assert np.abs(run.scores - 2.0 * run.included).max() < 0.5


def test_mislabelled_digits_have_smaller_losses_where_they_were_included():
    rows, rng = digits_records(), np.random.default_rng(5)
    canaries = rows[:200].copy()
    canaries[:, -1] = (canaries[:, -1] + rng.integers(1, 10, 200)) % 10
    net = OneHiddenLayer(65, 8, 10)
    tr = training(
        model=net, sampling=PoissonBatches(0.5), noise_multiplier=0.01, steps=20, clip=5.0, learning_rate=1.0,
        batch_size=150, initial=net.random_weights(0),
    )  # fmt: skip
    run = record_canary_run(tr, rows[200:400], canaries, seed=1)
    again = record_canary_run(tr, rows[200:400], canaries, seed=1)
    assert np.array_equal(run.scores, again.scores)
    assert run.scores.shape == (200,)
    area = stats.mannwhitneyu(run.scores[run.included], run.scores[~run.included], alternative="greater").pvalue
    assert area < 1e-3


def test_errors():
    with pytest.raises(ClaimError, match="probability=1 is not allowed"):
        canary_run(bare(), NOTHING, DiracCanaries(5), probability=1)
    with pytest.raises(OptionError, match="score='ratio' does not fit FullBatch"):
        canary_run(bare(sampling=FullBatch()), NOTHING, DiracCanaries(5), score="ratio")
    with pytest.raises(OptionError, match="score='last' does not fit PoissonBatches"):
        canary_run(bare(), NOTHING, DiracCanaries(5), score="last")
    with pytest.raises(ClaimError, match="m=0 is not a number of canaries"):
        DiracCanaries(0)
    with pytest.raises(OptionError, match="in each of 2 groups"):
        DiracCanaries(5, n_unused=9, spread=2)
    with pytest.raises(OptionError, match="do not fit into memory"):
        canary_run(bare(), NOTHING, SphereCanaries(100_000, n_unused=1000))


@pytest.mark.parametrize("name", ["divided-by-the-size-of-the-data", "steps-from-the-data"])
def test_trainings_that_depend_on_the_records_are_refused(name):
    """One recipe for all coins would be the right training, which shows nothing of the mistake."""
    fault = next(fault for fault in TRAINING_FAULTS if fault.name == name)
    with pytest.raises(OptionError, match="changes its recipe by the private records"):
        canary_run(fault.wrong, fault.no_records, DiracCanaries(10))
    with pytest.raises(OptionError, match="repeated runs"):
        record_canary_run(fault.wrong, fault.no_records, np.ones((10, 1)))
