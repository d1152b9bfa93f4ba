"""Exact audits of the catalogue of bugs and of all experiments, each on its pair of datasets.

Where the draws can be followed, a bug is refuted with certainty, a correct mechanism is verified, and the outputs have
the probabilities of the mechanism's own `distribution`. New entries and cases are audited without being named here.
"""

import itertools
import math
import re

import networkx as nx
import numpy as np
import pytest

import dpaudit.mechanisms as m
from dpaudit import check
from dpaudit.audit.claims.claim import PureDP, claim_at
from dpaudit.audit.errors import MechanismError
from dpaudit.audit.results.verdict import Verdict
from dpaudit.exact import Budget, ExactVerdict, distribution
from dpaudit.experiments.cases.experiment import AuditCase
from dpaudit.experiments.catalogue.entries import entries
from dpaudit.experiments.suite.run_suite import all_experiments
from dpaudit.mechanisms import faulty

FOLLOWED = (
    *(m.RandomisedResponse, m.UnaryEncoding, m.HadamardResponse, m.LocalHashing, m.ThresholdedHistogram),
    *(m.NameAndShame, m.RandomisedResponseFold, m.BinomialMechanism, m.GroupTightMechanism),
    *(faulty.BiasedCoinResponse, faulty.OnlyYesRandomised, faulty.RememberedResponse, faulty.FlipWithoutPermuting),
    faulty.RangedCount,
)
"""Mechanisms of which every audit must come to a verdict."""
REFUSALS = re.compile(
    "draws from .* which is continuous|returns a uniform number|asks for the digits of a uniform number"  # continuous
    "|with another uniform number|with arrays of parameters"  # blocks of several runs
)
SLOW = re.compile(
    "up-and-down|adaptive|M8-root|forty-values|root-without-delta|R3-|M3-|L4-|first-report|range-of|keys-|E5-"
)
"""Every outcome of many coins, or of several counts, is an execution; some exceed the budget."""
BUDGET = Budget(executions=3_000, states=3_000)


def is_left_out(mechanism, x):
    """Whether networkx keeps caches in the dataset, or numpy computes with a block of uniform numbers in place."""
    return isinstance(x, nx.Graph) or isinstance(mechanism, (m.PermuteAndFlip, faulty.BoundedLaplace))


def audits():
    """Return all different audits: mechanism, datasets, claim, and whether the mechanism breaks it."""
    found = {}

    def add(name, mechanism, case, is_broken, is_evidence=False):
        row = mechanism, case.x, case.y, claim_at(case.claim, case.distance), is_broken
        marks = pytest.mark.evidence if is_evidence or SLOW.search(name) else ()
        if not is_left_out(mechanism, case.x):
            found.setdefault(repr(row), pytest.param(*row, id=name, marks=marks))

    for fault in entries():
        add(f"{fault.name}, faulty", fault.mechanism, fault, True)
        add(f"{fault.name}, correct", fault.correct, fault, False)
    for case in itertools.chain.from_iterable(experiment.cases for experiment in all_experiments()):
        if isinstance(case, AuditCase):
            add(case.name, case.mechanism, case, case.expected is Verdict.REFUTED, is_evidence=True)
    return found.values()


@pytest.mark.parametrize(("mechanism", "x", "y", "claim", "is_broken"), audits())
def test_the_verdict_is_certain(mechanism, x, y, claim, is_broken):
    try:
        result = check(mechanism, x, y, claim=claim, exact=BUDGET)
    except MechanismError as error:
        result, refusal = None, str(error)
    if result is None or result.verdict is ExactVerdict.UNDETERMINED:
        assert not isinstance(mechanism, FOLLOWED)
        assert REFUSALS.search(refusal) if result is None else result.on_x.ended_by or result.on_y.ended_by
        return
    assert result.verdict is (ExactVerdict.REFUTED if is_broken else ExactVerdict.VERIFIED), str(result)
    if hasattr(mechanism, "distribution"):
        for dataset, found in ((x, result.on_x), (y, result.on_y)):
            stated = np.exp(mechanism.distribution(dataset).log_density(np.array([*found.probabilities])))
            error = found.remainder + found.error + 1e-12  # of the reference distributions
            assert np.array([*map(float, found.probabilities.values())]) == pytest.approx(stated, abs=error)


BLOCKS = [
    (m.RandomisedResponse(1.0, k=3), 1), (m.UnaryEncoding(1.0, 2), 1), (m.ThresholdedHistogram(1.0, 2), 0),
    (m.LocalHashing(1.0, 4, n_hashes=2), 3), (m.HadamardResponse(1.0, 3), 0), (m.BinomialMechanism(4, 1.0), 10),
    (m.ExponentialMechanism(1.0), (0.0, 2.0, 1.0)), (m.RandomisedResponseFold(0.25, 4), 1),
]  # fmt: skip


def two_runs(sample):
    """Return a function whose output is a block of two runs."""
    return lambda dataset, rng: tuple(tuple(np.ravel(run).tolist()) for run in sample(dataset, 2, rng))


@pytest.mark.parametrize(("mechanism", "dataset"), BLOCKS, ids=str)
def test_the_runs_of_a_block_are_independent(mechanism, dataset):
    """The fractions are equal: what holds for one run holds for the blocks of a sampling audit."""
    one = distribution(lambda data, rng: tuple(np.ravel(mechanism.sample(data, 1, rng)).tolist()), dataset)
    product = {
        (first, second): p * q for (first, p), (second, q) in itertools.product(one.probabilities.items(), repeat=2)
    }
    assert dict(distribution(two_runs(mechanism.sample), dataset).probabilities) == product
    repeated = distribution(two_runs(lambda data, size, rng: [mechanism.sample(data, 1, rng)] * size), dataset)
    assert dict(repeated.probabilities) != product


def test_a_remembered_response():
    truth, half = math.e / (1 + math.e), math.exp(0.5) / (1 + math.exp(0.5))
    fresh = faulty.RememberedResponse(1.0, is_remembered=False)
    for mechanism, answers, expected in [
        (faulty.RememberedResponse(1.0), (0, 0), 0.0),
        (faulty.RememberedResponse(1.0), (0, 1), truth**2 + (1 - truth) ** 2),
        (fresh, (0, 0), 2 * half * (1 - half)),
    ]:
        found = distribution(mechanism, answers).probabilities
        assert float(sum(p for (first, second), p in found.items() if first != second)) == pytest.approx(expected)


def test_a_second_mechanism_that_the_first_output_chooses():
    def follow_up(answer):
        return m.RandomisedResponse(0.3 if answer == 0 else 0.7, k=3)

    mechanism = m.AdaptiveComposition(m.RandomisedResponse(1.0), follow_up, then_claim=PureDP(0.7))
    found = distribution(mechanism, 0).probabilities
    assert len(found) == 6
    stated = np.exp(mechanism.distribution(0).log_density(list(found)))
    assert [float(p) for p in found.values()] == pytest.approx(stated, rel=1e-12)
