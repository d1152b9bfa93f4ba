"""Exact strengths of claims on known laws, against every event."""

import itertools
import math

import numpy as np
import pytest

from dpaudit import ApproxDP, GaussianDP, NFoldComposition, ProbabilityPreservation, PureDP
from dpaudit.audit.errors import OptionError
from dpaudit.experiments.cases.experiment import best_events, exact_strength
from dpaudit.mechanisms import DiscreteLaw, FiniteLaw, GaussianLaw, GeometricLaw, GroupTightMechanism, LaplaceLaw

CLAIMS = [
    NFoldComposition(0.1, 10),
    ProbabilityPreservation(3, 0.2),
    PureDP(1.0),
    ApproxDP(1.0, 0.05),
    ApproxDP(0.3, 0.1, bound_on="delta"),
    *(
        claim.group(2)
        for claim in (PureDP(1.0), ApproxDP(1.0, 0.01), ApproxDP(0.3, 0.1, bound_on="delta"), ApproxDP(2.0, 0.0))
    ),
    *(claim.group(5) for claim in (ApproxDP(1.0, 0.01), ApproxDP(0.3, 0.1, bound_on="delta"))),
    ApproxDP(0.0, 0.1, bound_on="delta").group(2),
    GaussianDP(1.0).group(2),
]


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_exact_strength_is_that_of_the_worst_of_all_events(claim):
    rng = np.random.default_rng(1)
    law_x, law_y = (FiniteLaw.from_log_weights(rng.normal(size=4)) for _ in range(2))
    subsets = np.array(list(itertools.product((False, True), repeat=4)))[1:-1]
    p, q = (subsets @ law.probabilities for law in (law_x, law_y))
    worst = max(0.0, claim.strength_of(p, q).max(), claim.strength_of(q, p).max())
    assert exact_strength(claim, law_x, law_y) == pytest.approx(worst, rel=1e-8)


def test_best_events_of_laplace_laws_are_half_lines():
    law_x, law_y = LaplaceLaw(0.0, 2.0), LaplaceLaw(1.0, 2.0)
    for one, two in ((law_x, law_y), (law_y, law_x)):
        p, p_rest, q, q_rest = best_events(one, two)
        assert np.all(p >= q)
        assert p + p_rest == pytest.approx(1)
        assert q + q_rest == pytest.approx(1)
        assert math.log(p[0] / q[0]) == pytest.approx(0.5)
    assert exact_strength(PureDP(1.0), law_x, law_y) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("law_x", "law_y"),
    [
        (LaplaceLaw(0, 1), LaplaceLaw(0, 2)),
        (GaussianLaw(0, 1), GaussianLaw(1, 1)),
        (FiniteLaw((0.0,)), GeometricLaw(0, 0.5)),
    ],
    ids=["scales", "gaussian", "kinds"],
)
def test_other_laws_have_no_known_best_events(law_x, law_y):
    with pytest.raises(OptionError, match="no closed form"):
        best_events(law_x, law_y)


@pytest.mark.parametrize("bound_on", ["epsilon", "delta"])
@pytest.mark.parametrize("distance", [2, 3, 5])
def test_a_mechanism_that_attains_its_claim_at_a_distance_has_its_strength_per_step(distance, bound_on):
    claim, mechanism = ApproxDP(0.5, 0.01, bound_on=bound_on), GroupTightMechanism(0.5, 0.01)
    laws = mechanism.law(0), mechanism.law(distance)
    assert exact_strength(claim.group(distance), *laws) == pytest.approx(claim.strength, rel=1e-9)


@pytest.mark.parametrize(
    ("claim", "exact"),
    [
        (PureDP(1.0).group(3), math.inf),
        (ApproxDP(1.0, 0.01).group(2), math.inf),
        (ApproxDP(1.0, 0.01).group(3), math.log(0.98 / 0.01)),  # e^ε δ + δ = 1 − δ
        (ApproxDP(1.0, 0.01, bound_on="delta").group(2), 0.5),
    ],
    ids=str,
)
def test_laws_without_a_common_output(claim, exact):
    """Infinite where no ε of a step makes up for what its δ leaves."""
    assert exact_strength(claim, DiscreteLaw((0.0,), (0.0,)), DiscreteLaw((1.0,), (0.0,))) == pytest.approx(exact)


def test_equal_laws_have_strength_zero():
    for claim in CLAIMS:
        assert exact_strength(claim, *[FiniteLaw.from_log_weights([0.0, 1.0])] * 2) <= 1e-12
