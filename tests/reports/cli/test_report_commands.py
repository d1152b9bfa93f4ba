"""``dpaudit report``, ``compare`` and ``schema``: the files asked for, several results as one, and what has changed."""

import hashlib
import json
import math
from dataclasses import replace

import pytest

from dpaudit import PureDP, check, load, save
from dpaudit.audit.events.events import Intervals
from dpaudit.audit.procedures.count_again import recount
from dpaudit.audit.records.suite import SideCheck
from dpaudit.results import Entry, Suite

from ..examples import statement

EVENT = Intervals(((1.0, math.inf),))


def entry(scale, stream):
    def noisy(answer, size, rng):
        return answer + rng.laplace(scale=scale, size=size)

    result = check(noisy, 1.0, 0.0, claim=PureDP(1.0), runs=2_000, alpha=1e-5, jobs=1, name="noisy [bold]")
    again = recount(noisy, 1.0, 0.0, EVENT, stream=stream, runs=20_000, jobs=1)
    return Entry(name="tests/test_it.py::test_noisy", result=result, recounts=(again,))


ONE, OTHER = entry(1.0, "before"), entry(1.3, "after")


@pytest.fixture(name="run")
def run_with_results(run, tmp_path):
    """Runs a command in a folder with two files of results; its output is on one line."""
    for name, one in (("a", ONE), ("b", OTHER)):
        save(Suite(title=f"Suite {name}", entries=(one,)), tmp_path / f"{name}.json")

    def call(*arguments):
        status, out, err = run(*arguments)
        return status, " ".join(out.split()), err

    return call


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ((), {"report.html", "report.md"}),
        (("--junit", "--sarif"), {"junit.xml", "results.sarif"}),
        (("--card",), {"privacy-card.md", "privacy-card.json"}),
    ],
)
def test_only_what_is_asked_for_is_written_and_by_default_what_people_read(run, tmp_path, options, names):
    status, out, _ = run("report", "a.json", *options, "--out", "r")
    assert (status, {path.name for path in (tmp_path / "r").iterdir()}) == (0, names)
    assert all(f": r/{name}" in out for name in names)


def test_several_results_become_one_report(run, tmp_path):
    status, out, _ = run("report", "a.json", "b.json", "--json", "--html", "--out", "r")
    assert status == 0
    merged = load(tmp_path / "r" / "results.json")
    assert [one.result for one in merged.entries] == [ONE.result, OTHER.result]
    assert len({one.name for one in merged.entries}) == 2
    assert "2 files of results: a.json, b.json" in out
    page = (tmp_path / "r" / "report.html").read_text()
    assert all(page.count(name) >= 2 for name in ("a.json", "b.json"))  # in the title, and where environments are
    assert run("report", "a.json", "a.json")[0] == 2


def test_evidence_for_reviewers_is_written_with_the_hash_of_the_results(run, tmp_path):
    assert run("report", "a.json", "--sarif", "--code-scanning", "--card", "--out", "r")[0] == 0
    digest = hashlib.sha256((tmp_path / "a.json").read_bytes()).hexdigest()
    runs = [json.loads((tmp_path / f"r/{name}.sarif").read_text())["runs"][0] for name in ("results", "code-scanning")]
    artifacts = runs[0]["artifacts"]
    assert artifacts[0]["hashes"] == {"sha-256": digest}  # the source of the mechanism may follow
    assert [{one["kind"] for one in run["results"]} == {"fail"} for run in runs] == [False, True], "problems alone"
    assert json.loads((tmp_path / "r/privacy-card.json").read_text())["results"][0]["sha256"] == digest


def test_a_comparison_has_a_section_in_the_reports_of_now(run, tmp_path):
    status, _, _ = run("compare", "a.json", "b.json", "--html", "--markdown", "--out", "r")
    assert status == 1
    page, text = (tmp_path / "r" / "report.html").read_text(), (tmp_path / "r" / "report.md").read_text()
    for shown in (page, text):
        assert "Before and after" in shown
        assert "1 audit, 1 changed" in shown
    assert "Pr[output ≥ 1 | y] was" in page
    assert "Before and after" not in page.split("<h2")[0].split("<nav")[0]


@pytest.fixture
def compared(run, tmp_path):
    """What a comparison of two lists of entries prints, and its exit status."""

    def call(before, after):
        for name, entries in (("a", before), ("b", after)):
            save(Suite(title="", entries=tuple(entries)), tmp_path / f"{name}.json")
        return run("compare", "a.json", "b.json")[:2]

    return call


SLOPE, UNCOUNTED = Entry(name="slope", result=statement()), replace(ONE, recounts=())
COMPARED = {
    "the same": ([ONE], [ONE], 0, "1 audit, 0 changed", "2,000 runs", "no p-value: the counts are equal and come from"),
    "drawn again": ([ONE], [entry(1.0, "after")], 0, "1 audit, 0 changed"),  # false alarm: 1e-5
    "statements": ([SLOPE], [SLOPE], 0, "1 audit, 0 changed"),
    "changes": (
        [ONE, replace(ONE, name="gone")], [OTHER, replace(ONE, name="new")], 1, "3 audits, 2 changed",
        "Pr[output ≥ 1 | y] was", "the audit is missing", "new: it was not recorded before",
    ),
    "no counts": (
        [UNCOUNTED], [UNCOUNTED], 3, "1 audit, 0 changed, 1 not compared", "nothing to compare: neither file has",
    ),
    "no counts, and a change": ([UNCOUNTED, ONE], [UNCOUNTED, replace(ONE, name="new")], 1),
    "nothing": ([], [], 3),
}  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "status", "words"), [(*row[:3], row[3:]) for row in COMPARED.values()], ids=COMPARED
)
def test_a_comparison_says_what_has_changed_and_what_could_not_be_compared(compared, before, after, status, words):
    found, shown = compared(before, after)
    assert (found, [each for each in words if each not in shown]) == (status, [])
    assert ("random numbers" in shown) == (words[2:3] == COMPARED["the same"][5:])


def test_a_replay_that_now_has_an_excess_is_a_change(run, tmp_path):
    check = SideCheck(
        name="r", kind="replay", subject="f", verdict="BOUNDED", claim="", found="loss 1", lines=("s",), seed=1
    )
    for name, now in (("a", check), ("b", replace(check, verdict="EXCESS", found="loss 2"))):
        save(Suite(title="", entries=(), checks=(now,)), tmp_path / f"{name}.json")
    code, shown, _ = run("compare", "a.json", "b.json", "--html", "--markdown", "--out", "r")
    assert code == 1
    for text in (shown, (tmp_path / "r" / "report.html").read_text(), (tmp_path / "r" / "report.md").read_text()):
        assert "0 audits and 1 other check, 1 changed" in text
        assert "bounded on this path and is excess" in " ".join(text.split())
    assert run("compare", "a.json", "a.json")[0] == 0


def test_a_file_of_a_newer_schema_is_refused_with_its_version(run, tmp_path):
    body = json.loads((tmp_path / "a.json").read_text())
    (tmp_path / "new.json").write_text(json.dumps({**body, "schema": 12}))
    status, _, err = run("report", "new.json")
    assert status == 2
    assert "schema=12 is of another version of dpaudit" in err
    assert list(tmp_path.glob("report*")) == []
