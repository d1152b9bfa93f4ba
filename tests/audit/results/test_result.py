"""What every result does: it is no truth value, it raises, and it becomes an interval, a dict, a card or a figure."""

import copy
import dataclasses
import html
import json
import math
import pickle

import numpy as np
import pytest

import dpaudit as dp
from dpaudit.accountants import Case, Laplace, check_accountant
from dpaudit.audit.errors import AuditError, InconclusiveError, OptionError, RefutedError
from dpaudit.noise import LaplaceNoise

from ..stand_ins import noisy

FEW = {"runs": 1_000, "jobs": 1}
INCLUDED = np.arange(100) % 5 < 2
SHOWN = np.linspace(0.0, 1.0, 100) + INCLUDED


def halved(value, size, rng):
    return value + rng.laplace(scale=0.5, size=size)


@pytest.fixture(scope="module")
def results():
    audit = dp.check(noisy, 0, 1, claim=1.0, **FEW)
    search = dp.find_worst_pair(halved, [(0, 1)], claim=1.0, **FEW)
    statement = dp.check_noise(noisy, 0.0, noise=LaplaceNoise(1.0), answer=lambda x: x, runs=4_000, jobs=1)
    wrong = [dataclasses.replace(point, low=9.0, high=9.0) for point in statement.points]
    return {
        "audit": audit,
        "sequential": dp.check(noisy, 0, 1, claim=1.0, sequential=True, runs=400, jobs=1),
        "refuted": search.audit,
        "too few": dataclasses.replace(audit, detect=0.01),
        "search": search,
        "statement": statement,
        "wrong statement": dataclasses.replace(statement, points=wrong),
        "canaries": dp.check_canaries(SHOWN, INCLUDED, claim=dp.PureDP(9.0)),
        "refuted canaries": dp.check_canaries(SHOWN, INCLUDED, claim=dp.PureDP(0.5)),
        "equivalent": dp.check_equivalence(noisy, noisy, 0, margin=0.2, **FEW),
        "different": dp.check_equivalence(noisy, halved, 0, margin=0.01, **FEW),
    }


RAISED = dict.fromkeys(("refuted", "search", "wrong statement", "different", "refuted canaries"), RefutedError)
RAISED |= {"too few": InconclusiveError, "canaries": InconclusiveError}
KINDS = [*RAISED, "audit", "sequential", "statement", "equivalent"]


def test_no_result_is_a_truth_value(results):
    """`assert dp.check(...)` would pass for any verdict."""
    for kind, result in results.items():
        name, kind_of = "is_shown" if kind in ("equivalent", "different") else "is_refuted", type(result).__name__
        with pytest.raises(TypeError, match=rf"^an? {kind_of} is neither .*\.{name}, \.verdict or"):
            assert result


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_raises_unless_it_is_good(results, kind):
    result = results[kind]
    assert result.is_refuted == (RAISED.get(kind) is RefutedError)
    if kind not in RAISED:
        assert result.raise_if_refuted() is result
        return
    with pytest.raises(RAISED[kind]) as caught:
        result.raise_if_refuted()
    assert str(caught.value) == str(result)
    assert caught.value.facts["result"] is result
    assert isinstance(caught.value, AssertionError)
    assert isinstance(caught.value, AuditError)


def test_a_result_has_what_repeats_it(results):
    for found in (result for kind, result in results.items() if kind != "search"):
        assert 0.0 < found.alpha < 1.0
        assert found.seed >= 0
        assert dict(found.versions).keys() >= {"dpaudit", "numpy"}
        assert (found.runs >= 1, found.findings) == (True, ())
        for changes in ({"alpha": 0.0}, {"runs": 0}):
            with pytest.raises(OptionError, match=f"{next(iter(changes))}=0"):
                dataclasses.replace(found, **changes)


def test_a_refutation_computes_its_detectable_excess_when_it_is_read(tmp_path):
    result = dp.check(halved, 0, 1, claim=1.0, seed=1, **FEW)
    assert str(result).startswith("REFUTED")
    assert callable(vars(result)["min_detectable_excess"]), "neither verdict nor text needs it"
    assert pickle.loads(pickle.dumps(result)) == result
    assert 0.0 < result.min_detectable_excess == result.to_dict()["min_detectable_excess"] < 1.0
    assert result.excess_basis in ("event", "chosen")
    dp.save(result, tmp_path / "one.json")
    assert dp.load(tmp_path / "one.json").entries[0].result == result
    for wrong in ("much", True, math.nan, 0.0):
        with pytest.raises(OptionError, match=f"min_detectable_excess={wrong!r}"):
            dataclasses.replace(result, min_detectable_excess=wrong)


