"""The figure of the bound against the runs: its projection is what audits of more and fewer runs state."""

import itertools
import math
import re

import pytest
from matplotlib.figure import Figure

from dpaudit import PureDP, epsilon_lower
from dpaudit.audit.health.findings import Finding, HealthCheck
from dpaudit.audit.inference.boundary_test import Counts
from dpaudit.audit.inference.guess_test import Guesses
from dpaudit.audit.power.joint_test_power import guess_resolution
from dpaudit.audit.records.suite import Entry, Suite
from dpaudit.reports.figures.series_figures import Projection, draw_projection, projection_of
from dpaudit.reports.figures.svg_figure import drawings_of, save_figures, svg

from ..examples import audit as result


def projection(**changes):
    given = {
        "runs": 20_000, "unit": "runs", "letter": "ε", "verdict": result().verdict, "claimed": 1.0, "bound": 0.9,
        "estimate": 0.95, "excess": 0.1,
    }  # fmt: skip
    return Projection(**{**given, **changes})


def drawn(shown):
    """The axes, and the curves in them by name."""
    axes = Figure().subplots()
    draw_projection(axes, shown)
    return axes, {line.get_label(): line for line in axes.lines}


@pytest.mark.parametrize(("p", "q"), [(0.5, 0.2), (0.1, 0.04), (0.01, 0.002)])
def test_the_projected_bound_is_that_of_the_same_frequencies_in_other_runs(p, q):
    bounds = {n: epsilon_lower(round(p * n), n, round(q * n), n, alpha=0.05) for n in (5_000, 20_000, 80_000, 320_000)}
    estimate = math.log(p / q)
    shown = projection(bound=bounds[20_000], estimate=estimate)
    for n, bound in bounds.items():
        assert estimate - shown.bound_after(n) == pytest.approx(estimate - bound, rel=0.03)


def test_the_projected_detectable_excess_is_that_of_the_planned_test():
    def excess(factor):
        guesses = Guesses(right=60_000 * factor, wrong=22_000 * factor, runs=190_000 * factor)
        return guess_resolution(PureDP(1.0), guesses, alpha=0.05, power=0.95)

    shown = projection(runs=100_000, excess=excess(1))
    for factor in (4, 16):
        assert shown.detected_after(100_000 * factor) - 1.0 == pytest.approx(excess(factor), rel=0.05)


def test_the_figure_is_that_of_the_result():
    shown = projection_of(result())
    assert (shown.runs, shown.claimed, shown.bound, shown.excess) == (200, 1.0, 0.5, 0.2)
    assert shown.bound_after(200) == 0.5
    assert shown.detected_after(800) == pytest.approx(1.1)
    assert "0.5 after 200, claimed 1" in shown.label
    assert "smallest detectable ε 1.2, projected after 800: 1.1" in shown.label
    assert math.isnan(projection_of(result(bound=2.0)).excess), "a refuted claim needs no detectable excess"
    assert projection_of(result(findings=(Finding(HealthCheck.REPEATED_BLOCKS, "Equal."),))) is None


def test_nothing_is_projected_without_a_finite_estimate():
    shown = projection_of(result(counts=Counts(hits_x=30, runs_x=100, hits_y=0, runs_y=100), resolution=math.inf))
    assert math.isnan(shown.bound_after(400))
    assert shown.caption.endswith("No curve, because the bound is 0 or the estimate is infinite or unknown.")
    assert drawn(shown)[1].keys() == {"lower bound", "claimed 1"}
    zero = projection(bound=0.0)
    assert math.isnan(zero.bound_after(80_000)), "its distance from the estimate is unknown"
    assert "lower bound if" not in zero.caption
    assert drawn(zero)[1].keys() == {"lower bound", "claimed 1", "claim + projected excess"}


EXTREMES = itertools.product([0.0, 5e-324, 1e-5, 1.0, 1e300], [0.0, 1e-300, 1.0, 1e300])
OTHERS = itertools.cycle(itertools.product([1.0, math.inf, math.nan, 2.0], [math.nan, math.inf, 1e-12, 1e300]))


def test_extreme_numbers_are_drawn_inside_the_figure():
    """Each pair of a bound and a claim, and each of an estimate (as a multiple of the bound) and an excess."""
    for (bound, claimed), (multiple, excess) in zip(EXTREMES, OTHERS):  # noqa: B905  # the others go round
        estimate = multiple if math.isinf(multiple) else multiple * bound
        axes, _ = drawn(projection(bound=bound, claimed=claimed, estimate=estimate, excess=excess))
        low, high = axes.get_ylim()
        assert all(low <= y <= high for line in axes.lines[:-2] for y in line.get_ydata()), "the curves"
        (marked,) = axes.lines[-1].get_ydata()
        assert low <= marked <= high
        assert not re.search(r'="[^"]*\b(nan|inf)\b', svg(axes.figure))


def test_every_audit_has_one_figure_of_its_bound(tmp_path):
    (drawings,), sheet = drawings_of([result()])
    assert len(drawings) == 1
    assert "projected as 1/√runs" in drawings[0][0]
    used = set(re.findall(r'class="(\w+)"', drawings[0][1]))
    assert used == set(sheet), "each class has a rule"
    axes, lines = drawn(projection())
    assert lines.keys() == {"lower bound", "claimed 1", "projected bound", "claim + projected excess"}
    assert not [line for line in axes.lines if line.get_linestyle() == "-"], "no solid line looks like a bound"
    place = lines["projected bound"].get_xydata()
    assert place[:, 1].tolist() == [projection().bound_after(runs) for runs in place[:, 0]]
    suite = Suite(title="", entries=(Entry(name="plain", result=result()),))
    names = [path.name for path in save_figures(suite, tmp_path)]
    assert names == ["forest.svg", "001-plain-1.svg"]
    text = (tmp_path / names[1]).read_text(encoding="utf-8")
    assert text.startswith('<svg xmlns="http://www.w3.org/2000/svg" ')
    assert "var(--" not in text, "a file has no page that defines the colours"
