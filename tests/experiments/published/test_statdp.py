"""Mechanisms of StatDP: exact losses over other pairs, simulated events.

Each count is outside its limits with probability at most 1e-8.
"""

import itertools
import math

import numpy as np
import pytest

from dpaudit.experiments.published import statdp
from dpaudit.mechanisms.laws.laws import ABOVE

from .test_suites import is_near

ENTRIES = {entry.name: entry for entry in statdp.entries()}
EPSILON = 0.7
STEPS = [[a] * k + [b] * (10 - k) for k in (5, 9) for a in (0.0, 1.0, 2.0) for b in (0.0, 1.0, 2.0)]
"""Ten answers with two blocks of equal values, the first of size five or nine."""


def losses_around(entry, datasets):
    laws = [entry.mechanism.law(answers) for answers in datasets]
    pairs = itertools.permutations(range(len(datasets)), 2)
    within = [(i, j) for i, j in pairs if entry.adjacency.distance(datasets[i], datasets[j]) <= 1]
    assert len(within) > 20
    return [laws[i].epsilon_from(laws[j], 0.0) for i, j in within]


def sample(name, dataset, runs=100_000):
    return ENTRIES[name].mechanism.sample(dataset, runs, np.random.default_rng(1))


class TestPairs:
    @pytest.mark.parametrize("name", ["noisy_max_v1a", "noisy_max_v2a"])
    def test_no_pair_of_whole_answers_loses_more_in_noisy_max(self, name):
        entry = ENTRIES[name]
        sorted_rest = itertools.combinations_with_replacement((0.0, 1.0, 2.0), 4)
        datasets = [[first, *rest] for rest in sorted_rest for first in (0.0, 1.0, 2.0)]
        assert max(losses_around(entry, datasets)) == pytest.approx(entry.exact, rel=1e-12)

    @pytest.mark.parametrize(("name", "limit"), [("SVT", EPSILON), ("iSVT3", 7 / 4 * EPSILON)])
    def test_no_pair_of_steps_loses_more_in_a_sparse_vector(self, name, limit):
        entry = ENTRIES[name]
        assert max(losses_around(entry, STEPS)) == pytest.approx(entry.exact, rel=1e-12)
        assert 0.99 * limit < entry.exact <= limit

    def test_no_pair_of_halves_loses_more_without_an_end(self):
        entry = ENTRIES["iSVT2"]
        assert max(losses_around(entry, STEPS[:9])) == pytest.approx(entry.exact, rel=1e-12)

    def test_the_largest_noisy_answer_loses_most_below_all(self):
        entry = ENTRIES["noisy_max_v1b"]
        x, y = entry.mechanism.law(entry.x), entry.mechanism.law(entry.y)
        z = np.linspace(-40, 40, 4001)
        assert (x.log_density(z) - y.log_density(z)).max() == pytest.approx(entry.exact, rel=1e-12)
        assert math.log(x.cdf(0.0) / y.cdf(0.0)) == pytest.approx(entry.exact, rel=1e-12)


@pytest.mark.evidence
class TestSampling:
    def test_the_largest_exponential_is_below_the_largest_answer_on_x_only(self):
        entry = ENTRIES["noisy_max_v2b"]
        outputs_x, outputs_y = sample(entry.name, entry.x), sample(entry.name, entry.y)
        below = -math.expm1(-EPSILON / 2) * (-math.expm1(-EPSILON)) ** 4
        assert below == pytest.approx(0.0190, abs=5e-5)
        assert is_near(np.count_nonzero(outputs_x < 2.0), len(outputs_x), below)
        assert outputs_y.min() >= 2.0

    @pytest.mark.parametrize("name", ["SVT", "iSVT1", "iSVT2", "iSVT3"])
    def test_transcripts_follow_their_law(self, name):
        entry = ENTRIES[name]
        rows, law = sample(name, entry.x), entry.mechanism.law(entry.x)
        for place in np.argsort(law.log_probabilities)[-3:]:
            hits = np.count_nonzero((rows == law.rows[place]).all(axis=1))
            assert is_near(hits, len(rows), math.exp(law.log_probabilities[place]))

    def test_the_order_of_answers_without_noise_shows_on_x_only(self):
        entry = ENTRIES["iSVT1"]
        rows_x, rows_y = sample(entry.name, entry.x), sample(entry.name, entry.y)
        assert is_near(np.count_nonzero(rows_x[:, 0] != rows_x[:, -1]), len(rows_x), -math.expm1(-EPSILON / 2))
        assert not np.any(rows_y[:, 0] != rows_y[:, -1])

    def test_one_value_is_released_for_an_answer_above(self):
        entry, seen = ENTRIES["iSVT4"], np.array(ENTRIES["iSVT2"].mechanism.law([0.0] * 10).rows)
        rows = sample(entry.name, entry.x)
        n_values = np.count_nonzero(~np.isnan(rows), axis=1)
        assert set(n_values.tolist()) == {0, 1}
        law = ENTRIES["iSVT2"].mechanism.law(entry.x)  # the same noise without a cutoff; both have no answer above
        none = math.exp(law.log_probabilities[int(np.flatnonzero((seen != ABOVE).all(axis=1))[0])])
        assert is_near(np.count_nonzero(n_values == 0), len(rows), none)

    def test_outputs_are_complete(self):
        shapes = {name: sample(name, entry.x, 20).shape[1:] for name, entry in ENTRIES.items()}
        assert {name for name, shape in shapes.items() if shape == ()} == {n for n in ENTRIES if "noisy_max" in n}
        assert shapes["histogram"] == shapes["histogram_eps"] == (5,)
        assert {shapes[name] for name in ENTRIES if "SVT" in name} == {(10,)}
