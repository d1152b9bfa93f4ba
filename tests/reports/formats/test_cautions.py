"""Cautions: a verdict that a person must read first is not a plain pass in any format, and is on the first screen."""

import datetime
import json
import math
from dataclasses import replace

import pytest

from dpaudit import PureDP
from dpaudit.audit.health.findings import HealthCheck
from dpaudit.audit.records.suite import Entry, Suite
from dpaudit.reports import html, markdown, privacy_card, privacy_card_markdown, sarif
from dpaudit.reports.plain_text import KINDS, cautions, heading

DAY = datetime.date(2027, 6, 30)
SILENCED = (HealthCheck.SERIAL_DEPENDENCE.value,)


def kinds(result):
    return [one.kind for one in cautions(result)]


@pytest.fixture(scope="module")
def weak(audit):
    return Entry(name="weak", result=audit(min_detectable_excess=6.1, detect=7.0))  # accepted by the call


@pytest.fixture(scope="module")
def silenced(audit):
    return Entry(name="silenced", result=audit(ignored=SILENCED))


def test_each_kind_has_its_reason(entries, weak, silenced, audit):
    assert kinds(entries["low"].result) == ["floating-point leak"]
    assert kinds(entries["doubt"].result) == ["pair"]
    assert kinds(silenced.result) == ["silenced"]
    assert kinds(weak.result) == ["excess"]
    for name in ("held", "sick", "refuted", "slope", "training", "group"):
        assert kinds(entries[name].result) == []
    assert kinds(replace(entries["training"].result, min_detectable_excess=1.5, detect=2.0)) == ["excess"]
    # Only an undetected doubling of a positive claim is a large excess.
    assert kinds(audit(min_detectable_excess=1.0)) == []
    assert kinds(audit(min_detectable_excess=math.nextafter(1.0, 2.0), detect=2.0)) == ["excess"]
    assert kinds(audit(min_detectable_excess=6.1, bound=1.5)) == [], "a refuted claim was detected"
    assert kinds(audit(claim=PureDP(0.0), bound=0.0)) == []
    # Checks of the use of data do not concern a claim of equal distributions.
    unused = ("constant-output", "equal-datasets", "no-power")
    assert kinds(audit(ignored=unused)) == ["silenced"]
    assert kinds(audit(ignored=unused, claim=PureDP(0.0), bound=0.0)) == []
    assert kinds(audit(ignored=(*unused, *SILENCED), claim=PureDP(0.0), bound=0.0)) == ["silenced"]
    for kind in KINDS:
        assert heading(kind, 1) != heading(kind, 2)
        assert "1,234" in heading(kind, 1_234)


def test_a_bound_of_zero_is_a_caution_as_nothing_was_seen(audit, entries):
    assert kinds(audit(bound=0.0)) == ["idle"]
    training = entries["training"].result
    assert kinds(replace(training, bound=0.0)) == [], "a training run with few canaries often shows nothing"
    (told,) = cautions(replace(training, bound=0.0, notes=("7 of 99 guesses were correct, far fewer than by chance.",)))
    assert told.text == "the scores tell little: 7 of 99 guesses were correct, far fewer than by chance"


def test_a_caution_is_in_every_format_and_on_the_first_screen(entries, weak, silenced):
    """For review in SARIF, and no alert of code scanning."""
    suite = Suite(title="t", entries=(weak, silenced, entries["doubt"]))
    excess = "the minimum detectable excess (6.1) is larger than the claim (1)"
    first, second, _ = json.loads(sarif(suite, today=DAY))["runs"][0]["results"]
    assert [(one["kind"], one["level"]) for one in (first, second)] == [("review", "none")] * 2
    assert f"{excess}." in first["message"]["text"]
    assert "silenced health checks: serial-dependence." in second["message"]["text"]
    assert second["properties"]["ignored"] == "serial-dependence"
    assert json.loads(sarif(suite, code_scanning=True, today=DAY))["runs"][0]["results"] == []
    first, second, _ = json.loads(privacy_card(suite, today=DAY))["audits"]
    assert first["cautions"] == [excess]
    assert second["cautions"] == ["silenced health checks: serial-dependence"]
    assert "the health check serial-dependence, which was silenced" in second["not_examined"]
    (row,) = (line for line in privacy_card_markdown(suite, today=DAY).splitlines() if line.startswith("| weak"))
    assert f"| ■ not refuted | 6.1 | {excess} |" in row
    page, text = html(suite), markdown(suite)
    screen = page[: page.index("<nav")]
    for kind in ("pair", "silenced", "excess"):
        assert heading(kind, 1) in screen
        assert f"**Warning** {heading(kind, 1)}: " in text
    assert heading("floating-point leak", 1) not in screen
    assert f"WARNING: {excess}" in page
    assert "WARNING: silenced health checks: serial-dependence" in page
