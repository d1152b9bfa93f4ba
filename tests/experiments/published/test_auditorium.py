"""Mechanisms of DP-Auditorium: published losses, laws of means and lists, simulated events.

Each count is outside its limits with probability at most 1e-8. Seeds are fixed.
"""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate

from dpaudit.audit.claims.claim import PureDP
from dpaudit.audit.errors import ClaimError, OptionError
from dpaudit.audit.sampling.sampler import as_sampler
from dpaudit.experiments.published import auditorium
from dpaudit.experiments.published.auditorium import AnswerLists, Comparison
from dpaudit.experiments.published.exposed_means import STEP, ExposedMean, ExposedMeanLaw, MeanOverExactCount
from dpaudit.mechanisms import LaplaceLaw, NoisyThreshold, exact_delta, exact_epsilon

from .test_suites import is_near

ENTRIES = {entry.name: entry for entry in auditorium.entries()}
TWO, THREE = [0, 1], [0, 1, 0]
ABOVE, BELOW = Comparison.ABOVE, Comparison.BELOW


def sample(mechanism, dataset, runs=100_000):
    return mechanism.sample(dataset, runs, np.random.default_rng(1))


class TestPublishedLosses:
    """Losses on the records (0, 1) and (0, 1, 0), as measured for the implementations of DP-Auditorium."""

    @pytest.mark.parametrize(
        ("name", "epsilon", "delta"),
        [("svt1", 0.64, 0), ("svt2", 0.48, 0), ("svt4", 1.73, 0.03), ("svt5", math.inf, 0.2212), ("svt6", 1.47, 0.027)],
    )
    def test_sparse_vectors_that_end_with_the_second_answer_above(self, name, epsilon, delta):
        mechanism = auditorium.sparse_vectors(cutoff=2)[name]
        x, y = mechanism.law(TWO), mechanism.law(THREE)
        assert x.epsilon_from(y, 0.0) == exact_epsilon(x, y) == ENTRIES[name].exact
        assert exact_epsilon(x, y) == pytest.approx(epsilon, abs=0.005)
        assert exact_delta(x, y, 1.0) == pytest.approx(delta, abs=5e-5)

    @pytest.mark.parametrize(("name", "delta"), [("svt4", 0.0481), ("svt5", 0.2212), ("svt6", 0.0363)])
    def test_sparse_vectors_that_compare_all_answers(self, name, delta):
        mechanism = auditorium.sparse_vectors(cutoff=8)[name]
        assert exact_delta(mechanism.law(TWO), mechanism.law(THREE), 1.0) == pytest.approx(delta, abs=5e-5)

    def test_noisy_max_on_equal_counts(self):
        right, wrong = ENTRIES["noisy_max_v1"].mechanism, ENTRIES["noisy_max_v4"].mechanism
        assert exact_epsilon(right.law(TWO), right.law(THREE)) == pytest.approx(0.281, abs=5e-4)
        assert exact_epsilon(wrong.law(TWO), wrong.law(THREE)) == pytest.approx(1.434, abs=5e-4)
        assert exact_delta(wrong.law(TWO), wrong.law(THREE), 1.0) == pytest.approx(0.176, abs=5e-4)

    def test_the_mean_with_exact_counts(self):
        x, y = (MeanOverExactCount(1.0).law(rows) for rows in ([1.0], [1.0, 0.0]))

        def excess(z):
            return max(0.0, math.exp(x.log_density(z)) - math.e * math.exp(y.log_density(z)))

        delta = integrate.quad(excess, -40, 40, points=[-1, 0, 0.5, 1, 2, 3], limit=400)[0]
        assert delta == pytest.approx(0.142, abs=5e-4)
        assert ENTRIES["non_private_mean_v1"].exact == math.inf

    def test_no_other_pair_loses_more(self):
        answers = list(itertools.product((0, 1), repeat=2))
        for name in ("svt1", "svt2", "svt4", "svt6"):
            laws = [ENTRIES[name].mechanism.law(records) for records in answers]
            assert max(exact_epsilon(a, b) for a, b in itertools.combinations(laws, 2)) == pytest.approx(
                ENTRIES[name].exact, rel=1e-12
            )
        for name in ("noisy_max_v1", "noisy_max_v4"):
            law = ENTRIES[name].mechanism.law
            pairs = [([0] * a + [1] * b, [0] * (a + 1) + [1] * b) for a in range(5) for b in range(5 - a)]
            largest = max(exact_epsilon(law(a), law(b)) for a, b in pairs)
            assert largest == pytest.approx(ENTRIES[name].exact, rel=1e-12)

    def test_the_loss_of_laplace_laws_of_two_scales(self):
        narrow, wide = LaplaceLaw(0.0, 1.0), LaplaceLaw(1.5, 2.0)
        z = np.linspace(-30, 30, 6001)
        assert auditorium.laplace_loss(narrow, wide) == pytest.approx(
            (narrow.log_density(z) - wide.log_density(z)).max(), rel=1e-12
        )
        assert auditorium.laplace_loss(wide, narrow) == math.inf


