"""Messages of the library in the words of the shell, and what to do next."""

import ast
import re
import sys
from pathlib import Path

import pytest

import dpaudit
from dpaudit.audit.health.findings import Finding, HealthCheck
from dpaudit.reports.cli.audit_commands import next_steps
from dpaudit.reports.cli.commands import command_line
from dpaudit.reports.cli.shared_options import OPTIONS, in_options

from ..examples import audit

AUDIT = Path(dpaudit.__file__).parent / "audit"
NOT_IN_SHELL = {"procedures/epsilon_lower.py", "procedures/check_equivalence.py", "results/equivalence_result.py"}
"""Modules that no command calls."""


SAID = {
    "delta=1.5 is not a probability; use 0 <= delta < 1.": "--delta 1.5 is not a probability; use 0 <= delta < 1.",
    "allow more with chunk_seconds=, or use jobs=1": "allow more with --chunk-seconds, or use --jobs 1",
    "use sequential=True or sequential=False.": "use --sequential or --no-sequential.",
    "or set runs=.": "or set --runs.",
    "Silence this check with ignore='no-power'.": "Silence this check with --ignore 'no-power'.",
    "with store= the audit resumes": "with --out the audit resumes",
    "domain=3 describes no datasets": "--search 3 describes no datasets",
    "floating_point='test' audits leaks too": "--floating-point test audits leaks too",
    'draws it again: draw_block(m, "x", seed=3)': 'draws it again: draw_block(m, "x", seed=3)',
    "f raised ValueError: runs=3; see jobs=1": "f raised ValueError: runs=3; see jobs=1",
    "a == b, x=3, runs==3": "a == b, x=3, runs==3",
}


def test_parameters_become_options():
    assert {said: in_options(said) for said in SAID} == SAID


def messages():
    """The messages of errors in the library, with a word for each value."""
    for path in sorted(AUDIT.rglob("*.py")):
        if str(path.relative_to(AUDIT)) in NOT_IN_SHELL:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
                said = node.exc.args[0]
                if isinstance(said, ast.Constant):
                    yield str(said.value)
                elif isinstance(said, ast.JoinedStr):
                    parts = (part.value if isinstance(part, ast.Constant) else "VALUE" for part in said.values)
                    yield "".join(map(str, parts))


def test_no_message_of_an_audit_keeps_a_parameter_that_is_an_option():
    said = list(messages())
    assert len(said) > 100
    left = re.compile(rf"(?<![\w(.-])(?:{'|'.join(OPTIONS)})=(?!=)")
    assert [text for text in said if left.search(re.sub(r"\w+\([^()]*\)", "", in_options(text)))] == []


def test_every_option_named_exists():
    group = command_line()
    known = set()
    for name in ("audit", "replay", "canaries", "suite", "plan", "run", "bench", "report"):
        command = group.get_command(None, name)
        parts = command.commands.values() if hasattr(command, "commands") else [command]
        known |= {option for part in parts for param in part.params for option in param.opts}
    assert set(OPTIONS.values()) <= known


# What to do next, after a verdict on a terminal.


def steps(is_searched=False, out=None, **changes):
    return " ".join(" ".join(next_steps(audit(seed=3, **changes), is_searched=is_searched, out=out)).split())


def test_each_verdict_has_a_next_step():
    assert steps(bound=2.0).startswith("next: --seed 4 repeats the audit on new runs; --out DIR writes a report")
    assert "r/report.html" in steps(bound=2.0, out="r")
    sick = (Finding(HealthCheck.DUPLICATE_OUTPUTS, "Equal."),)
    assert steps(findings=sick) == "next: follow the remedy of each failed health check, and audit again"
    assert "--search MODULE:OBJECT in place of --x and --y" in steps()
    assert "more --search-runs try more pairs" in steps(is_searched=True)
    short = {"min_detectable_excess": 0.2, "detect": 0.01}
    assert steps(**short).startswith("also: more --runs to detect smaller excesses; `dpaudit plan`")
    assert steps(stopped="time", interim_analyses=(), **short).startswith("also: a larger --seconds allows more runs")


@pytest.mark.parametrize("is_terminal", [True, False])
def test_only_a_terminal_shows_it(run, monkeypatch, is_terminal):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    arguments = "audit mine:noisy_count --x [1] --y [] --epsilon 1.5 --runs 600 --floating-point ignore"
    status, out, _ = run(*arguments.split())
    assert (status, "next: " in out) == (0, is_terminal)
