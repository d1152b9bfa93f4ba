"""What all published suites share: names, pairs at their distance, claims that hold or are broken, and audits.

The alpha of an audit is 1e-6, or 1e-3 of two broken mechanisms that slow lists show: their bound exceeds the exact loss
with that probability. Seeds are fixed. `make evidence` makes all audits.
"""

import math

import pytest
from scipy import stats

from dpaudit.audit.claims.claim import ApproxDP, PureDP
from dpaudit.audit.procedures.check import check
from dpaudit.experiments.published import auditorium, ladder, statdp

RATIOS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
KINDS = ("count", "sum", "mean", "Gaussian count", "Gaussian sum")
SUITES = {
    module.__name__.rpartition(".")[2]: {entry.name: entry for entry in module.entries()}
    for module in (statdp, auditorium, ladder)
}
SOUND = {
    "statdp": {"noisy_max_v1a", "noisy_max_v2a", "histogram", "SVT"},
    "auditorium": {"noisy_max_v1", "svt1", "svt2"},
    "ladder": {f"{kind} 1.00" for kind in KINDS},
}


def is_near(hits, runs, probability, alarm=1e-8):
    """Whether a count lies within exact binomial limits, which holds with probability 1 − alarm."""
    low, high = stats.binom.ppf(alarm / 2, runs, probability), stats.binom.isf(alarm / 2, runs, probability)
    return bool(low <= hits <= high)


def test_names_are_those_of_the_suites():
    assert {name: " ".join(suite) for name, suite in SUITES.items()} == {
        "statdp": "noisy_max_v1a noisy_max_v2a noisy_max_v1b noisy_max_v2b histogram histogram_eps "
        "SVT iSVT1 iSVT2 iSVT3 iSVT4",
        "auditorium": "private_mean non_private_mean_v1 non_private_mean_v2 noisy_max_v1 noisy_max_v4 "
        "svt1 svt2 svt3 svt4 svt5 svt6",
        "ladder": " ".join(f"{kind} {ratio:.2f}" for kind in KINDS for ratio in RATIOS),
    }


@pytest.mark.parametrize("name", SUITES)
def test_the_claim_holds_on_the_pair_or_is_broken_there(name):
    for entry in SUITES[name].values():
        is_gaussian = entry.name.startswith("Gaussian")
        epsilon = 0.7 if name == "statdp" else 1.0
        assert entry.claim == (ApproxDP(1.0, 0.01) if is_gaussian else PureDP(epsilon)), entry.name
        assert entry.is_broken == (entry.name not in SOUND[name]), entry.name
        assert (entry.exact > epsilon) if entry.is_broken else (entry.exact <= epsilon * (1 + 1e-9)), entry.name
        assert entry.published is None, entry.name
        assert entry.note or not entry.is_broken, entry.name
        entry.adjacency.check(entry.x, entry.y, 1)
        if name == "statdp":
            assert len(entry.x) == len(entry.y) == entry.domain.n_answers, entry.name
            assert entry.domain.low <= min(entry.x + entry.y) <= max(entry.x + entry.y) <= entry.domain.high
        else:
            assert max(len(entry.x), len(entry.y)) <= entry.domain.most, entry.name
            assert len(str(entry.mechanism)) <= 72, entry.name
        if name == "ladder":
            ratio = float(entry.name.split()[-1])
            assert entry.exact <= 1 / ratio + 1e-9, entry.name
            assert entry.mechanism.claim.epsilon == pytest.approx(1 / ratio), entry.name
            assert f"{ratio:.0%} of the noise" in entry.note or ratio == 1, entry.name


@pytest.mark.parametrize(
    ("suite", "name", "exact"),
    [
        ("statdp", "noisy_max_v2a", 0.7),
        ("statdp", "noisy_max_v1b", 5 * 0.7 / 2),
        ("statdp", "noisy_max_v2b", math.inf),
        ("statdp", "histogram", 0.7),
        ("statdp", "histogram_eps", 1 / 0.7),
        ("statdp", "iSVT1", math.inf),
        ("statdp", "iSVT4", 10 * 0.7 / 2),  # the noise of each answer loses at most ε/2, and all ten attain this
        ("auditorium", "svt3", 8 / 4),  # each of eight answers changes by 1 with noise of scale 4
        *(("ladder", f"{kind} {ratio:.2f}", 1 / ratio) for kind in KINDS if kind != "mean" for ratio in RATIOS),
    ],
)
def test_closed_forms(suite, name, exact):
    assert SUITES[suite][name].exact == pytest.approx(exact, rel=1e-9)


QUICK = ("noisy_max_v1a", "svt5")
AUDITS = [
    ("statdp", "noisy_max_v1a noisy_max_v2a noisy_max_v2b histogram histogram_eps SVT iSVT1", 20_000, 1e-6),
    ("statdp", "noisy_max_v1b iSVT2", 40_000, 1e-6),
    ("auditorium", "svt5", 700, 1e-6),
    ("auditorium", "svt1 svt2", 1_000, 1e-6),
    ("auditorium", "private_mean non_private_mean_v1 non_private_mean_v2 noisy_max_v1", 10_000, 1e-6),
    ("auditorium", "noisy_max_v4", 2_000_000, 1e-6),
    ("auditorium", "svt4", 9_000, 1e-3),
    ("auditorium", "svt6", 12_000, 1e-3),
]
LADDER = ["count 0.90", "sum 0.80", "mean 0.60", "Gaussian count 0.70", "Gaussian sum 0.80", *sorted(SOUND["ladder"])]
ROWS = [(suite, name, runs, alpha) for suite, names, runs, alpha in AUDITS for name in names.split()]
ROWS += [("ladder", name, 200_000, 1e-6) for name in LADDER]


@pytest.mark.usefixtures("without_resolution")
@pytest.mark.parametrize(
    ("suite", "name", "runs", "alpha"),
    [pytest.param(*row, marks=() if row[1] in QUICK else pytest.mark.evidence) for row in ROWS],
)
def test_an_audit_gives_the_right_verdict(suite, name, runs, alpha):
    entry = SUITES[suite][name]
    options = {"claim": entry.claim, "adjacency": entry.adjacency, "bits": False if suite == "auditorium" else "warn"}
    result = check(entry.mechanism, entry.x, entry.y, runs=runs, alpha=alpha, seed=0, jobs=1, **options)
    assert result.is_refuted == entry.is_broken
    assert result.bound <= entry.exact
