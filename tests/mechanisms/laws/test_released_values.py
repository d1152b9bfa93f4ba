"""Sparse vectors that release values: their laws against transcript laws, other integrals and runs.

Random tests have a false-alarm probability of 1e-8 each.
"""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from dpaudit.audit.claims.claim import PureDP
from dpaudit.audit.errors import ClaimError, DatasetError, OptionError
from dpaudit.mechanisms import NoisyThreshold
from dpaudit.mechanisms.laws.laws import ABOVE, transcript_law
from dpaudit.mechanisms.laws.released_values import MassBelow

ALARM = 1e-8
ANSWERS = (0.3, 1.7, -0.4)
CLAIM = PureDP(1.0)


def compared(cutoff=1, refresh=False, threshold=0.25):
    return NoisyThreshold(CLAIM, 2.0, 3.0, cutoff=cutoff, threshold=threshold, refresh=refresh, release_value=True)


def fresh(cutoff=1, refresh=False):
    return NoisyThreshold(
        CLAIM, 2.0, 3.0, cutoff=cutoff, threshold=0.25, refresh=refresh, release_value=True, value_scale=1.5
    )


def named(mechanism):
    """Return a test id without the address of the query."""
    kind = "fresh" if mechanism.value_scale > 0 else "compared"
    return f"{kind}-{mechanism.cutoff}{'-refresh' * mechanism.refresh}"


def nodes(stops, reach):
    """Integrate by Gauss-Legendre on pieces of at most 2 that break at these places, and `reach` beyond them."""
    stops = sorted({*stops, min(stops) - reach, max(stops) + reach})
    edges = np.unique(
        np.concatenate([np.linspace(a, b, math.ceil((b - a) / 2) + 1) for a, b in itertools.pairwise(stops)])
    )
    t, w = np.polynomial.legendre.leggauss(16)
    half = np.diff(edges) / 2
    return ((edges[1:] + edges[:-1])[:, None] / 2 + half[:, None] * t).ravel(), (half[:, None] * w).ravel()


def follow(outputs, law):
    """Return whether the events "one value alone, and at most t" are as frequent as the density's integrals say.

    The limits are exact binomial ones: true for runs of the law with probability at least 1 − ALARM.
    """
    z, weight = nodes([*ANSWERS, 0.25, -3.0, 4.0], 120.0)
    is_within = []
    for above, limit in itertools.product(range(3), (-3.0, 0.25, 1.7, 4.0)):
        rows = np.full((len(z), 3), np.nan)
        rows[:, above] = z
        probability = weight[z < limit] @ np.exp(law.log_density(rows[z < limit]))
        hits = np.sum(np.isnan(np.delete(outputs, above, axis=1)).all(axis=1) & (outputs[:, above] <= limit))
        count = stats.binom(len(outputs), probability)
        is_within.append(count.ppf(ALARM / 24) <= hits <= count.isf(ALARM / 24))
    return all(is_within)


class TestMassBelow:
    @pytest.mark.parametrize(("a", "b"), [(2.0, 2.0), (1.0, 3.0), (4.0, 0.5)])
    @pytest.mark.parametrize("x", [(), (0.0,), (-1.0, 0.5, 0.5, 2.0), (1.0, 1.0), (-0.3, -2.0)], ids=len)
    def test_it_is_the_integral(self, a, b, x):
        def integrand(z):
            chances = [math.exp(-abs(z - i) / b) / 2 for i in x]
            below = [p if z < i else 1 - p for p, i in zip(chances, x, strict=True)]
            return math.exp(-abs(z) / a) / (2 * a) * math.prod(below)

        mass = MassBelow.of(np.array(x), a, b)
        points = [-7.0, -1.0, -0.2, 0.0, 0.75, 2.0, 11.0]
        found = mass.log_up_to(np.array([*points, math.inf]))
        for u, log_mass in zip([*points, 60.0 * a], found.tolist(), strict=True):
            lowest, length = min(-2.0, u), 1 / (1 / a + len(x) / b)  # below `lowest`, one exponential of this length
            tail = [lowest - length * reach for reach in (60, 25, 10, 4, 1)]
            stops = [*tail, lowest, *(edge for edge in sorted({0.0, *x}) if lowest < edge < u), u]
            pieces = [integrate.quad(integrand, *ends, epsabs=0.0)[0] for ends in itertools.pairwise(stops)]
            assert log_mass == pytest.approx(math.log(math.fsum(pieces)), abs=1e-9)

    def test_far_below_it_is_one_exponential(self):
        mass = MassBelow.of(np.array([0.0, 1.0]), 2.0, 4.0)
        low, lower = mass.log_up_to(np.array([-5000.0, -6000.0]))
        assert low - lower == pytest.approx(1000.0)  # 1/2 + 2/4 per unit
        assert math.isfinite(lower)

    @pytest.mark.parametrize("x", [np.zeros(21), np.array([0.0, 900.0])], ids=["many", "far"])
    def test_what_it_cannot_hold(self, x):
        with pytest.raises(DatasetError, match="use fewer answers, or answers nearer"):
            MassBelow.of(x, 1.0, 1.0)


