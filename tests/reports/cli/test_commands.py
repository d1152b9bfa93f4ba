"""Commands that are imported on use, and the completion of their names and values."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from typing import get_args, get_type_hints

import pytest
import typer

from dpaudit.audit.errors import OptionError
from dpaudit.audit.health.findings import HealthCheck
from dpaudit.experiments import commands
from dpaudit.experiments.library_suites.library_names import LIBRARIES
from dpaudit.experiments.suite.run_suite import all_experiments
from dpaudit.reports.cli.commands import COMMANDS, command_line
from dpaudit.reports.cli.options import HEALTH_CHECKS, whole_number

START = "from dpaudit.reports.cli.main import main; main()"


def test_the_list_of_commands_shows_their_first_sentences():
    group = command_line()
    for name, shown in group.commands.items():
        whole = group.get_command(None, name).help
        assert " ".join(whole.split("\n\n")[0].split()) == shown.help, name


def test_the_help_has_every_option_and_command(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "200")
    group = command_line()
    group.main(["--help"], prog_name="dpaudit", standalone_mode=False)
    shown = [" ".join(line.strip("│ ").split()) for line in capsys.readouterr().out.splitlines()]
    assert shown[1].startswith("Usage: dpaudit [OPTIONS] ")
    assert group.help in shown
    for param in group.params:
        assert f"{param.opts[0]} {param.help}" in shown
    for name, command in group.commands.items():
        assert f"{name} {command.help.replace('`', '')}" in shown


def test_whole_numbers_may_have_underscores_or_an_exponent():
    """In every option: typer alone would refuse `--runs 1e5`."""
    forms = {"100000": 10**5, "100_000": 10**5, "1e5": 10**5, "2.5E3": 2_500, "-3": -3, "0e0": 0, 2**80: 2**80}
    assert {text: whole_number(text) for text in forms} == forms
    for text in ("many", "", "1.5", "1e-1", "nan", "inf", "1e200", "9" * 5_000):
        with pytest.raises(typer.BadParameter, match="is not a whole number"):
            whole_number(text)
    places = [place.split(":") for place, _ in COMMANDS.values()]
    functions = [getattr(import_module(f"dpaudit.{module}"), name) for module, name in places]
    pages = [each.callback for one in functions if isinstance(one, typer.Typer) for each in one.registered_commands]
    seen = []
    for function in [one for one in functions if not isinstance(one, typer.Typer)] + pages:
        for name, hint in get_type_hints(function, include_extras=True).items():
            kind, *extras = get_args(hint) or (None,)
            if {int, list[int]} & {kind, *get_args(kind)}:
                seen.append(name)
                assert [extra.parser for extra in extras] == [whole_number], f"{function.__name__} --{name}"
    assert len(seen) > 20


def test_known_names_are_those_of_the_suite():
    """After a change of the suite, change the names that are completed."""
    experiments = all_experiments()
    assert set(commands.EXPERIMENTS) == {each.id for each in experiments} | {"all"}
    assert set(commands.DOCUMENTS) == {each.document for each in experiments}
    (reference,) = (each for each in experiments if each.id == "reference")
    assert [case.name for case in reference.cases] == list(commands.REFERENCE_CASES)
    assert [check.value for check in HealthCheck] == list(HEALTH_CHECKS)
    assert set(commands.LIBRARIES) == set(LIBRARIES)


def test_benchmarks_are_offered_where_they_are(monkeypatch, capsys):
    def shown(*arguments):
        command_line().main(arguments, prog_name="dpaudit", standalone_mode=False)
        return capsys.readouterr().out

    assert " bench " in shown("--help")
    assert "inference" in shown("bench", "--help")
    monkeypatch.setattr("dpaudit.reports.cli.commands.find_spec", lambda name: None)
    assert " bench " not in shown("--help")
    with pytest.raises(OptionError, match="run `make evidence` in a checkout"):
        shown("bench", "--help")


COMPLETED = {
    "dpaudit re": ["report"],
    "dpaudit bench de": ["detection"],
    "dpaudit audit --adjacency re": ["replace"],
    "dpaudit audit --epsi": ["--epsilon"],
    "dpaudit run E1": ["E1", "E10"],
    "dpaudit run laplace-h": ["laplace-half-noise"],
    "dpaudit list --document na": ["named"],
}
COMPLETE = """
import contextlib, io, json, os, sys
from dpaudit.reports.cli.main import main

lines, sys.argv, offered = sys.argv[1:], ["dpaudit"], []
for line in lines:
    os.environ |= {"_DPAUDIT_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.suppress(SystemExit):
        main()
    offered.append(said.getvalue().split())
print(json.dumps([offered, list(sys.modules)]))
"""


def test_names_are_completed_without_the_library():
    """What bash is offered for the last word of each line, and what one process has imported for all of them."""
    done = subprocess.run([sys.executable, "-c", COMPLETE, *COMPLETED], capture_output=True, text=True, check=True)
    offered, modules = json.loads(done.stdout)
    assert dict(zip(COMPLETED, offered, strict=True)) == COMPLETED
    assert not set(modules) & {"numpy", "scipy", "joblib"}


def test_completion_can_be_shown_and_installed(tmp_path):
    given = os.environ | {"HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    for option in ("--show-completion", "--install-completion"):
        done = subprocess.run([sys.executable, "-c", START, option, "bash"], capture_output=True, text=True, env=given)
        assert (done.returncode, done.stderr) == (0, "")
        shown = (
            done.stdout if option == "--show-completion" else (tmp_path / ".bash_completions/dpaudit.sh").read_text()
        )
        assert "_DPAUDIT_COMPLETE=complete_bash" in shown


def test_mistakes_the_help_and_the_version_wait_for_nothing_large():
    for arguments in (["--version"], ["--help"], ["audit"], ["adit"], ["audit", "--epsilno", "1"]):
        code = f"import atexit, sys; atexit.register(lambda: print('\\n', *sorted(sys.modules))); {START}"
        done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
        modules = set(done.stdout.rpartition("\n \n")[2].split()) | set(done.stdout.split())
        large = {
            "numpy",
            "scipy",
            "joblib",
            "matplotlib",
            "pydantic",
            *({"typer"} if arguments == ["--version"] else ()),
        }
        assert not modules & large, arguments
