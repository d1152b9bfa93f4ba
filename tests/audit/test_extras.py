"""Without the extras an audit works, and everything else names the extra that it needs."""

import pickle
import subprocess
import sys

import pytest

from dpaudit import GaussianDP
from dpaudit.audit.errors import AuditError, MissingExtraError
from dpaudit.audit.extras import require
from dpaudit.mechanisms.adapters import (
    claim_from_event,
    from_diffprivlib,
    from_diffprivlib_tool,
    from_opendp,
    from_pydp,
)
from dpaudit.mechanisms.training.dp_sgd import dp_sgd_claim
from dpaudit.mechanisms.training.train import FixedSizeBatches, FullBatch, PoissonBatches
from dpaudit.training import check_batches

EXTRAS = ("matplotlib", "jinja2", "markupsafe", "typer", "click", "rich", "networkx")

BLOCKED = f"""
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {EXTRAS}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
"""

AUDIT = """
import numpy as np
from dpaudit import AddRemove, PureDP, check, load, save, reports
from dpaudit.domains import Graphs
from dpaudit.results import Suite, Entry
from dpaudit.mechanisms import LaplaceMechanism

def noisy_count(rows, size, rng):
    return len(rows) + rng.laplace(scale=0.3, size=size)

result = check(noisy_count, [1, 1], [1], claim=PureDP(1.0), adjacency=AddRemove(), runs=1_000, jobs=1)
print(result.verdict.value)
suite = Suite(title="t", entries=(Entry(name="a", result=result),))
for make in (reports.html, reports.table, reports.plot, lambda _: result.plot(), lambda _: Graphs(3).build([0], [])):
    try:
        make(suite)
    except ImportError as error:
        print(f"{type(error).__name__}: {error}")
print(len(reports.markdown(suite)) > 100, len(reports.lines(result)) > 100)
"""


def in_a_process(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", BLOCKED + code], capture_output=True, text=True, check=False)


def test_an_audit_needs_no_extra_and_all_else_names_its_own():
    done = in_a_process(AUDIT)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "refuted",
        "MissingExtraError: reports need matplotlib and jinja2; pip install 'dpaudit[report]'.",
        "MissingExtraError: tables need rich; pip install 'dpaudit[cli]'.",
        *["MissingExtraError: figures need matplotlib; pip install 'dpaudit[report]'."] * 2,
        "MissingExtraError: a domain of graphs needs networkx; pip install 'dpaudit[graphs]'.",
        "True True",
    ]


def test_the_shell_says_what_to_install():
    done = in_a_process("from dpaudit.reports.cli.main import main; main()")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "MissingExtraError: the command line needs typer and rich; pip install 'dpaudit[cli]'.\n"


def test_a_missing_library_is_named_by_an_error_that_survives_pickling(monkeypatch):
    for _ in range(2):
        with pytest.raises(
            MissingExtraError, match=r"^a part needs no_such_library; pip install 'dpaudit\[extra\]'\.$"
        ):
            require("extra", "a part needs", "json", "no_such_library")
        monkeypatch.setitem(sys.modules, "no_such_library", None)
    require("extra", "a part needs", "json")
    error = pickle.loads(pickle.dumps(MissingExtraError("it is missing", extra="report")))
    assert isinstance(error, AuditError)
    assert isinstance(error, ImportError)
    assert (str(error), error.facts) == ("it is missing", {"extra": "report"})


def ten_of(n, rng):
    return rng.permutation(n)[:10]


@pytest.mark.parametrize(
    ("library", "extra", "use"),
    [
        ("opendp", "opendp", lambda: from_opendp(object())),
        ("pydp", "pydp", lambda: from_pydp(print)),
        ("diffprivlib", "diffprivlib", lambda: from_diffprivlib(print)),
        ("diffprivlib", "diffprivlib", lambda: from_diffprivlib_tool(print)),
        ("dp_accounting", "accounting", lambda: claim_from_event(object())),
        ("dp_accounting", "accounting", lambda: check_batches(ten_of, 100, q=0.1, noise_multiplier=1.0)),
        ("dp_accounting", "accounting", lambda: dp_sgd_claim(PoissonBatches(0.123), 1.0, 3, neighbours="replace_one")),
        ("dp_accounting", "accounting", lambda: dp_sgd_claim(FixedSizeBatches(2, 7), 1, 3, neighbours="replace_one")),
    ],
)
def test_without_a_library_the_error_says_what_to_install(library, extra, use, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtraError, match=rf"pip install 'dpaudit\[{extra}\]'") as caught:
        use()
    assert ("scikit-learn" in str(caught.value)) == (library == "diffprivlib"), "which needs an older one"
    assert dp_sgd_claim(FullBatch(), 1.0, 1, delta=None) == GaussianDP(1.0), "which needs no accountant"
