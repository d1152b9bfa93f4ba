"""Fisher's two-sample test: size by enumeration, p-values compared with SciPy's law, and a known power."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, fisher_exact, hypergeom

from dpaudit.audit.errors import OptionError
from dpaudit.audit.inference.two_sample_test import change_p_value


@pytest.mark.parametrize(("n", "m"), [(1, 1), (7, 7), (12, 5), (3, 40)])
def test_its_size_is_at_most_alpha(n, m):
    """Enumerate all outcomes for a grid of p and three alphas."""
    values = np.array([[change_p_value(h, n, k, m) for k in range(m + 1)] for h in range(n + 1)])
    for p in np.linspace(0.0, 1.0, 101):
        chance = np.outer(binom.pmf(range(n + 1), n, p), binom.pmf(range(m + 1), m, p))
        for alpha in (0.3, 0.05, 0.001):
            assert chance[values <= alpha].sum() <= alpha * (1 + 1e-9)


def test_it_is_twice_a_tail():
    rng = np.random.default_rng(3)
    for _ in range(300):
        n, m = (int(v) for v in rng.integers(1, 300, 2))
        h, k = int(rng.integers(0, n + 1)), int(rng.integers(0, m + 1))
        law = hypergeom(n + m, h + k, n)
        tail = law.cdf(h) if h * (n + m) < n * (h + k) else law.sf(h - 1)
        assert change_p_value(h, n, k, m) == pytest.approx(min(1.0, 2 * tail), rel=1e-9)


def test_near_the_two_sided_test_of_scipy():
    for table in ([[30, 70], [50, 50]], [[3, 997], [20, 980]], [[400, 600], [480, 520]]):
        (h, rest), (k, other) = table
        own = change_p_value(h, h + rest, k, k + other)
        assert 0.9 < own / fisher_exact(table).pvalue < 1.2


def test_symmetry():
    assert change_p_value(3, 50, 11, 40) == pytest.approx(change_p_value(11, 40, 3, 50), rel=1e-12)
    assert change_p_value(3, 50, 11, 40) == pytest.approx(change_p_value(47, 50, 29, 40), rel=1e-12)


def test_large_and_extreme_counts():
    assert change_p_value(0, 10**9, 0, 10**9) == 1.0
    assert change_p_value(10**9, 10**9, 10**9, 10**9) == 1.0
    assert change_p_value(10**9, 10**9, 0, 10**9) == 0.0
    # 2.236 standard errors: 0.0253 by the normal law
    assert change_p_value(10**8, 10**9, 10**8 + 30_000, 10**9) == pytest.approx(0.02535, rel=1e-3)


@pytest.mark.parametrize("counts", [(-1, 5, 0, 5), (6, 5, 0, 5), (0, 0, 0, 5), (0, 5, 1, 0)])
def test_impossible_counts(counts):
    with pytest.raises(OptionError, match="impossible"):
        change_p_value(*counts)
