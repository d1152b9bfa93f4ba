"""`plot` draws the numbers of the result, of every kind of result and claim, and no name or setting gets in its way."""

import dataclasses
import itertools
import math
import sys
from textwrap import wrap

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from dpaudit import ApproxDP, GaussianDP, PureDP
from dpaudit.audit.errors import OptionError
from dpaudit.audit.events.events import Intervals, Outcomes, Sketch
from dpaudit.audit.inference.event_test import Counts
from dpaudit.audit.inference.guess_test import Guesses
from dpaudit.audit.records.suite import Entry, Suite
from dpaudit.audit.results.audit_result import InterimAnalysis, OtherDirection
from dpaudit.audit.results.statement_result import Point, Series
from dpaudit.reports.figures.plot import KINDS, kinds_of, plot

from .. import examples
from ..examples import BINS, CELLS, POINTS, SERIES, statement

OUTCOMES = dataclasses.replace(CELLS, names=("'a'", "'b'", "'c'", "any other outcome"))
INTERIM_ANALYSES = (
    InterimAnalysis(32, 0.0, 1.0),
    InterimAnalysis(100, 0.4, 0.6),
    InterimAnalysis(1000, 0.8, 0.1),
    InterimAnalysis(2000, 1.002, 0.04),
)


def audit(**changes):
    return examples.audit(**{"sketch": BINS, **({} if "stopped" in changes else {"bins": CELLS}), **changes})


def drawn(result, kind):
    """The axes, laid out to the last tick and letter."""
    figure = Figure()
    axes = plot(result, kind, ax=figure.subplots())
    figure.draw_without_rendering()
    return axes


def line(axes, label):
    found = [each for each in axes.lines if each.get_label() == label]
    assert len(found) == 1
    return found[0].get_xdata(), found[0].get_ydata()


def bars(axes):
    """Ends of every bar of an interval, along the axis."""
    return [segment for each in axes.collections if hasattr(each, "get_segments") for segment in each.get_segments()]


@pytest.mark.parametrize(
    ("claim", "cells"),
    [
        *((claim, CELLS) for claim in (PureDP(0.0), ApproxDP(0.5, 1e-3, bound_on="delta"), PureDP(0.5).group(3))),
        (GaussianDP(1.0), OUTCOMES),
    ],
)
def test_every_kind_is_drawn_without_a_warning(claim, cells):
    fixed, sequential = (
        audit(claim=claim, bins=cells),
        audit(claim=claim, interim_analyses=INTERIM_ANALYSES, stopped="runs"),
    )
    assert kinds_of(fixed)[0] == "outputs"
    for result, kind in [(fixed, kind) for kind in kinds_of(fixed)[1:]] + [(fixed, None), (sequential, None)]:
        axes = drawn(result, kind)
        assert np.isfinite((*axes.get_xlim(), *axes.get_ylim())).all()
        assert kind or axes.get_ylabel()
        assert axes.get_title() == KINDS[kind or kinds_of(result)[0]][0]


def test_shares_are_of_the_pilot_and_the_event_is_shaded():
    axes = drawn(audit(), "outputs")
    values = {each.get_label(): each.get_data().values for each in axes.patches if hasattr(each, "get_data")}
    assert values["on x"] == pytest.approx([0.5, 0.3, 0.2, 0.0])
    assert values["on y"] == pytest.approx([0.0, 0.2, 0.3, 0.5])
    (event,) = [each for each in axes.patches if each.get_label() == "event"]
    assert event.get_x() + event.get_width() == -0.25


def test_the_events_of_both_directions_are_shaded():
    counts = Counts(count_x=10, runs_x=100, count_y=30, runs_y=100)
    guesses = Guesses(correct=60, incorrect=20, runs=100)
    above = OtherDirection(event=Intervals(((0.25, math.inf),)), counts=counts, guesses=guesses)
    spans = [each for each in drawn(audit(opposite=above), "outputs").patches if isinstance(each, Rectangle)]
    assert [(each.get_label(), each.get_x()) for each in spans] == [("events", -2.0), ("", 0.25)]
    named = {"sketch": Sketch(("'a'", "'b'", "'c'"), (), (6, 3, 1), (1, 3, 6)), "event": Outcomes(("a",))}
    rows = drawn(audit(**named, opposite=dataclasses.replace(above, event=Outcomes(("c",)))), "outputs").containers
    (shaded,) = [each for each in rows if each.get_label() == "events"]
    assert [bar.get_y() + bar.get_height() / 2 for bar in shaded] == [0.0, 2.0]


