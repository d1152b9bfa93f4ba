"""Low bits: a leak is found without being told where, warned of by default, and never seen in gridded outputs."""

import numpy as np
from scipy.stats import binom

from dpaudit import PureDP
from dpaudit.audit.events.events import Intervals
from dpaudit.audit.inference.event_test import Counts, pvalue
from dpaudit.audit.portfolio import floating_point_leaks
from dpaudit.audit.portfolio.choice import Choice
from dpaudit.audit.portfolio.floating_point_leaks import (
    _KINDS,
    _LENGTHS,
    FALSE_WARNING,
    floating_point_leak_in,
)


def leaky(bit_is_set, rng):
    """Steps of an eighth that say nothing, and below them a bit that says something."""
    return np.round(rng.normal(size=len(bit_is_set)) * 8) / 8 + np.where(bit_is_set, 2.0**-20, 0.0)


def critical_counts(n, alpha):
    """For each count on y, the least count on x, of n runs on each side, that refutes 1-DP; n + 1 if none does."""
    found, least = [], 0
    for count_y in range(n + 1):
        while least <= n:
            counts = Counts(count_x=least, runs_x=n, count_y=count_y, runs_y=n)
            if pvalue(counts, PureDP(1.0), alpha=alpha) <= alpha:
                break
            least += 1
        found.append(least)  # with a larger count on y it is as large or larger
    return np.array(found)


def test_the_exact_size_of_the_union_of_the_shortest_lengths():
    """One event on the boundary, every outcome enumerated: second halves of 50, 100 and 200 do not overlap."""
    share = 0.3 / (_KINDS * len(_LENGTHS))
    q = np.linspace(0.001, 0.999, 300)
    p = PureDP(1.0).max_power(q)[0]
    silent = np.ones_like(q)
    for length in (50, 100, 200):
        assert length in _LENGTHS
        n = length // 2
        critical = critical_counts(n, share)
        mass_y = binom.pmf(np.arange(n + 1), n, q[:, None])
        refuted = (mass_y * binom.sf(critical - 1, n, p[:, None])).sum(axis=1)
        assert 0.25 * share < refuted.max() <= share
        silent *= 1.0 - refuted
    assert 1.0 - silent.min() <= 3 * share


def test_a_planted_leak_is_found_at_every_length_that_can_show_it(monkeypatch):
    """Each time at the share of the error probability of which the exact size is that of the union."""
    levels, real = [], floating_point_leaks.parameter_lower
    monkeypatch.setattr(
        floating_point_leaks, "parameter_lower", lambda *a, alpha: levels.append(alpha) or real(*a, alpha=alpha)
    )
    rng = np.random.default_rng(12)
    x, y = leaky(np.ones(20_000, bool), rng), leaky(np.zeros(20_000, bool), rng)
    choice = Choice(Intervals(((0.0, np.inf),)), "x", 1, 1, 2)
    assert f"{FALSE_WARNING:g}" == "1e-06"
    for length in (60, 450, 20_000):
        found = floating_point_leak_in(x[:length], y[:length], PureDP(0.1), choice)
        assert found is not None, length
        assert found.counts.runs_x == max(each for each in _LENGTHS if each <= length) // 2
        half = found.counts.runs_x
        said = (
            f" of {half:,} on y, after {half:,} runs on each that chose the event; false with probability at most 1e-06"
        )
        assert said in str(found)
    assert floating_point_leak_in(x[:49], y[:49], PureDP(0.1), choice) is None
    assert levels == [FALSE_WARNING / (_KINDS * len(_LENGTHS))] * 3
