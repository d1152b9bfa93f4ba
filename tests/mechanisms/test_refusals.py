"""Parameters, datasets and distributions that mechanisms refuse, and what the error names."""

import math

import networkx as nx
import numpy as np
import pytest

import dpaudit.mechanisms as m
from dpaudit import AddRemove, Local, Replace
from dpaudit.audit.claims.claim import GaussianDP, PureDP
from dpaudit.audit.errors import ClaimError, DatasetError, MechanismError, OptionError
from dpaudit.domains import NodeNeighbours
from dpaudit.mechanisms import aggregates, faulty
from dpaudit.mechanisms import noise_samplers as noise
from dpaudit.mechanisms.distributions.released_values import MassBelow
from dpaudit.mechanisms.faulty.noise import median
from dpaudit.mechanisms.faulty.selection import MaximumLaplaceDistribution
from dpaudit.mechanisms.faulty.training import TRAINING_FAULTS
from dpaudit.mechanisms.local.frequency_oracles import BitReports
from dpaudit.mechanisms.synthetic import marginals
from dpaudit.mechanisms.training.canaries import DiracCanaries, canary_run
from dpaudit.mechanisms.training.dp_sgd import DPSGD, WorstCaseTraining, dp_sgd_claim
from dpaudit.mechanisms.training.models import FixedGradients, LinearRegression
from dpaudit.mechanisms.training.observers import NoisySums
from dpaudit.mechanisms.training.train import (
    BatchesInOrder,
    FixedSizeBatches,
    FullBatch,
    PoissonBatches,
    ShuffledBatches,
)

NAN, INF = math.nan, math.inf
NODES = NodeNeighbours()


class Unusual:
    """Mechanism whose claim is not epsilon and delta."""

    claim = GaussianDP(1.0)

    def sample(self, dataset, size, rng):
        return np.zeros(size)


class Words:
    """Mechanism whose outputs are words."""

    claim = PureDP(0.3)

    def sample(self, dataset, size, rng):
        return np.array(["a", "b"])[rng.integers(0, 2, size)]


def sample(mechanism, dataset, size=1):
    return mechanism.sample(dataset, size, np.random.default_rng(1))


def training(sampling=None, observer=None, **changes):
    given = {"model": FixedGradients(), "noise_multiplier": 1.0, "steps": 1, **changes}
    return DPSGD(sampling=sampling or FullBatch(), **given, **({} if observer is None else {"observer": observer}))


def make_moments(**options):
    return aggregates.noisy_moments(1, -1.0, 3.0, **options)


def claim_of_full_batches(**options):
    return dp_sgd_claim(FullBatch(), 1.0, 3, **options)


def make_tree(**options):
    return aggregates.noisy_tree_counts(-1.0, 3.0, **{"height": 3, "branching": 2, **options})


