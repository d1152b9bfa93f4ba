"""JUnit XML: what fails, what is an error, and that any name comes out as text that XML allows."""

import dataclasses
import datetime
import math
import subprocess
import sys
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from junitparser import Error, Failure, JUnitXml

from dpaudit import PureDP, Verdict
from dpaudit.audit.events.events import Intervals, Outcomes
from dpaudit.audit.health.findings import Finding, HealthCheck
from dpaudit.audit.inference.boundary_test import Counts
from dpaudit.audit.records.suite import Accepted, Entry, Suite
from dpaudit.audit.results.audit_result import AuditResult, FixedSizeResult, Pair, SequentialResult
from dpaudit.audit.results.statement_result import Point, StatementResult
from dpaudit.audit.sampling.object_identity import Provenance
from dpaudit.reports.pages.junit_and_csv import junit
from dpaudit.reports.plain_text import lines, prose, visible

DAY = datetime.date(2027, 6, 30)
RESULT = FixedSizeResult(
    mechanism="noisy count", claim=PureDP(1.0), event=Intervals(((-math.inf, -0.25),)), likelier_on="x",
    pair=Pair(x="3 rows", y="2 rows", difference="row 2 removed", adjacency="add/remove", distance=1),
    counts=Counts(hits_x=600, runs_x=950, hits_y=200, runs_y=951), alpha=0.05, p_value=0.5, bound=0.5,
    resolution=0.25, power=0.95, runs=1_000, pilot_runs=49, seed=7, versions=(("numpy", "2.0.0"), ("scipy", "1.14")),
    environment={"seconds": 1.25},
)  # fmt: skip
REFUTED = dataclasses.replace(RESULT, bound=1.5)
STOPPED = SequentialResult(
    **{one.name: getattr(REFUTED, one.name) for one in dataclasses.fields(AuditResult)}, stopped="refuted", looks=()
)
SICK = dataclasses.replace(RESULT, findings=(Finding(HealthCheck.UNSTEADY_HITS, "hits vary"),) * 2)
SLOPE = StatementResult(
    statement="The error halves.", quantity="slope", alpha=0.01, method="bootstrap", runs=500, seed=8,
    points=(Point(at="t = 2", estimate=3.0, lower=2.5, upper=3.5, high=2.0), Point(estimate=1.0, lower=0.5, upper=1.5)),
)  # fmt: skip


def accepted(until, up_to=math.inf):
    return Accepted(reason="known <leak> & old", until=until, up_to=up_to)


def report(*entries, **options):
    """The report's root; attributes and structure are those of the shape that build servers read."""
    root = ElementTree.fromstring(junit(Suite(title="All", entries=entries), today=DAY, **options).encode())
    assert root.tag == "testsuites"
    for group in [root, *root]:
        cases = list(group.iter("testcase"))
        assert int(group.get("tests")) == len(cases)
        assert int(group.get("failures")) == len(list(group.iter("failure")))
        assert int(group.get("errors")) == len(list(group.iter("error")))
        assert group.get("skipped") == "0"
        assert float(group.get("time")) == pytest.approx(sum(float(case.get("time")) for case in cases), abs=1e-3)
    for group in root:
        assert group.tag == "testsuite"
        for case in group:
            assert case.tag == "testcase"
            tags = [child.tag for child in case]
            assert tags[0] == "properties"
            assert tags[1:] in ([], ["failure"], ["error"], ["system-out"])
    return root


def outcome(entry):
    """How the only case came out: None where it passes."""
    (case,) = report(entry).iter("testcase")
    return next((child.tag for child in case if child.tag in ("failure", "error")), None)


EXPECTED = [
    (verdict, result, None if result.verdict is verdict else "failure")
    for verdict in Verdict
    for result in (RESULT, REFUTED, SICK)
]
UNEXPECTED = [(None, RESULT, None), (None, REFUTED, "failure"), (None, SICK, "error"), (None, SLOPE, "failure")]


@pytest.mark.parametrize(("expected", "result", "wanted"), EXPECTED + UNEXPECTED)
def test_what_fails_and_what_is_an_error(expected, result, wanted):
    assert outcome(Entry(name="a", result=result, expected=expected)) == wanted


