"""The common result of statements that are no boundaries."""

import math
from dataclasses import replace

import pytest

from dpaudit.audit.errors import OptionError
from dpaudit.audit.results.statement_result import Point, Series, StatementResult
from dpaudit.audit.results.verdict import Verdict


def result(*points, largest_width=math.inf):
    return StatementResult(
        statement="the slope is half of epsilon", quantity="slope", points=points, alpha=1e-5, method="exact",
        runs=1000, seed=3, largest_width=largest_width,
    )  # fmt: skip


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
    assert found.pvalue == (1e-5 if found.is_refuted else 1.0)


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
    assert Point(estimate=0, lower=0, upper=0, low=1, high=2).allowed == "stated 1 to 2"
    assert Point(estimate=0.50001, lower=0.50001, upper=0.50002).interval == "[0.50001, 0.50002]"


def test_impossible_numbers_and_results_are_refused():
    for numbers, names in (({"lower": 2, "upper": 1}, {"lower", "upper"}), ({"lower": math.nan}, {"lower", "upper"}),
                           ({"low": 3, "high": 2}, {"low", "high"}), ({"estimate": 0.7}, {"estimate"})):  # fmt: skip
        with pytest.raises(OptionError) as caught:
            Point(**({"estimate": 0.5, "lower": 0.4, "upper": 0.6} | numbers))
        assert caught.value.facts.keys() == names
    curve = {"x_name": "t", "y_name": "p", "intervals": "exact", "estimate": (0.5,), "stated": (0.5,)}
    for numbers, said in (((1.0,), "an empty interval"), ((0.1, 0.2), "one number of each kind")):
        with pytest.raises(OptionError, match=said):
            Series(x=(1.0,), lower=numbers, upper=(0.6,), **curve)
    for change in ({"points": ()}, {"points": ((0.1, 0.2, 0.3),)}, {"alpha": "x"}, {"alpha": 0.0}, {"runs": -5}):
        with pytest.raises(OptionError, match=next(iter(change))):
            replace(result(INSIDE), **change)


def test_a_statement_without_any_support_is_inconclusive():
    nothing = Point(estimate=math.nan, lower=-math.inf, upper=math.inf, high=1.0)
    found = result(nothing)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "every number needs an interval, so use more runs" in str(found)
    assert result(nothing, INSIDE).worst == INSIDE  # the number that there is
