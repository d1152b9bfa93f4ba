"""Fuzzing: a quick form of the benchmark, examples that shrink, and that the watch sees what no example may do."""

import pickle
import socket
import subprocess
import sys
import time
from collections import OrderedDict
from contextlib import ExitStack
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpaudit.audit.errors import OptionError

from .examples import mutated_json
from .fuzz_page import FUZZ, main, prepared, try_one
from .sandbox import MisstepError, TooSlow, Yard, hook

TARGETS = tuple(FUZZ.rows)


def test_the_quick_form(capsys, tmp_path):
    assert main(["--quick", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.count(", failed 0, ") == len(TARGETS)
    assert [path.name for path in tmp_path.iterdir()] == ["fuzz-quick.json"]


@pytest.fixture(scope="module")
def targets():
    """What tries an example of each target but the command line, whose commands take long."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(prepared(name)) for name in TARGETS if name != "command line"}


@pytest.mark.parametrize("name", [name for name in TARGETS if name != "command line"])
@given(rng=st.randoms(use_true_random=False))
@settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=4,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_an_example_that_fails_would_be_made_small(targets, name, rng):
    """The choices are drawn by hypothesis, which looks for the least that fails, and has files of its own to write."""
    attempt, yard = targets[name]
    yard.clear()
    assert attempt(rng) in (True, False)


@pytest.mark.parametrize("name", ["files of results", "stored values"])
def test_examples_are_known_by_their_numbers(name):
    """Some are accepted, and the same each time."""
    with prepared(name) as (attempt, yard):
        first, again = (
            [try_one(name, attempt, yard, Random(f"{name} {number}")) for number in range(4)] for _ in range(2)
        )
    assert first == again
    text = '{"schema": 4, "suite": {"entries": [1, 2.5, "x"]}}'
    assert mutated_json(Random(1), text) == mutated_json(Random(1), text) != mutated_json(Random(2), text)


@pytest.fixture
def yard(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = Yard(tmp_path)
    found.plant("precious.txt", "precious")
    found.plant("trap.py", "")
    found.clear()
    hook()
    yield found
    sys.modules.pop("trap", None)


def writes_and_removes(yard):
    (yard.root / "new.txt").write_text("new")
    (yard.root / "new.txt").unlink()


MISSTEPS = {
    "writes": lambda yard: (yard.root / "new.txt").write_text("new"),
    "overwrites": lambda yard: (yard.root / "precious.txt").write_text("P"),
    "makes a folder": lambda yard: (yard.root / "new").mkdir(),
    "removes": lambda yard: (yard.root / "precious.txt").unlink(),
    "writes and removes": writes_and_removes,
    "imports": lambda yard: __import__("trap"),
    "unpickles": lambda yard: pickle.loads(pickle.dumps(OrderedDict())),
    "connects": lambda yard: socket.socket().close(),
    "starts": lambda yard: subprocess.run(["true"], check=True),
}


@pytest.mark.parametrize("does", MISSTEPS.values(), ids=MISSTEPS)
def test_the_watch_sees_what_no_example_may_do(yard, does):
    with pytest.raises(MisstepError), yard.watched(60.0):
        does(yard)
    assert yard.found() == yard.kept
    with yard.watched(60.0):
        (yard.out / "ours.txt").write_text("ours")


@pytest.mark.skipif(not hasattr(__import__("signal"), "setitimer"), reason="the signals of POSIX are needed")
def test_the_watch_ends_what_hangs(yard):
    with pytest.raises(TooSlow), yard.watched(0.05):
        time.sleep(60.0)


def test_too_few_examples_are_refused():
    with pytest.raises(OptionError):
        main(["--examples", "0"])