class TestLaws:
    @pytest.mark.parametrize("mechanism", [compared(1), compared(3), fresh(1), compared(2, refresh=True)], ids=named)
    def test_one_value_integrates_to_its_transcript(self, mechanism):
        """Integrated over all values, the densities give the transcript probabilities of independent code."""
        law = mechanism.law(ANSWERS)
        transcripts = transcript_law(
            np.array(ANSWERS) - mechanism.threshold, 2.0, 3.0, mechanism.cutoff, refresh=mechanism.refresh
        )
        z, weight = nodes([*ANSWERS, 0.25], 120.0)
        for above in range(3):
            rows = np.full((len(z), 3), np.nan)
            rows[:, above] = z
            code = [0, 0, 0] if mechanism.cutoff > 1 else [0] * above + [1] + [-1] * (2 - above)
            code[above] = ABOVE
            exact = math.exp(transcripts.log_density([code])[0])
            assert weight @ np.exp(law.log_density(rows)) == pytest.approx(exact, rel=1e-9)
        if mechanism.cutoff <= 3:
            silence = law.log_density(np.full((1, 3), np.nan))
            assert silence == pytest.approx(transcripts.log_density([[0, 0, 0]]), abs=1e-10)

    @pytest.mark.parametrize("mechanism", [compared(2), compared(2, refresh=True), fresh(2)], ids=named)
    def test_two_values_integrate_to_their_transcript(self, mechanism):
        law = mechanism.law(ANSWERS)
        transcripts = transcript_law(np.array(ANSWERS) - 0.25, 2.0, 3.0, 2, refresh=mechanism.refresh)
        z, weight = nodes([*ANSWERS, 0.25], 70.0)
        # One triangle on each side of the diagonal, where the smaller of the two compared values changes.
        t, w = np.polynomial.legendre.leggauss(60)
        exact = math.exp(transcripts.log_density([[1, 0, 1]])[0])
        total = 0.0
        for side in (-1.0, 1.0):
            for start, stop in itertools.pairwise([0.0, 2.5, 10.0, 30.0, 100.0]):
                apart = side * ((start + stop) / 2 + (stop - start) / 2 * t)
                first, second = np.broadcast_arrays(z[:, None], z[:, None] + apart)
                rows = np.stack([first.ravel(), np.full(first.size, np.nan), second.ravel()], axis=1)
                density = np.exp(law.log_density(rows)).reshape(first.shape)
                total += weight @ density @ w * (stop - start) / 2
        assert total == pytest.approx(exact, rel=2e-4)  # the second value's density has corners inside the pieces

    @pytest.mark.parametrize("below", [0, 1, 5])
    def test_a_small_value_after_some_below(self, below):
        """For answers 0, Pr[all below, then a value ≤ 0] is a double integral of exponentials; simulation agrees."""
        mechanism = NoisyThreshold(CLAIM, 2.0, 2.0, cutoff=1, release_value=True)
        z, weight = nodes([0.0], 80.0)
        rows = np.full((len(z), below + 1), np.nan)
        rows[:, -1] = z
        density = np.exp(mechanism.law([0.0] * (below + 1)).log_density(rows))
        exact = 1 / (4 * 2**below * (below + 1) * (below + 2))
        assert weight[z < 0] @ density[z < 0] == pytest.approx(exact, rel=1e-10)

    @pytest.mark.parametrize("mechanism", [compared(1), compared(2), compared(2, refresh=True), fresh(2)], ids=named)
    def test_runs_follow_the_law(self, mechanism):
        assert follow(mechanism.sample(ANSWERS, 100_000, np.random.default_rng(4)), mechanism.law(ANSWERS))

    def test_runs_of_another_mechanism_do_not(self):
        """Wrong twins: the same transcripts with other values, and new threshold noise for the second value."""
        outputs = fresh(2).sample(ANSWERS, 100_000, np.random.default_rng(4))
        assert not follow(outputs, compared(2).law(ANSWERS))
        outputs = compared(2).sample(ANSWERS, 100_000, np.random.default_rng(4))
        assert not follow(outputs, compared(2, refresh=True).law(ANSWERS))

    def test_what_cannot_be_has_no_density(self):
        rows = [[1.0, 2.0, 3.0], [1.0, 2.0, math.nan]]
        for mechanism in (compared(1), fresh(1)):
            assert np.all(np.isneginf(mechanism.law(ANSWERS).log_density(rows)))
        assert compared(2).law(ANSWERS).log_density(rows).tolist()[0] == -math.inf
        assert compared(2).law(ANSWERS).log_density(rows)[1] > -10

    def test_rows_in_any_order(self):
        law = compared(2).law(ANSWERS)
        rows = compared(2).sample(ANSWERS, 500, np.random.default_rng(2))
        one_by_one = np.concatenate([law.log_density(row[None]) for row in rows])
        assert law.log_density(rows) == pytest.approx(one_by_one, rel=1e-14)


