"""Experiments on the definition: intervals, exact values, figures."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dpaudit import Verdict
from dpaudit.experiments.documents.definition import (
    EACH,
    EPSILON,
    SLACK,
    composed_epsilon,
    equal_rows,
    experiments,
    exposed_counts,
    independent_rows,
    loss_tail,
    number_exposed,
    posterior_ratio,
)
from dpaudit.experiments.suite.run_suite import run_experiments
from dpaudit.mechanisms import GaussianMechanism, NameAndShame, gaussian_loss_tail, group_delta

BY_NAME = {case.name: case for experiment in experiments() for case in experiment.cases}


class TestPosterior:
    """Experiment D1: worlds of a few states, whose posteriors are sums over all states."""

    def test_independent_rows_keep_to_epsilon_at_every_event(self):
        world = independent_rows(0.7)
        assert np.abs(world.log_ratios()).max() <= 0.7

    def test_independent_rows_by_hand(self):
        """Pr[1 | output <= 0] from the prior odds and the ratio of two averages of geometric tails."""
        world = independent_rows(1.0)

        def below(count):  # Pr[count + noise <= 0], two-sided geometric noise of ratio e^-1
            r = math.exp(-1)
            return 1 - r / (1 + r) if count == 0 else r**count / (1 + r)

        def average(*counts):
            return sum(weight * below(count) for weight, count in zip((0.25, 0.5, 0.25), counts, strict=True))

        with_row = 0.02 * average(1, 2, 3) / (0.02 * average(1, 2, 3) + 0.98 * average(0, 1, 2))
        assert world.log_ratios()[0].tolist() == pytest.approx(
            [math.log((1 - with_row) / 0.98), math.log(with_row / 0.02)]
        )

    def test_equal_rows_come_near_two_epsilon_as_the_secret_gets_rare(self):
        assert 1.8 < np.abs(equal_rows(1.0).log_ratios()).max() < 2.0

    @pytest.mark.parametrize("world", [independent_rows(1.0), equal_rows(1.0)], ids=["independent", "equal"])
    @pytest.mark.evidence
    def test_intervals_hold_the_exact_ratios(self, world):
        """At alpha 1e-9 a miss indicates an error."""
        result = posterior_ratio(world, 2.0, runs=300_000, alpha=1e-9, seed=5)
        exact = world.log_ratios().ravel()
        assert len(result.points) == len(exact)
        for point, value in zip(result.points, exact, strict=True):
            assert point.lower < value < point.upper
            assert point.upper - point.lower < 2.0


class TestDelta:
    def test_loss_tail_is_the_gaussian_tail(self):
        mechanism = GaussianMechanism(0.5, 0.05)
        shift = 1 / mechanism.scale
        exact = stats.norm.sf(0.5 / shift - shift / 2)
        assert gaussian_loss_tail(0.5, mechanism.scale) == pytest.approx(exact, rel=1e-9)
        point = loss_tail(mechanism, exact, exact, runs=100_000, alpha=1e-9, seed=2).points[0]
        assert point.lower < exact < point.upper < 1.2 * exact

    @pytest.mark.evidence
    def test_exposed_people_are_binomial(self):
        """Counts of 0 to 4 people exposed are within exact limits of the law (1e-8 together)."""
        counts = exposed_counts(NameAndShame(0.3), 4, 50_000, seed=3)
        assert counts.sum() == 50_000
        for exposed, seen in enumerate(counts):
            share = stats.binom(4, 0.3).pmf(exposed)
            low, high = stats.binom.ppf(1e-9, 50_000, share), stats.binom.isf(1e-9, 50_000, share)
            assert low <= seen <= high

    def test_the_points_of_the_number_exposed(self):
        result = number_exposed(NameAndShame(0.1), 5, 0.1, runs=20_000, alpha=1e-9, seed=1)
        assert result.verdict is Verdict.NOT_REFUTED
        assert [point.at for point in result.points] == ["mean", "Pr[0]", "Pr[1]", "Pr[2 or more]"]
        assert result.points[0].low == pytest.approx(0.5)


class TestGroups:
    def test_false_claim_lies_between_one_step_and_the_group(self):
        """k·delta lies between delta and the bound of the group theorem."""
        case = BY_NAME["D7-gaussian-k-delta"]
        assert case.claim.delta == pytest.approx(8e-3)
        assert (
            case.claim.delta
            < case.exact
            < group_delta(EPSILON, 1e-3, 8, "sum")
            < group_delta(EPSILON, 1e-3, 8, "product")
        )

    def test_composition_grows_slower_than_the_group(self):
        """At 64 runs the composition has less than a third of the epsilon of the group."""
        exact = BY_NAME["D8-composed-64"].exact
        assert exact <= composed_epsilon(64) <= 64 * EACH
        assert 3 * exact < BY_NAME["D8-distance-64"].exact
        assert BY_NAME["D8-composed-64"].claim.delta == SLACK

    @pytest.mark.parametrize(("row", "runs"), [("D7", 5_000), ("D8", 40_000)])
    @pytest.mark.evidence
    def test_figure_has_a_point_for_each_measured_bound(self, row, runs):
        experiment = next(experiment for experiment in experiments() if experiment.id == row)
        named = tuple(case for case in experiment.cases if case.name.rsplit("-", 1)[1] in ("1", "2", "8"))
        suite = run_experiments([replace(experiment, cases=named)], alpha=1e-3, seed=0, runs=runs)
        figure = experiment.draw(suite.entries)
        points = [
            (float(x), float(y))
            for axes in figure.axes
            for line in axes.lines
            if line.get_linestyle() == "None"
            for x, y in zip(*line.get_data(), strict=True)
        ]
        assert len(points) == sum(entry.result.bound > 0 for entry in suite.entries) > 3
        for entry in suite.entries:
            steps = float(entry.name.rsplit("-", 1)[1])
            assert entry.result.bound <= 0 or (steps, pytest.approx(entry.result.bound)) in points