class TestQueries:
    @pytest.mark.parametrize(
        ("records", "odd", "last"), [([], 0, 0), ([1], 0, 1), ([0, 1], 0, 1), ([0, 1, 0], 1, 0), ([1, 1, 0, 1], 0, 1)]
    )
    def test_seven_answers_reveal_the_last_record_but_one_and_one_the_last(self, records, odd, last):
        assert auditorium.revealed_records(records) == [odd] * 7 + [last]


class TestMeans:
    @pytest.mark.evidence
    def test_a_negative_count_gives_the_exact_mean(self):
        """The output is 0 with probability ½e^{−½} = .303 on one row of 0, and never if the sum is positive."""
        entry, runs = ENTRIES["private_mean"], 100_000
        negative = math.exp(-0.5) / 2
        assert negative == pytest.approx(0.3033, abs=5e-5)
        assert math.exp(entry.mechanism.law(entry.x).log_mass(0.0)) == pytest.approx(negative, rel=1e-12)
        assert entry.mechanism.law(entry.y).log_mass(0.0) == -math.inf
        assert is_near(np.count_nonzero(sample(entry.mechanism, entry.x, runs) == 0), runs, negative)
        assert not np.any(sample(entry.mechanism, entry.y, runs) == 0)

    @pytest.mark.evidence
    def test_a_negative_count_also_exposes_the_mean_over_the_exact_count(self):
        entry, runs = ENTRIES["non_private_mean_v2"], 100_000
        for rows, mean in ((entry.x, 1.0), (entry.y, 0.5)):
            exposed = math.exp(-len(rows) / 2) / 2
            assert is_near(np.count_nonzero(sample(entry.mechanism, rows, runs) == mean), runs, exposed)
            assert math.exp(entry.mechanism.law(rows).log_mass(mean)) == pytest.approx(exposed, rel=1e-12)

    @pytest.mark.evidence
    @pytest.mark.parametrize("rows", [[0.0], [0.0, 1.0], [0.25, 0.5, 1.0], []])
    @pytest.mark.parametrize(
        "mechanism", [ExposedMean(1.0), ExposedMean(0.5, noisy_divisor=False), MeanOverExactCount(1.0)]
    )
    def test_outputs_follow_the_law(self, mechanism, rows):
        outputs, law = sample(mechanism, rows), mechanism.law(rows)
        assert np.all(outputs % STEP == 0)
        for z in (-3.0, -0.4, 0.1, 0.6, 2.0):
            assert is_near(np.count_nonzero(outputs <= z), len(outputs), float(law.cdf(z)))
            assert float(law.cdf(z) + law.sf(z)) == pytest.approx(1.0, abs=1e-12)

    @pytest.mark.parametrize("law", [ExposedMeanLaw(1.0, 2, 2.0), ExposedMeanLaw(0.0, 1, 2.0, centre=1.0)])
    def test_the_density_is_that_of_the_cdf(self, law):
        for z in (-2.0, -0.3, 0.2, 1.7):
            slope = (float(law.cdf(z + 1e-5)) - float(law.cdf(z - 1e-5))) / 2e-5
            assert math.exp(law.log_density(z)) == pytest.approx(slope, rel=1e-6)

    def test_the_cdf_by_another_integral(self):
        def below(z):
            """Pr[(1 + V)/U ≤ z or, for U < 0, 1/U ≤ z], with noise of scale 2 and a count of 2."""

            def integrand(u):
                density = math.exp(-abs(u - 2) / 2) / 4
                return density * (float(LaplaceLaw(1.0, 2.0).cdf(z * u)) if u > 0 else float(1 / u <= z))

            stops = sorted({-100.0, 0.0, 2.0, 150.0, 1 / z})
            return sum(integrate.quad(integrand, a, b, epsabs=1e-13)[0] for a, b in itertools.pairwise(stops))

        law = ExposedMeanLaw(1.0, 2, 2.0)
        for z in (-2.0, -0.3, 0.2, 1.7):
            assert float(law.cdf(z)) == pytest.approx(below(z), rel=1e-8)

    def test_errors(self):
        for mechanism in (ExposedMean, MeanOverExactCount):
            with pytest.raises(ClaimError, match="epsilon=0 is not allowed"):
                mechanism(0)
        with pytest.raises(OptionError, match="total=-1 is not allowed"):
            ExposedMeanLaw(-1, 1, 1.0)


