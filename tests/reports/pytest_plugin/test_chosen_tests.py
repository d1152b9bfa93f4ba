"""Audits chosen by changed files: by their imports, and by nothing else. Sessions are those of test_plugin."""

from __future__ import annotations

import sys
import textwrap

import pytest

from dpaudit import load
from dpaudit.reports.pytest_plugin.plugin import concerned

from .sessions import ONE_OF_EACH, run, text_of

pytest_plugins = ["pytester"]

FILES = {
    "shop/__init__.py": "",
    "shop/noise.py": "from math import log",
    "shop/counts.py": "from . import noise",
    "shop/sums.py": "def f():\n    from .deep.inner import value",
    "shop/deep/__init__.py": "",
    "shop/deep/inner.py": "from ...shop import rare",
    "shop/rare.py": "import numpy",
    "lonely.py": "",
    "broken.py": "def",
    "data.csv": "",
    "tests/conftest.py": "import lonely",
    "tests/test_counts.py": "from shop.counts import a",
    "tests/test_sums.py": "import shop.sums as s, broken",
    "tests/deep/test_name.py": "import importlib; importlib.import_module('shop.rare')",
    "test_above.py": "",
}
OF_TESTS = ["tests/deep/test_name.py", "tests/test_counts.py", "tests/test_sums.py"]


@pytest.fixture
def shop(tmp_path, monkeypatch):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        ("shop/noise.py", ["tests/test_counts.py"]),
        ("shop/deep/inner.py", ["tests/test_sums.py"]),
        ("shop/deep/__init__.py", ["tests/test_sums.py"]),
        ("shop/rare.py", ["tests/test_sums.py"]),  # a computed name is not seen
        ("shop/__init__.py", ["tests/test_counts.py", "tests/test_sums.py"]),
        ("broken.py", ["tests/test_sums.py"]),
        ("tests/test_counts.py", ["tests/test_counts.py"]),
        ("tests/conftest.py", OF_TESTS),
        ("lonely.py", OF_TESTS),
        ("data.csv", []),
        ("gone.py", []),
    ],
)
def test_a_test_concerns_what_it_imports(shop, changed, tests):
    all_tests = [shop / name for name in FILES if "test_" in name]
    found = concerned(all_tests, [shop / changed], shop)
    assert sorted(path.relative_to(shop).as_posix() for path in found) == tests


def test_nothing_is_imported_and_nothing_outside_is_read(shop):
    assert concerned([shop / "tests/test_counts.py"], [shop / "shop/noise.py"], shop)
    assert "shop" not in sys.modules
    assert concerned([shop / "tests/test_counts.py"], [shop / "shop/noise.py"], shop / "tests") == set()


def test_a_session_of_changed_files(project):
    project.makepyfile(test_a=ONE_OF_EACH, test_b=ONE_OF_EACH, test_c="def test_plain():\n    assert False\n")
    result = run(project, "--dp-audit-report=r.json", "-k", "good", "--dp-audit-changed", "test_b.py", "notes.md")
    assert "1 of 2 tests of dp_audit concern the changed files" in text_of(result)
    assert [entry.name for entry in load(project.path / "r.json").entries] == ["test_b.py::test_good"]
    result = run(project, "--dp-audit-changed", "test_c.py")
    result.assert_outcomes(deselected=5)
    assert result.ret == pytest.ExitCode.OK
    assert run(project, "-k", "good", "--dp-audit-only").ret == pytest.ExitCode.OK


def test_audits_left_out_for_the_change_are_not_missed(project):
    project.makepyfile(test_a=ONE_OF_EACH, test_b=ONE_OF_EACH)
    run(project, "-k", "good", "--dp-audit-save=main")
    result = run(project, "-k", "good", "--dp-audit-compare=main", "--dp-audit-changed", "test_b.py")
    result.assert_outcomes(passed=1, deselected=3)
    assert result.ret == pytest.ExitCode.OK
    assert run(project, "--dp-audit-compare=main", "--dp-audit-changed").ret == pytest.ExitCode.OK


def test_a_page_without_its_libraries_is_refused_before_the_audits(project, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    project.makepyfile(ONE_OF_EACH)
    result = run(project, "--dp-audit-report=r.html")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "r.html: reports need jinja2; pip install 'dpaudit[report]'" in text_of(result)


REQUESTS = {
    "named": 'def test_named(request): request.getfixturevalue("dp_audit")(bad, X, Y, claim=PureDP(1.0))',
    "computed": 'def test_computed(request): request.getfixturevalue("dp_" + "audit")(bad, X, Y, claim=PureDP(1.0))',
    "by_a_fixture": "def test_by_a_fixture(above): above(bad, X, Y, claim=PureDP(1.0))",
    "by_a_function": "def test_by_a_function(request): renamed(request)(bad, X, Y, claim=PureDP(1.0))",
    "outside": "def test_outside(request): company.of(request)(bad, X, Y, claim=PureDP(1.0))",
    "of_a_plugin": "def test_of_a_plugin(company_audit): company_audit(bad, X, Y, claim=PureDP(1.0))",
    "by_text": """
        def test_by_text(request):
            eval("request.getfixture" + "value('dp_audit')")(bad, X, Y, claim=PureDP(1.0))
    """,
    "of_a_class": """
        class TestOne(unittest.TestCase):
            @pytest.fixture(autouse=True)
            def keep(self, request): self.request = request
            def test_of_a_class(self): self.request.getfixturevalue("dp_audit")(bad, X, Y, claim=PureDP(1.0))
    """,
}


COMPANY = """
import pytest
def of(request): return request.getfixturevalue("dp_audit")
@pytest.fixture
def company_audit(request): return of(request)
"""
UNCONCERNED = """
def test_other(other, tmp_path, request):
    assert request.node.name and not hasattr(request, "param")
    assert request.getfixturevalue("tmp_path") == tmp_path
"""


@pytest.mark.parametrize("options", [["--dp-audit-only"], ["--dp-audit-changed", "asked.py"]])
def test_a_fixture_requested_while_the_test_runs_is_found(project, options, tmp_path_factory, monkeypatch):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "company.py").write_text(COMPANY)
    monkeypatch.syspath_prepend(outside)
    monkeypatch.delitem(sys.modules, "company", raising=False)
    project.makepyfile(asked="def of(request): return request.getfixturevalue('dp_audit')")
    project.makeconftest(
        """
        import pytest

        @pytest.fixture
        def helper(request): return request.getfixturevalue("dp_audit")

        @pytest.fixture
        def above(helper): return helper

        @pytest.fixture
        def other(request): return request.getfixturevalue("tmp_path")

        def pytest_collection_modifyitems(items):
            assert all("dp_audit" not in item.fixturenames for item in items)
        """
    )
    tests = "\n".join(textwrap.dedent(text) for text in REQUESTS.values())
    imports = "import unittest, company, pytest\nfrom asked import of as renamed\nfrom mechanisms import *\n"
    project.makepyfile(test_requests=f"{imports}{tests}\n{UNCONCERNED}")
    result = run(project, "-p", "company", *options)
    result.assert_outcomes(failed=len(REQUESTS), deselected=1)
    if "--dp-audit-only" in options:
        assert f"1 of {len(REQUESTS) + 1} tests cannot request dp_audit and are deselected" in text_of(result)
    run(project, "-p", "company", "--dp-audit-skip").assert_outcomes(skipped=len(REQUESTS), passed=1)