def test_ratio_shows_the_claim_and_an_arrow_for_each_one_sided_bin():
    axes = drawn(audit(claim=PureDP(0.7)), "ratio")
    assert sorted(each.get_ydata()[0] for each in axes.lines if each.get_linestyle() == ":") == [-0.7, 0.7]
    arrows = {each.get_marker(): len(each.get_xdata()) for each in axes.lines if each.get_marker() in ("^", "v")}
    assert arrows == {"^": 1, "v": 1}
    assert line(axes, "shown: ε ≥ 0.5")[1][0] == 0.5
    for other in (ApproxDP(0.7, 0.01), GaussianDP(0.7)):  # no ratio is the bound of such a claim
        assert not [each for each in drawn(audit(claim=other), "ratio").lines if "shown" in each.get_label()]


def test_ratios_are_the_intervals_of_the_cells():
    found, axes = CELLS.ratios(), drawn(audit(claim=PureDP(0.5)), "ratios")
    edge = axes.get_xlim()[1]
    ends = sorted((s[0, 1], s[0, 0], s[1, 0]) for s in bars(axes))
    want = [
        (k, max(low, -edge), min(up, edge)) for k, (low, up) in enumerate(zip(found.lower, found.upper, strict=True))
    ][:-1]  # the last cell was never seen
    assert np.array(ends) == pytest.approx(np.array(want))
    assert CELLS.count_x[-1] == CELLS.count_y[-1] == 0
    assert not [each for each in axes.lines if each.get_marker() in ("<", ">")]
    outside = line(axes, "interval outside the claim")
    assert sorted(outside[0].tolist()) == sorted(found.observed[[0, 2]].tolist())
    axes = drawn(audit(claim=ApproxDP(0.5, 0.01)), "ratios")  # with a delta a large ratio is no contradiction
    assert [each.get_xdata()[0] for each in axes.lines if each.get_linestyle() == ":"] == [0.5, -0.5]
    assert "X" not in [each.get_marker() for each in axes.lines]
    assert kinds_of(CELLS) == ("ratios", "profile", "trade-off")
    for kind in kinds_of(CELLS):  # alone they have no claim
        labels = drawn(CELLS, kind).get_legend_handles_labels()[1]
        assert labels
        assert not any("claimed" in label for label in labels)


def test_profile_and_trade_off_are_those_of_the_cells_and_of_the_claim():
    axes = drawn(audit(claim=GaussianDP(1.0)), "profile")
    bottom = axes.get_ylim()[0]
    epsilon, delta = line(axes, "lower bound, x against y")
    shown = delta > bottom
    assert shown.any()
    assert delta[shown] == pytest.approx(CELLS.band().profile(epsilon)[0][shown])
    epsilon, delta = line(axes, "lower bound, y against x")
    other = dataclasses.replace(CELLS, count_x=CELLS.count_y[::-1], count_y=CELLS.count_x[::-1]).band()
    assert delta[delta > bottom] == pytest.approx(other.profile(epsilon)[0][delta > bottom])
    epsilon, delta = line(axes, "claimed")
    assert delta[0] == pytest.approx(0.3829, rel=0.01)  # 2 Phi(1/2) - 1
    axes = drawn(audit(claim=GaussianDP(1.0)), "trade-off")
    rate, power = line(axes, "lower bound, x against y")
    seen = np.isfinite(power)
    assert power[seen] == pytest.approx(CELLS.band().trade_off(rate)[0][seen])
    assert seen.sum() > len(seen) / 2
    rate, power = line(axes, "claimed")
    assert np.interp(0.5, rate, power) == pytest.approx(0.8413, abs=2e-3)
    # A profile reaches from the delta that is claimed to where all has been said.
    axes = drawn(audit(claim=ApproxDP(1.0, 1e-7)), "profile")
    epsilon, delta = line(axes, "claimed")
    assert 1.0 < epsilon[-1] < 6.0
    assert delta[-1] == pytest.approx(1e-7, rel=1e-3)
    assert axes.get_ylim()[0] < 1e-7


