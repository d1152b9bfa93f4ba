"""Faulty twins, selections, samples and whole outputs: laws computed another way, and losses."""

import itertools
import json
import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

import dpaudit.mechanisms as m
from dpaudit.audit.claims.claim import ApproxDP, PureDP
from dpaudit.audit.errors import ClaimError, DatasetError
from dpaudit.mechanisms import faulty

# Every faulty twin breaks its claim on a stated pair and keeps its true guarantee, by exact laws.

ONE_UP = [1.0] + [-1.0] * 49


# twin, x, y, exact epsilon there, whether the pair attains the truth
PURE = [
    (faulty.UnderstatedSensitivityLaplace(0.5), 0.0, 2.0, 1.0, True),
    (faulty.UnderstatedSensitivityLaplace(0.5, bound=10.0), 0.0, 10.0, 5.0, True),
    (faulty.InvertedScaleLaplace(0.5), 0, 1, 2.0, True),
    (faulty.PerRowGeometric(0.5, rows_per_user=3), 4, 7, 1.5, True),
    (faulty.SquaredRatioGeometric(0.5), 4, 5, 1.0, True),
    (faulty.TruthAmongTheLies(1.0), 0, 1, math.log(1 + 2 * math.e), True),
    (faulty.TruthAmongTheLies(1.0, k=4), 3, 1, math.log(1 + 4 * math.e / 3), True),
    (faulty.BinaryOddsForManyValues(1.0, k=5), 0, 4, 1 + math.log(4), True),
    (faulty.LocalSensitivityLaplace(0.5, most_rows=3), [0, 0], [0, 0, 0], 2.5, True),
    (faulty.SparseVectorUnscaledNoise(1.0), [0.0, 0.0], [1.0, -1.0], 1.1648439, False),
    (faulty.ExponentialMissingFactorTwo(1.0), [0.0] * 50, ONE_UP, 1.8797479, False),
    (faulty.ExponentialMissingFactorTwo(1.0), [0.0, -3.0], [-1.0, -2.0], 1.7353257, False),
    (faulty.ExponentialMissingFactorTwo(1.0), [0.0, -3.0], [1.0, -4.0], 1.9581280, False),
]


@pytest.mark.parametrize(("twin", "x", "y", "epsilon", "is_tight"), PURE)
def test_pure_claims_are_broken_and_truths_hold(twin, x, y, epsilon, is_tight):
    found = m.exact_epsilon(twin.law(x), twin.law(y))
    assert found == pytest.approx(epsilon, abs=1e-7)
    assert found > twin.claim.epsilon
    assert found <= twin.truth.epsilon + 1e-12
    assert not is_tight or found == pytest.approx(twin.truth.epsilon, rel=1e-12)


@pytest.mark.parametrize("noise", ["laplace", "exponential", "gumbel"])
def test_noisy_max_missing_the_two(noise):
    twin = faulty.NoisyMaxMissingFactorTwo(1.0, noise=noise)
    near = m.exact_epsilon(twin.law([0.0, 3.0]), twin.law([1.0, 2.0]))
    far = m.exact_epsilon(twin.law([0.0, 40.0]), twin.law([1.0, 39.0]))
    assert 1.4 < near <= far <= 2.0 + 1e-12
    assert far > 1.94
    assert twin.claim == PureDP(1.0)
    assert twin.truth == PureDP(2.0)


def test_parameters_at_which_bugs_do_no_harm():
    """A test at these parameters or pairs passes in spite of the bug."""
    assert faulty.InvertedScaleLaplace(1.0).truth == PureDP(1.0)
    assert faulty.InvertedScaleLaplace(4.0).truth.epsilon < faulty.InvertedScaleLaplace(4.0).claim.epsilon
    assert faulty.VarianceAsScaleGaussian(0.5, 1e-5).truth.delta < 1e-5
    assert faulty.ClassicalBeyondOneGaussian(1.1, 1e-5).truth.delta < 1e-5
    assert faulty.BinaryOddsForManyValues(1.0, k=2).truth == PureDP(1.0)
    moved = [1.0] + [0.0] * 49
    twin = faulty.ExponentialMissingFactorTwo(1.0)
    assert m.exact_epsilon(twin.law([0.0] * 50), twin.law(moved)) < 1.0


