"""The example project: its tests pass, those of its faulty version fail, and say what its README shows."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import dpaudit

pytest_plugins = ["pytester"]

# A session in this process forgets the modules that it is the first to import; classes would then exist twice.
for name in dpaudit.__all__:
    getattr(dpaudit, name)

SURVEY = Path(__file__).parents[1] / "examples" / "survey"


@pytest.fixture
def survey(pytester, monkeypatch):
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    for path in SURVEY.glob("*.py"):
        shutil.copy(path, pytester.path)
    return pytester


def test_the_library_passes_and_its_faulty_version_fails(survey):
    result = survey.runpytest_inprocess("-p", "no:hypothesispytest", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=2, failed=1)
    said = [line for line in result.outlines if re.match(r"^(E  |>)", line)]
    (shown,) = re.findall(r"```text\n(.*?)```", (SURVEY / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert "\n".join(said) == shown.rstrip()
