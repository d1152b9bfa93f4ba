"""The suite of DP-Sniper: twenty mechanisms, their worst pairs and the published bounds.

Random tests have a false-alarm probability of 1e-8 each.
"""

import functools
import itertools
import math
import pickle

import numpy as np
import pytest

from dpaudit.audit.claims.claim import PureDP
from dpaudit.audit.datasets.domains import Values
from dpaudit.experiments.published.dp_sniper import PUBLISHED, entries, published_bound
from dpaudit.mechanisms.faulty.selection import MaximumLaplaceLaw

ALARM = 1e-8
RUNS = 50_000
ENTRIES = {entry.name: entry for entry in entries()}
OF_FIVE = ("NoisyHist1", "NoisyHist2")
EXACT = {
    "LaplaceMechanism": 0.1,
    "TruncatedGeometricMechanism": math.log(9 / 8),
    "NoisyHist1": 0.1,
    "NoisyHist2": 10.0,
    "ReportNoisyMax3": 0.25,  # five answers, each half of epsilon
    "ReportNoisyMax4": math.inf,
    "SparseVectorTechnique3": 0.5,  # nine below and a small value: ten times half of epsilon
    "SparseVectorTechnique5": math.inf,
    "Rappor": 6 * math.log(0.5125 / 0.4875),
    "OneTimeRappor": 6 * math.log(0.525 / 0.475),
    "LaplaceParallel": 0.1,
    "PrefixSum": 1.0,
}


def pairs_of_the_suite(entry):
    """Return the ordered pairs of the suite for a mechanism of this form."""
    if isinstance(entry.domain, Values):
        return list(itertools.permutations(entry.domain.values, 2))
    if np.ndim(entry.x) == 0:
        levels = [(1, 0), (1, 2)]
        return levels + [(y, x) for x, y in levels]
    n = len(entry.x)
    half, ones = n // 2, (1.0,) * n
    others = [(0.0, *ones[1:]), (2.0, *ones[1:])]
    if entry.name not in OF_FIVE:
        others += [(2.0,) + (0.0,) * (n - 1), (0.0,) + (2.0,) * (n - 1), (2.0,) * half + (0.0,) * (n - half)]
        others += [(2.0,) * n, (0.0,) * n]
    pairs = [(ones, other) for other in others]
    if entry.name not in OF_FIVE:
        pairs.append(((1.0,) * half + (0.0,) * (n - half), (0.0,) * half + (1.0,) * (n - half)))
    return pairs + [(y, x) for x, y in pairs]


def largest_loss(law_x, law_y):
    """Return the loss by the law or on a grid; NaN if it is finite and unknown."""
    if isinstance(law_x, MaximumLaplaceLaw):
        z = np.linspace(-300.0, 300.0, 6001)
        return float((law_x.log_density(z) - law_y.log_density(z)).max())
    if hasattr(law_x, "locations"):
        return math.inf if max(law_x.locations) < max(law_y.locations) else math.nan
    return law_x.epsilon_from(law_y, 0.0)


def test_all_twenty_mechanisms_are_present():
    assert list(ENTRIES) == list(PUBLISHED)
    assert len(ENTRIES) == 20
    assert sum(entry.is_broken for entry in ENTRIES.values()) == 10
    assert pickle.loads(pickle.dumps(ENTRIES["SVT34Parallel"])) == ENTRIES["SVT34Parallel"]


@pytest.mark.parametrize("name", ENTRIES)
def test_an_entry_is_consistent(name):
    entry = ENTRIES[name]
    entry.adjacency.check(entry.x, entry.y, 1.0)
    if isinstance(entry.domain, Values):
        assert {entry.x, entry.y} <= set(entry.domain.values)
    else:
        pair = np.array([entry.x, entry.y])
        assert pair.shape[1:] == (() if entry.domain.n_answers is None else (entry.domain.n_answers,))
        assert np.all((pair >= entry.domain.low) & (pair <= entry.domain.high))
    assert entry.is_broken == (entry.exact > entry.claim.epsilon + 1e-9)
    assert entry.mechanism.claim == entry.claim
    assert entry.exact == pytest.approx(EXACT.get(name, entry.exact), rel=1e-9)
    assert bool(entry.note) or not entry.is_broken
    outputs = entry.mechanism.sample(entry.x, 7, np.random.default_rng(0))
    assert len(outputs) == len(entry.mechanism.law(entry.x).log_density(outputs)) == 7
    assert np.isfinite(entry.mechanism.law(entry.x).log_density(outputs)).all()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.evidence if name == "SVT34Parallel" else ()) for name in ENTRIES]
)
def test_no_pair_of_the_suite_loses_more(name):
    entry = ENTRIES[name]
    law = functools.cache(entry.mechanism.law)
    losses = [largest_loss(law(x), law(y)) for x, y in pairs_of_the_suite(entry)]
    assert np.nanmax(losses) == pytest.approx(entry.exact, rel=1e-7)