@pytest.mark.parametrize(
    ("twin", "delta"),
    [  # from Balle & Wang's formula in mpmath, 50 digits
        (faulty.ClassicalBeyondOneGaussian(10.0, 0.1), 0.405601575864),
        (faulty.VarianceAsScaleGaussian(8.0, 1e-5), 0.0384082852106),
        (faulty.VarianceAsScaleGaussian(1.0, 1e-5, sensitivity=0.1), 0.0422645050787),
    ],
)
def test_approximate_claims_are_broken_by_the_true_delta(twin, delta):
    x, y = 0.0, twin.sensitivity
    assert m.exact_delta(twin.law(x), twin.law(y), twin.epsilon) == pytest.approx(twin.truth.delta, rel=1e-9)
    assert twin.truth.delta == pytest.approx(delta, rel=1e-9)
    assert twin.truth.delta > twin.claim.delta
    assert m.exact_epsilon(twin.law(x), twin.law(y), twin.delta) > twin.epsilon
    assert twin.claim == ApproxDP(twin.epsilon, twin.delta)


@pytest.mark.parametrize("n_candidates", [1, 3, 10])
def test_the_released_maximum_loses_epsilon_for_every_candidate(n_candidates):
    twin = faulty.NoisyMaxReleasingValue(0.5, n_candidates)
    law_x, law_y = twin.law([0.0] * n_candidates), twin.law([1.0] * n_candidates)
    assert twin.truth == PureDP(0.5 * n_candidates)
    # The event "below both" attains the truth …
    assert math.log(law_x.cdf(0.0) / law_y.cdf(0.0)) == pytest.approx(twin.truth.epsilon, rel=1e-12)
    # … and no density ratio exceeds it.
    z = np.linspace(-60, 60, 4801)
    assert np.abs(law_x.log_density(z) - law_y.log_density(z)).max() == pytest.approx(twin.truth.epsilon, rel=1e-9)


@dataclass(frozen=True, slots=True)
class ShownRow(faulty.Flaw):
    """The row itself, always: no δ below 1."""

    delta: float
    epsilon: float = 0.0

    @property
    def claim(self):
        return ApproxDP(self.epsilon, self.delta)

    def sample(self, dataset, size, rng):
        return np.full(size, dataset)


@dataclass(frozen=True, slots=True)
class NoClaim(faulty.Flaw):
    """The row itself, of a mechanism whose claim was forgotten."""

    delta: float

    def sample(self, dataset, size, rng):
        return np.full(size, dataset)


def test_a_flaw_without_epsilon_must_state_its_claim():
    with pytest.raises(ClaimError, match=r"NoClaim has no epsilon, .*; override claim"):
        NoClaim(0.1)


def test_a_flaw_may_claim_epsilon_0_with_a_delta():
    assert ShownRow(0.1).claim == ApproxDP(0.0, 0.1)
    assert faulty.TwiceExposed(0.1).claim == ApproxDP(0.0, 0.1)
    assert faulty.TwiceExposed(0.1).epsilon == 0.0
    with pytest.raises(ClaimError, match="epsilon=-1 is not allowed"):
        ShownRow(0.1, -1)


# Faulty selections and local responses: their laws, computed another way, and their losses.

ALARM, RUNS = 1e-8, 100_000


def rng():
    return np.random.default_rng(3)


def are_plausible(is_hit, probability):
    limits = stats.binom(len(is_hit), probability)
    return limits.ppf(ALARM / 2) <= np.count_nonzero(is_hit) <= limits.isf(ALARM / 2)


def test_powers_of_ten():
    twin = faulty.PowersOfTen(1.0)
    assert twin.law([0.0, 2.0]).probabilities == pytest.approx([1 / 11, 10 / 11])
    assert m.exact_epsilon(twin.law([0.0, -40.0]), twin.law([-1.0, -39.0])) == pytest.approx(math.log(10), rel=1e-9)
    assert twin.truth.epsilon == pytest.approx(math.log(10))


def test_weights_that_underflow_make_a_candidate_impossible_and_are_right_elsewhere():
    near, right = faulty.UnderflowingExponential(1.0), m.ExponentialMechanism(1.0)
    scores = [0.0, 1.0, -3.0]
    assert near.law(scores).probabilities == pytest.approx(right.law(scores).probabilities, rel=1e-12)
    assert near.law([-1490.0, -1490.0]).probabilities.tolist() == [0.5, 0.5]
    assert near.law([-1491.0, -1490.0]).probabilities.tolist() == [0.0, 1.0]
    with pytest.raises(DatasetError, match="all weights are rounded to zero"):
        near.law([-2000.0, -2000.0])