class TestLists:
    @pytest.mark.parametrize("name", [f"svt{k}" for k in range(1, 7)])
    def test_outputs_are_tuples_of_words_and_numbers(self, name):
        outputs = sample(ENTRIES[name].mechanism, TWO, 2000)
        assert outputs.dtype == object
        assert {type(output) for output in outputs} == {tuple}
        kinds = {type(part) for output in outputs for part in output}
        assert kinds == ({Comparison, float} if name == "svt3" else {Comparison})
        assert len({len(output) for output in outputs}) > 1
        for output in outputs[:200]:
            above = sum(part is not BELOW for part in output)
            assert above <= 2
            assert len(output) == 8 or (above == 2 and output[-1] is not BELOW)
        drawn = as_sampler(ENTRIES[name].mechanism).draw(TWO, 2000, np.random.default_rng(1))
        assert drawn.tolist() == outputs.tolist()

    @pytest.mark.evidence
    @pytest.mark.parametrize("name", ["svt1", "svt2", "svt4", "svt5", "svt6"])
    def test_they_follow_the_law(self, name):
        mechanism, runs = ENTRIES[name].mechanism, 100_000
        outputs = sample(mechanism, TWO, runs).tolist()
        for output in [(BELOW,) * 8, (BELOW,) * 7 + (ABOVE,), (ABOVE, ABOVE)]:
            probability = math.exp(mechanism.law(TWO).log_density([output])[0])
            assert is_near(sum(o == output for o in outputs), runs, probability)

    @pytest.mark.evidence
    def test_lists_with_values_follow_their_law(self):
        """With two answers above, the threshold is below both values, and the probability is a double integral."""
        mechanism, runs = ENTRIES["svt3"].mechanism, 100_000
        outputs, law = sample(mechanism, TWO, runs).tolist(), mechanism.law(TWO)

        def density(first, second):
            return math.exp(law.log_density([(first, second)])[0])

        first = np.linspace(-1.0, 1.0, 21)
        cell = np.array([[density(u, v) for v in first] for u in first])
        probability = integrate.simpson(integrate.simpson(cell, x=first), x=first)
        inside = [len(o) == 2 and max(map(abs, o)) <= 1 for o in outputs]
        assert is_near(sum(inside), runs, probability)

    def test_impossible_lists_have_no_mass(self):
        law = ENTRIES["svt4"].mechanism.law(TWO)
        impossible = [(ABOVE,), (BELOW,) * 7, (ABOVE, ABOVE, ABOVE), (ABOVE, ABOVE, BELOW)]
        assert np.all(law.log_density(impossible) == -math.inf)

    def test_a_sparse_vector_without_cutoff_compares_every_answer(self):
        mechanism = AnswerLists(NoisyThreshold(PureDP(1.0), 1.0, 1.0))
        assert {len(output) for output in sample(mechanism, [0.0, 1.0, 2.0], 100)} == {3}
