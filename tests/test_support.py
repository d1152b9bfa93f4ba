"""The support table says what `make matrix` found, and the oldest versions that it ran are those of pyproject.toml."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
ROWS = json.loads((ROOT / "docs" / "support" / "matrix.json").read_text(encoding="utf-8"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]


def shown() -> dict[str, list[str]]:
    """The cells of the table's rows."""
    page = (ROOT / "docs" / "support.md").read_text(encoding="utf-8")
    return {name: cells for name, *cells in (line.strip("| ").split(" | ") for line in page.splitlines())}


def test_all_rows_passed_and_every_extra_and_python_has_one():
    assert [name for name, row in ROWS.items() if row["failed"] or not row["passed"]] == []
    pythons = {f"3.{each}" for each in re.findall(r"Python :: 3\.(\d+)", str(PROJECT["classifiers"]))}
    assert pythons | EXTRAS.keys() - {"all", "docs", "test"} <= shown().keys()


def test_the_oldest_versions_are_those_that_the_package_claims():
    oldest = ROWS["oldest"]
    of_extras = [each for extra in oldest["extras"] for each in EXTRAS[extra]]
    of_extras += [each for each in EXTRAS["test"] if each.startswith(("pytest", "hypothesis", "jsonschema", "mpmath"))]
    least = {
        requirement.name: Version(bound.version)
        for requirement in map(Requirement, [*PROJECT["dependencies"], *of_extras])
        for bound in requirement.specifier
        if bound.operator == ">=" and requirement.name in oldest["versions"]
    }
    assert {"numpy", "scipy", "statsmodels", "pytest", "joblib"} < least.keys()
    assert {name: Version(oldest["versions"][name]) for name in least} == least


def test_the_page_shows_the_results():
    for name, row in ROWS.items():
        libraries = (row["versions"][each] for each in ("numpy", "scipy", "statsmodels", "pytest", "joblib"))
        counts = (row[each] for each in ("passed", "skipped", "failed"))
        expected = (row["python"], *libraries, ", ".join(row["extras"]), *counts, *row["seconds"].values())
        assert shown()[name] == [*map(str, expected)]
    assert {"Windows", "macOS"} <= {name for name, cells in shown().items() if {*cells} == {"not run"}}
