"""A suite as JUnit XML, which build servers show next to test results."""

from __future__ import annotations

import datetime
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from ...audit.records.suite import Entry, Scalar, Suite, rows
from ...audit.results.verdict import Verdict
from ..plain_text import found, lines, missing, prose, visible

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
    day = today or datetime.date.today()
    root = Element("testsuites", name=visible(suite.title))
    groups: dict[str, Element] = {}

    def new_case(group: str, name: str, module: str, seconds: float) -> Element:
        if group not in groups:
            groups[group] = SubElement(root, "testsuite", name=group)
        return SubElement(groups[group], "testcase", name=visible(name), classname=module, time=str(round(seconds, 3)))

    for entry, row in zip(suite.entries, rows(suite), strict=True):
        code = entry.result.provenance
        module = "dpaudit" if code is None else code.where.partition(":")[0]
        # Build servers follow a case from run to run by its class.
        name = visible(entry.experiment or module)
        case = new_case(visible(entry.experiment or suite.title), entry.name, name, float(row["seconds"] or 0.0))
        _complete(case, entry, row, day)
    for missed in missing(suite):
        case = new_case(visible(suite.title), missed, "dpaudit", 0.0)
        SubElement(case, "error", message="the planned audit did not finish", type="missing")
    for group in (root, *groups.values()):
        cases = list(group.iter("testcase"))
        group.set("tests", str(len(cases)))
        for kind in ("failure", "error"):
            group.set(f"{kind}s", str(sum(case.find(kind) is not None for case in cases)))
        group.set("skipped", "0")
        group.set("time", str(round(sum(float(case.get("time", "0")) for case in cases), 3)))
    indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{tostring(root, encoding="unicode")}\n'


def _complete(case: Element, entry: Entry, row: dict[str, Scalar], day: datetime.date) -> None:
    """Add the properties of an entry, and its failure or error or the acceptance of its refutation."""
    result, properties = entry.result, SubElement(case, "properties")
    values = {name: row[name] for name in _PROPERTIES}
    if values["bound"] is None:
        values["bound"] = found(result)
    for name, value in values.items():
        if value is not None:
            SubElement(properties, "property", name=name, value=visible(str(value), 2_000))
    is_held = result.verdict is Verdict.NOT_REFUTED or (result.is_refuted and entry.is_excused(day))
    if not (is_held if entry.expected is None else entry.is_met):
        kind = "error" if entry.expected is None and result.verdict is Verdict.INCONCLUSIVE else "failure"
        outcome = SubElement(case, kind, message=prose(result.sentence), type=result.verdict.value)
        outcome.text = _words(entry, day)
    elif entry.accepted is not None and result.is_refuted:
        SubElement(case, "system-out").text = prose(entry.acceptance_in_words(day))


def _words(entry: Entry, day: datetime.date) -> str:
    """The result in a few lines, with the unmet expectation and the acceptance."""
    result = entry.result
    parts = [lines(result)]
    if entry.expected is not None:
        parts.append(f"  expected {entry.expected.value}: {'met' if entry.is_met else 'not met'}")
    if entry.accepted is not None:
        parts.append(f"  {prose(entry.acceptance_in_words(day))}")
    return "\n".join(parts)
