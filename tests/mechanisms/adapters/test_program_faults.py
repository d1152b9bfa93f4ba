"""Every misbehaviour of a program is an error within the time limit and leaves no process behind."""

import os
import pickle
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from dpaudit.audit.errors import MechanismError
from dpaudit.audit.sampling.sampler import as_sampler
from dpaudit.mechanisms.adapters import Program
from dpaudit.mechanisms.adapters import program as programs


def script(code, *, before="", **options):
    """Return a program that runs `before` at its start and `code` for each request."""
    command = [sys.executable, "-I", "-S", Path(__file__).with_name("answering_program.py"), code, before]
    return Program(command, **{"name": "script", "seconds": 10.0, **options})


def draw(program, size=1000, dataset=(1, 2), seed=1):
    return as_sampler(program).draw(dataset, size, np.random.default_rng(seed))


def draw_in_time(program, seconds=0.4, at_most=None, **options):
    """Draw with a time limit that excludes the program's start, by asking for a single run first."""
    draw(program, 1)
    object.__setattr__(program, "seconds", seconds)
    started = time.monotonic()
    try:
        return draw(program, **options)
    finally:
        assert time.monotonic() - started < (seconds + 1.5 if at_most is None else at_most)


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def open_files():
    return len(os.listdir("/dev/fd"))


MISBEHAVING = {
    "dies": (
        "sys.stderr.write('no such\\ncolumn \\x1b[31m'); sys.exit(3)",
        r"ended with status 3 before .*'no such\\ncolumn \\x1b\[31m'",
    ),
    "dies half-way": (
        "write('[1, 2'); flush(); sys.exit(0)",
        r"ended with status 0 .*\(5 bytes came: '\[1, 2'\).*until the end of its standard input",
    ),
    "is killed": ("os.kill(os.getpid(), 9)", "was ended by SIGKILL before"),
    "closes its output": ("os.close(1); time.sleep(9)", "closed its standard output before"),
    "says why when it has closed its output": (
        "os.close(1); time.sleep(0.05); os.write(2, b'late'); os._exit(5)",
        "ended with status 5 before .*ends with 'late'",
    ),
    "garbage": ("write('hello\\n')", r"answered 'hello', which is not JSON .* standard error"),
    "no array": ("write('7\\n')", "answered '7', which is not an array"),
    "half a line": ("write('[1, 2'); flush(); time.sleep(9)", r"did not answer for 0.4 seconds \(5 bytes came"),
    "nothing": ("time.sleep(9)", r"did not answer for 0.4 seconds \(0 bytes came\).*raise seconds=0.4"),
    "too few": ("write(json.dumps([1] * (n - 1)) + '\\n')", "answered 999 outputs, asked for 1000 runs"),
    "too many": ("write(json.dumps([1] * (n + 1)) + '\\n')", "answered 1001 outputs, asked for 1000 runs"),
    "two lines": ("write(json.dumps([1] * n) + '\\nDone.\\n')", r"wrote 'Done.\\n' after its answer"),
    "an object": ("write(json.dumps([{}] * n) + '\\n')", "an object as an output"),
    "deep": ("write('[' * 10**6 + '\\n')", "nested too deeply"),
    "long number": ("write('[' + '9' * 10**4 + ']\\n')", "not JSON"),
    "another encoding": ("raw(b'[\"\\xff\"]\\n')", r"answered '\[\"\\+xff\"\]', which is not UTF-8"),
    "another format": ("header([n], 'float32')", r"answered the header .*; use .*\"int64\""),
    "no header": ("write('{}\\n')", "answered the header '{}'"),
    "wrong shape": ("header([n - 1])", r"answered the shape \[999\], .*; use \[1000\] or \[1000, n_coords\]"),
    "three dimensions": ("header([n, 1, 1])", r"answered the shape \[1000, 1, 1\]"),
    "negative shape": ("header([n, -1])", r"answered the shape \[1000, -1\]"),
    "huge shape": ("header([n, 10**12])", "announced 8000000000000000 bytes"),
    "raw and short": ("header([n]); raw(bytes(8 * n - 1))", r"did not answer .*7999 bytes of 8000 came"),
    "raw, short and gone": (
        "header([n]); raw(bytes(8)); sys.stdout.buffer.flush(); os._exit(1)",
        "ended with status 1 .*8 bytes came",
    ),
    "raw and long": ("header([n]); raw(bytes(8 * n + 1))", r"wrote '\\x00' after its answer"),
    "no end of line": ("while True: write('1' * 65536)", "bytes without the end of a line, which begin with '1111"),
    "floods and dies": (
        "sys.stderr.write('x' * 10**7 + '\\nlast'); sys.exit(4)",
        r"ended with status 4 .*ends with 'x+.nlast'",
    ),
    "floods for ever": ("while True: sys.stderr.write('x' * 65536)", "did not answer for 0.4 seconds"),
}


