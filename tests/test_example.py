"""The examples run from a copy elsewhere: the tests of correct versions pass, and those of faulty ones fail.

The README of the survey shows what such a test says.
"""

import re
import shutil
from pathlib import Path

import pytest

import dpaudit

pytest_plugins = ["pytester"]

# A session in this process forgets the modules that it is the first to import; classes would then exist twice.
for name in dpaudit.__all__:
    getattr(dpaudit, name)

EXAMPLES = Path(__file__).parents[1] / "examples"
FAILING = {"survey": 1}  # tests that fail on purpose


@pytest.mark.parametrize("folder", sorted({path.parent.name for path in EXAMPLES.glob("*/test_*.py")}))
def test_an_example_runs_from_a_copy(folder, pytester, monkeypatch):
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    shutil.copytree(EXAMPLES / folder, pytester.path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    result = pytester.runpytest_inprocess("-p", "no:hypothesispytest", "-p", "no:cacheprovider", "-p", "no:xdist")
    outcomes = result.parseoutcomes()
    assert outcomes.pop("passed") >= 2
    assert outcomes.pop("failed", 0) == FAILING.get(folder, 0)
    assert not outcomes
    said = [line for line in result.outlines if re.match(r"^(E  |>)", line)]
    shown = re.findall(r"```text\n(.*?)```", (EXAMPLES / folder / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert "\n".join(said) == "".join(shown).rstrip()


def test_the_examples_are_found_in_a_checkout(pytester, monkeypatch):
    """Without the settings of the library's own tests, by which no test imports what lies beside it."""
    monkeypatch.chdir(EXAMPLES)
    options = ("-p", "no:hypothesispytest", "-p", "no:cacheprovider", "-p", "no:xdist")
    assert pytester.runpytest_inprocess("--collect-only", *options, EXAMPLES).ret == pytest.ExitCode.OK
