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

from dpaudit import Verdict
from dpaudit.audit.events.events import Outcomes
from dpaudit.audit.health.findings import Finding, HealthCheck
from dpaudit.audit.inference.event_test import Counts
from dpaudit.audit.records.suite import Accepted, Entry, Suite
from dpaudit.audit.results.audit_result import AuditResult, SequentialResult
from dpaudit.audit.results.claim_pair_and_alpha import Pair
from dpaudit.audit.results.statement_result import Point, StatementResult
from dpaudit.audit.sampling.object_identity import Provenance
from dpaudit.reports.pages.junit import junit
from dpaudit.reports.plain_text import lines, visible

from ...audit.records.by_hand import CANARIES
from ..examples import audit

DAY = datetime.date(2027, 6, 30)
RESULT = audit(
    counts=Counts(count_x=600, runs_x=950, count_y=200, runs_y=951), runs=1_000, seed=7, environment={"seconds": 1.25},
    versions=(("numpy", "2.0.0"), ("scipy", "1.14")),
)  # fmt: skip
REFUTED = dataclasses.replace(RESULT, bound=1.5)
STOPPED = SequentialResult(
    **{one.name: getattr(REFUTED, one.name) for one in dataclasses.fields(AuditResult)},
    stopped="refuted",
    interim_analyses=(),
)
SICK = dataclasses.replace(RESULT, findings=(Finding(HealthCheck.NONSTATIONARY, "counts vary"),) * 2)
SLOPE = StatementResult(
    statement="The error halves.", quantity="slope", alpha=0.01, method="bootstrap", runs=500, seed=8,
    points=(Point(at="t = 2", estimate=3.0, lower=2.5, upper=3.5, high=2.0), Point(estimate=1.0, lower=0.5, upper=1.5)),
)  # fmt: skip


FEW = dataclasses.replace(CANARIES, bound=0.5, pvalue=0.2, min_detectable_excess=math.inf)


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


OUTCOMES = [
    ({"expected": verdict}, result, None if result.verdict is verdict else "failure")
    for verdict in Verdict
    for result in (RESULT, REFUTED, SICK)
]
OUTCOMES += [({}, RESULT, None), ({}, REFUTED, "failure"), ({}, SICK, "error"), ({}, SLOPE, "failure")]
OUTCOMES += [({}, CANARIES, "failure"), ({}, FEW, "error"), ({"expected": Verdict.REFUTED}, CANARIES, None)]
OUTCOMES += [
    ({"accepted": accepted("2027-06-30")}, REFUTED, None),
    ({"accepted": accepted("2027-06-29")}, REFUTED, "failure"),
    ({"accepted": accepted("2027-06-30", up_to=1.4)}, REFUTED, "failure"),
    ({"accepted": accepted("2027-06-30", up_to=1.5)}, STOPPED, "failure"),
    ({"accepted": accepted("2027-06-30", up_to=9.0)}, SLOPE, "failure"),
    ({"accepted": accepted("2027-06-30")}, SICK, "error"),
]


@pytest.mark.parametrize(("options", "result", "wanted"), OUTCOMES)
def test_what_fails_and_what_is_an_error(options, result, wanted):
    """An acceptance holds for a refutation until its day."""
    (case,) = report(Entry(name="a", result=result, **options)).iter("testcase")
    assert [child.tag for child in case if child.tag in ("failure", "error")] == [wanted] * (wanted is not None)
    is_accepted = "accepted" in options and wanted is None
    assert case.findtext("system-out") == (str(options["accepted"]) if is_accepted else None)


def test_failures_and_errors_say_what_was_found_and_what_was_expected():
    expected = Entry(name="a", result=REFUTED, expected=Verdict.NOT_REFUTED)
    failure, told = report(expected, Entry(name="b", result=SLOPE)).iter("failure")
    assert (failure.get("message"), failure.get("type")) == (REFUTED.sentence, "refuted")
    assert failure.text == f"{lines(REFUTED)}\n  expected not refuted: not met"
    assert told.get("message") == SLOPE.sentence
    assert "  t = 2    [2.5, 3.5], stated at most 2\n  slope    [0.5, 1.5]" in told.text
    (ended,) = report(Entry(name="a", result=REFUTED, accepted=accepted("2027-06-29"))).iter("failure")
    assert "acceptance expired after 2027-06-29: known <leak> & old" in ended.text
    (error,) = report(Entry(name="a", result=SICK)).iter("error")
    assert error.get("message") == "INCONCLUSIVE: failed health check: nonstationary"
    assert error.text.startswith(f"{SICK}\n")
    ended = Suite(title="t", entries=(Entry(name="a", result=REFUTED, accepted=accepted("2001-01-01")),))
    assert "<failure" in junit(ended), "today is the day by default"
    assert "<failure" not in junit(ended, today=datetime.date(2001, 1, 1))


def test_experiments_are_groups_in_the_order_of_their_first_entries():
    """A case is named after its experiment or module, too."""
    code = dataclasses.replace(RESULT, provenance=Provenance(where="mylib.counts:noisy"))
    names = [("a", "laplace", RESULT), ("b", "", code), ("c", "gauss", RESULT), ("d", "laplace", RESULT)]
    root = report(*(Entry(name=name, result=one, experiment=experiment) for name, experiment, one in names))
    found = [(group.get("name"), [case.get("name") for case in group]) for group in root]
    assert found == [("laplace", ["a", "d"]), ("All", ["b"]), ("gauss", ["c"])]
    assert root.get("name") == "All"
    assert [case.get("classname") for case in root.iter("testcase")] == ["laplace", "laplace", "mylib.counts", "gauss"]
    (training,) = report(Entry(name="t", result=CANARIES)).iter("testcase")
    told = {each.get("name"): each.get("value") for each in training.iter("property")}
    assert (told["canaries"], told["runs"]) == ("1000", "1")
    empty = report()
    assert (list(empty), empty.get("tests"), empty.get("time")) == ([], "0", "0")


def hostile(name):
    """An entry in which every text that a caller chooses is this one."""
    pair = Pair(x=name, y=name, difference=name, adjacency=name, distance=1)
    result = dataclasses.replace(
        REFUTED, mechanism=name, pair=pair, event=Outcomes((name,)), notes=(name,), versions=((name, name),),
        findings=(Finding(HealthCheck.NONSTATIONARY, name),), environment={"seconds": name},
    )  # fmt: skip
    point = Point(at=name, estimate=3.0, lower=2.5, upper=3.5, high=2.0)
    slope = dataclasses.replace(SLOPE, statement=name, quantity=name, points=(point,), notes=(name,))
    acceptance = Accepted(reason=f"r{name}", until="2027-06-30")
    return (
        Entry(name=name, result=result, experiment=name),
        Entry(name=name, result=slope),
        Entry(name=name, result=slope, accepted=acceptance),
    )


@given(st.text(alphabet=st.one_of(st.characters(), st.sampled_from("<>&\"']]>\n\r\t\x00\ud800\uffff")), max_size=12))
@settings(derandomize=True, deadline=None, max_examples=20)
def test_any_text_comes_out_as_visible_text(name):
    root = report(*hostile(name))
    assert [case.get("name") for case in root.iter("testcase")] == [visible(name)] * 3
    for text in root.itertext():
        assert text.replace("\n", "") == visible(text.replace("\n", ""), 10**6)
    for element in root.iter():
        assert all(value == visible(value, 10**6) for value in element.attrib.values())


def test_libraries_are_imported_when_they_are_used():
    code = "import sys, dpaudit.reports as r; [getattr(r, name) for name in r.__all__]; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"matplotlib", "jinja2", "rich"} & set(done.stdout.split())
