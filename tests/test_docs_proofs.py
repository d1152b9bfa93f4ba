"""What the proofs leave open, measured: by how much a line that is bet against falls short of its boundary."""

import numpy as np
import pytest

from dpaudit.audit.claims.claim import ApproxDP, GaussianDP, PureDP
from dpaudit.audit.claims.mironov_propositions import NFoldComposition, ProbabilityPreservation
from dpaudit.audit.claims.privacy_profile import TradeOffCurve
from dpaudit.audit.claims.renyi import RenyiDP, ZeroConcentratedDP
from dpaudit.audit.inference.betting_test import supporting_lines

SMALL = np.geomspace(1e-9, 0.5, 150)
U, REST = np.append(SMALL, 1.0 - SMALL[::-1]), np.append(1.0 - SMALL, SMALL[::-1])


def places(n: int) -> list[float]:
    """Where lines are placed, 1 − q from 1e-7 on."""
    rng = np.random.default_rng(0)
    below, above = (np.exp(rng.uniform(*np.log(ends), n)) for ends in ((1e-8, 0.6), (1e-7, 0.4)))
    return [*below.tolist(), *(1.0 - above).tolist()]


def shortfall(claim, at: list[float], boundary=None) -> float:
    """The largest B(u) − line(u) over slope + intercept."""
    boundary = claim.max_power(U, REST)[0] if boundary is None else boundary
    lines = supporting_lines(claim, at)
    slope, intercept = (np.array([getattr(line, name) for line in lines])[:, None] for name in ("slope", "intercept"))
    return float(((boundary - slope * U - intercept) / (slope + intercept)).max())


@pytest.mark.parametrize(
    "claim",
    [
        PureDP(0.1), PureDP(4.0), ApproxDP(1.0, 1e-5), GaussianDP(1.0), RenyiDP(2, 0.3), RenyiDP(10, 1.0).group(3),
        NFoldComposition(0.1, 10), ProbabilityPreservation(2, 0.1), TradeOffCurve((0.1, 0.4), (0.6, 0.2)),
        TradeOffCurve((1e-6, 0.3), (0.4, 1e-5), excess=1e-3), TradeOffCurve((0.0, 0.3), (0.7, 0.0)).group(2),
    ],
    ids=str,
)  # fmt: skip
def test_lines_lie_above_their_boundary(claim):
    assert shortfall(claim, places(300)) < 1e-11


@pytest.mark.parametrize("rho", [0.02, 0.2, 1.0])
def test_lines_of_zero_concentrated_claims_lie_above_a_boundary_above_theirs(rho):
    """Of the order that binds where a line touches."""
    claim, at = ZeroConcentratedDP(rho), np.array(places(100))
    of_the_orders = claim.power_touching(at, np.broadcast_to(U[:, None], (len(U), len(at))))[0].T
    assert shortfall(claim, at.tolist(), of_the_orders) < 1e-11
    assert np.all(of_the_orders >= claim.max_power(U)[0] * (1 - 1e-3))  # itself found by a search


def test_a_lower_line_is_seen():
    """The wrong variant: the lines of a weaker claim."""
    boundary = PureDP(1.001).max_power(U, REST)[0]
    assert shortfall(PureDP(1.0), places(300), boundary) > 1e-4