@pytest.mark.parametrize(("code", "message"), MISBEHAVING.values(), ids=MISBEHAVING)
def test_misbehaviour_is_an_error_in_time(code, message, monkeypatch):
    monkeypatch.setattr(programs, "MOST_BYTES", 1 << 22)
    files = open_files()
    program = script(f"if n > 1:\n    {code}\nelse: write('[0]\\n')")
    with pytest.raises(MechanismError, match=message) as caught:
        draw_in_time(program, 0.4 if "did not answer" in message else 10.0, seed=5)
    seed = int(np.random.default_rng(5).integers(2**63))
    text, facts = str(caught.value), caught.value.facts
    assert text.startswith("script ")
    assert f"asked for 1000 runs with seed {seed};" in text
    assert sys.executable in text
    assert text.isprintable()  # one line without terminal control characters
    assert len(text) < 3000
    assert (facts["runs"], facts["seed"], facts["command"]) == (1000, seed, list(program.command))
    assert len(facts["standard_error"]) <= 1000
    assert pickle.loads(pickle.dumps(caught.value)).facts == facts
    assert open_files() <= files


@pytest.mark.parametrize(
    ("before", "dataset", "message"),
    [
        ("print('Ready> ', end='', flush=True)", [1], r"'Ready> (\[1, 1, 1|')"),
        ("print('Ready', flush=True)", [1], "'Ready(\\\\n)?'"),
        ("time.sleep(9)", [1], r"did not answer .*\(0 bytes came\)"),
        ("time.sleep(9)", [1] * 100_000, r"and \d{6} bytes of the request were not read"),
        ("os.close(0); time.sleep(9)", [1] * 100_000, "closed its standard input before"),
        ("print([1] * 1000, flush=True); time.sleep(9)", [1] * 100_000, "before it (was asked|had read)"),
        ("raise SystemExit('no licence')", [1], "ended with status 1 before .*'no licence'"),
    ],
    ids=["prompt", "greeting", "deaf", "deaf to a large request", "closed input", "unasked", "refuses to start"],
)
def test_misbehaviour_from_the_start(before, dataset, message):
    seconds = 0.4 if "bytes" in message else 10.0
    program = script("write(json.dumps([1] * n) + '\\n')", before=before, seconds=seconds)
    with pytest.raises(MechanismError, match=message):
        draw(program, dataset=dataset)


def test_a_failed_program_is_ended_with_all_that_it_started():
    files = open_files()
    program = script(
        "import subprocess\n"
        "if n == 1: child = subprocess.Popen(['sleep', '99'], stdin=-3, stdout=-3).pid; write(f'[{child}]\\n')\n"
        "else: time.sleep(9)"
    )
    child = int(draw(program, 1)[0])
    assert is_running(child)
    object.__setattr__(program, "seconds", 0.1)
    with pytest.raises(MechanismError, match=r"for 0.1 seconds"):
        draw(program)
    for _ in range(200):  # until the process that adopts orphans has reaped it
        if not is_running(child) or "\nState:\tZ" in Path(f"/proc/{child}/status").read_text():
            break
        time.sleep(0.01)
    else:
        pytest.fail("the child of the program runs on")
    assert open_files() <= files


