"""The place of a mechanism's source: below a root, or not told."""

import functools
import hashlib
import importlib.util
import statistics
import sys

import numpy as np
import pytest

from dpaudit import PureDP, check
from dpaudit.audit.distribution_checks.check_noise import check_noise
from dpaudit.audit.distribution_checks.noise_laws import LaplaceNoise
from dpaudit.audit.sampling.object_identity import source_of
from dpaudit.mechanisms.adapters import Program

CODE = """import numpy as np

def noisy(rows, size, rng):
    return len(rows) + rng.laplace(size=size)

class Noisy:
    claim = None

    def sample(self, rows, size, rng):
        return noisy(rows, size, rng)
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module in a folder below the working directory."""
    path = tmp_path / "my lib" / "counts_of_rows.py"
    path.parent.mkdir()
    path.write_text(CODE)
    monkeypatch.chdir(tmp_path)
    spec = importlib.util.spec_from_file_location("counts_of_rows", path)
    found = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "counts_of_rows", found)
    spec.loader.exec_module(found)
    return found


def test_functions_and_objects_have_file_line_and_hash(module):
    digest = hashlib.sha256(CODE.encode()).hexdigest()
    wanted = {"file": "my lib/counts_of_rows.py", "line": 3, "sha256": digest, "below": "working directory"}
    assert source_of(module.noisy) == source_of(functools.partial(module.noisy, size=3)) == {"source": wanted}
    assert source_of(module.Noisy()) == source_of(module.Noisy().sample) == {"source": {**wanted, "line": 9}}


def test_results_record_it_outside_what_is_compared(module, tmp_path, monkeypatch):
    options = {"claim": PureDP(1.0), "runs": 400, "jobs": 1}
    here = check(module.noisy, [1, 1], [1], **options)
    assert here.environment["source"]["line"] == 3
    noise = check_noise(module.noisy, np.ones(2), noise=LaplaceNoise(scale=1.0), answer=len, runs=400, jobs=1)
    assert noise.environment["source"] == here.environment["source"]
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    elsewhere = check(module.noisy, [1, 1], [1], **options)
    assert "source" not in elsewhere.environment
    assert elsewhere == here


def test_code_without_a_file_to_name_has_no_place(module, tmp_path, monkeypatch):
    typed = {}
    exec(compile("def typed(rows, rng):\n    return 0\n", "<stdin>", "exec"), typed)
    for mechanism in (typed["typed"], len, statistics.fmean, np.random.default_rng, Program(["true"]), object()):
        assert source_of(mechanism) == {}
    (tmp_path / "my lib" / "counts_of_rows.py").unlink()
    assert source_of(module.noisy) == {}


def test_an_installed_package_is_named_from_its_folder(tmp_path, monkeypatch):
    path = tmp_path / "site-packages" / "lib" / "a.py"
    path.parent.mkdir(parents=True)
    path.write_text(CODE)
    held = {}
    exec(compile(CODE, str(path), "exec"), held)
    found = source_of(held["noisy"])["source"]
    assert (found["file"], found["below"]) == ("lib/a.py", "installed packages")
