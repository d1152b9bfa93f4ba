"""The smallest excess that an audit detects with the requested power, and the kind of mechanism it is stated for.

An audit can miss a mechanism that exceeds its claim in two ways: the pilot may choose an event worse than the best one,
and the test may not refute on the chosen event. The pilot has two thirds of the probability of a miss, the test one
third. The excess is stated for an event as frequent as the tested one, on the boundary of the stronger claim. Noise
touches the boundary of an (ε, δ) claim at single events only, and a Rényi boundary nowhere. For these claims the excess
is stated for the best event of Gaussian noise, unless the counts show that the noise is not Gaussian.

Proof: docs/proofs/choices.md
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from ..claims.claim import Claim
from ..distinguishers.event_value import CAUTION
from ..inference.counts import Counts
from ..inference.divergence_test import telling_divergence
from ..inference.guess_test import Guesses
from ..power.alternatives import Alternative, AlternativeEvent, AsLikely, GaussianNoise, event_of
from ..power.betting_test_power import sequential_resolution
from ..power.guess_test_power import equivalent_runs, guess_resolution
from ..power.joint_test_power import resolution
from ..results.audit_result import Basis
from ..sampling.batches import late_batches
from ..sampling.pilot_size import main_runs

SHARE = 0.75  # clearance of a learned event, relative to the best one's, in 19 of 20 choices of a rare event
_LATER = 8.0  # nearly all sequential audits bet on an event after this multiple of the runs that show it (1.7: 80%)
_FAR = 0.8  # share of the standard errors needed by the best test below which nothing is simulated
_BINS, _AIMED = 32, 0.98  # bins of a test of divergences, and the part of its level that its bets aim at
_ERRORS = 3.0  # standard errors beyond what Gaussian noise could show


@dataclass(frozen=True, slots=True)
class Detectable:
    """The smallest excess that is detected with the requested power; may be infinite."""

    excess: float
    basis: Basis


def power_of_the_test(power: float) -> float:
    """The power that the test of the chosen event needs for an audit to have this power.

    Examples
    --------
    >>> power_of_the_test(0.97)
    0.99
    """
    return 1.0 - (1.0 - power) / 3.0


def detectable(claim: Claim, counts: Counts, runs: int, *, alpha: float, power: float) -> Detectable:
    """Smallest excess that an audit of fixed size detects.

    Parameters
    ----------
    claim, counts : Claim, Counts
        In the direction tested.
    runs : int
        All runs on each dataset, the pilot's included.
    """
    needed = power_of_the_test(power)
    main = min(0.5 * (counts.runs_x + counts.runs_y), main_runs(runs, 0.5))

    def of(alternative: Alternative) -> float:
        excess = resolution(claim, counts.runs_x, counts.runs_y, alternative, alpha=alpha, power=needed)
        if excess < math.inf:
            share = main_runs(runs, event_of(claim, excess, alternative).q) / main
            if share < 1.0:  # the event is rare and needs a longer pilot
                runs_x, runs_y = (max(int(share * side), 1) for side in (counts.runs_x, counts.runs_y))
                return resolution(claim, runs_x, runs_y, alternative, alpha=alpha, power=needed)
        return excess

    return _of_either(claim, counts, of)


def detectable_by_guesses(claim: Claim, guesses: Guesses, runs: int, *, alpha: float, power: float) -> Detectable:
    """Smallest excess that an audit of fixed size detects by guesses in both directions.

    Parameters
    ----------
    claim, guesses : Claim, Guesses
    runs : int
        All runs on each dataset, the pilot's included.
    """
    needed, main = power_of_the_test(power), equivalent_runs(claim, guesses)
    if claim.log_ratio is not None:
        return Detectable(guess_resolution(claim, guesses, alpha=alpha, power=needed), "event")

    def of(alternative: Alternative) -> float:
        excess = resolution(claim, main, main, alternative, alpha=alpha, power=needed)
        if excess < math.inf:
            share = main_runs(runs, event_of(claim, excess, alternative).q) / main_runs(runs, 0.5)
            if share < 1.0:  # the events are rare and need a longer pilot
                fewer = max(int(share * main), 1)
                return resolution(claim, fewer, fewer, alternative, alpha=alpha, power=needed)
        return excess

    return _of_either(claim, guesses.as_counts, of)


def detectable_by_divergence(
    claim: Claim, known: int, runs_x: int, runs_y: int, *, alpha: float, power: float
) -> float:
    """Smallest excess of Gaussian noise that a test of divergences detects; infinite beyond a hundred times the claim.

    The parameters are those of `shows_divergence`.
    """
    unit = max(claim.strength, 0.1)
    low, high = 1e-6 * unit, 100.0 * unit
    while high > 1.01 * low:
        middle = math.sqrt(low * high)
        is_shown = shows_divergence(claim, middle, known, runs_x, runs_y, alpha=alpha, power=power)
        low, high = (low, middle) if is_shown else (middle, high)
    return high if high < 100.0 * unit else math.inf


def shows_divergence(
    claim: Claim, excess: float, known: int, runs_x: int, runs_y: int, *, alpha: float, power: float
) -> bool:
    """Whether a test of divergences detects Gaussian noise that exceeds the claim by so much.

    Payoffs of G groups of bins that are learned from s runs on each dataset lose (G − 1)/s; here s is the harmonic mean
    over the batches.

    Parameters
    ----------
    claim : Claim
        With `divergence_slopes`.
    excess : float
    known : int
        Runs on each dataset from which the bins were learned.
    runs_x, runs_y : int
        Counted runs.
    """
    mu = claim.with_strength(claim.strength + excess).gaussian_mu
    assert mu is not None
    needed, runs = float(ndtri(power_of_the_test(power)) - ndtri(_AIMED * alpha)), min(runs_x, runs_y)
    learned = runs / math.log1p(runs / max(known, 1))
    return telling_divergence(*_gaussian_bins(mu), claim, runs_x, runs_y, 2.0 * learned)[1] >= needed


def _gaussian_bins(mu: float) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Probabilities of bins for Gaussian noise with means mu and 0, even for the likelier of the two."""
    half = ndtri(np.linspace(0.0, 1.0, _BINS // 2 + 1)[1:-1] * ndtr(0.5 * mu))  # up to the middle, where t = 1
    edges = np.concatenate([half, [0.5 * mu], mu - half[::-1]])
    p, q = (np.diff(ndtr(edges - mean), prepend=0.0, append=1.0) for mean in (mu, 0.0))
    return np.maximum(p, 1e-300), np.maximum(q, 1e-300)


def detectable_sequentially(claim: Claim, counts: Counts, runs: int, *, alpha: float, power: float) -> Detectable:
    """Smallest excess that a sequential audit detects.

    Parameters
    ----------
    claim, counts : Claim, Counts
        In the direction tested; hits in runs that the event was not learned from.
    runs : int
        All runs on each dataset.
    """
    needed, sizes = power_of_the_test(power), partial(bet_on, claim, runs)
    return _of_either(claim, counts, lambda q: sequential_resolution(claim, sizes, q, alpha=alpha, power=needed))


def may_detect(claim: Claim, counts: Counts, runs: int, excess: float, *, alpha: float, power: float) -> bool:
    """Whether a sequential audit may detect the excess: a quick check to avoid a simulation.

    False if a single test of all runs would be far from detecting the excess, because bets then are too. The other
    parameters are those of `detectable_sequentially`.
    """
    if claim.strength + excess >= claim.max_strength:
        return True
    least = max(float(ndtri(power_of_the_test(power)) - ndtri(alpha)), 0.2) / math.sqrt(runs)
    alternatives: list[Alternative] = [_as_likely(counts)]
    if claim.gaussian_mu is not None:
        alternatives.append(GaussianNoise(SHARE))
    return any(event_of(claim, excess, each).clearance > _FAR * least for each in alternatives)


def bet_on(claim: Claim, runs: int, event: AlternativeEvent) -> list[int]:
    """Sizes of the batches of a sequential audit that are bet on the event."""
    return late_batches(runs, learned_after(claim, event))


def learned_after(claim: Claim, event: AlternativeEvent) -> float:
    """Runs after which a sequential audit bets on an event.

    In the half of the runs on which events are compared, the frequencies minus the caution have to exceed the claim;
    after a few times as many runs nearly every audit has learned the event.
    """
    runs = np.geomspace(32, 1e12, 400)
    away = CAUTION / (2.0 * np.sqrt(runs / 2))
    angle_p = np.maximum(math.atan2(math.sqrt(event.p), math.sqrt(event.p_rest)) - away * math.sqrt(0.5), 0.0)
    angle_q = np.minimum(math.asin(math.sqrt(event.q)) + away * math.sqrt(0.5), math.pi / 2)
    shows = claim.rough_strength_of(
        np.sin(angle_p) ** 2, np.sin(angle_q) ** 2, np.cos(angle_p) ** 2, np.cos(angle_q) ** 2
    )
    first = float(runs[int(np.argmax(shows > 0.0))]) if (shows > 0.0).any() else math.inf
    return _LATER * first


def is_gaussian(claim: Claim, counts: Counts, excess: float) -> bool:
    """Whether a stated excess is for Gaussian noise: the counts show no more than Gaussian noise of that excess."""
    mu = claim.with_strength(claim.strength + excess).gaussian_mu
    if mu is None:
        return False
    p, q = (
        _turned(*side) for side in ((counts.hits_x, counts.runs_x, -_ERRORS), (counts.hits_y, counts.runs_y, _ERRORS))
    )
    return p <= float(ndtr(ndtri(q) + mu))


def _of_either(claim: Claim, counts: Counts, of: Callable[[Alternative], float]) -> Detectable:
    if claim.gaussian_mu is not None:
        excess = of(GaussianNoise(SHARE))
        if math.isinf(excess) or is_gaussian(claim, counts, excess):
            return Detectable(excess, "gaussian")
    return Detectable(of(_as_likely(counts)), "event")


def _as_likely(counts: Counts) -> AsLikely:
    """An event with the smoothed frequencies of the counted one."""
    return AsLikely((counts.hits_x + 0.5) / (counts.runs_x + 1.0), (counts.hits_y + 0.5) / (counts.runs_y + 1.0))


def _turned(hits: int, runs: int, errors: float) -> float:
    """A frequency moved by a number of standard errors on the arcsine scale."""
    angle = math.asin(math.sqrt((hits + 0.375) / (runs + 0.75))) + errors / (2.0 * math.sqrt(runs))
    return math.sin(min(max(angle, 0.0), math.pi / 2)) ** 2
