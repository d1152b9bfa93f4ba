"""The suites of StatDP and DP-Auditorium and the ladder: names, exact losses, distributions by other integrals.

Counts are outside their limits with probability at most 1e-8.
"""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from dpaudit import mechanisms as m
from dpaudit.audit.claims.claim import ApproxDP, PureDP
from dpaudit.audit.procedures.check import check
from dpaudit.experiments.published import auditorium, ladder, statdp
from dpaudit.experiments.published.auditorium import STEP, BoundedMean, Comparison

RATIOS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
KINDS = ("count", "sum", "mean", "Gaussian count", "Gaussian sum")
SUITES = {
    module.__name__.rpartition(".")[2]: {entry.name: entry for entry in module.entries()}
    for module in (statdp, auditorium, ladder)
}
AUDITORIUM, STATDP = SUITES["auditorium"], SUITES["statdp"]
SOUND = {
    "statdp": {"noisy_max_v1a", "noisy_max_v2a", "histogram", "SVT"},
    "auditorium": {"noisy_max_v1", "svt1", "svt2"},
    "ladder": {f"{kind} 1.00" for kind in KINDS},
}
TWO, THREE = [0, 1], [0, 1, 0]
ABOVE, BELOW = Comparison.ABOVE, Comparison.BELOW
STEPS = [[a] * k + [b] * (10 - k) for k in (5, 9) for a in (0.0, 1.0, 2.0) for b in (0.0, 1.0, 2.0)]
"""Ten answers with two blocks of equal values, the first of size five or nine."""


def are_near(counts, runs, probabilities, alarm=1e-8):
    """Whether counts lie within exact binomial limits, which holds with probability 1 − alarm for each."""
    distribution = stats.binom(runs, probabilities)
    return bool(np.all((distribution.ppf(alarm / 2) <= counts) & (counts <= distribution.isf(alarm / 2))))


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
        epsilon = 0.7 if name == "statdp" else 1.0
        assert entry.claim == (ApproxDP(1.0, 0.01) if "Gaussian" in entry.name else PureDP(epsilon)), entry.name
        assert entry.is_broken == (entry.name not in SOUND[name]), entry.name
        assert (entry.exact > epsilon) if entry.is_broken else (entry.exact <= epsilon * (1 + 1e-9)), entry.name
        assert entry.note or not entry.is_broken, entry.name
        entry.adjacency.check(entry.x, entry.y, 1)
        if name == "ladder":
            ratio = float(entry.name.split()[-1])
            assert entry.mechanism.claim.epsilon == pytest.approx(1 / ratio), entry.name
            assert entry.exact <= 1 / ratio + 1e-9, entry.name
            assert entry.exact == pytest.approx(1 / ratio, rel=1e-9) or entry.name.startswith("mean"), entry.name


@pytest.mark.parametrize(
    ("suite", "name", "exact"),
    [
        ("statdp", "noisy_max_v2a", 0.7),
        ("statdp", "noisy_max_v1b", 5 * 0.7 / 2),
        ("statdp", "noisy_max_v2b", math.inf),
        ("statdp", "histogram_eps", 1 / 0.7),
        ("statdp", "iSVT1", math.inf),
        ("statdp", "iSVT4", 10 * 0.7 / 2),  # the noise of each answer loses at most ε/2, and all ten attain this
        ("auditorium", "svt3", 8 / 4),  # each of eight answers changes by 1 with noise of scale 4
        ("auditorium", "non_private_mean_v1", math.inf),
    ],
)
def test_closed_forms(suite, name, exact):
    assert SUITES[suite][name].exact == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("name", ["noisy_max_v1a", "noisy_max_v2a", "SVT", "iSVT3", "iSVT2"])
def test_no_pair_of_whole_answers_loses_more_in_statdp(name):
    entry = STATDP[name]
    if name.startswith("noisy"):
        rest = itertools.combinations_with_replacement((0.0, 1.0, 2.0), 4)
        datasets = [[first, *others] for others in rest for first in (0.0, 1.0, 2.0)]
    else:
        datasets = STEPS[: 9 if name == "iSVT2" else None]
    distributions = [entry.mechanism.distribution(answers) for answers in datasets]
    pairs = itertools.permutations(range(len(datasets)), 2)
    near = [(i, j) for i, j in pairs if entry.adjacency.distance(datasets[i], datasets[j]) <= 1]
    assert max(distributions[i].epsilon_from(distributions[j], 0.0) for i, j in near) == pytest.approx(
        entry.exact, rel=1e-12
    )