def test_flips_in_a_fixed_order_stop_at_the_first_of_the_best():
    law = faulty.FlipWithoutPermuting(1.0).law([-1.0, 0.0, 0.0, -2.0])
    first = math.exp(-0.5)
    assert law.probabilities.tolist() == pytest.approx([first, 1 - first, 0.0, 0.0])
    orders = itertools.permutations([-1.0, 0.0, -2.0])
    in_any_order = [faulty.FlipWithoutPermuting(1.0).law(order).probabilities[order.index(0.0)] for order in orders]
    right = m.PermuteAndFlip(1.0).law([-1.0, 0.0, -2.0])
    assert np.mean(in_any_order) == pytest.approx(right.probabilities[1], rel=1e-12)


def test_one_noise_for_all_is_no_noise():
    assert faulty.OneNoiseForAll(1.0).law([1.0, 2.0, 2.0]).probabilities.tolist() == [0, 1, 0]
    assert set(faulty.OneNoiseForAll(1.0).sample([1.0, 2.0], 100, rng())) == {1}


def test_the_winner_s_exact_count_is_one_of_the_counts():
    outputs = faulty.WinnerWithExactCount(1.0).sample((1.0, 1.5), 1000, rng())
    assert {tuple(row) for row in outputs} == {(0.0, 1.0), (1.0, 1.5)}


@pytest.mark.parametrize("parts", [1, 2])
def test_the_winner_and_its_noisy_count(parts):
    mechanism = faulty.WinnerWithNoisyCount(1.0, parts)
    x, y = (0.0, 0.0), (1.0, -1.0)
    log_x, log_y = (np.array(mechanism.winners(dataset).log_probabilities) for dataset in (x, y))
    # Given the winner, the count is Laplace of rate 1/parts, moved by 1.
    loss = max(abs(log_x - log_y)) + 1 / parts
    assert (loss > 1.0) == (parts == 1)
    assert loss <= mechanism.truth.epsilon
    outputs = mechanism.sample(y, RUNS, rng())
    assert are_plausible(outputs[:, 0] == 0, math.exp(log_y[0]))
    won = outputs[outputs[:, 0] == 1, 1]
    assert are_plausible(won > -1.0 + parts * math.log(2), 0.25)


@pytest.mark.parametrize("charged", [1, 2])
def test_the_top_two_are_two_exponential_mechanisms(charged):
    mechanism = faulty.TopCandidates(1.0, charged=charged)
    scores = [0.0, 1.0, 3.0]
    found = mechanism.log_probabilities(scores)
    assert math.fsum(map(math.exp, found.values())) == pytest.approx(1.0)
    each = m.ExponentialMechanism(1.0 / charged)
    first, then = each.law(scores).probabilities[2], each.law([0.0, 1.0]).probabilities[0]
    assert math.exp(found[2, 0]) == pytest.approx(first * then, rel=1e-12)
    outputs = mechanism.sample(scores, RUNS, rng())
    assert outputs.shape == (RUNS, 2)
    for order, log_probability in found.items():
        assert are_plausible((outputs == order).all(axis=1), math.exp(log_probability))


def test_the_top_two_lose_twice_as_much_as_one_unless_charged_for_both():
    x, y = (0.0,) * 4, (1.0, 1.0, -1.0, -1.0)
    losses = []
    for mechanism in (faulty.TopCandidates(1.0), faulty.TopCandidates(1.0, charged=2)):
        log_x, log_y = mechanism.log_probabilities(x), mechanism.log_probabilities(y)
        losses.append(max(abs(log_x[order] - log_y[order]) for order in log_x))
        assert losses[-1] <= mechanism.truth.epsilon
    assert losses[0] > 1.3
    assert losses[1] < 1.0


