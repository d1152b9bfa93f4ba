"""A net of plain events, such as single outcomes: each of k events is tested in both directions at alpha/(2k).

A pilot can rank the outcomes of a sampler only roughly: an outcome that is wrong by ten standard errors of the whole
audit is wrong by two in a pilot of a twentieth, and two happen by chance. The counts of the main runs need no ranking.
By the union bound, at least one of the 2k exact tests refutes a claim that holds with probability at most alpha, and
the largest of the 2k bounds exceeds the true strength with probability at most alpha.

Only the tests that may refute are run: leaving out the others can only lower both probabilities.

Proof: docs/proofs/choices.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from ..claims.claim import Claim
from .binomial_tails import Array
from .boundary_test import GAMMA, Counts, Direction, arcsine_angle, directed, joint_test, joint_test_beside

Hits: TypeAlias = npt.NDArray[np.int64]

_DIRECTIONS: tuple[Direction, ...] = ("x", "y")
_RUN = 3  # tests that are run: those of the outcomes that clear the claim by most
_NEEDED = 0.6  # share of the quantile by which the frequency on the other dataset is raised to see which clear it
_FLOOR = 20 * GAMMA  # smallest level of a single test


@dataclass(frozen=True, slots=True)
class OutcomeTest:
    """The outcome with the largest bound among all outcomes tested.

    Attributes
    ----------
    index : int
        Its place among the outcomes.
    likelier_on : {"x", "y"}
        The direction tested.
    counts : Counts
        Its hits on each dataset.
    p_value : float
        Smallest alpha at which the tests of all outcomes refute the claim; at most 1.
    bound : float
        Lower bound on the strength, at confidence 1 − alpha for all outcomes together.
    """

    index: int
    likelier_on: Direction
    counts: Counts
    p_value: float
    bound: float


def most_outcomes(alpha: float) -> int:
    """Return the largest number of outcomes that can be tested alone at `alpha` together: exact p-values have a floor.

    Examples
    --------
    >>> most_outcomes(0.005), most_outcomes(1e-6)
    (1250000, 250)
    """
    return math.floor(alpha / (2.0 * _FLOOR) * (1.0 + 1e-9))


def outcome_test(
    hits_x: npt.NDArray[np.int64],
    hits_y: npt.NDArray[np.int64],
    runs_x: int,
    runs_y: int,
    claim: Claim,
    *,
    alpha: float,
) -> OutcomeTest | None:
    """Test the claim on every outcome alone, in both directions; None if no outcome comes near to refuting it.

    Parameters
    ----------
    hits_x, hits_y : ndarray of int, shape (outcomes,)
        Hits of each outcome in runs from which the outcomes were not learned.
    runs_x, runs_y : int
    claim : Claim
        For an event that is likelier on x; its reverse is tested for events that are likelier on y.
    alpha : float
        Error probability of all tests together.

    Examples
    --------
    >>> from dpaudit import PureDP
    >>> on_x, on_y = np.array([500, 300, 200]), np.array([500, 460, 40])
    >>> found = outcome_test(on_x, on_y, 1_000, 1_000, PureDP(1.0), alpha=0.01)
    >>> found.index, found.likelier_on, found.bound > 1.0
    (2, 'x', True)
    """
    level = alpha / (2 * len(hits_x))
    z = max(float(-ndtri(level)), 0.0)
    clear = np.stack(
        [
            _clearance(hits_x, hits_y, runs_x, runs_y, claim, z),
            _clearance(hits_y, hits_x, runs_y, runs_x, claim.reversed(), z),
        ]
    )
    order = np.argsort(-clear, axis=None, kind="stable")[:_RUN]
    best: OutcomeTest | None = None
    for place in order[clear.ravel()[order] > 0.0].tolist():
        index, likelier_on = place % len(hits_x), _DIRECTIONS[place // len(hits_x)]
        counts = Counts(hits_x=int(hits_x[index]), runs_x=runs_x, hits_y=int(hits_y[index]), runs_y=runs_y)
        held = directed(claim, counts, likelier_on)
        if best is None:
            p_value, bound = joint_test(held.counts, held.claim, alpha=level)
        else:
            p_value, bound = joint_test_beside(held.counts, held.claim, 1.0, best.bound, alpha=level)
        if best is None or bound > best.bound:
            best = OutcomeTest(index, likelier_on, counts, min(1.0, 2 * len(hits_x) * p_value), bound)
    return best


def _clearance(
    hits_p: npt.NDArray[np.int64], hits_q: npt.NDArray[np.int64], n: int, m: int, claim: Claim, z: float
) -> Array:
    """Return how far the frequencies of p lie above the boundary at raised frequencies of q, in standard errors of p.

    An outcome that clears the claim by z standard errors in every direction of the ellipse clears it by more than 0.
    """
    raised = np.minimum(
        np.arcsin(np.sqrt((hits_q + 0.5) / (m + 1.0))) + _NEEDED * z / (2.0 * math.sqrt(m)), math.pi / 2
    )
    bound, rest = claim.max_power(np.sin(raised) ** 2, np.cos(raised) ** 2)
    clear: Array = 2.0 * math.sqrt(n) * (np.arcsin(np.sqrt(hits_p / n)) - arcsine_angle(bound, rest))
    return clear