class TestLargestLoss:
    def test_it_is_the_published_one_where_all_answers_move(self):
        """m answers below, then a small value, lose exactly (m + 1)/2 epsilon."""
        mechanism = NoisyThreshold(CLAIM, 2.0, 2.0, cutoff=1, threshold=0.5, release_value=True)
        for n in (1, 4, 10):
            x, y = mechanism.law([0.0] * n), mechanism.law([1.0] * n)
            assert x.epsilon_from(y, 0.0) == pytest.approx(n / 2, rel=1e-9)

    @pytest.mark.parametrize("mechanism", [compared(1), compared(2), compared(2, refresh=True), fresh(2)], ids=named)
    @pytest.mark.parametrize("moves", [(1, 1, 1), (1, -1, 1), (-1, 1, 0)], ids=str)
    def test_nothing_exceeds_it_and_something_comes_near(self, mechanism, moves):
        x, y = mechanism.law(ANSWERS), mechanism.law(np.add(ANSWERS, moves))
        largest = x.epsilon_from(y, 0.0)
        levels = [-60.0, -5.0, *np.linspace(-2, 4, 61), 8.0, 20.0, 60.0, 400.0]
        rows = [
            [dict(zip(above, values, strict=True)).get(place, math.nan) for place in range(3)]
            for count in range(mechanism.cutoff + 1)
            for above in itertools.combinations(range(3), count)
            for values in itertools.product(levels, repeat=count)
        ]
        losses = x.log_density(rows) - y.log_density(rows)
        assert losses.max() <= largest + 1e-9
        assert losses.max() >= largest - 2e-3

    def test_where_it_is_not_known(self):
        for one in (compared(), fresh()):
            with pytest.raises(OptionError, match="use delta=0"):
                one.law(ANSWERS).epsilon_from(one.law(ANSWERS), 0.1)
            with pytest.raises(OptionError, match="no closed form"):
                one.law(ANSWERS).epsilon_from(one.law([0.0]), 0.0)


def test_fresh_values_lie_on_a_grid_around_the_answers():
    mechanism = NoisyThreshold(CLAIM, 2.0, 3.0, cutoff=2, threshold=-1e6, release_value=True, value_scale=1.5)
    outputs = mechanism.sample([0.5, 100.5, 7.0], 50_000, np.random.default_rng(3))
    assert np.isnan(outputs[:, 2]).all()
    assert np.all(outputs[:, :2] % 2.0**-20 == 0)
    below = stats.binom(50_000, stats.laplace(100.5, 1.5).cdf(99.0))
    assert below.ppf(ALARM / 2) <= (outputs[:, 1] <= 99.0).sum() <= below.isf(ALARM / 2)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (
            lambda: NoisyThreshold(CLAIM, 1.0, 1.0, value_scale=2.0),
            ClaimError,
            "value_scale=2 applies to",
        ),
        (lambda: NoisyThreshold(CLAIM, 1.0, 1.0, value_scale=-2.0), ClaimError, "value_scale=-2.0 is not allowed"),
        (lambda: compared().law([0.0] * 21), DatasetError, "21 answers span"),
        (lambda: compared(9).law([0.0] * 20), OptionError, "use at most 16384: fewer answers"),
        (lambda: fresh().law([0.0] * 63), DatasetError, "63 answers have 64 transcripts"),
    ],
)
def test_errors(call, kind, message):
    with pytest.raises(kind) as caught:
        call()
    assert message in str(caught.value)