class TestAuditorium:
    """Losses on the records (0, 1) and (0, 1, 0), as measured for the implementations of DP-Auditorium."""

    @pytest.mark.parametrize(
        ("name", "epsilon", "delta"),
        [("svt1", 0.64, 0), ("svt2", 0.48, 0), ("svt4", 1.73, 0.03), ("svt5", math.inf, 0.2212), ("svt6", 1.47, 0.027)],
    )
    def test_sparse_vectors_that_end_with_the_second_answer_above(self, name, epsilon, delta):
        x, y = (auditorium.sparse_vectors(cutoff=2)[name].distribution(rows) for rows in (TWO, THREE))
        assert x.epsilon_from(y, 0.0) == m.exact_epsilon(x, y) == AUDITORIUM[name].exact
        assert m.exact_epsilon(x, y) == pytest.approx(epsilon, abs=0.005)
        assert m.exact_delta(x, y, 1.0) == pytest.approx(delta, abs=5e-5)

    @pytest.mark.parametrize(("name", "delta"), [("svt4", 0.0481), ("svt6", 0.0363)])
    def test_sparse_vectors_that_compare_all_answers(self, name, delta):
        x, y = (auditorium.sparse_vectors(cutoff=8)[name].distribution(rows) for rows in (TWO, THREE))
        assert m.exact_delta(x, y, 1.0) == pytest.approx(delta, abs=5e-5)

    def test_noisy_max_on_equal_counts(self):
        right, wrong = (
            [AUDITORIUM[f"noisy_max_v{k}"].mechanism.distribution(rows) for rows in (TWO, THREE)] for k in (1, 4)
        )
        assert m.exact_epsilon(*right) == pytest.approx(0.281, abs=5e-4)
        assert m.exact_epsilon(*wrong) == pytest.approx(1.434, abs=5e-4)
        assert m.exact_delta(*wrong, 1.0) == pytest.approx(0.176, abs=5e-4)

    def test_no_other_pair_loses_more(self):
        answers = list(itertools.product((0, 1), repeat=2))
        for name in ("svt1", "svt2", "svt4", "svt6"):
            distributions = [AUDITORIUM[name].mechanism.distribution(records) for records in answers]
            largest = max(m.exact_epsilon(a, b) for a, b in itertools.combinations(distributions, 2))
            assert largest == pytest.approx(AUDITORIUM[name].exact, rel=1e-12)

    @pytest.mark.parametrize(("records", "odd", "last"), [([], 0, 0), ([1], 0, 1), ([0, 1, 0], 1, 0)])
    def test_seven_answers_reveal_the_last_record_but_one_and_one_the_last(self, records, odd, last):
        assert auditorium.revealed_records(records) == [odd] * 7 + [last]

    @pytest.mark.parametrize("name", ["svt1", "svt3", "svt5"])
    def test_lists_end_with_the_second_answer_above(self, name):
        outputs = AUDITORIUM[name].mechanism.sample(TWO, 2000, np.random.default_rng(1))
        kinds = {type(part) for output in outputs for part in output}
        assert kinds == ({Comparison, float} if name == "svt3" else {Comparison})
        for output in outputs[:200]:
            above = sum(part is not BELOW for part in output)
            assert above <= 2
            assert len(output) == 8 or (above == 2 and output[-1] is not BELOW)

    def test_lists_follow_their_distribution(self):
        mechanism, runs = AUDITORIUM["svt4"].mechanism, 20_000
        outputs, distribution = (
            mechanism.sample(TWO, runs, np.random.default_rng(1)).tolist(),
            mechanism.distribution(TWO),
        )
        likely = [(BELOW,) * 8, (BELOW,) * 7 + (ABOVE,), (ABOVE, ABOVE)]
        counts = np.array([sum(output == one for output in outputs) for one in likely])
        assert are_near(counts, runs, np.exp(distribution.log_density(likely)))
        impossible = [(ABOVE,), (BELOW,) * 7, (ABOVE, ABOVE, ABOVE), (ABOVE, ABOVE, BELOW)]
        assert np.all(distribution.log_density(impossible) == -math.inf)

    @pytest.mark.evidence
    def test_lists_with_values_follow_their_distribution(self):
        """With two answers above, the threshold is below both values, and the probability is a double integral."""
        mechanism, runs = AUDITORIUM["svt3"].mechanism, 100_000
        outputs, distribution = (
            mechanism.sample(TWO, runs, np.random.default_rng(1)).tolist(),
            mechanism.distribution(TWO),
        )
        first = np.linspace(-1.0, 1.0, 21)
        cell = np.array([[math.exp(distribution.log_density([(u, v)])[0]) for v in first] for u in first])
        probability = integrate.simpson(integrate.simpson(cell, x=first), x=first)
        assert are_near(sum(len(o) == 2 and max(map(abs, o)) <= 1 for o in outputs), runs, probability)