@pytest.mark.parametrize(
    ("result", "acceptance", "wanted"),
    [
        (REFUTED, accepted("2027-06-30"), None),
        (REFUTED, accepted("2027-06-29"), "failure"),
        (REFUTED, accepted("2027-06-30", up_to=1.5), None),
        (REFUTED, accepted("2027-06-30", up_to=1.4), "failure"),
        (STOPPED, accepted("2027-06-30"), None),
        (STOPPED, accepted("2027-06-30", up_to=1.5), "failure"),
        (SLOPE, accepted("2027-06-30"), None),
        (SLOPE, accepted("2027-06-30", up_to=9.0), "failure"),
        (SLOPE, accepted("2027-06-29"), "failure"),
        (RESULT, accepted("2027-06-29"), None),
        (SICK, accepted("2027-06-30"), "error"),
    ],
)
def test_an_acceptance_holds_for_a_refutation_until_its_day(result, acceptance, wanted):
    (case,) = report(Entry(name="a", result=result, accepted=acceptance)).iter("testcase")
    assert [child.tag for child in case if child.tag in ("failure", "error")] == [wanted] * (wanted is not None)
    if wanted == "failure" and acceptance.until == "2027-06-29":
        assert "acceptance expired after 2027-06-29: known <leak> & old" in case.findtext("failure")
    if wanted is None and result.is_refuted:
        assert case.findtext("system-out") == str(acceptance)
    else:
        assert case.find("system-out") is None


def test_today_is_the_day_by_default():
    entry = Entry(name="a", result=REFUTED, accepted=accepted("2001-01-01"))
    assert "<failure" in junit(Suite(title="t", entries=(entry,)))
    assert "<failure" not in junit(Suite(title="t", entries=(entry,)), today=datetime.date(2001, 1, 1))


def test_a_failure_says_what_was_found_and_what_was_expected():
    entry = Entry(name="a", result=REFUTED, expected=Verdict.NOT_REFUTED)
    (failure,) = report(entry).iter("failure")
    assert failure.get("message") == str(REFUTED)
    assert failure.get("type") == "refuted"
    assert failure.text == f"{lines(REFUTED)}\n  expected not refuted: not met"


def test_an_error_has_the_verdict_as_its_message_and_all_in_its_text():
    (error,) = report(Entry(name="a", result=SICK)).iter("error")
    assert error.get("message") == "INCONCLUSIVE: failed health check: unsteady-hits"
    assert prose(str(SICK)) in error.text


def test_a_statement_that_fails_says_its_numbers():
    (failure,) = report(Entry(name="a", result=SLOPE)).iter("failure")
    assert failure.get("message") == SLOPE.sentence
    assert failure.text.startswith("The error halves.: REFUTED")
    assert "  t = 2: [2.5, 3.5], stated at most 2\n  slope: [0.5, 1.5]" in failure.text


def test_a_case_carries_how_it_was_made():
    audit, slope = report(Entry(name="a", result=RESULT), Entry(name="b", result=SLOPE)).iter("testcase")
    assert {each.get("name"): each.get("value") for each in audit.iter("property")} == {
        "claim": "1-DP", "bound": "0.5", "alpha": "0.05", "seed": "7", "runs": "1000",
        "versions": "numpy 2.0.0, scipy 1.14",
    }  # fmt: skip
    assert {each.get("name"): each.get("value") for each in slope.iter("property")} == {
        "claim": "The error halves.", "bound": "[2.5, 3.5]", "alpha": "0.01", "seed": "8", "runs": "500",
    }  # fmt: skip
    assert (audit.get("time"), slope.get("time")) == ("1.25", "0.0")


def test_experiments_are_groups_in_the_order_of_their_first_entries():
    names = [("a", "laplace"), ("b", ""), ("c", "gauss"), ("d", "laplace")]
    root = report(*(Entry(name=name, result=RESULT, experiment=experiment) for name, experiment in names))
    found = [(group.get("name"), [case.get("name") for case in group]) for group in root]
    assert found == [("laplace", ["a", "d"]), ("All", ["b"]), ("gauss", ["c"])]
    assert root.get("name") == "All"


