"""Projects whose tests are audits. All audits have alpha 1e-5, and seeds that follow from names."""

import importlib
import sys

import numpy as np
import pytest

import dpaudit
import dpaudit.reports.cli.main
import dpaudit.reports.pytest_plugin.fixture

from .sessions import MECHANISMS


@pytest.fixture(scope="module", autouse=True)
def _loaded():
    """All that a session loads, before pytester notes which modules to forget: to load it anew takes seconds."""
    names = [getattr(module, name) for module in (dpaudit, dpaudit.reports) for name in module.__all__]
    assert names
    importlib.import_module("hypothesis.strategies")
    rng = np.random.default_rng(0)
    result = dpaudit.check_outputs(*rng.normal(size=(2, 100)), claim=dpaudit.PureDP(1.0))
    suite = dpaudit.results.Suite(title="", entries=(dpaudit.results.Entry(name="one", result=result),))
    dpaudit.reports.html(suite)
    dpaudit.audit.records.baseline_comparison.compare(suite, suite)


@pytest.fixture
def project(pytester, monkeypatch):
    """A project with a mechanism that keeps its claim and one that does not."""
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    # A file that is written again within a second, as long as before, would be read from what it was compiled to.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    pytester.makeini("[pytest]")  # the root, whatever files of other projects lie above the temporary folder
    pytester.makepyfile(mechanisms=MECHANISMS)
    pytester.syspathinsert()
    yield pytester
    sys.modules.pop("mechanisms", None)