def test_published_bounds_do_not_exceed_the_exact_loss():
    assert [ENTRIES[name].published for name in PUBLISHED] == [published_bound(n, e.exact) for n, e in ENTRIES.items()]
    too_large = {
        name: [bound for bound in PUBLISHED[name] if bound is not None and bound > entry.exact]
        for name, entry in ENTRIES.items()
    }
    assert {name: bounds for name, bounds in too_large.items() if bounds} == {
        "NoisyHist2": [10.0022],
        "Rappor": [0.3008],
    }
    assert ENTRIES["NoisyHist2"].published == 9.7169
    assert ENTRIES["Rappor"].published == 0.2930
    assert ENTRIES["NumericalSVT"].published == 0.0345


@pytest.mark.parametrize("name", ENTRIES)
@pytest.mark.evidence
def test_laws_of_a_pair_agree_on_what_they_share(name):
    """∫ min(f, g) equals E_x[min(1, g/f)] and E_y[min(1, f/g)], two means of numbers in [0, 1] on independent runs.

    The same holds over the outputs that are likelier on x, where the first mean is a change of measure and the second
    counts runs. The limits follow from Hoeffding's inequality.
    """
    entry = ENTRIES[name]
    law_x, law_y = entry.mechanism.law(entry.x), entry.mechanism.law(entry.y)
    shares, likelier = [], []
    for dataset, seed, sign in ((entry.x, 1, 1.0), (entry.y, 2, -1.0)):
        outputs = entry.mechanism.sample(dataset, RUNS, np.random.default_rng(seed))
        with np.errstate(divide="ignore"):
            loss = law_x.log_density(outputs) - law_y.log_density(outputs)
        ratio = np.exp(-np.maximum(sign * loss, 0.0))
        shares.append(ratio.mean())
        likelier.append((ratio * (loss > 1e-12)).mean())
    margin = math.sqrt(math.log(4 / ALARM) / RUNS)
    assert abs(shares[0] - shares[1]) < margin
    assert abs(likelier[0] - likelier[1]) < margin


@pytest.mark.parametrize("name", [name for name, entry in ENTRIES.items() if entry.exact <= 1])
@pytest.mark.evidence
def test_likelihood_ratios_average_to_one(name):
    """The mean on y is within the Hoeffding limits for numbers from 0 to the exponential of the exact loss."""
    entry = ENTRIES[name]
    law_x, law_y = entry.mechanism.law(entry.x), entry.mechanism.law(entry.y)
    outputs = entry.mechanism.sample(entry.y, RUNS, np.random.default_rng(3))
    ratio = np.exp(law_x.log_density(outputs) - law_y.log_density(outputs))
    bound = math.exp(entry.exact)
    assert ratio.max() <= bound * (1 + 1e-9)
    assert ratio.mean() == pytest.approx(1.0, abs=bound * math.sqrt(math.log(2 / ALARM) / (2 * RUNS)))


def test_without_query_noise_a_part_of_x_is_impossible_on_y():
    """Equal answers of 1 are on one side of the threshold; 2 and 0 are on different sides for noise from −1 to 1."""
    entry = ENTRIES["SparseVectorTechnique5"]
    law_x, law_y = entry.mechanism.law(entry.x), entry.mechanism.law(entry.y)
    outputs = law_x.rows
    impossible = np.isneginf(law_y.log_density(outputs))
    assert np.exp(law_x.log_density(outputs))[impossible].sum() == pytest.approx(-math.expm1(-1 / 20), rel=1e-12)


def test_claims():
    assert ENTRIES["SVT34Parallel"].claim == PureDP(0.2)
    assert ENTRIES["LaplaceParallel"].claim.epsilon == pytest.approx(0.1)
    assert ENTRIES["Rappor"].claim.epsilon == pytest.approx(8 * math.log(0.5125 / 0.4875))
    assert ENTRIES["OneTimeRappor"].claim.epsilon == pytest.approx(8 * math.log(0.525 / 0.475))
    others = set(ENTRIES) - {"SVT34Parallel", "LaplaceParallel", "Rappor", "OneTimeRappor"}
    assert {ENTRIES[name].claim for name in others} == {PureDP(0.1)}