@pytest.mark.parametrize(("bias", "odds"), [(0.5, 3.0), (0.25, 5.0), (0.75, 5.0)])
def test_warner_s_coins(bias, odds):
    mechanism = faulty.BiasedCoinResponse(bias)
    assert m.exact_epsilon(mechanism.law(0), mechanism.law(1)) == pytest.approx(math.log(odds), rel=1e-12)
    assert mechanism.truth.epsilon == pytest.approx(math.log(odds), rel=1e-12)
    assert mechanism.claim == PureDP(math.log(3))
    assert are_plausible(mechanism.sample(1, RUNS, rng()) == 1, 0.5 + 0.5 * bias)


def test_a_no_that_is_not_randomised():
    mechanism = faulty.OnlyYesRandomised(1.0)
    assert m.exact_epsilon(mechanism.law(0), mechanism.law(1)) == math.inf
    assert set(mechanism.sample(0, 100, rng())) == {0}
    assert are_plausible(mechanism.sample(1, RUNS, rng()) == 1, math.e / (1 + math.e))


def test_remembered_responses_stay_while_the_value_stays():
    mechanism = faulty.RememberedResponse(1.0)
    same, changed = (mechanism.sample(values, RUNS, rng()) for values in ((0, 0), (0, 1)))
    assert np.array_equal(same[:, 0], same[:, 1])
    truth = math.e / (1 + math.e)
    assert are_plausible(changed[:, 0] != changed[:, 1], truth**2 + (1 - truth) ** 2)
    fresh = faulty.RememberedResponse(1.0, is_remembered=False).sample((0, 0), RUNS, rng())
    each = math.exp(0.5) / (1 + math.exp(0.5))
    assert are_plausible(fresh[:, 0] != fresh[:, 1], 2 * each * (1 - each))


def test_two_of_the_bits_change():
    twin = faulty.OneHotAtFullEpsilon(0.5, k=4)
    laws = [twin.law(value) for value in range(4)]
    assert {round(m.exact_epsilon(*pair), 12) for pair in itertools.combinations(laws, 2)} == {1.0}
    assert twin.truth == PureDP(1.0)
    assert twin.claim == PureDP(0.5)


# Subsampling that is claimed and not done: the loss of each way of drawing, from mixtures of Laplace laws.

ALARM, RUNS = 1e-8, 100_000


def totals(sampling, rows, rate=0.5):
    """Law of the sum of the sample, by enumeration of all samples: {sum: probability}."""
    n, batch = len(rows), math.floor(rate * len(rows))
    samples = {
        "none": [(rows, 1.0)],
        "first": [(rows[:batch], 1.0)],
        "poisson": [
            (
                [row for row, is_in in zip(rows, mask, strict=True) if is_in],
                rate ** sum(mask) * (1 - rate) ** (n - sum(mask)),
            )
            for mask in itertools.product((0, 1), repeat=n)
        ],
        "fixed": [(sample, 1 / math.comb(n, batch)) for sample in itertools.combinations(rows, batch)],
        "replacement": [(sample, n**-batch) for sample in itertools.product(rows, repeat=batch)],
    }[sampling]
    found = {}
    for sample, probability in samples:
        found[sum(sample)] = found.get(sum(sample), 0.0) + probability
    return found


def largest_loss(law_x, law_y, epsilon=1.0):
    """Largest loss between two mixtures of Laplace laws of scale 1/ε, on a grid that reaches beyond all locations."""
    z = np.linspace(-8, 8, 1601)
    log_x, log_y = (np.log(sum(p * np.exp(-epsilon * np.abs(z - a)) for a, p in law.items())) for law in (law_x, law_y))
    return np.abs(log_x - log_y).max()


@pytest.mark.parametrize(
    ("sampling", "x", "y", "loss"),
    [
        ("none", [0.0] * 2, [0.0] * 2 + [1.0], 1.0),
        ("first", [0.0] * 2, [1.0] + [0.0] * 2, 1.0),
        ("fixed", [-1.0] * 2, [-1.0] * 2 + [1.0], math.log(2 / 3 + math.exp(2) / 3)),
        ("replacement", [0.0] * 3, [0.0] * 3 + [1.0], 2 * math.log(0.75 + 0.25 * math.e)),
        ("poisson", [0.0] * 2, [0.0] * 2 + [1.0], math.log(0.5 + 0.5 * math.e)),
    ],
)
def test_losses(sampling, x, y, loss):
    mechanism = faulty.SampledTotal(1.0, 0.5, sampling)
    found = largest_loss(totals(sampling, x), totals(sampling, y))
    assert found == pytest.approx(loss, rel=1e-9)
    assert (found > mechanism.claim.epsilon + 1e-9) == (sampling != "poisson")
    assert mechanism.truth is None or found <= mechanism.truth.epsilon + 1e-9


