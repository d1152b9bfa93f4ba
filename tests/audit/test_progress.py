"""How long calls take, what is shown meanwhile, and how Ctrl-C ends them."""

import io
import pickle
import signal
import sys
import threading
import time

import pytest

from dpaudit import Rows, check, check_equivalence, check_noise, check_sensitivity, find_worst_pair
from dpaudit.audit import progress
from dpaudit.audit.errors import Interrupted, OptionError
from dpaudit.audit.results.audit_result import InterimAnalysis
from dpaudit.noise import LaplaceNoise

OPTIONS = {"claim": 1.0, "runs": 400, "jobs": 1}


def noisy(value, size, rng):
    return value + rng.laplace(size=size)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(progress, "_EVERY", 0.0)
    monkeypatch.setattr(progress, "_OFTEN", 0.0)


@pytest.mark.usefixtures("at_once")
def test_a_log_gets_lines(capsys):
    check(noisy, 0, 1, progress=True, **OPTIONS)
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1] == "noisy: 800 of 800 runs"
    check(noisy, 0, 1, progress=True, sequential=True, **OPTIONS)
    assert "runs on each dataset, bound" in capsys.readouterr().err
    find_worst_pair(noisy, [(0, 1), (0, 2)], progress=True, **OPTIONS)
    assert "noisy: leading pair: " in capsys.readouterr().err


@pytest.mark.usefixtures("at_once")
def test_a_terminal_without_rich_gets_one_line(monkeypatch):
    monkeypatch.setattr(progress, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "stderr", shown := Terminal())
    check(noisy, 0, 1, progress=True, **OPTIONS)
    text = shown.getvalue()
    assert "\n" not in text
    assert "\r\x1b[Knoisy: 800 of 800 runs" in text
    assert text.endswith("\r\x1b[K"), "the line is removed in the end"


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
    with progress.told(True, "count") as meter:
        meter.expect(5_000)
        meter(2_000)
        clock[0] += 11
        meter(2_000)
    assert capsys.readouterr().err == "count: 4,000 of 5,000 runs\n", "a fixed number of runs is counted down"


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
    lines = [text for text in shown if "about" in text]
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
def test_a_call_with_workers_makes_so_many_runs_before_that_their_time_is_known():
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
    assert pickle.loads(pickle.dumps(meter)) is progress.UNWATCHED


@pytest.fixture
def keyboard():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # nohup ignores it
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def pressed(after, times=1, scale=1.0):
    """A mechanism in whose run of this number Ctrl-C is pressed."""
    calls = [0]

    def mechanism(value, rng):
        calls[0] += 1
        for _ in range(times * (calls[0] == after)):
            signal.raise_signal(signal.SIGINT)
        return value + scale * rng.laplace()

    return mechanism


@pytest.mark.usefixtures("keyboard")
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


@pytest.mark.usefixtures("keyboard")
def test_ctrl_c_ends_an_audit_of_fixed_size_without_a_verdict():
    with pytest.raises(Interrupted, match=r"of 4,000 runs; with store=.*sequential=True has a verdict") as stop:
        check(pressed(3_000), 0, 1, claim=1.0, runs=2_000, jobs=1)
    assert stop.value.result is None
    assert 2_900 < stop.value.runs <= 3_000


@pytest.mark.usefixtures("keyboard")
def test_ctrl_c_ends_a_search_with_its_leading_pair():
    pairs = [(0, 0.1), (0, 3), (0, 0.2)]
    for after, has_result in ((1_400, False), (3_000, True)):
        with pytest.raises(Interrupted, match="leading pair so far: ") as stop:
            find_worst_pair(pressed(after), pairs, claim=4.0, runs=10_000, search_runs=2_000, sequential=True, jobs=1)
        assert stop.value.pair == (0, 3)
        assert stop.value.leading[0].bound > 0.3
        assert (stop.value.result is not None) == has_result


@pytest.mark.usefixtures("keyboard")
def test_a_second_ctrl_c_ends_at_once(monkeypatch):
    def twice(self, *arguments, **options):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("dpaudit.audit.procedures.sequential.SequentialAudit.conclude", twice)
    with pytest.raises(KeyboardInterrupt) as stop:
        check(pressed(1_500), 0, 1, claim=1.0, runs=100_000, sequential=True, jobs=1)
    assert type(stop.value) is KeyboardInterrupt


@pytest.mark.usefixtures("keyboard")
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
