"""The common result of statements that are no boundaries."""

import math
from dataclasses import replace

import pytest

from dpaudit.audit.errors import OptionError
from dpaudit.audit.records.json_codec import from_json, to_json
from dpaudit.audit.records.suite import Entry, Suite, Topic
from dpaudit.audit.results.audit_result import Verdict
from dpaudit.audit.results.statement_result import Point, StatementResult
from dpaudit.reports import html, markdown, table


def result(*points, largest_width=math.inf):
    return StatementResult(
        statement="the slope is half of epsilon",
        quantity="slope",
        points=points,
        alpha=1e-5,
        method="exact",
        runs=1000,
        seed=3,
        largest_width=largest_width,
    )


INSIDE = Point(estimate=0.5, lower=0.4, upper=0.6, low=0.55, high=0.55)
ABOVE = Point(at="t = 2", estimate=0.9, lower=0.8, upper=1.0, high=0.7)
BELOW = Point(at="t = 3", estimate=0.1, lower=0.0, upper=0.2, low=0.25)


@pytest.mark.parametrize(
    ("points", "largest_width", "verdict"),
    [
        ((INSIDE,), math.inf, Verdict.NOT_REFUTED),
        ((INSIDE,), 0.1, Verdict.INCONCLUSIVE),
        ((ABOVE,), math.inf, Verdict.REFUTED),
        ((BELOW,), 0.1, Verdict.REFUTED),
        ((INSIDE, ABOVE), math.inf, Verdict.REFUTED),
        ((Point(estimate=1.0, lower=0.0, upper=1.0, high=0.0),), math.inf, Verdict.NOT_REFUTED),  # ends touch
        ((Point(estimate=1.0, lower=-math.inf, upper=math.inf, high=0.0),), 9.0, Verdict.INCONCLUSIVE),
    ],
)
def test_the_verdict_is_whether_an_interval_lies_outside(points, largest_width, verdict):
    found = result(*points, largest_width=largest_width)
    assert found.verdict is verdict
    assert found.is_refuted == (verdict is Verdict.REFUTED)
    assert found.p_value == (1e-5 if found.is_refuted else 1.0)


def test_the_worst_point_is_a_refuted_one_however_near_another_is():
    near = Point(estimate=0.7, lower=0.0, upper=0.71, high=0.0)  # estimate far out, interval still touching
    assert result(INSIDE, near, ABOVE).worst is ABOVE
    assert result(INSIDE, near).worst is near
    exact = Point(estimate=0.5, lower=0.5, upper=0.5, high=0.5)
    assert result(exact).worst.excess == 0.0
    assert Point(estimate=0.5, lower=0.5, upper=0.5, high=0.4).excess == math.inf


def test_it_reads_as_a_sentence():
    assert str(result(ABOVE, INSIDE)) == (
        "REFUTED: slope at t = 2 in [0.8, 1], stated at most 0.7 (99.999% confidence); worst of 2 numbers"
    )
    assert str(result(INSIDE)) == "NOT REFUTED: slope in [0.4, 0.6], stated 0.55 (99.999% confidence)"
    assert "every number needs an interval at most 0.1 wide" in str(result(INSIDE, largest_width=0.1))
    assert Point(estimate=0, lower=0, upper=0, low=1).allowed == "stated at least 1"
    assert Point(estimate=0, lower=0, upper=0, low=1, high=2).allowed == "stated 1 to 2"
    assert Point(estimate=0, lower=0, upper=0).allowed == "nothing stated"
    assert Point(estimate=0.50001, lower=0.50001, upper=0.50002).interval == "[0.50001, 0.50002]"
    assert "slope: refuted" in repr(result(ABOVE))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Point(estimate=1, lower=2, upper=1), "lower=2 and upper=1 are an empty interval"),
        (lambda: Point(estimate=1, lower=math.nan, upper=1), "lower=nan and upper=1 are an empty interval"),
        (lambda: Point(estimate=1, lower=0, upper=1, low=3, high=2), "low=3 and high=2 allow nothing"),
        (lambda: result(), "points are the numbers of a statement"),
        (lambda: replace(result(ABOVE), alpha=0.0), "alpha=0.0 is not an allowed error probability; use 0 < alpha < 1"),
    ],
    ids=["interval", "nan", "allowed", "points", "alpha"],
)
def test_errors(call, message):
    with pytest.raises(OptionError) as caught:
        call()
    assert message in str(caught.value)


def test_it_is_kept_in_files_and_shown_in_reports():
    suite = Suite(
        title="statements",
        entries=(
            Entry(name="E3-slope", result=result(ABOVE, BELOW), expected=Verdict.REFUTED, exact=1.0, experiment="E3"),
            Entry(name="<i>", result=result(INSIDE), expected=Verdict.REFUTED, note="a|b"),
        ),
        topics=(Topic(id="E3", statement="ln p is linear in u.", source="Dwork & Roth (2014)"),),
    )
    assert from_json(to_json(suite)) == suite
    assert suite.adjusted_p_values() == (2e-5, 1.0)
    page = html(suite)
    assert "[0.8, 1]" in page
    assert "t = 3" in page
    assert "<i>" not in page
    text = markdown(suite)
    assert "t = 2: stated at most 0.7" in text
    assert "**E3**: ln p is linear in u. (Dwork" in text
    assert "Dwork" in page
    assert "| 1 |" not in text  # which of the numbers is 1 is not said
    assert "**not met (expected refuted)**" in text
    assert table(suite).row_count == 2


def test_a_statement_without_any_support_is_inconclusive():
    nothing = Point(estimate=math.nan, lower=-math.inf, upper=math.inf, high=1.0)
    found = result(nothing)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "every number needs an interval, so use more runs" in str(found)
    assert result(nothing, INSIDE).worst == INSIDE  # the number that there is


def test_points_may_be_a_list_and_are_kept_without_loss():
    found = StatementResult(statement="s", quantity="q", points=[INSIDE], alpha=0.1, method="m", runs=3, seed=1)
    suite = Suite(title="t", entries=(Entry(name="a", result=found),))
    assert from_json(to_json(suite)) == suite


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"points": ((0.1, 0.2, 0.3),)}, "give at least one Point"),
        ({"alpha": "x"}, "alpha='x' has the wrong type"),
        ({"runs": -5}, "runs=-5 is impossible in a result"),
    ],
    ids=["points", "alpha", "runs"],
)
def test_results_of_wrong_types_are_refused(change, message):
    given = {"statement": "s", "quantity": "q", "points": (INSIDE,), "alpha": 0.1, "method": "m", "runs": 3, "seed": 1}
    with pytest.raises(OptionError, match=message):
        StatementResult(**(given | change))


@pytest.mark.parametrize("estimate", [0.3, 0.7])
def test_estimates_outside_their_interval_are_refused(estimate):
    with pytest.raises(OptionError, match="lies outside its interval"):
        Point(estimate=estimate, lower=0.4, upper=0.6)
