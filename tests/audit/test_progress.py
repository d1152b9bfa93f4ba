"""How long calls take, what is shown meanwhile, and how Ctrl-C ends them."""

import io
import itertools
import math
import pickle
import signal
import sys
import threading
import time

import numpy as np
import pytest

from dpaudit import Rows, check, check_equivalence, check_noise, check_sensitivity, find_worst_pair
from dpaudit.audit import progress
from dpaudit.audit.errors import Interrupted, OptionError
from dpaudit.audit.results.audit_result import InterimAnalysis
from dpaudit.noise import LaplaceNoise

from .stand_ins import noisy

OPTIONS = {"claim": 1.0, "runs": 400, "jobs": 1}
pytestmark = pytest.mark.usefixtures("interruptible")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(progress, "_EVERY", 0.0)
    monkeypatch.setattr(progress, "_OFTEN", 0.0)


@pytest.mark.usefixtures("at_once")
def test_a_log_gets_lines_and_a_terminal_one(capsys, monkeypatch):
    check(noisy, 0, 1, progress=True, **OPTIONS)
    assert capsys.readouterr().err.splitlines()[-1] == "noisy: 800 of 800 runs"
    check(noisy, 0, 1, progress=True, sequential=True, **OPTIONS)
    assert "runs on each dataset, bound" in capsys.readouterr().err
    find_worst_pair(noisy, [(0, 1), (0, 2)], progress=True, **OPTIONS)
    assert "noisy: leading pair: " in capsys.readouterr().err
    monkeypatch.setattr(sys, "stderr", shown := Terminal())
    check(noisy, 0, 1, progress=True, **OPTIONS)
    text = shown.getvalue()
    assert "\n" not in text
    assert "\r\x1b[Knoisy: 800 of 800 runs" in text
    assert text.endswith("\r\x1b[K"), "the line is removed in the end"
    monkeypatch.setattr(sys, "stderr", shown := Terminal())
    check(noisy, 0, 1, progress=True, name="n" * 200, **OPTIONS)
    lines = shown.getvalue().split("\r\x1b[K")
    assert lines[-2].endswith("nn: 800 of 800 runs")
    assert max(map(len, lines)) == 79