# maker, arguments that it takes, and for some of them values that it does not take. What mechanisms refuse for epsilon,
# delta, sensitivity, cutoff and k is in test_conformance.py.
GAUSS, DEGREES = {"epsilon": 1, "delta": 0.1}, {"epsilon": 1, "max_degree": 2}
THRESHOLD = {"claim": PureDP(1), "threshold_scale": 1.0, "query_scale": 1.0}
MANY = {"epsilon": 1, "delta": 0, "k": 1, "slack": 0.1}
OUT_OF_RANGE = [
    (m.LaplaceMechanism, {"epsilon": 1}, {"epsilon": [0, -1, NAN, INF, "1"], "sensitivity": [0, NAN]}),
    (m.GeometricMechanism, {"epsilon": 1}, {"epsilon": [1e-10], "sensitivity": [1.5]}),
    (m.HistogramMechanism, {"epsilon": 1, "k": 3}, {"k": [2.5], "sensitivity": [0.5, INF], "noise": ["gaussian"]}),
    (m.EdgeCountMechanism, {"epsilon": 1}, {"adjacency": ["node"], "max_degree": [3]}),
    (m.EdgeCountMechanism, {"epsilon": 1, "adjacency": NODES, "max_degree": 2}, {"max_degree": [None, 0]}),
    (m.DegreeHistogramMechanism, DEGREES, {"max_degree": [2.5], "adjacency": [NodeNeighbours]}),
    (m.GaussianMechanism, GAUSS, {"delta": [0], "calibration": ["exact"]}),
    (m.GaussianMechanism, {**GAUSS, "calibration": "classical"}, {"epsilon": [2, 0]}),
    (m.gaussian_loss_tail, {"epsilon": 1, "scale": 1}, {"epsilon": [-1], "scale": [NAN]}),
    (m.gaussian_delta, {"epsilon": 1, "scale": 1}, {"epsilon": [-1], "scale": [0]}),
    (m.LocalGaussianMechanism, {**GAUSS, "domain": m.Ball(1.0, 1)}, {"domain": [(0, 1)]}),
    (m.Interval, {"low": 0, "high": 1}, {"low": [1, -INF], "high": [0, NAN]}),
    (m.Ball, {"radius": 1, "n_coords": 1}, {"radius": [0, INF], "n_coords": [0]}),
    (m.DiscreteGaussianMechanism, {"sigma": 1.0, "epsilon": 1.0}, {"sigma": [0.0, NAN, 1e9, 0.05]}),
    (m.BinomialMechanism, {"n_flips": 10, "epsilon": 1.0}, {"n_flips": [0, 7, 2.0**30, NAN], "sensitivity": [1.5]}),
    (m.EachCandidate, {"utility": max, "candidates": "ab"}, {"candidates": [()]}),
    (m.ReportNoisyMax, {"epsilon": 1}, {"noise": ["cauchy"]}),
    (
        m.PostedPriceAuction,
        {"epsilon": 1, "prices": [1.0, 2.0]},
        {"prices": [[], [2.0, 1.0], [1.0, 1.0], [0.0, 1.0], [NAN], [1.0, INF]]},
    ),
    (m.SparseVector, {"epsilon": 1.0}, {"cutoff": [1.5], "threshold": [INF]}),
    (m.RandomisedResponse, {"epsilon": 1}, {"k": [1, 2.5]}),
    (m.RandomisedResponseFold, {"epsilon_each": 1, "n": 3}, {"epsilon_each": [0], "n": [0, 2.5]}),
    (m.UnaryEncoding, {"epsilon": 1.0, "k": 3}, {"epsilon": [0.0, 30.0], "k": [1]}),
    (m.ThresholdedHistogram, {"epsilon": 1.0, "k": 3}, {"threshold": [NAN]}),
    (m.LocalHashing, {"epsilon": 1.0, "k": 3}, {"g": [1]}),
    (m.SubsetSelection, {"epsilon": 1.0, "k": 3}, {"size": [3]}),
    (m.GroupPrivacy, {"epsilon": 1.0}, {"epsilon": [-1.0], "form": ["neither"]}),
    (m.group_delta, {"epsilon": 1, "delta": 0.1, "k": 2}, {"delta": [1.5], "k": [0], "form": ["best"]}),
    (m.GroupTightMechanism, {"epsilon": 1.0, "delta": 0.1}, {"start": [1.0]}),
    (m.advanced_composition, MANY, {"epsilon": [-1], "delta": [1], "k": [0], "slack": [0]}),
    (m.composed, {"mechanism": m.LaplaceMechanism(1.0), "k": 2}, {"k": [0, 2.0]}),
    (m.IntervalOf, {"edges": (3, 4)}, {"edges": [(3, 3), (NAN,)]}),
    (m.NoisyMarginals, {"epsilon": 1.0, "categories": (2,)}, {"categories": [()], "rows": [0], "sensitivity": [2]}),
    (m.NoisyThreshold, THRESHOLD, {"threshold_scale": [0.0], "query_scale": [-1.0], "value_scale": [2, -2.0]}),
    (make_moments, {"epsilon": 1.0}, {"delta": [-0.1], "partitions": [0], "per_partition": [1.5]}),
    (make_moments, {"epsilon": 1.0}, {"epsilon": [0], "noise_share": [0.0]}),
    (make_tree, {"epsilon": 1.0}, {"height": [0], "branching": [1]}),
    (aggregates.ApproximateBounds, {"epsilon": 1.0}, {"contributions": [0], "bins": [0], "noise_share": [1.5]}),
    (aggregates.ApproximateBounds, {"epsilon": 1.0}, {"base": [1.0], "scale": [0.0]}),
    (training, {}, {"noise_multiplier": [0], "steps": [0], "clip": [-1.0]}),
    (PoissonBatches, {"rate": 1.0}, {"rate": [0.0, 1.1]}),
    (claim_of_full_batches, {}, {"neighbours": ["both"], "delta": [0]}),
    (WorstCaseTraining, {"noise_multiplier": 1.0, "steps": 1}, {"rate": [0], "seen": ["first"]}),
    (DiracCanaries, {"m": 5}, {"m": [0]}),
]  # fmt: skip