def test_a_row_that_is_drawn_more_than_once():
    mechanism, x = faulty.SampledTotal(2.0, 0.75, "replacement"), [0.0] * 3
    found = largest_loss(totals("replacement", x, 0.75), totals("replacement", [*x, 1.0], 0.75), 2.0)
    assert found == pytest.approx(3 * math.log(0.75 + 0.25 * math.exp(2)), rel=1e-9)
    assert found > 1.6 * mechanism.claim.epsilon


def test_poisson_sampling_keeps_the_claim_on_small_datasets():
    claim = faulty.SampledTotal(1.0, 0.5).claim
    assert claim == PureDP(math.log(0.5 + 0.5 * math.e))
    for size in range(3):
        for rows in itertools.product((-1.0, 0.5, 1.0), repeat=size):
            for added in (-1.0, 1.0):
                law_x, law_y = totals("poisson", rows), totals("poisson", (*rows, added))
                assert largest_loss(law_x, law_y) <= claim.epsilon + 1e-9


@pytest.mark.parametrize("sampling", ["poisson", "none", "first", "fixed", "replacement"])
def test_outputs_follow_the_mixture(sampling):
    rows = [0.25, -1.0, 1.0, 0.5]
    outputs = faulty.SampledTotal(1.0, 0.5, sampling).sample(rows, RUNS, np.random.default_rng(3))
    for z in (-1.0, 0.3, 1.2):
        below = sum(p * stats.laplace.cdf(z - a) for a, p in totals(sampling, rows).items())
        limits = stats.binom(RUNS, below)
        assert limits.ppf(ALARM / 2) <= np.count_nonzero(outputs <= z) <= limits.isf(ALARM / 2)


@pytest.mark.parametrize("sampling", ["poisson", "none", "first", "fixed", "replacement"])
def test_a_dataset_without_rows_has_sum_0(sampling):
    assert abs(np.median(faulty.SampledTotal(1.0, 0.5, sampling).sample([], 1001, np.random.default_rng(3)))) < 0.5


def test_errors_of_faulty_sampling():
    with pytest.raises(ClaimError, match="sampling='all' is unknown; use one of poisson, none"):
        faulty.SampledTotal(1.0, 0.5, "all")
    with pytest.raises(ClaimError, match="rate=1 is not allowed"):
        faulty.SampledTotal(1.0, 1)


# Outputs that leak outside their noise: exact statistics, keys, missing values and exceptions.

ALARM, RUNS = 1e-8, 100_000


def are_plausible_of_faulty_outputs(hits, runs, probability):
    limits = stats.binom(runs, probability)
    return limits.ppf(ALARM / 2) <= hits <= limits.isf(ALARM / 2)


def test_a_statistic_beside_the_output():
    mechanism = faulty.BesideExact(m.LaplaceMechanism(1.0, query=len), len)
    outputs = mechanism.sample([1, 2, 3], 100, rng())
    assert outputs.shape == (100, 2)
    assert set(outputs[:, 1]) == {3.0}
    assert len(set(outputs[:, 0])) == 100
    assert mechanism.claim == PureDP(1.0)


def test_reports_as_text():
    texts = faulty.JsonReport(1.0).sample([1, 0, 1], 50, rng())
    assert {json.loads(text)["rows"] for text in texts} == {3}
    assert len({json.loads(text)["count"] for text in texts}) > 1
    assert all(
        set(json.loads(text)) == {"count"} for text in faulty.JsonReport(1.0, has_rows=False).sample([1], 50, rng())
    )


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.01), (0.3, 1e-4), (3.0, 0.4)])
def test_a_key_that_occurs_once_appears_with_probability_at_most_delta(epsilon, delta):
    mechanism = faulty.KeyedCounts(epsilon, delta)
    noisy_one = m.GeometricLaw(1, math.exp(-epsilon))
    assert noisy_one.sf(mechanism.least - 1) <= delta
    assert mechanism.least == 2 or noisy_one.sf(mechanism.least - 2) > delta  # and with no smaller threshold


