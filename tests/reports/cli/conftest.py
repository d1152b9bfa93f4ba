"""The command line in a folder of its own."""

import sys

import pytest

from dpaudit.reports.cli.main import main

MODULE = """
import os
from dpaudit import PureDP, Rows, Values

pairs_of, bits, nothing = Rows(values=(0, 1)), Values((0, 1)), 3

def noisy_count(rows, size, rng):
    return len(rows) + rng.laplace(scale=1.25, size=size)

def too_little_noise(rows, size, rng):
    return len(rows) + rng.laplace(scale=0.5, size=size)

def constant(rows, size, rng):
    return [1.0] * size

def complains(rows, size, rng):
    raise ValueError("runs=3 of the caller")

def named(rows, rng):
    return {"it's": len(rows) + rng.laplace(scale=0.5)}

def single(rows, rng):
    return rng.laplace(len(rows), 4.0)

def normal(rows, rng):
    return rng.normal(len(rows), 2.0)

def outside(rows):
    return os.urandom(1)

def respond(bit, rng):
    return bit if rng.random() < 0.75 else 1 - bit

def walk(start, rng):
    place = 0
    while rng.integers(3) > 0:
        place += 1
    return start + place

class Own:
    claim = PureDP(0.2)

    def sample(self, dataset, size, rng):
        return len(dataset) + rng.laplace(scale=4.0, size=size)

def broken_pairs(rng):
    raise RuntimeError("no pairs")

own = Own()
own.inner = noisy_count
"""


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Runs the command line in a folder with the module `mine`: (exit status, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    known = set(sys.modules)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["dpaudit", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        shown = capsys.readouterr()
        return stop.value.code, shown.out, shown.err

    yield call
    for name in set(sys.modules) - known:  # the modules in the folder
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]