def test_junitparser_reads_the_same():
    entries = [
        Entry(name="bad", result=REFUTED, experiment="laplace"),
        Entry(name="sick", result=SICK, experiment="laplace"),
        Entry(name="good", result=RESULT),
    ]
    read = JUnitXml.fromstring(junit(Suite(title="All", entries=tuple(entries))).encode())
    kinds = {case.name: [type(each) for each in case.result] for group in read for case in group}
    assert kinds == {"bad": [Failure], "sick": [Error], "good": []}
    before = [(group.name, group.tests, group.failures, group.errors, group.time) for group in read]
    read.update_statistics()
    assert [(group.name, group.tests, group.failures, group.errors, group.time) for group in read] == before
    assert before == [("laplace", 2, 1, 1, 2.5), ("All", 1, 0, 0, 1.25)]


def test_a_case_is_followed_by_its_experiment_or_module():
    code = Provenance(where="mylib.counts:noisy")
    entries = [
        Entry(name="a", result=RESULT, experiment="E1"),
        Entry(name="b", result=dataclasses.replace(RESULT, provenance=code)),
        Entry(name="c", result=dataclasses.replace(RESULT, provenance=None)),
    ]
    assert [case.get("classname") for case in report(*entries).iter("testcase")] == ["E1", "mylib.counts", "dpaudit"]


def test_no_entries_are_no_groups():
    root = report()
    assert (list(root), root.get("tests"), root.get("time")) == ([], "0", "0")


def test_equal_suites_give_equal_text_with_a_declaration_and_lines():
    suite = Suite(title="All", entries=(Entry(name="é", result=REFUTED), Entry(name="b", result=SLOPE)))
    text = junit(suite, today=DAY)
    assert junit(suite, today=DAY) == text
    assert text.startswith('<?xml version="1.0" encoding="utf-8"?>\n<testsuites ')
    assert '\n    <testcase name="é" ' in text


def hostile(name):
    """An entry in which every text that a caller chooses is this one."""
    pair = Pair(x=name, y=name, difference=name, adjacency=name, distance=1)
    result = dataclasses.replace(
        REFUTED, mechanism=name, pair=pair, event=Outcomes((name,)), notes=(name,), versions=((name, name),),
        findings=(Finding(HealthCheck.UNSTEADY_HITS, name),), environment={"seconds": name},
    )  # fmt: skip
    point = Point(at=name, estimate=3.0, lower=2.5, upper=3.5, high=2.0)
    slope = dataclasses.replace(SLOPE, statement=name, quantity=name, points=(point,), notes=(name,))
    acceptance = Accepted(reason=f"r{name}", until="2027-06-30")
    return (
        Entry(name=name, result=result, experiment=name),
        Entry(name=name, result=slope),
        Entry(name=name, result=slope, accepted=acceptance),
    )


@pytest.mark.parametrize("name", ["\x00", "\x0b", "\x1b", "\ud800", "\ufffe", "\uffff"], ids=ascii)
def test_what_xml_forbids_is_escaped(name):
    with pytest.raises((ElementTree.ParseError, UnicodeEncodeError)):
        ElementTree.fromstring(f"<a>{name}</a>".encode())
    for case in report(*hostile(name)).iter("testcase"):
        assert case.get("name") == visible(name)


@given(st.text(alphabet=st.one_of(st.characters(), st.sampled_from("<>&\"']]>\n\r\t\x00\ud800\uffff")), max_size=12))
@settings(derandomize=True, deadline=None, max_examples=50)
def test_any_text_comes_out_as_visible_text(name):
    root = report(*hostile(name))
    assert [case.get("name") for case in root.iter("testcase")] == [visible(name)] * 3
    for text in root.itertext():
        assert text.replace("\n", "") == visible(text.replace("\n", ""), 10**6)
    for element in root.iter():
        assert all(value == visible(value, 10**6) for value in element.attrib.values())


def test_the_library_is_imported_when_it_is_used():
    code = "import sys, dpaudit.reports.pages.junit_and_csv; sys.exit('junitparser' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