def test_keys_and_their_counts():
    rows = ["b"] * 6 + ["a"] * 5 + ["c"]
    noisy, exact, bare = (faulty.KeyedCounts(1.0, 0.01, kind) for kind in ("noisy", "exact", "none"))
    assert noisy.least == 6
    assert {tuple(key for key, _ in pairs) for pairs in bare.sample(rows, 500, rng())} == {("a", "b", "c")}
    assert {tuple(key for key, _ in pairs) for pairs in exact.sample(rows, 500, rng())} == {("b",)}
    kept = noisy.sample(rows, 20_000, rng())
    assert all(count >= 6 for pairs in kept for _, count in pairs)
    law = m.GeometricLaw(5, math.exp(-1.0))
    assert are_plausible_of_faulty_outputs(sum("a" in dict(pairs) for pairs in kept), 20_000, float(law.sf(5)))
    assert bare.sample([], 2, rng()) == [(), ()]
    assert noisy.claim == noisy.truth == ApproxDP(1.0, 0.01)
    assert exact.truth is bare.truth is None


def test_small_counts():
    assert faulty.SmallCount(1.0, 5).sample([1] * 4, 3, rng()) == [None] * 3
    assert faulty.SmallCount(1.0, 1, 0.0).sample([], 3, rng()) == [0.0] * 3
    assert all(isinstance(output, float) for output in faulty.SmallCount(1.0, 5).sample([1] * 5, 100, rng()))
    right = faulty.SmallCount(1.0, 5, is_noisy=True).sample([1] * 4, RUNS, rng())
    assert are_plausible_of_faulty_outputs(right.count(None), RUNS, 1 - math.exp(-1) / 2)
    assert min(output for output in right if output is not None) >= 5


def test_means_of_groups():
    rows = [("a", 1.0), ("a", 0.0), ("a", 9.0)]
    outputs = faulty.GroupMeans(1.0, ("a", "b")).sample(rows, RUNS, rng())
    assert np.isnan(outputs[:, 1]).all()
    assert are_plausible_of_faulty_outputs(np.count_nonzero(outputs[:, 0] > 2 / 3), RUNS, 0.5)
    assert np.isfinite(faulty.GroupMeans(1.0, ("a", "b"), is_filled=True).sample(rows, 100, rng())).all()


def test_counts_that_raise():
    assert isinstance(faulty.CheckedCount(1.0, "nothing")([], rng()), float)
    with pytest.raises(ZeroDivisionError):
        faulty.CheckedCount(1.0, "no rows")([], rng())
    with pytest.raises(ValueError, match="outside"):
        faulty.CheckedCount(1.0, "outliers")([0.5, 2.0], rng())
    assert isinstance(faulty.CheckedCount(1.0, "outliers")([0.5], rng()), float)


def test_coordinates_without_noise():
    answers = (2.0, 0.0, 3.0)
    for spared, bare in (("none", set()), ("zeros", {1}), ("last", {2})):
        mechanism = faulty.LaplaceOfScale(2.0, PureDP(0.5), spared=spared)
        outputs = mechanism.sample(answers, 100, rng())
        assert {j for j in range(3) if len(set(outputs[:, j])) == 1} == bare
        assert all(outputs[0, j] == answers[j] for j in bare)
    law_x, law_y = (faulty.LaplaceOfScale(2.0, PureDP(0.5)).law(dataset) for dataset in (answers, (2.0, 1.0, 4.0)))
    assert m.exact_epsilon(law_x, law_y) == pytest.approx(1.0)
    last = faulty.LaplaceOfScale(2.0, PureDP(0.5), spared="last")
    assert m.exact_epsilon(last.law(answers), last.law((2.0, 0.0, 4.0))) == math.inf
    with pytest.raises(ClaimError, match="spared='first' is unknown"):
        faulty.LaplaceOfScale(2.0, PureDP(0.5), spared="first")


def test_counts_that_add_up():
    outputs = faulty.ConsistentWithTheTotal(1.0).sample((2.0, 1.0, 0.0), RUNS, rng())
    assert np.all(outputs.sum(axis=1) == 3.0)
    assert are_plausible_of_faulty_outputs(np.count_nonzero(outputs[:, 0] > 2.0), RUNS, 0.5)