def test_a_parameter_outside_its_range_is_named_with_its_value():
    for make, given, wrong in OUT_OF_RANGE:
        make(**given)
        for name, value in [(name, value) for name, values in wrong.items() for value in values]:
            with pytest.raises(ClaimError) as caught:
                make(**{**given, name: value})
            assert f"{name}={value!r}" in str(caught.value)


ADAPTIVE = m.AdaptiveComposition(m.RandomisedResponse(1.0), lambda output: m.RandomisedResponse(0.5), PureDP(0.5))
PAIR = m.LaplaceDistribution(0, 1), m.LaplaceDistribution(1, 1)
NO_FORM = "no closed form"
REFUSED = {
    ClaimError: [
        (lambda: m.LaplaceMechanism(1e10, 1e-310), "leaves the range of doubles"),
        (lambda: m.GeometricMechanism(800.0), "so little noise that doubles cannot"),
        (lambda: m.analytic_gaussian_scale(0, 1e-300, 1e9), "standard deviation beyond 1e308"),
        (lambda: m.BinomialMechanism(10, 1.0, sensitivity=11), "n_flips=10 gives delta 1"),
        (lambda: m.LocalHashing(20.0, 3), "g=485165196 with 16 hash functions is too much"),
        (lambda: m.MemoisedBits(1.0, 1.0, 3), "use epsilon_first < epsilon_permanent"),
        (lambda: BitReports(1.0, 0.3, 3).claim, "epsilon=inf"),
        (lambda: m.NoisyThreshold(PureDP(1), 1.0, 0.0, release_value=True), "would release exact answers"),
        (lambda: m.CategoryCounts([]), "categories=() is an empty range"),
        (lambda: m.CategoryCounts(["a", "b", "a"]), "names a category twice"),
        (lambda: m.SequentialComposition(()), "mechanisms=() composes nothing"),
        (lambda: m.SequentialComposition(m.LaplaceMechanism(1.0)), "is not a sequence of mechanisms"),
        (lambda: m.SequentialComposition([len]), "is not a mechanism with a claim and a sample method"),
        (lambda: m.SequentialComposition([Unusual()]), "a part claims 1-GDP, which does not add up"),
        (lambda: m.AdaptiveComposition(m.LaplaceMechanism(1.0), len, GaussianDP(1.0)), "a part claims 1-GDP"),
        (lambda: m.composed(m.GaussianMechanism(1.0, 0.4), 3), "delta=1.2"),
        (lambda: m.GroupPrivacy(1.0)(0), "distance=0 is not the size of a group"),
        (lambda: m.GroupPrivacy(1.0, 0.5, "product")(2), "at distance 2 delta is 2.72, which claims nothing"),
        (lambda: m.GroupTightMechanism(1.0), "start=0.0 with delta=0 gives a bit that is never 1"),
        (lambda: m.NoisyMarginals(1.0, (1,)), "categories=1"),
        (lambda: m.NoisyBins(1.0, 1.0, 1.0), "do not form a range"),
        (lambda: aggregates.noisy_moments(3, 0.0, 1.0, epsilon=1.0), "3"),
        (lambda: aggregates.noisy_moments(1, 1.0, 1.0, epsilon=1.0), "1.0"),
        (lambda: training(initial=(1.0, 2.0)), "initial has 2 weights, but the model has 1"),
        (lambda: with_canaries(PoissonBatches(0.5), probability=1), "probability=1"),
        *(
            (lambda sampling=sampling: dp_sgd_claim(sampling, 1.0, 3, neighbours="add_or_remove_one"), "no bound")
            for sampling in (ShuffledBatches(2, 6), FixedSizeBatches(2, 6), BatchesInOrder(2, 6))
        ),
    ],
    DatasetError: [
        (lambda: sample(m.LaplaceMechanism(1), 1e12), "answer=1000000000000.0 is too large for a double"),
        *(
            (lambda answer=answer: noise.round_to_grid(np.zeros(3), 1.0, answer), "too large for a double to resolve")
            for answer in (2.0**32, NAN)
        ),
        *(
            (lambda answer=answer: m.LaplaceMechanism(1).distribution(answer), "not a finite number; use a query")
            for answer in ("three", [1, 2], None, NAN)
        ),
        *(
            (
                lambda answer=answer: m.VectorGaussianMechanism(1.0, 0.1).distribution(answer),
                "not a vector of finite numbers",
            )
            for answer in (1.0, [], [[1.0, 2.0]], ["a", "b"], [INF])
        ),
        *((lambda n=n: m.GeometricMechanism(1).distribution(n), "not a whole number") for n in (0.5, 2.0**60)),
        (
            lambda: m.LocalGaussianMechanism(1, 0.1, m.Ball(1.0, 2)).distribution([1.0, 0.0, 0.0]),
            "3 coordinates, the domain 2",
        ),
        (lambda: m.LocalGaussianMechanism(1, 0.1, m.Interval(0, 1)).distribution(NAN), "which is not a"),
        *(
            (lambda rows=rows: m.HistogramMechanism(1.0, k=4).distribution(rows), "is not a list of rows in range(k=4)")
            for rows in ([4], [-1], [0.5], ["a"], 3, [[0, 1]])
        ),
        (lambda: m.EdgeCountMechanism(1).distribution([1, 2]), "type list is not a graph"),
        (lambda: m.EdgeCountMechanism(1, NODES, 2).distribution(nx.star_graph(5)), "a node has 5 edges"),
        (lambda: sample(m.DegreeHistogramMechanism(1, 2, NODES), nx.star_graph(3)), "a node has 3 edges"),
        *(
            (lambda scores=scores: m.ExponentialMechanism(1.0).distribution(scores), message)
            for scores, message in [
                ([], "an empty vector, so there is nothing to choose from"),
                ([1.0, NAN], "the score of candidate 1 is nan"),
                ([1.0, 2.0, -INF], "the score of candidate 2 is -inf"),
                (3.0, "which is not a vector of scores"),
                (["a"], "which is not a vector of scores"),
                ([-1.5e308, 1.5e308], "which a double cannot hold in scales of 2"),
            ]
        ),
        (
            lambda: m.ExponentialMechanism(1e200, 1e-200).distribution([0.0, 1.0]),
            "in scales of 0; bring the scores closer",
        ),
        (lambda: m.ExponentialMechanism(1).loss_parts([0, 1], [0, 1, 2]), "x has 2 candidates and y 3"),
        (lambda: m.ReportNoisyMax(1).distribution([0.0, 1e9]), "too far to integrate their distribution"),
        *(
            (lambda bids=bids: m.PostedPriceAuction(1, (1.0, 2.0)).distribution(bids), "is not a list of bids")
            for bids in (["a"], [NAN], 3.0)
        ),
        (lambda: faulty.PricesFromTheBids(1).distribution([0.0]), "no positive bid to take a price from"),
        (
            lambda: faulty.UnderflowingExponential(1.0).distribution([-2000.0, -2000.0]),
            "all weights are rounded to zero",
        ),
        (lambda: m.SparseVector(1.0, 9).distribution([0.0] * 40), "too many to integrate their distribution"),
        (lambda: m.SparseVector(1.0).distribution([0.0, 1e9]), "scales of the threshold's noise, too far"),
        (lambda: MassBelow.of(np.zeros(21), 1.0, 1.0), "use fewer answers, or answers nearer"),
        (lambda: MassBelow.of(np.array([0.0, 900.0]), 1.0, 1.0), "use fewer answers, or answers nearer"),
        *(
            (lambda value=value: m.RandomisedResponse(1, k=3).distribution(value), "is not one of the k=3 values")
            for value in (-1, 3, 0.5)
        ),
        (lambda: sample(m.UpAndDown(1, 3), 0.5), "answered 0.5, which is not a whole number"),
        *(
            (lambda rows=rows: m.NameAndShame(0.1).distribution(rows), "is not a list of rows")
            for rows in ([], 3, [-1], [0.5], [2.0**53])
        ),
        (lambda: m.CategoryCounts("ab")(3), "a dataset of type int has no rows to compare"),
        (
            lambda: m.ParallelComposition([m.GeometricMechanism(1)] * 2, m.IntervalOf((1, 2))).distribution([2]),
            "part(2)=2",
        ),
        (lambda: m.GroupTightMechanism(1.0, 0.1).distribution(-1), "answered -1, which is not a number of steps"),
        (lambda: m.GroupTightMechanism(1.0, 0.1).distribution(10**6), "use 0 to 10000"),
        (lambda: sample(faulty.RedrawnUntilNonnegative(0.5), -1), "the count -1 is negative"),
        (lambda: faulty.RangedCount(0.5, None, False).distribution([2]), "a row is neither 0 nor 1"),
        (lambda: faulty.RangedCount(0.5, 1, True).distribution([1, 1]), "2 rows are 1, more than most=1"),
        (lambda: median([1, 2]), "2 rows have no single middle one"),
        (lambda: marginals([(0,)], (2, 2)), "is not a tuple of 2 categories"),
        (lambda: two_scales().distribution([]), "2 finite numbers"),
        (lambda: sample(training(ShuffledBatches(1, 3)), [[0.0], [1.0]]), "has 2 records, but the sampling is for 3"),
        (lambda: LinearRegression(4).split(np.zeros((2, 3))), "shape (2, 3), but the model takes records of 5"),
        *(
            (lambda query=query: m.query_sensitivity(query, [1, 2], 3, AddRemove()), message)
            for query, message in [
                (lambda rows: INF if len(rows) == 2 else 0, "answered inf on a dataset of length 2"),
                (lambda rows: "many", "answered 'many' on a dataset of length 1"),
                (lambda rows: [0.0] * len(rows), "answers 1 numbers on one dataset and 0 on a neighbour"),
                (lambda rows: sum(rows) / len(rows) if rows else NAN, "answered nan on a dataset of length 0"),
            ]
        ),
        (lambda: m.utility_sensitivity(lambda x, c: [1, 2], "ab", range(3), 2, AddRemove()), "candidate 0 is [1, 2]"),
    ],
    MechanismError: [
        (lambda: sample(m.SequentialComposition((Words(), m.LaplaceMechanism(5.0))), 0.0), "outputs are of type <U1")
    ],
    OptionError: [
        (lambda: m.LaplaceDistribution(0, 0), "scale=0"),
        (lambda: m.GeometricDistribution(0, 1.0), "ratio=1.0"),
        (lambda: m.DiscreteGaussianDistribution(0, 0.0), "sigma=0"),
        (lambda: m.BinomialDistribution(0, 3), "n_flips=3"),
        (lambda: m.FiniteDistribution((0.0, 0.0)), "sum of probabilities=2.0"),
        (lambda: m.LeakyLaplaceDistribution(m.LaplaceDistribution(0, 1), 1000.0, 0.0), "probability=0.0"),
        (lambda: m.GaussianVectorDistribution((), 1.0), "number of coordinates=0"),
        (lambda: m.ProductDistribution(()), "number of marginals=0"),
        (lambda: m.ChainDistribution(m.FiniteDistribution((0.0,)), ()), "number of distributions=0"),
        (lambda: m.RowDistribution(((0,), (1,)), (0.0, 0.0)), "sum of probabilities"),
        (lambda: m.RowDistribution(((2, -1), (0, 1)), (math.log(0.25), math.log(0.75))), "lexicographic"),
        *(
            (lambda values=values, n=n: m.DiscreteDistribution(values, (math.log(1 / 2),) * n), "is not allowed; use")
            for values, n in [((2.0, 1.0), 2), ((1.0,), 2), ((1.0, NAN), 2), ((1.0,), 1)]
        ),
        (lambda: m.hockey_stick(*PAIR, -1), "epsilon=-1"),
        (lambda: m.exact_epsilon(*PAIR, NAN), "delta=nan"),
        *((lambda order=order: m.exact_renyi(*PAIR, order), f"order={order}") for order in (1, INF, NAN)),
        *(
            (lambda pair=pair: m.exact_delta(*pair, 1.0), NO_FORM)
            for pair in [
                (m.LaplaceDistribution(0, 1), m.LaplaceDistribution(0, 2)),
                (m.FiniteDistribution((0.0,)), m.FiniteDistribution((-INF, 0.0))),
                (MaximumLaplaceDistribution((0.0,), 1.0),) * 2,
                (m.DiscreteGaussianDistribution(0, 1.0), m.DiscreteGaussianDistribution(0, 2.0)),
                (m.BinomialDistribution(0, 10), m.BinomialDistribution(0, 12)),
                (m.GaussianVectorDistribution((0.0, 0.0), 1.0), m.GaussianVectorDistribution((0.0, 0.0), 2.0)),
                (m.GaussianVectorDistribution((0.0, 0.0), 1.0), m.GaussianVectorDistribution((0.0,), 1.0)),
                (m.ProductDistribution(PAIR), m.ProductDistribution(PAIR[::-1])),
                (m.ProductDistribution(PAIR), m.ProductDistribution(PAIR[:1])),
                (m.RareLeakLaplace(0.5, 0.01).distribution(0.0), m.RareLeakLaplace(0.5, 0.02).distribution(0.0)),
                (m.NameAndShame(0.3).distribution([1, 2]), m.NameAndShame(0.3).distribution([3, 4])),
                (m.SubsetDistribution(0, 5, 2, 1.0), m.SubsetDistribution(0, 5, 3, 1.0)),
                (m.SparseVector(1.0).distribution([0.0, 1.0]), m.SparseVector(1.0).distribution([0.0])),
            ]
        ),
        (lambda: m.exact_epsilon(m.ProductDistribution(PAIR), m.ProductDistribution(PAIR[::-1]), 0.1), NO_FORM),
        *(
            (lambda pair=pair: m.exact_renyi(*pair, 2), NO_FORM)
            for pair in [
                (m.LaplaceDistribution(0, 1), m.LaplaceDistribution(0, 2)),
                (m.LaplaceDistribution(0, 1), m.GaussianDistribution(0, 1)),
                (m.GeometricDistribution(0, 0.5), m.GeometricDistribution(1, 0.5)),
                (m.ProductDistribution(PAIR), m.ProductDistribution(PAIR[:1])),
            ]
        ),
        (lambda: released(9).distribution([0.0] * 20), "use at most 16384: fewer answers"),
        *(
            (lambda scale=scale, n=n, delta=delta: loss_of_released(scale, n, delta), message)
            for n, delta, message in ((1, 0.1, "use delta=0"), (2, 0.0, NO_FORM))
            for scale in (0.0, 1.5)
        ),
        (
            lambda: m.AdaptiveComposition(m.LaplaceMechanism(1.0), len, PureDP(30.0)).distribution(0.0),
            "finitely many outcomes",
        ),
        (lambda: m.composed(ADAPTIVE, 2).distribution(0), "is a distribution of dependent coordinates"),
        *((lambda xi=xi: m.inverse_laplace_cdf(xi), "outside (-1/2, 1/2)") for xi in (0.5, -0.5, NAN)),
        (lambda: faulty.ScaleFromTheData(0.5, median, lambda rows: 0.0).distribution([0.0] * 5), "scale=0"),
        (lambda: sample(training(observer=NoisySums((1.0, 1.0))), [[0.0]]), "a direction of 2 numbers"),
        (lambda: with_canaries(FullBatch(), score="ratio"), "does not fit FullBatch"),
        (lambda: m.query_sensitivity(len, range(100), 10, AddRemove()), "make 426,342,151,127,100 pairs of neighbours"),
        (lambda: m.query_sensitivity(len, [], 3, AddRemove()), "datasets of 0 to 3 rows make 0 pairs"),
        (lambda: m.query_sensitivity(len, [1], 3, Replace()), "a domain of one row leaves nothing"),
        (lambda: m.query_sensitivity(len, [1], 2.5, AddRemove()), "max_rows=2.5 and min_rows=0 are not a range"),
        (lambda: m.query_sensitivity(len, [1], 2, AddRemove(), min_rows=3), "max_rows=2 and min_rows=3 are not"),
        (lambda: m.query_sensitivity(len, [1], 2, Local()), "cannot be enumerated"),
        (lambda: m.query_sensitivity(len, [1], 2, AddRemove(), norm="l3"), "norm='l3'"),
    ],
}


