"""A suite as JUnit XML, which build servers show next to test results."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from ...audit.extras import require
from ...audit.records.suite import Entry, Scalar, Suite, rows
from ...audit.results.verdict import Verdict
from ..plain_text import found, lines, missing, prose, visible

if TYPE_CHECKING:
    from junitparser import Error, Failure, TestCase

_PROPERTIES = ("claim", "bound", "alpha", "seed", "runs", "canaries", "versions")


def junit(suite: Suite, *, today: datetime.date | None = None) -> str:
    """Return the suite as JUnit XML: a test suite for each experiment, a test case for each entry.

    A case with an expected verdict fails if the verdict differs. Without one, it fails if the claim is refuted and no
    acceptance covers the refutation today, and it is an error if the audit is inconclusive. A case with an accepted
    refutation passes and states the reason. A planned audit that did not finish is an error. Invisible characters and
    those that XML forbids are written as escapes.
    The time is 0 if none was recorded.

    Parameters
    ----------
    suite : Suite
    today : date, optional
        Day on which acceptances are checked; by default the current day.
    """
    require("report", "reports in JUnit's format need", "junitparser")
    from junitparser import Error, JUnitXml, TestCase, TestSuite

    day = today or datetime.date.today()
    groups: dict[str, list[TestCase]] = {}
    for entry, row in zip(suite.entries, rows(suite), strict=True):
        group = visible(entry.experiment or suite.title)
        groups.setdefault(group, []).append(_case(entry, row, day))
    for name in missing(suite):
        case: Any = TestCase(visible(name), "dpaudit")
        case.append(Error("the planned audit did not finish", "missing"))
        groups.setdefault(visible(suite.title), []).append(case)
    report: Any = JUnitXml(visible(suite.title))
    for name, cases in groups.items():
        group_of_cases = TestSuite(name)
        group_of_cases.add_testcases(cases)
        report.append(group_of_cases)
    report.update_statistics()
    # Parsed and written again because junitparser uses lxml if installed, which formats differently.
    root = ElementTree.fromstring(report.tostring())
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _case(entry: Entry, row: dict[str, Scalar], day: datetime.date) -> TestCase:
    from junitparser import Properties, Property, TestCase

    code = entry.result.provenance
    module = "dpaudit" if code is None else code.where.partition(":")[0]
    group = visible(entry.experiment or module)  # by which build servers follow a case from run to run
    case: Any = TestCase(visible(entry.name), group, round(float(row["seconds"] or 0.0), 3))
    properties = Properties()  # type: ignore[no-untyped-call]
    values = {name: row[name] for name in _PROPERTIES}
    if values["bound"] is None:
        values["bound"] = found(entry.result)
    for name, value in values.items():
        if value is not None:
            properties.add_property(Property(name, visible(str(value), 2_000)))
    case.append(properties)
    outcome = _outcome(entry, day)
    if outcome is not None:
        case.append(outcome)
    elif entry.accepted is not None and entry.result.is_refuted:
        case.system_out = prose(entry.acceptance_in_words(day))
    return case  # type: ignore[no-any-return]


def _outcome(entry: Entry, day: datetime.date) -> Failure | Error | None:
    """The failure or error of the case, if any."""
    from junitparser import Error, Failure

    result = entry.result
    is_error = entry.expected is None and result.verdict is Verdict.INCONCLUSIVE
    is_held = result.verdict is Verdict.NOT_REFUTED or (result.is_refuted and entry.is_excused(day))
    if is_held if entry.expected is None else entry.is_met:
        return None
    outcome = (Error if is_error else Failure)(prose(result.sentence), result.verdict.value)
    outcome.text = _words(entry, day)
    return outcome


def _words(entry: Entry, day: datetime.date) -> str:
    """The result in a few lines, with the unmet expectation and the acceptance."""
    result = entry.result
    parts = [lines(result)]
    if entry.expected is not None:
        parts.append(f"  expected {entry.expected.value}: {'met' if entry.is_met else 'not met'}")
    if entry.accepted is not None:
        parts.append(f"  {prose(entry.acceptance_in_words(day))}")
    return "\n".join(parts)