class Broken(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


@pytest.mark.usefixtures("at_once")
def test_an_audit_goes_on_if_nobody_reads_its_progress(monkeypatch, capsys):
    monkeypatch.setattr(progress, "_LONG", 0.0)
    closed = io.StringIO()
    closed.close()
    for stream in (None, closed, Broken()):
        monkeypatch.setattr(sys, "stderr", stream)
        assert check(noisy, 0, 1, progress=True, **OPTIONS).runs == 400
    assert not capsys.readouterr().out, "what belongs to standard error goes nowhere else"


def test_short_calls_show_nothing_unless_asked_a_function_is_told_and_anything_else_refused(capsys):
    told: list[int] = []
    for quiet in (None, False, told.append):
        check(noisy, 0, 1, progress=quiet, **OPTIONS)
    assert capsys.readouterr().err == ""
    assert sum(told) == 800
    with pytest.raises(OptionError, match="progress='bar' is unknown"):
        check(noisy, 0, 1, progress="bar", **OPTIONS)


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still; and calls are announced as outside of pytest."""
    now = [100.0]
    monkeypatch.setattr(progress, "_outlet", [])
    monkeypatch.setattr(time, "spent", now, raising=False)
    monkeypatch.setattr(time, "calls", [0], raising=False)
    monkeypatch.setattr(time, "clock_gettime", lambda _: now[0])
    return now


def test_a_log_has_a_line_at_most_every_ten_seconds(clock, capsys):
    with progress.told(True, "count") as meter:
        for second in range(31):
            clock[0] = 100.0 + second
            meter.interim(InterimAnalysis(1_000 * second, second / 100, 1 - second / 100))
            meter(2_000)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "count: 10,000 runs on each dataset, bound 0.1, p 0.9",
        "count: 20,000 runs on each dataset, bound 0.2, p 0.8",
        "count: 30,000 runs on each dataset, bound 0.3, p 0.7",
    ]
    for each, left in ((1e-4, ""), (0.01, ", about 10 s left")):  # a fixed number of runs is counted down
        with progress.told(True, "count") as meter:
            meter.expect(5_000)
            meter.ran(1, 1, each)
            meter(2_000)
            clock[0] += 11
            meter(2_000)
        assert capsys.readouterr().err == f"count: 4,000 of 5,000 runs{left}\n"


def in_seconds(line):
    number, unit = line.partition("about ")[2].split(" ")[:2]
    return float(number.replace(",", "")) * {"s": 1, "minutes": 60, "hours": 3600, "days": 86_400}[unit]


class Slow:
    """A mechanism that takes time on the clock: seconds of a call, by its number and its runs."""

    def __init__(self, seconds):
        self.seconds = seconds

    def spend(self, size=1):
        time.calls[0] += 1  # in a module, since these are not state of the mechanism
        time.spent[0] += self.seconds(time.calls[0], size)

    def one(self, value, rng):
        self.spend()
        return value + rng.laplace()

    def pair(self, value, rng):
        return self.one(value, rng), rng.laplace()

    def many(self, value, size, rng):
        self.spend(size)
        return value + rng.laplace(size=size)


NAN = math.nan
PACES = {
    "nothing, late": ([], 0, False, True, NAN),
    "one run": ([(1, 1, 5.0)], 0, False, False, NAN),
    "one run, late": ([(1, 1, 5.0)], 0, False, True, 5.0),
    "too few seconds": ([(1, 1, 5.0), (4, 1, 0.2)], 0, False, False, NAN),
    "too few seconds, late": ([(1, 1, 5.0), (4, 1, 0.2)], 0, False, True, 0.05),
    "enough": ([(1, 1, 5.0), (4, 1, 2.0), (4, 1, 4.0)], 100, False, False, 0.75),
    "a call of one run says nothing of many": ([(1, 1, 5.0), (1, 1, 2.0)], 100, True, False, NAN),
    "calls of one size": ([(1, 1, 5.0), (2, 50, 4.0)], 100, True, False, 0.04),
    "2 s and 0.1 s a run": ([(1, 1, 5.0), (1, 1, 2.1), (1, 41, 6.1)], 100, True, False, 0.12),
    "as for the largest": ([(1, 1, 5.0), (1, 1, 2.1), (1, 41, 6.1)], 0, True, False, 0.1 + 2.0 / 41),
    "constant so far": ([(1, 1, 5.0), (1, 1, 2.0), (1, 10, 2.0)], 100, True, False, NAN),
    "constant up to a quarter": ([(1, 1, 5.0), (1, 1, 2.0), (1, 25, 2.0)], 100, True, False, 0.02),
    "less for more runs": ([(1, 1, 5.0), (1, 1, 3.0), (1, 50, 2.0)], 100, True, False, 0.03),
}


@pytest.mark.parametrize(("calls", "coming", "is_block", "is_late", "seconds"), PACES.values(), ids=PACES)
def test_the_time_of_a_run_follows_from_that_of_calls(calls, coming, is_block, is_late, seconds):
    pace = progress.Pace()
    for each in calls:
        pace.add(*each)
    assert pace.of_run(coming, is_block=is_block, is_late=is_late) == pytest.approx(seconds, nan_ok=True)


CASES = {
    "6 ms": ("one", lambda call, size: 0.006, 10_000),
    "2 s": ("one", lambda call, size: 2.0, 400),
    "20 s": ("one", lambda call, size: 20.0, 100),
    "a slow first call": ("one", lambda call, size: 5.0 if call == 1 else 0.02, 4_000),
    "every second run slow": ("one", lambda call, size: 0.2 if call % 2 else 0.02, 1_000),
    "outputs of two numbers": ("pair", lambda call, size: 0.3, 400),
    "time by runs": ("many", lambda call, size: 0.002 * size, 50_000),
    "time by runs, slow": ("many", lambda call, size: 2.0 * size, 400),
    "constant time of a call": ("many", lambda call, size: 1.5, 20_000),
    "both": ("many", lambda call, size: 0.3 + 0.001 * size, 100_000),
    "a slow first call of many": ("many", lambda call, size: (5.0 if call == 1 else 0.0) + 0.003 * size, 20_000),
}


@pytest.mark.parametrize("name", CASES)
def test_a_line_says_how_long_the_runs_take(clock, monkeypatch, name):
    """Within ten seconds, or after the first run, and within a factor 1.5 of the truth."""
    kind, seconds, runs = CASES[name]
    slow, shown, at = Slow(seconds), [], []
    monkeypatch.setattr(progress, "to_stderr", lambda text: (shown.append(text), at.append(clock[0] - 100.0)))
    check(getattr(slow, kind), 0, 1, claim=1.0, runs=runs, jobs=1, floating_point="ignore", ignore="nonstationary")
    lines = [text for text in shown if " each" in text]
    assert len(lines) == 1
    assert at[shown.index(lines[0])] <= max(10.0, 2.0 * seconds(1, 1) + seconds(2, 1))
    assert 1 / 1.5 <= in_seconds(lines[0]) / (clock[0] - 100.0) <= 1.5
    assert f"({2 * runs:,} runs" in lines[0]
    assert ("a parameter size" in lines[0]) == (kind != "many")


@pytest.mark.usefixtures("clock")
def test_every_call_that_draws_says_it(capsys):
    slow = Slow(lambda call, size: 0.05)
    quick = {"runs": 2_000, "jobs": 1}
    calls = {
        "sequential": lambda: check(slow.one, 0, 1, claim=1.0, sequential=True, **quick),
        "detect": lambda: check(slow.one, 0, 1, claim=1.0, detect=0.5, jobs=1),
        "search": lambda: find_worst_pair(slow.one, [(0, 1), (0, 0.5)], claim=1.0, **quick),
        "equivalence": lambda: check_equivalence(slow.one, slow.one, 0, **quick),
        "margin": lambda: check_equivalence(slow.one, slow.one, 0, margin=0.2, **quick),
        "noise": lambda: check_noise(slow.one, 0, noise=LaplaceNoise(1.0), answer=0, **quick),
        "bins": lambda: check(slow.one, 0, 1, claim=1.0, bins=8, **quick),
        "sensitivity": lambda: check_sensitivity(
            lambda rows: slow.spend() or float(len(rows)), Rows(), adjacency="add-remove", bound=1.0, evaluations=3_000
        ),
    }
    for name, call in calls.items():
        call()
        assert ": about " in (err := capsys.readouterr().err) or ": at most about " in err, name


@pytest.mark.usefixtures("clock")
def test_the_time_of_replays_says_nothing_about_the_runs_that_follow(capsys):
    slow = Slow(lambda call, size: 5.0 if call <= 4 else 0.0001)
    find_worst_pair(slow.one, [(0, 1), (0, 0.5)], guide="replay", claim=1.0, runs=10_000, jobs=1)
    assert time.spent[0] > 115.0
    assert capsys.readouterr().err == ""
    time.calls[0], slow.seconds = 0, lambda call, size: 0.1
    find_worst_pair(slow.one, [(0, 1), (0, 0.5)], guide="replay", claim=1.0, runs=1_000, jobs=1)
    first, ways = capsys.readouterr().err.splitlines()[-2:]
    assert ", 100 ms each)" in first
    assert "guide=" not in ways


@pytest.mark.parametrize("is_elsewhere", [False, True])
@pytest.mark.parametrize("call", [check, find_worst_pair])
def test_replay_is_a_way_where_it_may_see_the_noise(clock, capsys, is_elsewhere, call):
    class Mechanism:
        draws_elsewhere = is_elsewhere

        def sample(self, value, size, rng):
            clock[0] += size
            return value + rng.laplace(size=size)

    pair = (0, 1) if call is check else ([(0, 1)],)
    call(Mechanism(), *pair, claim=1.0, runs=400, jobs=1, output=lambda outputs: 2 * outputs)
    assert ("replay" in capsys.readouterr().err) == (not is_elsewhere)


def test_a_plan_is_announced_and_the_runs_that_follow_too(clock, capsys, monkeypatch):
    def announced(shown, *plans):
        with progress.told(shown, "count") as meter:
            for is_planning in plans:
                meter.expect(1_000, is_planning=is_planning)
                for _ in range(20):
                    clock[0] += 1.0
                    meter.ran(1, 1, 1.0)

    announced(None, True, False, False)
    facts = [line.partition(" (")[2] for line in capsys.readouterr().err.splitlines() if "about" in line]
    assert facts == ["1,000 runs, 1 s each to choose how many runs follow)", "1,000 runs, 1 s each)"]
    monkeypatch.setattr(sys, "stderr", shown := Terminal())
    announced(True, False)
    assert "\r\x1b[Kcount: about 17 minutes (" in shown.getvalue(), "where the changing line was"


@pytest.mark.usefixtures("clock")
def test_a_call_with_workers_makes_so_many_runs_before_that_their_time_is_known(capsys):
    meter = progress.Meter(None, "spread")

    def make(runs, seconds):
        for part in meter.parts(runs):
            time.spent[0] += seconds * part
        return runs

    meter.expect(20_000)
    make(1, 6.0)
    probes = meter.probes(lambda: 4, 100)
    assert [make(next(probes), 0.03), make(next(probes), 0.03)] == [1, 33]
    assert next(probes, None) is None
    assert meter.seconds_per_run == pytest.approx(0.03 / 4)
    assert "(20,000 runs, 30 ms each, on 4 workers)" in capsys.readouterr().err


def pressed(after):
    """A mechanism in whose run of this number Ctrl-C is pressed."""
    calls = itertools.count(1)

    def mechanism(value, rng):
        if next(calls) == after:
            signal.raise_signal(signal.SIGINT)
        return value + rng.laplace()

    return mechanism


def test_ctrl_c_ends_a_sequential_audit_with_its_verdict():
    """As `on_interim` does after the last complete batch."""
    options = {"claim": 1.0, "jobs": 1, "sequential": True, "floating_point": "ignore"}
    with pytest.raises(Interrupted, match=r"interrupted after .* so far INCONCLUSIVE .* store=.* continues") as stop:
        check(pressed(1_500), 0, 1, runs=100_000, **options)
    found = stop.value.result
    asked = check(
        pressed(0), 0, 1, runs=100_000, on_interim=lambda at: at.runs == found.runs, **options, name="mechanism"
    )
    assert found.stopped == "request"
    assert (found.bound, found.counts, found.interim_analyses) == (asked.bound, asked.counts, asked.interim_analyses)
    assert pickle.loads(pickle.dumps(stop.value)).result == found
    with pytest.raises(Interrupted) as stop:  # before any analysis
        check(pressed(20), 0, 1, runs=100_000, **options)
    assert stop.value.result is None


def test_ctrl_c_ends_an_audit_of_fixed_size_without_a_verdict():
    with pytest.raises(Interrupted, match=r"of 4,000 runs; with store=.*sequential=True has a verdict") as stop:
        check(pressed(3_000), 0, 1, claim=1.0, runs=2_000, jobs=1)
    assert stop.value.result is None
    assert 2_900 < stop.value.runs <= 3_000
    with pytest.raises(Interrupted, match="interrupted after 1 of 4,000 runs;"):
        check(pressed(2), 0, 1, claim=1.0, runs=2_000, jobs=1)


@pytest.mark.parametrize("after", [2, 700, 2_500, 5_000, 9_000, 10_400])
def test_an_interrupted_search_counts_the_runs_of_all_its_parts(after):
    """Of the search, its audit, and the audits of simpler pairs."""
    pairs = [([0.0, 5.0, 3.0], [0.0]), ([0.0], [0.0, 1.0])]
    count = pressed(after)
    with pytest.raises(Interrupted, match=r"interrupted after (1 run|[\d,]+ runs);") as stop:
        find_worst_pair(
            lambda rows, rng: count(sum(rows), rng), pairs, claim=1.0, runs=3_000, search_runs=4_000, jobs=1
        )
    assert after - 1_024 <= stop.value.runs <= after  # fast runs are counted in parts


def stopping(*arguments):
    raise KeyboardInterrupt


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("when", ["on_round", "on_interim"])
def test_only_a_search_whose_noise_may_come_again_is_said_to_continue(kept, when, tmp_path):
    """While it searches, and during its audit."""
    options = {"claim": 1.0, "runs": 4_000, "search_runs": 1_000, "jobs": 1, "sequential": True, when: stopping}
    for own, mechanism in (
        (False, lambda value, rng: value + rng.laplace()),
        (True, lambda value: value + np.random.default_rng().laplace()),
    ):
        store = {"store": tmp_path / f"{own}"} if kept else {}
        with pytest.raises(Interrupted) as stop:
            find_worst_pair(mechanism, [(0, 1), (0, 2)], **options, **store)
        text = str(stop.value)
        assert ("the search begins anew" in text) == own
        assert ("the same call continues" in text) == ("if all noise comes from rng" in text) == (not own)
        assert ('with store="folder"' in text) == (not own and not kept)
        assert ("with another store" in text) == (own and kept)


def test_the_call_that_is_said_to_continue_does_so(tmp_path):
    """Also if the seed was left to chance."""
    options = {"claim": 1.0, "runs": 4_000, "jobs": 1, "sequential": True, "store": tmp_path}
    with pytest.raises(Interrupted, match=r"the same call with seed=\d+ continues with the kept draws$") as stop:
        check(noisy, 0, 1, seed=None, on_interim=stopping, **options)
    seed = int(str(stop.value).partition("seed=")[2].split()[0])
    assert check(noisy, 0, 1, seed=seed, **options).seed == seed


def test_with_workers_the_runs_of_finished_chunks_are_counted():
    for shown in (False, None):
        meter = progress.Meter(shown, "count")
        meter.is_block = False
        meter.expect(4_000)
        list(meter.probes(lambda: 2, 16))
        meter.ran(32, 1, 0.1)  # here, to see how long runs take
        for done in (0, 200, 400):
            stop = meter.interrupted()
            assert f"count: interrupted after {done} of 4,000 runs in the finished chunks; " in str(stop)
            assert stop.runs == done
            meter(200)


def test_ctrl_c_ends_a_search_with_its_leading_pair():
    pairs = [(0, 0.1), (0, 3), (0, 0.2)]
    for after, has_result in ((1_400, False), (3_000, True)):
        with pytest.raises(Interrupted, match="leading pair so far: ") as stop:
            find_worst_pair(pressed(after), pairs, claim=4.0, runs=10_000, search_runs=2_000, sequential=True, jobs=1)
        assert stop.value.pair == (0, 3)
        assert stop.value.leading[0].bound > 0.3
        assert (stop.value.result is not None) == has_result


def test_a_second_ctrl_c_ends_at_once(monkeypatch):
    def twice(self, *arguments, **options):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("dpaudit.audit.procedures.sequential.SequentialAudit.conclude", twice)
    with pytest.raises(KeyboardInterrupt) as stop:
        check(pressed(1_500), 0, 1, claim=1.0, runs=100_000, sequential=True, jobs=1)
    assert type(stop.value) is KeyboardInterrupt


def test_ctrl_c_while_nothing_is_drawn_waits_for_the_next_draw(monkeypatch):
    """So that no state is left half changed."""
    real = progress.Meter.interim

    def interim(meter, at):
        if at.runs > 1_000 and not meter.is_stopped:
            signal.raise_signal(signal.SIGINT)
        real(meter, at)

    monkeypatch.setattr(progress.Meter, "interim", interim)
    with pytest.raises(Interrupted) as stop:
        check(noisy, 0, 1, claim=1.0, runs=100_000, sequential=True, jobs=1)
    assert stop.value.result.interim_analyses[-1].runs == stop.value.result.runs > 1_000


def test_signals_that_are_ignored_or_the_callers_stay_so():
    before = signal.getsignal(signal.SIGINT)
    try:
        for own in (signal.SIG_IGN, lambda number, frame: None):
            signal.signal(signal.SIGINT, own)
            assert check(pressed(500), 0, 1, claim=1.0, runs=400, jobs=1).runs == 400
            assert signal.getsignal(signal.SIGINT) is own
    finally:
        signal.signal(signal.SIGINT, before)
    done: list[int] = []
    thread = threading.Thread(target=lambda: done.append(check(noisy, 0, 1, **OPTIONS).runs))
    thread.start()
    thread.join()
    assert done == [400]
