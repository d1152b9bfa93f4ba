"""Counts of a distribution's cells in a sample, against their exact binomial limits."""

import numpy as np
from scipy import stats

import dpaudit.mechanisms as m
from dpaudit.mechanisms.local.randomised_response import HIDDEN

ALARM = 5e-9


def cells_of(distribution, outputs):
    """Return counts and probabilities of cells: outcomes and the rest, or twenty equal parts of the distribution's CDF.

    The outcomes are all of a distribution with finitely many, else the forty around the location. For vectors, the
    cells are those of each coordinate, and the quarters into which the medians of neighbouring coordinates cut the
    plane; for transcripts, each transcript is a cell.
    """
    if isinstance(distribution, (m.RowDistribution, m.SubsetDistribution)):
        base, n_columns = int(outputs.max()) + 2, outputs.shape[1]
        weights = base ** np.arange(n_columns)
        rows = np.arange(base**n_columns)[:, None] // weights % base - 1  # all rows of numbers from -1 to the largest
        counts = np.bincount((outputs + 1) @ weights, minlength=base**n_columns)
        probabilities = np.exp(distribution.log_density(rows))
        return with_the_rest(counts[probabilities > 0], probabilities[probabilities > 0], len(outputs))
    if outputs.ndim == 2:
        return cells_of_vectors(distribution.marginals, outputs)
    if isinstance(distribution, m.FiniteDistribution):
        values = np.arange(len(distribution.log_probabilities))
    elif isinstance(distribution, (m.GeometricDistribution, m.DiscreteGaussianDistribution, m.BinomialDistribution)):
        values = np.arange(-20, 20) + distribution.location
    elif isinstance(distribution, m.DiscreteDistribution):
        values = np.array(distribution.values)
    else:
        return np.histogram(distribution.cdf(outputs), bins=20, range=(0, 1))[0], np.full(20, 1 / 20)
    return with_the_rest(
        (outputs == values[:, None]).sum(axis=1), np.exp(distribution.log_density(values)), len(outputs)
    )


def with_the_rest(counts, probabilities, n):
    """Add the cell of all other outcomes."""
    return np.append(counts, n - counts.sum()), np.append(probabilities, max(0.0, 1.0 - probabilities.sum()))


def cells_of_vectors(marginals, outputs):
    cells = [cells_of(distribution, outputs[:, j]) for j, distribution in enumerate(marginals)]
    medians = np.array([getattr(distribution, "location", HIDDEN) for distribution in marginals])
    is_above = outputs > medians
    above = np.array([float(distribution.sf(median)) for distribution, median in zip(marginals, medians, strict=True)])
    for j in range(len(marginals) - 1):
        quarters = 2 * is_above[:, j] + is_above[:, j + 1]
        shares = np.multiply.outer([1 - above[j], above[j]], [1 - above[j + 1], above[j + 1]])
        cells.append((np.bincount(quarters, minlength=4), shares.ravel()))
    return tuple(np.concatenate(parts) for parts in zip(*cells, strict=True))


def is_far(distribution, outputs):
    """Whether the counts of a distribution's cells are off."""
    return is_off(*cells_of(distribution, outputs), len(outputs))


def is_off(counts, probabilities, runs):
    """Whether a count is outside its exact binomial limits; false-alarm probability at most ALARM."""
    each = ALARM / (2 * len(counts))
    low, high = stats.binom.ppf(each, runs, probabilities), stats.binom.isf(each, runs, probabilities)
    return bool(np.any((counts < low) | (counts > high)))
