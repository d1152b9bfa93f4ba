"""Scripts that show a violation without the library: they run, they are short, and they agree with the audit."""

import functools
import importlib
import runpy
import sys

import numpy as np
import pandas as pd
import pytest

from dpaudit import ApproxDP, PureDP, check
from dpaudit.reports.pytest_plugin.reproduction_script import ScriptError, script

MODULE = """
from dataclasses import dataclass
import numpy as np

SCALE = 0.5

def block(answer, size, rng):
    return answer + rng.laplace(scale=0.5, size=size)

def scaled(answer, size, rng, scale=1.0):
    return answer + rng.laplace(scale=scale, size=size)

def single(answer, rng):
    return answer + rng.laplace(scale=0.5)

def coin(answer, size, rng):
    return (rng.random(size) < 0.05) ^ bool(answer)

def words(answer, rng):
    return "yes" if rng.random() < (0.9 if answer else 0.2) else "no"

def second(answer, rng):
    return rng.random(), rng.random() + 0.9 * answer

def vector(answer, size, rng):
    return answer + rng.laplace(scale=1.0, size=(size, 4))

def bits(answer, size, rng):
    return answer + rng.laplace(size=size)

def normal(answer, size, rng):
    return answer + rng.normal(scale=SCALE, size=size)

@dataclass(frozen=True)
class Noisy:
    scale: float

    def sample(self, answer, size, rng):
        return answer + rng.laplace(scale=self.scale, size=size)

    def draw(self, answer, size, rng):
        return self.sample(answer, size, rng)
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "of_users.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("of_users")
    sys.modules.pop("of_users", None)


def run_here(text, folder, monkeypatch, capsys):
    """The exit status and the output of a script that is run in this process."""
    (folder / "alone.py").write_text(text, encoding="utf-8")
    monkeypatch.chdir(folder)
    with pytest.raises(SystemExit) as stop:
        runpy.run_path(str(folder / "alone.py"), run_name="__main__")
    return stop.value.code, capsys.readouterr().out


def made(mechanism, path, x=1.0, y=0.0, claim=None, **options):
    result = check(mechanism, x, y, claim=claim or PureDP(1.0), runs=5_000, alpha=1e-5, jobs=1, **options)
    assert result.is_refuted
    return script(result, mechanism, x, y, path, options)


CASES = {
    "block": lambda m: m.block,
    "partial": lambda m: functools.partial(m.scaled, scale=0.5),
    "single": lambda m: m.single,
    "coin": lambda m: m.coin,
    "words": lambda m: m.words,
    "second": lambda m: m.second,
    "vector": lambda m: m.vector,
    "object": lambda m: m.Noisy(0.5),
    "method": lambda m: m.Noisy(0.5).draw,
}


@pytest.mark.parametrize("name", CASES)
def test_it_shows_the_violation(name, module, tmp_path, monkeypatch, capsys):
    text = made(CASES[name](module), tmp_path / "test_them.py")
    assert len(text.splitlines()) <= 20
    assert "dpaudit" not in text
    assert 'hold? Exit status 1 if these runs contradict it."""' in text
    status, printed = run_here(text, tmp_path, monkeypatch, capsys)
    assert status == 1, printed
    assert "standard errors beyond the claim" in printed


def test_another_claim_and_a_mechanism_that_keeps_it(module, tmp_path, monkeypatch, capsys):
    text = made(module.normal, tmp_path / "test_them.py", claim=ApproxDP(1.0, 0.01))
    assert run_here(text, tmp_path, monkeypatch, capsys)[0] == 1
    (tmp_path / "of_users.py").write_text(MODULE.replace("SCALE = 0.5", "SCALE = 2.0"), encoding="utf-8")
    status, printed = run_here(text, tmp_path, monkeypatch, capsys)
    assert (status, " -" in printed) == (0, True), "p is below the line of the claim"


def test_datasets_are_written_down(module, tmp_path):
    def summed(mechanism):
        return lambda rows, size, rng: mechanism(float(np.sum(rows)), size, rng)

    result = check(summed(module.block), [1.0], [0.0], claim=PureDP(1.0), runs=5_000, jobs=1)
    rows = np.array([[1.0, 2.5], [0.0, -1.0]])
    text = script(result, module.block, rows, np.ones((40, 3), dtype=np.float32), tmp_path, {})
    assert "np.array([[1.0, 2.5], [0.0, -1.0]])" in text
    assert "np.full((40, 3), 1.0, dtype='float32')" in text
    text = script(result, module.block, [float("nan")] * 9, pd.DataFrame({"a": [1] * 9}), tmp_path, {})
    assert "[float('nan')] * 9" in text
    assert "pd.DataFrame({'a': [1] * 9})" in text
    assert "\nimport numpy as np\nimport pandas as pd\n" in text


def test_what_cannot_be_written_down_is_said(module, tmp_path):
    result = check(module.block, 1.0, 0.0, claim=PureDP(1.0), runs=5_000, jobs=1)

    def local(answer, size, rng):
        return module.block(answer, size, rng)

    class Odd:
        def sample(self, answer, size, rng):
            return module.block(answer, size, rng)

    bits = check(module.bits, 1.0, 0.0, claim=PureDP(1.0), runs=5_000, alpha=1e-5, jobs=1, floating_point="test")
    with pytest.raises(ScriptError, match="cannot be written in a few lines"):
        script(bits, module.bits, 1.0, 0.0, tmp_path, {})
    for mechanism, x, words in (
        (local, 1.0, "is defined inside a function or class"),
        (Odd(), 1.0, "of type .*Odd cannot be written as code"),
        (module.block, object(), "a object cannot be written as a literal"),
        (module.block, list(range(5_000)), "too long"),
    ):
        with pytest.raises(ScriptError, match=words):
            script(result, mechanism, x, 0.0, tmp_path, {})