@pytest.mark.parametrize(("stopped", "bound", "marker"), [("refuted", 1.002, "X"), ("time", 0.9, "s")])
def test_running_bound_and_why_it_stopped(stopped, bound, marker):
    interim_analyses = (*INTERIM_ANALYSES[:3], InterimAnalysis(2000, bound, 0.04))
    axes = drawn(audit(interim_analyses=interim_analyses, stopped=stopped, bound=bound), None)
    runs, bounds = line(axes, "running lower bound")
    assert (runs.tolist(), bounds.tolist()) == ([32, 100, 1000, 2000], [0.0, 0.4, 0.8, bound])
    assert line(axes, "claimed 1")[1][0] == 1.0
    (end,) = [each for each in axes.lines if "2,000 runs" in each.get_label()]
    assert (end.get_marker(), end.get_xdata()[0], end.get_ydata()[0]) == (marker, 2000, bound)
    assert axes.get_xscale() == "log"


def test_series_shows_every_interval_and_marks_those_that_exclude_what_is_stated():
    axes = drawn(statement(), "series")
    low, high = axes.get_ylim()
    ends = np.array([[0, low, 0, 0.2], [1, 0.9, 1, 1.1], [2, 2.4, 2, 2.6], [3, low, 3, high]])
    assert np.array(sorted(tuple(s.ravel()) for s in bars(axes))) == pytest.approx(ends)
    assert line(axes, "stated")[1].tolist() == [0.0, 1.0, 2.0, 3.0]
    x, y = line(axes, "interval that excludes the stated value")
    assert (x.tolist(), y.tolist()) == ([2.0], [2.5])
    arrows = {m: [each.get_xdata().tolist() for each in axes.lines if each.get_marker() == m] for m in "v^"}
    assert arrows == {"v": [[0.0, 3.0]], "^": [[3.0]]}
    axes = drawn(statement(series=dataclasses.replace(SERIES, stated=(0.0, 1.0, 3.0, 3.0))), "series")
    assert line(axes, "interval that excludes the stated value")[0].tolist() == [2.0], "below it, too"


def test_points_of_different_units_have_a_scale_each():
    axes = drawn(statement(), "points")
    ends = {round(s[0, 1]): (s[0, 0], s[1, 0]) for s in bars(axes) if s[0, 1] == s[1, 1]}
    allowed = {round(each.get_y() + 0.05): (each.get_x(), each.get_x() + each.get_width()) for each in axes.patches}
    low, high = allowed[0]
    assert np.interp([1.0, 3.0], [0.0, 4.0], [low, high]) == pytest.approx(ends[0])  # the first row
    assert allowed[1] == pytest.approx((ends[1][0] - 80 * (ends[1][1] - ends[1][0]) / 70,) * 2)
    assert ends[2] == (0.0, 1.0)
    assert allowed[2][0] == 0.0
    assert 3 not in allowed  # nothing is stated
    texts = [each.get_text() for each in axes.texts]
    assert texts[1] == "[1, 3], stated 0 to 4"
    assert texts[3] == "[180, 250], stated 100"
    assert not axes.get_xticks().size
    points = [dataclasses.replace(point, low=0.0, high=5.0) for point in POINTS[:2]]
    axes = drawn(statement(points=points), "points")  # with the same range they share an axis
    assert sorted(tuple(s[:, 0]) for s in bars(axes) if s[0, 1] == s[1, 1]) == [(1.0, 3.0), (180.0, 250.0)]
    assert axes.get_xticks().size
    assert line(axes, "interval outside the allowed range")[0].tolist() == [200.0]


