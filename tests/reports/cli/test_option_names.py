"""Messages of the library in the words of the shell."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import dpaudit
from dpaudit.reports.cli.audit_commands import with_symbols
from dpaudit.reports.cli.commands import command_line
from dpaudit.reports.cli.options import OPTIONS, in_options

AUDIT = Path(dpaudit.__file__).parent / "audit"
NOT_IN_SHELL = {
    "procedures/epsilon_lower.py",
    "procedures/check_equivalence.py",
    "procedures/count_cells.py",
    "results/equivalence_result.py",
}
"""Modules that no command calls."""


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            "delta=1.5 is not a probability; use 0 <= delta < 1.",
            "--delta 1.5 is not a probability; use 0 <= delta < 1.",
        ),
        (
            "allow more with block_seconds=, or use jobs=1 to see",
            "allow more with --block-seconds, or use --jobs 1 to see",
        ),
        ("use sequential=True.", "use --sequential."),
        ("or set runs=.", "or set --runs."),
        ("Silence this check with ignore='idle-event'.", "Silence this check with --ignore idle-event."),
        ("with store= the audit resumes", "with --out the audit resumes"),
        ("domain=3 describes no datasets", "--search 3 describes no datasets"),
        ('bits=3 is unknown; use "warn", True or False.', "--bits 3 is unknown; use warn, true or false."),
        ("whole numbers or integer=False.", "whole numbers or integer=False in the domain."),
        ('draws it again: draw_block(m, "x", seed=3)', 'draws it again: draw_block(m, "x", seed=3)'),
        ("f raised ValueError: runs=3; see jobs=1", "f raised ValueError: runs=3; see jobs=1"),
        ("importing 'm' failed with KeyError: alpha=1", "importing 'm' failed with KeyError: alpha=1"),
        ("a == b, x=3, runs==3", "a == b, x=3, runs==3"),
    ],
)
def test_parameters_become_options(said, shown):
    assert in_options(said) == shown


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
    left = re.compile(rf"(?<![\w(.-])(?:{'|'.join(OPTIONS)})=(?!=)|\(shell:|\bclaim=|\bTrue\b")
    assert [text for text in said if left.search(re.sub(r"\w+\([^()]*\)", "", in_options(text)))] == []


def test_every_option_named_exists():
    group = command_line()
    known = set()
    for name in ("audit", "canaries", "suite", "plan", "run", "bench", "report"):
        command = group.get_command(None, name)
        parts = command.commands.values() if hasattr(command, "commands") else [command]
        known |= {option for part in parts for param in part.params for option in param.opts}
    assert set(OPTIONS.values()) <= known


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("REFUTED: epsilon >= 1.244, claimed 1", "REFUTED: ε ≥ 1.244, claimed 1"),
        ("REFUTED: epsilon > 1, claimed 1", "REFUTED: ε > 1, claimed 1"),
        ("epsilon >= 1.2 at delta 1e-05, claimed 1", "ε ≥ 1.2 at δ = 1e-05, claimed 1"),
        ("mu >= 0.5, claimed 1", "μ ≥ 0.5, claimed 1"),
        ("rho >= 0.5, claimed 1", "ρ ≥ 0.5, claimed 1"),
        ("excess delta >= 0.01", "excess δ ≥ 0.01"),
    ],
)
def test_bounds_have_symbols(said, shown):
    assert with_symbols(said) == shown
