"""Commands that are stopped by Ctrl-C go on where they were, and end with the same results."""

import json
import shlex

import pytest

from dpaudit.audit.errors import Interrupted, OptionError
from dpaudit.audit.sampling.block_plan import Plan
from dpaudit.audit.store.sqlite_store import FILE, Store
from dpaudit.experiments.suite import run_suite
from dpaudit.reports.cli.interruption import store_for

MODULE = """
import pathlib, signal

def patient(dataset, size, rng):
    wanted = pathlib.Path("interrupts")
    if wanted.exists():
        number, times = wanted.read_text().split()
        wanted.write_text(f"{int(number) - 1} {times}")
        if number == "0":
            wanted.unlink()
            for _ in range(int(times)):
                signal.raise_signal(signal.SIGINT)
    return dataset + rng.laplace(size=size)

pairs = [(0, 0.25), (0, 0.5), (0, 1.0)]
"""
PAIR = shlex.split("audit patient_module:patient --x 0 --y 1 --epsilon 1 --jobs 1 --floating-point ignore")


@pytest.fixture(name="run")
def run_with_module(run, tmp_path, interruptible):
    (tmp_path / "patient_module.py").write_text(MODULE)
    return run


def results(out):
    body = json.loads((out / "results.json").read_text())
    body.pop("environment")
    return body


@pytest.mark.parametrize("kind", [["--runs", "200000"], ["--runs", "1000", "--sequential"]])
def test_stopped_and_resumed_it_ends_as_if_nothing_had_been(run, tmp_path, kind):
    """Early, when nothing has a verdict yet, and later."""
    arguments = [*PAIR, *kind]
    for after, times in ((4, 1), (90, 2)):
        (tmp_path / "interrupts").write_text(f"{after} {times}")
        status, out, err = run(*arguments, "--out", "out", *["--resume"] * (times > 1))
        assert status == 130, err
        assert "patient: interrupted after" in err or "--sequential" in kind
        assert "the same command with --resume continues" in err
        assert ("stopped on request after" in out) == (times == 2 and "--sequential" in kind)
        assert (tmp_path / "out" / FILE).exists()
    status, _, err = run(*arguments, "--out", "out")
    assert (status, "continue with --resume, or delete it" in err) == (2, True)
    assert run(*arguments, "--out", "out", "--resume")[0] == 0
    assert run(*arguments, "--out", "whole")[0] == 0
    assert results(tmp_path / "out") == results(tmp_path / "whole")
    assert not (tmp_path / "out" / FILE).exists()


def test_a_store_killed_before_its_first_note_is_resumed(tmp_path):
    Store(tmp_path).close()
    with store_for(tmp_path, "audit", is_resumed=True) as store:
        store.tell("kept", "yes")
    with pytest.raises(OptionError, match="belongs to dpaudit audit"), store_for(tmp_path, "run", is_resumed=True):
        pass


def test_a_run_goes_on_as_it_was_begun(run, tmp_path, monkeypatch):
    """Ended between two cases, so that it takes no timing."""
    arguments = ["run", "D1", "--runs", "2000", "--seed", "4"]
    assert run(*arguments, "--out", "whole")[0] in (0, 1)
    real, cases = run_suite.save, []

    def save(*arguments):
        real(*arguments)
        cases.append(1)
        if len(cases) == 2:
            raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr(run_suite, "save", save)
        status, _, err = run(*arguments, "--out", "out")
    assert status == 130, err
    assert "`dpaudit run --resume out` continues" in err
    assert len(results(tmp_path / "out")["suite"]["entries"]) == 2
    assert "belongs to dpaudit run; repeat that command with --resume" in run(*PAIR, "--out", "out", "--resume")[2]
    for changed in (["--seed", "0"], ["E3"], ["--runs", "1000"]):
        status, _, err = run("run", *changed, "--resume", "out")
        assert (status, "--resume keeps the first options" in err) == (2, True)
    assert run("run", "--resume", "out")[0] in (0, 1)
    assert results(tmp_path / "out") == results(tmp_path / "whole")


def test_a_search_goes_on_too(run, tmp_path, monkeypatch):
    arguments = [*PAIR[:2], "--search", "patient_module:pairs", *PAIR[6:]]
    arguments += ["--runs", "1000", "--search-runs", "800"]
    assert run(*arguments, "--out", "whole")[0] == 0
    real, left = Plan.draw, [8]

    def draw(plan, *others):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return real(plan, *others)

    with monkeypatch.context() as patch:
        patch.setattr(Plan, "draw", draw)
        status, _, err = run(*arguments, "--out", "out")
    assert (status, "the same command with --resume continues" in err) == (130, True)
    status, _, err = run(*arguments, "--search-runs", "801", "--out", "out", "--resume")
    assert (status, "search_runs: 800 there, 801 here" in err) == (2, True)
    assert run(*arguments, "--out", "out", "--resume")[0] == 0
    assert results(tmp_path / "out") == results(tmp_path / "whole")
    assert "its work is finished" in run(*arguments, "--out", "out", "--resume")[2]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "--resume", "nowhere"], "there is nothing to resume in nowhere: the folder does not exist"),
        (["run", "--resume", "nowhere", "--out", "there"], "--out there is a different folder"),
        ([*PAIR, "--resume"], "name the folder with --out"),
        ([*PAIR, "--out", "new", "--epsilon", "-1"], "--epsilon -1.0"),
    ],
)
def test_what_cannot_be_resumed_or_begun_leaves_nothing(run, tmp_path, arguments, said):
    status, _, err = run(*arguments)
    assert (status, said in err.replace(f"{tmp_path}/", "")) == (2, True)
    assert not (tmp_path / "new" / FILE).exists()
    assert not (tmp_path / "nowhere").exists()