EXTREMES = [-math.inf, -1e308, 0.0, 5e-324, 1.0, 1e308, math.inf]


def test_statements_about_any_number_are_drawn_without_a_warning():
    intervals = list(itertools.combinations_with_replacement(EXTREMES, 2))
    pairs = zip(intervals, intervals[::-1], strict=True)
    points = [Point(estimate=low, lower=low, upper=up, low=a, high=b) for (low, up), (a, b) in pairs]
    drawn(statement(points=points), "points")
    for low, up in intervals[::4]:
        x = (low, up)
        drawn(
            statement(series=Series(x_name="", y_name="", x=x, estimate=x, lower=x, upper=x, stated=x, intervals="")),
            None,
        )


def test_the_axes_given_are_drawn_into_and_without_them_a_new_figure_of_pyplot():
    """In the user's style."""
    from matplotlib import pyplot

    figure = Figure()
    first, second = figure.subplots(1, 2)
    assert plot(audit(), "outputs", ax=second) is second
    assert not first.has_data()
    assert second.has_data()
    assert figure.axes == [first, second]
    with matplotlib.rc_context({"font.size": 21.0, "text.color": "#abcdef", "lines.linewidth": 7.0}):
        axes = plot(audit(interim_analyses=INTERIM_ANALYSES, stopped="runs"), "bound", ax=Figure().subplots())
        assert axes.xaxis.label.get_size() == 21.0
        assert (axes.lines[0].get_linewidth(), axes.lines[1].get_color()) == (7.0, "#abcdef")
    assert matplotlib.rcParams["font.size"] != 21.0
    pyplot.close("all")  # what other tests left open
    try:
        with matplotlib.rc_context({"backend": "agg", "figure.figsize": (7.0, 3.0)}):
            axes = plot(audit(), "outputs")
            assert pyplot.gcf() is axes.figure
            assert axes.figure.get_size_inches().tolist() == [7.0, 3.0]
            assert axes.get_title().splitlines() == [KINDS["outputs"][0], *wrap(audit().headline, 78)]
            assert plot(audit(), "forest").get_title() == KINDS["forest"][0]
            rows = [plot(each).figure.get_size_inches()[1] for each in (statement(series=None), CELLS)]
            assert min(rows) > 2
            assert len(pyplot.get_fignums()) == 4
    finally:
        pyplot.close("all")


@pytest.mark.parametrize(
    ("result", "kind", "words"),
    [
        (audit(bins=None), "profile", ["FixedSizeResult", '"outputs"', "bins=32"]),
        (audit(sketch=None), "outputs", ["single numbers", '"ratios"']),
        (audit(), "pie", ["kind='pie' is unknown", '"trade-off"']),
        (statement(series=None), "series", ['"points"', "curve"]),
        (Suite(title="", entries=()), None, ["has no figure"]),
    ],
)
def test_a_kind_that_a_result_does_not_have_is_refused_with_a_way_out(result, kind, words):
    axes = Figure().subplots()
    with pytest.raises(OptionError) as caught:
        plot(result, kind, ax=axes)
    message = str(caught.value)
    assert all(word in message for word in words)
    assert len(message) < 500
    assert "\n" not in message
    assert not axes.has_data()


def test_what_cannot_be_drawn_is_refused():
    assert kinds_of(Entry(name="a", result=audit())) == kinds_of(audit())
    for thing in (None, 3, "text", [1, 2], {"a": audit()}):
        with pytest.raises(OptionError, match="cannot be drawn; pass"):
            kinds_of(thing)
    for ax in (3, "axes", Figure()):
        with pytest.raises(OptionError, match="is not a matplotlib Axes; pass a single one"):
            plot(audit(), ax=ax)


def test_pyplot_is_imported_only_for_a_new_figure(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    monkeypatch.delattr(matplotlib, "pyplot", raising=False)
    for kind in kinds_of(audit()):
        plot(audit(), kind, ax=Figure().subplots())
    with pytest.raises(ImportError):
        plot(audit())
