"""What to do next, after a verdict on a terminal."""

from __future__ import annotations

import math
import sys
from functools import partial

import pytest

from dpaudit import ApproxDP, GaussianDP, PureDP, RenyiDP, ZeroConcentratedDP
from dpaudit.audit.health.findings import Finding, HealthCheck
from dpaudit.reports.cli.audit_commands import next_steps

from ..examples import audit

SEARCH = "      --search MODULE:OBJECT in place of --x and --y looks for the worst pair of neighbours"
result = partial(audit, runs=4_000, seed=3)


def test_a_refutation_is_repeated_and_reported():
    first, second = next_steps(result(bound=2.0), has_runs=True, is_searched=False, out=None)
    assert first == "next: --seed 4 repeats the audit on new runs; --out DIR writes a report"
    assert "--dp-audit-scripts=DIR" in second
    assert "r/report.html" in next_steps(result(bound=2.0), has_runs=True, is_searched=False, out="r")[0]


@pytest.mark.parametrize(
    ("claim", "options"),
    [
        (PureDP(1.5), "--epsilon 1.5"),
        (ApproxDP(1.5, 0.01), "--epsilon 1.5 --delta 0.01"),
        (GaussianDP(2.0), "--mu 2"),
        (ZeroConcentratedDP(3.0), "--rho 3"),
    ],
    ids=str,
)
def test_what_is_not_refuted_is_planned_more_finely(claim, options, run):
    audited = result(claim=claim)
    planned, other = next_steps(audited, has_runs=True, is_searched=False, out=None)
    assert planned.startswith(f"next: `dpaudit plan {options} --resolution ")
    assert other == SEARCH
    assert run(*planned.split("`")[1].split()[1:])[0] == 0
    assert float(planned.split("--resolution ")[1].split("`")[0]) < audited.resolution


def test_other_claims_and_searches():
    assert next_steps(result(claim=RenyiDP(2.0, 3.0)), has_runs=True, is_searched=True, out=None) == [
        "next: more --runs detect smaller excesses",
        "      more --search-runs try more pairs",
    ]


def test_an_inconclusive_audit_has_its_remedy():
    short = result(requested_resolution=0.001)
    few = next_steps(short, has_runs=True, is_searched=False, out=None)
    assert few[0] == "next: without --runs, the audit makes as many runs as --resolution 0.001 needs"
    assert few[1].startswith("      `dpaudit plan --epsilon 1 --resolution 0.001` shows")
    sick = result(findings=(Finding(HealthCheck.REPEATED_BLOCKS, "Equal."),))
    (one,) = next_steps(sick, has_runs=True, is_searched=False, out=None)
    assert "follow the remedy of each failed health check" in one


def test_what_ended_the_audit_has_the_remedy():
    """Advice to leave --runs away would be of no use where it was not given, or where time ended the audit."""

    def advice(stopped, resolution, wanted=None, claim=None, *, has_runs=False):
        given = {"claim": claim or PureDP(1.0), "resolution": resolution, "requested_resolution": wanted}
        audited = result(stopped=stopped, looks=(), **given)
        steps = next_steps(audited, has_runs=has_runs, is_searched=False, out=None)
        return [line.split("`")[0].strip() for line in steps if line != SEARCH]

    time = "next: a larger --seconds allows more runs, which detect smaller excesses"
    for has_runs in (True, False):
        assert advice("time", 0.2, 0.01, has_runs=has_runs) == [time, ""]
        assert advice("time", math.inf, has_runs=has_runs) == [time]
        assert advice("time", 0.2, has_runs=has_runs) == [time, ""]
    assert advice("time", 0.2, claim=RenyiDP(2.0, 3.0)) == [time]
    assert advice("runs", 0.2, 0.01, has_runs=True)[0] == (
        "next: without --runs, the audit makes as many runs as --resolution 0.01 needs"
    )
    assert advice("runs", 0.2, 0.01)[0] == "next: --runs 40000 detects smaller excesses"
    assert advice("runs", math.inf)[0] == "next: --runs 40000 detects smaller excesses"
    assert advice("runs", 0.2) == ["next:"]


@pytest.mark.usefixtures("without_resolution")
@pytest.mark.parametrize("is_terminal", [True, False])
def test_only_a_terminal_shows_them(run, tmp_path, monkeypatch, is_terminal):
    (tmp_path / "counted_here.py").write_text("def f(x, size, rng):\n    return x + rng.laplace(size=size)\n")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    arguments = "audit counted_here:f --x 0 --y 1 --epsilon 1.5 --runs 2000 --bits false"
    status, out, _ = run(*arguments.split())
    assert (status, "next: " in out) == (0, is_terminal)