def test_confidence_intervals(results):
    refuted = results["refuted"]
    assert refuted.confidence_interval() == (refuted.bound, math.inf)
    assert refuted.confidence_interval().low > 1.0
    statement = results["statement"]
    assert statement.confidence_interval() == (statement.worst.lower, statement.worst.upper)
    low, high = results["equivalent"].confidence_interval()
    assert low <= results["equivalent"].estimate <= high < 0.2
    search = results["search"]
    assert search.confidence_interval() == refuted.confidence_interval()
    assert (search.bound, search.pvalue) == (refuted.bound, refuted.pvalue)


def test_a_dict_says_the_verdict_in_plain_values(results):
    for kind, result in results.items():
        found = result.to_dict()
        assert found["verdict"] == result.verdict.value
        assert json.loads(json.dumps(found)) == found or kind == "refuted"
        assert all(isinstance(value, (str, int, float)) for value in found.values())
    found = results["refuted"].to_dict()
    assert (found["bound"], found["claim"], found["event"]) == (
        results["refuted"].bound, "1-DP", results["refuted"].event_in_words,
    )  # fmt: skip


def test_checks_without_a_sample_of_outputs_say_what_was_claimed_and_found(tmp_path):
    exact = dp.check(lambda x, rng: int(rng.random() < (0.75 if x else 0.25)), 0, 1, claim=1.0, exact=True)
    again = dp.check(lambda x, rng: int(rng.random() < (0.75 if x else 0.25)), 0, 1, claim=1.0, exact=True)
    assert hash(again.on_x) == hash(exact.on_x)
    assert again.on_x == exact.on_x
    replayed = dp.replay(lambda x, rng: x + rng.laplace(scale=0.5), 0, 1, claim=1.0)
    bounded = dp.check_sensitivity(sum, dp.Rows([0, 1]), adjacency="add-remove", bound=0.5)
    accounted = check_accountant(lambda case: 1.0, cases=[Case([(Laplace(0.5), 1)], delta=0.0, adjacency="replace")])
    for result, text, limits in (
        (exact, "refuted, excess in delta between 0.0704 and 0.0705, claim 1-DP", (0.75 - 0.25 * math.e,) * 2),
        (replayed, "excess, loss at most 2, claim 1-DP", (0.0, 2.0)),
        (bounded, "refuted, change 1, claim l1 sensitivity 0.5", (1.0, math.inf)),
        (accounted, "refuted, epsilon >= 3.999, claim epsilon 1 for Laplace 0.5; replace; delta 0", (4.0, 4.0)),
    ):
        assert repr(result) == f"<{type(result).__name__} {result.subject}: {text}>"
        assert result.confidence_interval() == pytest.approx(limits)
        assert str(pickle.loads(pickle.dumps(result))) == str(copy.deepcopy(result)) == str(result)
        assert dict(result.versions).keys() >= {"dpaudit", "numpy"}
        found = result.to_dict()
        assert (found["verdict"], found["claim"]) == (result.verdict.value, result.claimed)
        assert json.loads(json.dumps(found)).keys() == found.keys()
        dp.save(result, tmp_path / "one.json")
        (kept,) = dp.load(tmp_path / "one.json").checks
        assert (kept.kind, kept.subject, kept.word) == (result.kind, result.subject, result.verdict.value)
        assert (kept.claim, kept.found, kept.lines[0]) == (result.claimed, result.measured, result.headline)


def test_a_card_has_the_verdict_and_needs_nothing_else_and_a_plot_its_axes(results):
    from matplotlib.figure import Figure

    for kind in ("refuted", "search", "statement", "canaries", "equivalent"):
        card = results[kind]._repr_html_()
        assert f"<strong>{html.escape(results[kind].headline)}</strong>" in card
        assert not any(part in card for part in ("<script", "<link", "http://", "url(http"))
        assert ("<svg" in card) == (kind != "equivalent")
    for kind in ("audit", "search", "statement"):
        ax = Figure().subplots()
        assert results[kind].plot(ax=ax) is ax
    assert results["audit"].plot("ratio", ax=Figure().subplots()).get_ylabel()


def test_an_attribute_that_a_result_or_the_package_lacks(results):
    for kind, name, meant in (
        ("audit", "passed", "is_refuted"),
        ("audit", "epsilon", "bound"),
        ("equivalent", "epsilon", "confidence_interval"),
        ("audit", "veredict", "verdict"),
        ("audit", "zzz", None),
    ):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'") as caught:
            getattr(results[kind], name)
        assert (f"; did you mean '{meant}'?" in str(caught.value)) == (meant is not None)
    with pytest.raises(AttributeError, match="has no attribute 'chekc'; did you mean 'check'"):
        dp.chekc  # noqa: B018
