"""Fuzzing: a quick form of the benchmark, and that the watch sees what no example may do."""

import functools
import json
import pickle
import socket
import subprocess
import sys
import time
from collections import OrderedDict

import pytest

from dpaudit.audit.errors import OptionError, RecordError
from dpaudit.audit.records.json_codec import load, to_json
from dpaudit.experiments.benchmarks.measure import load_record

from .__main__ import FUZZ, main
from .examples import sample_results
from .sandbox import MisstepError, TooSlow, Yard, hook


def test_the_quick_form_whose_examples_are_known_by_their_numbers(capsys, tmp_path):
    counts = []
    for _ in range(2):
        assert main(["--examples", "60", "--out", str(tmp_path)]) == 0
        assert capsys.readouterr().out.count(", failed 0, ") == len(FUZZ.rows)
        rows = load_record(tmp_path / "fuzz.json")["fuzz"]
        counts.append({name: (row["cells"]["accepted"], row["cells"]["refused"]) for name, row in rows.items()})
    assert counts[0] == counts[1]
    assert all(refused for _, refused in counts[0].values())
    assert any(accepted for accepted, _ in counts[0].values())


def changed(tmp_path, entry, **fields):
    """The suite in a file whose entry of this name has other values in these fields of its result."""
    body = json.loads(to_json(sample_results()))
    (result,) = (each["result"] for each in body["suite"]["entries"] if each["name"] == entry)
    for path, value in fields.items():
        *inside, last = path.split("__")
        functools.reduce(dict.__getitem__, inside, result)[last] = value
    path = tmp_path / "results.json"
    path.write_text(json.dumps(body), encoding="utf-8")
    return load(path)


@pytest.mark.parametrize(
    "fields", [{"bins__count_y": [-44, 51, 93, 112, 0]}, {"opposite__guesses__runs": 2**53}], ids=["bins", "guesses"]
)
def test_impossible_counts_in_a_file_are_refused(tmp_path, fields):
    with pytest.raises(RecordError):
        changed(tmp_path, "cells", **fields)


def test_an_excess_beyond_any_number_of_runs_is_printed(tmp_path):
    suite = changed(tmp_path, "outcomes", min_detectable_excess=1e300)
    assert "next: " in str(suite.entries[2].result)


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