def test_a_program_that_dies_before_a_child_that_holds_its_output_has_its_exit_status():
    dying = "import subprocess; subprocess.Popen(['sleep', '99'])\nif n > 1: write('[1'); flush(); os._exit(4)\n"
    dying += "write('[0]\\n')"
    with pytest.raises(MechanismError, match=r"ended with status 4 before its answer was complete \(2 bytes came"):
        draw_in_time(script(dying), seconds=60.0, at_most=3.0)


def test_the_time_limit_is_for_silence():
    slow = "write('[0'); flush()\nfor _ in range(n - 1): time.sleep(0.2); write(', 0'); flush()\nwrite(']\\n')"
    assert draw_in_time(script(slow), seconds=0.8, at_most=30.0, size=6).tolist() == [0] * 6  # a second in total
    held_back = "time.sleep(0.2 * (n - 1)); write(json.dumps([0] * n) + '\\n')"
    with pytest.raises(
        MechanismError, match=r"did not answer for 0.8 seconds \(0 bytes came\).* without a byte of an answer"
    ):
        draw_in_time(script(held_back), seconds=0.8, size=6)


def test_a_long_command_is_cut_short_in_messages():
    command = [sys.executable, "-c", "import sys; sys.exit(3)" + " # and so on" * 100]
    with pytest.raises(MechanismError, match=r"its command is .*'import sys; sys\.exit") as caught:
        draw(Program(command))
    assert len(str(caught.value)) < 800
    assert caught.value.facts["command"] == command


def test_a_flood_on_standard_error_stops_nothing():
    program = script("sys.stderr.write('x' * 10**7); write(json.dumps([1] * n) + '\\n')")
    assert draw(program).sum() == 1000
    assert draw(program).sum() == 1000


def test_an_answer_that_begins_before_the_request_is_read_stops_nothing():
    code = "import sys, json; print('[' + ' ' * 10**6, flush=True, end='')"
    loop = "for line in sys.stdin: print(json.dumps([len(json.loads(line)['dataset'])])[1:], flush=True)"
    program = Program([sys.executable, "-I", "-S", "-c", f"import time; time.sleep(0.1)\n{code}\n{loop}"], seconds=5.0)
    assert program.sample([7] * 1_000_000, 1, np.random.default_rng(1)).tolist() == [1_000_000]


def test_retries_put_the_same_request_again(tmp_path):
    log = tmp_path / "seeds"
    code = f"""with open({str(log)!r}, "a+") as log:
    log.write(f"{{r['seed']}}\\n"); log.seek(0); earlier = log.readlines()
if len(earlier) < 3: sys.exit(3)
write(json.dumps([r["seed"] % 2**53] * n) + "\\n")"""
    with pytest.raises(MechanismError, match=r"ended with status 3 before .* \(2 times\), asked for 5 runs"):
        draw(script(code, retries=1), 5)
    log.unlink()
    outputs = draw(script(code, retries=2), 5)
    seeds = log.read_text().split()
    assert len(seeds) == 3
    assert set(seeds) == {str(int(np.random.default_rng(1).integers(2**63)))}
    assert outputs[0] == int(seeds[0]) % 2**53


class Interrupt(BaseException):
    """Ctrl-C by a user."""


def test_an_interrupted_answer_is_not_taken_for_the_next():
    def interrupt(number, frame):
        raise Interrupt

    program = script("time.sleep(r['dataset'] == 'slow'); write(json.dumps([r['dataset']] * n) + '\\n')")
    assert draw(program, 1, "quick").tolist() == ["quick"]
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(Interrupt):
            draw(program, 1, "slow")
    finally:
        signal.signal(signal.SIGALRM, before)
    assert draw(program, 1, "quick").tolist() == ["quick"]
