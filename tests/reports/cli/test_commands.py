"""Commands that are imported on use, and the completion of their names and values."""

import json
import subprocess
import sys
from typing import get_args, get_type_hints

import pytest
import typer

from dpaudit.audit.canaries.plan_canaries import METHODS
from dpaudit.audit.errors import OptionError
from dpaudit.audit.health.findings import HealthCheck
from dpaudit.audit.replay.registered import registered_names
from dpaudit.experiments.library_suites import command, library_names
from dpaudit.experiments.suite import run_suite
from dpaudit.reports.cli import audit_commands, report_commands
from dpaudit.reports.cli.commands import COMMANDS, command_line
from dpaudit.reports.cli.shared_options import CANARY_METHODS, HEALTH_CHECKS, PRIMITIVES, whole_number


def test_the_list_of_commands_shows_their_first_sentences():
    group = command_line()
    for name, shown in group.commands.items():
        whole = group.get_command(None, name).help
        assert " ".join(whole.split("\n\n")[0].split()) == shown.help, name


def test_whole_numbers_may_have_underscores_or_an_exponent():
    """In every option: typer alone would refuse `--runs 1e5`."""
    forms = {"100000": 10**5, "100_000": 10**5, "1e5": 10**5, "2.5E3": 2_500, "-3": -3, "0e0": 0, 2**80: 2**80}
    assert {text: whole_number(text) for text in forms} == forms
    for text in ("many", "", "1.5", "1e-1", "nan", "inf", "1e200", "9" * 5_000):
        with pytest.raises(typer.BadParameter, match="is not a whole number"):
            whole_number(text)
    own = (audit_commands.audit, audit_commands.replay, audit_commands.canaries)
    for function in (*own, report_commands.plan, run_suite.run, command.suite):
        for name, hint in get_type_hints(function, include_extras=True).items():
            kind, *extras = get_args(hint) or (None,)
            if {int, list[int]} & {kind, *get_args(kind)}:
                assert [extra.parser for extra in extras] == [whole_number], f"{function.__name__} --{name}"


def test_known_names_are_those_of_the_suite():
    """After a change of the suite, change the names that are completed."""
    assert [check.value for check in HealthCheck] == list(HEALTH_CHECKS)
    assert CANARY_METHODS == METHODS
    assert set(registered_names()) == set(PRIMITIVES)
    assert set(command.LIBRARIES) == set(library_names.LIBRARIES)


def test_measurements_of_dpaudit_itself_are_offered_where_they_are(monkeypatch, capsys):
    def shown(*arguments):
        command_line().main(arguments, prog_name="dpaudit", standalone_mode=False)
        return capsys.readouterr().out

    assert "inference" in shown("bench", "--help")
    monkeypatch.setattr("dpaudit.reports.cli.commands.find_spec", lambda name: None if "benchmarks" in name else "")
    assert {name for name in COMMANDS if f"  {name} " not in shown("--help")} == {"bench"}
    with pytest.raises(OptionError, match=r"`dpaudit bench` .* not installed .*; run `make evidence`"):
        shown("bench", "--help")


COMPLETED = {
    "dpaudit re": ["replay", "report"],
    "dpaudit bench de": ["detection"],
    "dpaudit audit --adjacency re": ["replace"],
    "dpaudit replay --primitives n": ["numpy"],
    "dpaudit audit --epsi": ["--epsilon"],
    "dpaudit suite open": ["opendp"],
}
LOADED = """
import contextlib, io, json, os, sys
from dpaudit.reports.cli.main import main

def shown(*arguments):
    sys.argv[1:] = arguments
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.suppress(SystemExit): main()
    return said.getvalue()

lines, offered = sys.argv[1:], []
for arguments in (["--version"], ["--help"], ["adit"], ["audit", "--epsilno", "1"]):
    shown(*arguments)
needed = list(sys.modules)
for line in lines:
    os.environ |= {"_DPAUDIT_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    offered.append(shown().split())
print(json.dumps([needed, offered, list(sys.modules)]))
"""


def test_completion_mistakes_the_help_and_the_version_wait_for_nothing_large():
    """What bash is offered for the last word of each line, and the sum of what one process has imported for all."""
    done = subprocess.run([sys.executable, "-c", LOADED, *COMPLETED], capture_output=True, text=True, check=True)
    needed, offered, modules = json.loads(done.stdout)
    assert dict(zip(COMPLETED, offered, strict=True)) == COMPLETED
    assert not set(needed) & {"matplotlib", "pydantic"}
    assert not set(modules) & {"numpy", "scipy", "joblib"}


def test_a_plan_of_canaries_is_for_numbers_and_for_excesses(run):
    code, out, _ = run(*["plan", "--epsilon", "8", "--delta", "1e-5", "--canaries", "1_000", "--detect", "8"])
    assert (code, out.count("\n")) == (0, 2)
    assert out.startswith("1,000 canaries, claim (8, 1e-05)-DP: epsilon >= 5.808 at delta 1e-05 if every guess")
    assert "\n9,742 canaries, claim (8, 1e-05)-DP: epsilon >= 8.086 at delta 1e-05" in out
    code, _, error = run(*["plan", "--epsilon", "8", "--canaries", "1_000", "--runs", "100"])
    assert (code, error) == (2, "OptionError: --canaries excludes --runs and --q; plan one kind of audit at a time.\n")
