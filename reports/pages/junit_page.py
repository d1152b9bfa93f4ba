"""A suite as JUnit XML, which build servers show beside the results of tests."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from ...audit.records.suite import Entry, Scalar, Suite, rows
from ...audit.results.audit_result import AuditResult, Verdict
from ..plain_text import expectation, found, lines, prose, visible

if TYPE_CHECKING:
    from junitparser import Error, Failure, TestCase

_PROPERTIES = ("claim", "bound", "alpha", "seed", "runs", "versions")


def junit(suite: Suite, *, today: datetime.date | None = None) -> str:
    """The suite as JUnit XML: a test suite for each experiment, a test case for each entry.

    A case fails where the verdict is not the one expected; where none was expected, if the claim is refuted and no
    acceptance covers that today. It is an error where nothing was expected and nothing was found out. Of a refutation
    that is accepted the case passes, and says why. What XML forbids is written as an escape, like whatever else cannot
    be seen. Time is 0 where none was recorded.

    Parameters
    ----------
    suite : Suite
    today : date, optional
        The day on which accepted findings have to hold; by default this day.
    """
    from junitparser import JUnitXml, TestSuite

    day = today or datetime.date.today()
    groups: dict[str, list[TestCase]] = {}
    for entry, row in zip(suite.entries, rows(suite), strict=True):
        group = visible(entry.experiment or suite.title)
        groups.setdefault(group, []).append(_case(entry, row, day))
    report: Any = JUnitXml(visible(suite.title))
    for name, cases in groups.items():
        group_of_cases = TestSuite(name)
        group_of_cases.add_testcases(cases)
        report.append(group_of_cases)
    report.update_statistics()
    # Read and written once more, as lxml, which junitparser prefers where it is there, writes otherwise.
    root = ElementTree.fromstring(report.tostring())
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _case(entry: Entry, row: dict[str, Scalar], day: datetime.date) -> TestCase:
    from junitparser import Properties, Property, TestCase

    case: Any = TestCase(visible(entry.name), _class_name(entry), round(float(row["seconds"] or 0.0), 3))
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
        case.system_out = prose(str(entry.accepted))
    return case  # type: ignore[no-any-return]


def _class_name(entry: Entry) -> str:
    """Experiment or module: build servers follow a case by it from run to run, whatever the files are called."""
    code = entry.result.provenance
    return visible(entry.experiment or ("dpaudit" if code is None else code.where.partition(":")[0]))


def _outcome(entry: Entry, day: datetime.date) -> Failure | Error | None:
    """What keeps the case from passing."""
    from junitparser import Error, Failure

    result = entry.result
    kind: type[Failure] | type[Error] = Failure
    if entry.expected is not None:
        has_passed = entry.is_met
    elif result.verdict is Verdict.INCONCLUSIVE:
        has_passed, kind = False, Error
    else:
        has_passed = not result.is_refuted or entry.is_excused(day)
    if has_passed:
        return None
    outcome = kind(prose(str(result).splitlines()[0]), result.verdict.value)
    outcome.text = _words(entry)
    return outcome


def _words(entry: Entry) -> str:
    """The result in a few lines, with what was expected of it and what was accepted."""
    result = entry.result
    if isinstance(result, AuditResult):
        parts = [lines(result)]
    else:
        parts = [f"{prose(result.statement)}: {prose(str(result))}"]
        for point in result.points:
            parts.append(f"  {visible(point.at or result.quantity)}: {point.interval}, {point.allowed}")
    if entry.expected is not None:
        parts.append(f"  as expected: {expectation(entry)}")
    if entry.accepted is not None:
        parts.append(f"  the finding was {prose(str(entry.accepted))}")
    return "\n".join(parts)