class TestMeans:
    def test_outputs_follow_the_distribution(self):
        mechanism, rows = AUDITORIUM["non_private_mean_v1"].mechanism, [0.5, 1.0]
        outputs, distribution = mechanism.sample(rows, 20_000, np.random.default_rng(1)), mechanism.distribution(rows)
        at = np.array([-1.9, -0.4, 0.1, 0.6, 2.5])
        assert np.all(outputs % STEP == 0)
        assert are_near((outputs[:, None] <= at).sum(axis=0), 20_000, distribution.cdf(at))

    def test_a_negative_count_gives_the_exact_mean(self):
        """The output is 0 with probability ½e^{−½} = .303 on one row of 0, and never if the sum is positive."""
        for name, (x, y), mean in (("private_mean", (1, 2), 0.0), ("non_private_mean_v2", (1, 2), 1.0)):
            entry = AUDITORIUM[name]
            outputs = [entry.mechanism.sample(rows, 20_000, np.random.default_rng(1)) for rows in (entry.x, entry.y)]
            assert (len(entry.x), len(entry.y)) == (x, y)
            assert are_near(np.count_nonzero(outputs[0] == mean), 20_000, math.exp(-0.5) / 2)
            assert not np.any(outputs[1] == mean)

    def test_an_exposed_mean_follows_the_integral_over_its_noisy_count(self):
        """Pr[(1 + V)/U ≤ z or, for U < 0, 1/U ≤ z], with noise of scale 2 and a count of 2."""

        def below(z):
            def integrand(u):
                density = math.exp(-abs(u - 2) / 2) / 4
                return density * (float(m.LaplaceDistribution(1.0, 2.0).cdf(z * u)) if u > 0 else float(1 / u <= z))

            stops = sorted({-100.0, 0.0, 2.0, 150.0, 1 / z})
            return sum(integrate.quad(integrand, a, b, epsabs=1e-13)[0] for a, b in itertools.pairwise(stops))

        outputs, at = (
            AUDITORIUM["private_mean"].mechanism.sample([0.25, 0.75], 20_000, np.random.default_rng(1)),
            np.array([-0.4, 0.3, 1.7]),
        )
        assert np.all(outputs % STEP == 0)
        assert are_near((outputs[:, None] <= at).sum(axis=0), 20_000, [below(z) for z in at])

    def test_a_bounded_mean_is_the_upper_bound_as_often_as_computed(self):
        mechanism, rows = BoundedMean(0.8, -2.0, 4.0), [4.0, 4.0, 1.0, 7.0, -2.0]
        outputs = mechanism.sample(rows, 20_000, np.random.default_rng(1))
        assert np.all(outputs % STEP == 0)
        assert outputs.min() == -2.0
        assert are_near(np.count_nonzero(outputs == 4.0), 20_000, mechanism.probability_of_upper(rows))

    @pytest.mark.parametrize("ratio", RATIOS)
    def test_the_loss_of_a_bounded_mean_by_quadrature(self, ratio):
        """The noise of the count compensates the factor e^{−εc/2} of the tail up to the true count."""
        entry = SUITES["ladder"][f"mean {ratio:.2f}"]
        assert sum(entry.x) == len(entry.x) % 2
        on_x, on_y = map(entry.mechanism.probability_of_upper, (entry.x, entry.y))
        assert math.log(on_x / on_y) == pytest.approx(entry.exact, rel=1e-9)


def test_an_audit_shows_answers_without_noise_in_lists():
    """`dpaudit bench detection` audits all entries, with several seeds."""
    entry = AUDITORIUM["svt5"]
    result = check(entry.mechanism, entry.x, entry.y, claim=entry.claim, adjacency=entry.adjacency, runs=700, seed=0)
    assert result.is_refuted