def released(cutoff=1, **options):
    return m.NoisyThreshold(PureDP(1.0), 2.0, 3.0, cutoff=cutoff, threshold=0.25, release_value=True, **options)


def two_scales():
    claim = PureDP(1.0)
    return aggregates.NoisyAnswers(
        query=lambda rows: (1.0,), scales=(1.0, 1.0), noise="laplace", claim=claim, tight_claim=claim
    )


def loss_of_released(scale, n, delta):
    distribution, other = (released(value_scale=scale).distribution([0.0] * size) for size in (n, 1))
    return distribution.epsilon_from(other, delta)


def with_canaries(sampling=None, canaries=None, **options):
    return canary_run(training(sampling), np.empty((0, 1)), canaries or DiracCanaries(5), **options)


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_used_is_refused_with_the_reason(kind):
    for call, part in REFUSED[kind]:
        with pytest.raises(kind) as caught:
            call()
        assert part in str(caught.value)


@pytest.mark.parametrize("name", ["divided-by-the-size-of-the-data", "steps-from-the-data"])
def test_one_run_with_canaries_refuses_a_training_that_depends_on_the_records(name):
    """One recipe for all coins would be the right training, which shows nothing of the mistake."""
    fault = next(fault for fault in TRAINING_FAULTS if fault.name == name)
    with pytest.raises(OptionError, match="changes its recipe by the private records"):
        canary_run(fault.wrong, fault.no_records, DiracCanaries(10))