def test_doubles_off_the_grid():
    """The values are right, but off the grid of the sound mechanisms."""
    normal = faulty.NaiveGaussian(1.0, 0.01)
    for mechanism, tail in (
        (faulty.NaiveLaplace(1.0), stats.laplace.sf(1.0)),
        (normal, stats.norm.sf(1.0 / normal.on_grid.scale)),
    ):
        outputs = mechanism.sample(3.0, RUNS, rng())
        assert are_plausible_of_faulty_outputs(np.count_nonzero(outputs > 4.0), RUNS, tail)
        assert np.mean(np.mod(outputs, 2.0**-30) != 0) > 0.9
    assert np.all(np.mod(normal.on_grid.sample(3.0, 1000, rng()), 2.0**-30) == 0)


def test_single_precision_noise_keeps_the_answer_s_low_bits():
    outputs = faulty.SinglePrecisionNoise(1.0).sample(3.1, RUNS, rng())
    assert are_plausible_of_faulty_outputs(np.count_nonzero(outputs > 4.1), RUNS, stats.laplace.sf(1.0))
    noise = faulty.SinglePrecisionNoise(1.0).sample(0.0, 1000, rng())
    assert np.array_equal(noise, noise.astype(np.float32))
    assert not np.any(outputs == outputs.astype(np.float32))


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: faulty.InvertedScaleLaplace(0), ClaimError, "epsilon=0 is not allowed; use 0 < epsilon"),
        (lambda: faulty.SquaredRatioGeometric(math.nan), ClaimError, "epsilon=nan is not allowed"),
        (lambda: faulty.ExponentialMissingFactorTwo(1, sensitivity=-1), ClaimError, "sensitivity=-1 is not allowed"),
        (lambda: faulty.NoisyMaxMissingFactorTwo(1, noise="none"), ClaimError, "noise='none' is unknown"),
        (
            lambda: faulty.NoisyMaxReleasingValue(1, 0),
            ClaimError,
            "n_candidates=0 is not a number of counts; use a whole number",
        ),
        (lambda: faulty.UnderstatedSensitivityLaplace(1, bound=0), ClaimError, "sensitivity=0 is not allowed"),
        (lambda: faulty.PerRowGeometric(1, rows_per_user=0), ClaimError, "sensitivity=0 is not allowed"),
        (lambda: faulty.TruthAmongTheLies(1, k=1), ClaimError, "k=1 is not a number of values"),
        (lambda: faulty.BinaryOddsForManyValues(1, k=1), ClaimError, "k=1 is not a number of values"),
        (lambda: faulty.ClassicalBeyondOneGaussian(0, 0.1), ClaimError, "epsilon=0 is not allowed"),
        (lambda: faulty.ClassicalBeyondOneGaussian(10, 0), ClaimError, "delta=0 is not allowed"),
        (lambda: faulty.VarianceAsScaleGaussian(-1, 0.1), ClaimError, "epsilon=-1 is not allowed"),
        (lambda: faulty.PowersOfTen(0), ClaimError, "epsilon=0 is not allowed"),
        (lambda: faulty.OneNoiseForAll(-1), ClaimError, "epsilon=-1 is not allowed"),
        (lambda: faulty.TopCandidates(1.0, k=0), ClaimError, "k=0 is not a number of winners"),
        (lambda: faulty.TopCandidates(1.0, charged=0), ClaimError, "charged=0 is not a number of winners paid for"),
        (lambda: faulty.BiasedCoinResponse(1.0), ClaimError, "bias=1.0 is not allowed"),
        (lambda: faulty.OneHotAtFullEpsilon(1.0, k=1), ClaimError, "k=1 is not a number of values"),
        (lambda: faulty.OnlyYesRandomised(1.0).law(2), DatasetError, "dataset=2 is not one of the k=2 values"),
        (
            lambda: faulty.KeyedCounts(1.0, 0.01, "some"),
            ClaimError,
            "threshold='some' is unknown; use one of noisy, exact, none.",
        ),
        (lambda: faulty.KeyedCounts(1.0, 0.6), ClaimError, "delta=0.6 is not allowed"),
        (lambda: faulty.SmallCount(0, 5), ClaimError, "epsilon=0 is not allowed"),
        (lambda: faulty.NaiveLaplace(0), ClaimError, "epsilon=0 is not allowed"),
    ],
)
def test_errors(call, kind, message):
    with pytest.raises(kind) as caught:
        call()
    assert message in str(caught.value)
