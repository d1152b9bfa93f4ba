"""Sessions of pytest as users run them, in this process, and the mechanisms that they audit."""

import re
import sys
import textwrap

MECHANISMS = """
import numpy as np
from dpaudit import AddRemove, PureDP, Rows

X, Y = np.ones(3), np.ones(2)

def good(rows, size, rng):
    return len(rows) + rng.laplace(scale=1.0, size=size)

def bad(rows, size, rng):
    return len(rows) + rng.laplace(scale=0.2, size=size)
"""
ONE_OF_EACH = """
from mechanisms import *

def test_good(dp_audit):
    result = dp_audit(good, X, Y, claim=PureDP(1.0), adjacency=AddRemove(), sequential=False)
    assert not result.is_refuted

def test_bad(dp_audit):
    dp_audit(bad, X, Y, claim=PureDP(1.0), adjacency=AddRemove())
"""
ONLY_BAD = ONE_OF_EACH[: ONE_OF_EACH.index("def")] + ONE_OF_EACH[ONE_OF_EACH.index("def test_bad") :]
HEAD = """
import concurrent.futures, contextlib, os, random, threading, unittest
import numpy as np
import pytest
from dpaudit import *
from dpaudit.noise import LaplaceNoise
from mechanisms import *

BAD = (bad, X, Y, PureDP(1.0))
Failed = pytest.fail.Exception

def audit(dp_audit, mechanism, x, y, claim, **options):
    return dp_audit(mechanism, x, y, claim=claim, **{"floating_point": "ignore", "sequential": False, "runs": 1_000,
    **options})

def constant(rows, size, rng): return np.full(size, 3.0)
def crash(rows, size, rng): raise KeyError("age")
"""
RUN_TWICE = """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    for _ in range(2):
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    return True
"""


def run(project, *options):
    sys.modules.pop("mechanisms", None)
    return project.runpytest_inprocess("-p", "no:hypothesispytest", "--dp-audit-runs=1_500", *options)


def text_of(result):
    return result.stdout.str() + result.stderr.str()


def sections(shown):
    """What is shown of each test that failed, by its name."""
    parts = re.split(r"^_{3,} (?:ERROR at \w+ of )?(\w+) _{3,}$", shown.partition("short test summary")[0], flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def has_outcomes(project, rows, *options, head=HEAD):
    """Makes one session with a test of each row (name: code, outcome, words), and compares how each came out.

    Lines of the code that begin with @ are decorators. The words stand in what is shown of a test that fails, and
    somewhere in the session for one that passes. Returns all that is shown.
    """
    tests = []
    for name, (code, *_) in rows.items():
        lines = textwrap.dedent(code).strip().splitlines()
        marks = [line for line in lines if line.startswith("@")]
        tests += [*marks, f"def test_{name}(dp_audit):", *(f"    {line}" for line in lines[len(marks) :]), ""]
    project.makepyfile(test_rows=head + "\n".join(tests))
    shown = text_of(run(project, "-v", *options))
    failed = sections(shown)
    wrong = {}
    for name, (_, outcome, *words) in rows.items():
        found = re.findall(rf"^test_rows\.py::test_{name} ([A-Z]+)", shown, flags=re.M)
        place = failed.get(f"test_{name}", shown)
        missing = [each for each in words if each not in place]
        if outcome not in found or missing:
            wrong[name] = found, missing
    assert wrong == {}, shown
    return shown
