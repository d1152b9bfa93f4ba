"""Scores of many pairs, each shrunk towards the mean of the pairs that have something in common with it.

The estimates v are normal around the true values with known standard errors; the true values of a group are normal
around the group's mean, and the groups' means around a common mean. Both variances are estimated from the scores
themselves, so pairs are pooled as much as they are alike: a short pilot that can tell no pair from another can often
tell the pairs in which half of the answers rise from those in which one does. A single leaking pair among many harmless
ones does not follow a normal law. So no estimate moves by more than √(2 ln n) standard errors, about the largest
deviation that n errors show by chance. The errors are assumed to be independent. Common random numbers shift the scores
of similar pairs together: that keeps their order, but makes the common mean less certain than stated.

References
----------
DerSimonian & Laird (1986), Meta-analysis in clinical trials, Section 2 (the variance between groups). Morris (1983),
Parametric empirical Bayes inference: theory and applications, Section 3 (shrinkage with unequal variances). Efron &
Morris (1972), Limiting the risk of Bayes and empirical Bayes estimators, part II (limited translation).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def pooled(values: Sequence[float], errors: Sequence[float], groups: Sequence[Hashable]) -> tuple[Array, Array]:
    """Return the posterior mean and standard deviation of every value, shape (values,) each.

    Parameters
    ----------
    values, errors : sequence of float
        Estimates and their standard errors, above 0.
    groups : sequence of hashable
        Equal for values that are expected to be similar.

    Examples
    --------
    >>> mean, deviation = pooled([1.0, 3.0, 0.0], [1.0, 1.0, 0.1], ["a", "a", "b"])
    >>> mean.round(2).tolist(), deviation.round(2).tolist()
    ([1.26, 2.43, 0.0], [0.87, 0.87, 0.1])
    """
    value, variance = np.array(values, dtype=np.float64), np.square(np.array(errors, dtype=np.float64))
    places = {group: place for place, group in enumerate(dict.fromkeys(groups))}
    member = np.array([places[group] for group in groups], dtype=np.int64)
    within = _variance_between(value, variance, member)
    mean, mean_variance = _means(value, variance + within, member)
    alone = np.zeros(len(mean), dtype=np.int64)
    between = _variance_between(mean, mean_variance, alone)
    (centre,), (centre_variance,) = _means(mean, mean_variance + between, alone)
    mean, mean_variance = _shrunk(mean, mean_variance, between, centre, centre_variance)
    mean, posterior = _shrunk(value, variance, within, mean[member], mean_variance[member])
    most = np.sqrt(2.0 * math.log(max(len(value), 2)) * variance)
    return np.clip(mean, value - most, value + most), np.sqrt(posterior)


def _means(value: Array, variance: Array, member: npt.NDArray[np.int64]) -> tuple[Array, Array]:
    """Return the weighted mean of each group, and its variance."""
    total = np.bincount(member, 1.0 / variance)
    return np.bincount(member, value / variance) / total, 1.0 / total


def _shrunk(
    value: Array, variance: Array, prior: float, centre: Array | float, centre_variance: Array | float
) -> tuple[Array, Array]:
    """Return values shrunk towards uncertain centres around which they have the variance `prior`."""
    kept = prior / (prior + variance)
    return centre + kept * (value - centre), kept * variance + (1.0 - kept) ** 2 * centre_variance


def _variance_between(value: Array, variance: Array, member: npt.NDArray[np.int64]) -> float:
    """Return the variance of the true values within groups, by DerSimonian and Laird's moments.

    It is at least the standard error that the estimate has for equal true values: few pairs cannot show that they are
    equal, and an estimate of 0 would leave nothing of what tells them apart.
    """
    weight = 1.0 / variance
    mean, _ = _means(value, variance, member)
    degrees = len(value) - len(mean)
    excess = float((weight * np.square(value - mean[member])).sum()) - degrees
    total = np.bincount(member, weight)
    scale = float((total - np.bincount(member, np.square(weight)) / total).sum())
    return max(excess, math.sqrt(2.0 * degrees)) / scale if scale > 0.0 else 0.0
