"""Programs as mechanisms: requests, permitted answers, and misbehaviour.

Every misbehaviour of a program is an error within the time limit and leaves no process behind.
"""

import json
import math
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import cloudpickle
import numpy as np
import pytest

from dpaudit.audit.errors import MechanismError, OptionError
from dpaudit.audit.sampling.sampler import as_sampler
from dpaudit.mechanisms.adapters import Program
from dpaudit.mechanisms.adapters import program as programs
from dpaudit.mechanisms.adapters.data_files import OutputError
from dpaudit.mechanisms.adapters.program import read_array, read_header

from ...processes import has_ended, is_running


def script(code, *, before="", **options):
    """Return a program that runs `before` at its start and `code` for each request."""
    command = [sys.executable, "-I", "-S", Path(__file__).with_name("answering_program.py"), code, before]
    return Program(command, **{"name": "script", "seconds": 10.0, **options})


def answers(code, **options):
    return script(f"write(json.dumps({code}) + '\\n')", **options)


def draw(program, size=1000, dataset=(1, 2), seed=1):
    return as_sampler(program).draw(dataset, size, np.random.default_rng(seed))


def open_files():
    return len(os.listdir("/dev/fd"))


@pytest.mark.parametrize(
    ("line", "dtype"),
    [
        ("[1.5, NaN, -Infinity]", np.float64),
        ("[3, -4]", np.int64),
        ("[[1, 2], [3, 4]]", np.int64),
        ("[[1, 0.5], [3, 4]]", None),  # of two types
        ("[4611686018427387904]", None),  # 2**62, whose neighbours a double does not hold
        ('["ä", null, true]', None),
        ('[[1, ["a", null]], []]', None),
        ('[{"n": 1.5}, {}]', None),
    ],
)
def test_what_json_holds_is_an_output_and_numbers_of_one_type_are_an_array(line, dtype):
    outputs = json.loads(line)
    found = read_array(line.encode(), len(outputs))
    assert found == outputs if dtype is None else (found.dtype, repr(found.tolist())) == (dtype, repr(outputs))


def test_vectors_come_as_arrays_and_raw():
    raw = draw(script("import array; header([n, 2]); raw(array.array('d', range(2 * n)).tobytes())"))
    assert np.array_equal(raw, np.arange(2000.0).reshape(1000, 2))
    whole = draw(script("import array; header([n], 'int64'); raw(array.array('q', [-5] * n).tobytes())"))
    assert whole.dtype == np.int64
    assert set(whole.tolist()) == {-5}


def test_the_program_sees_the_request():
    program = answers(
        "[json.dumps([r, os.environ['PLACE'], os.getcwd()])] * n", environment={"PLACE": "here"}, folder="/"
    )
    (text,) = set(draw(program, dataset={"rows": np.array([[1, 2.5]]), "name": "é"}, size=3).tolist())
    seed = int(np.random.default_rng(1).integers(2**53))
    assert json.loads(text) == [{"runs": 3, "seed": seed, "dataset": {"rows": [[1, 2.5]], "name": "é"}}, "here", "/"]
    assert seed == float(seed) > 2**32  # which programs read as a double, or as a whole number of 64 bits


def test_one_program_serves_block_after_block_and_no_two_threads():
    program = answers("time.sleep(0.3) or [os.getpid()] * n")
    assert draw(program, 1)[0] == draw(program, 1)[0]
    found, threads = [], []
    for _ in range(2):
        threads.append(threading.Thread(target=lambda: found.append(int(draw(program, 1)[0]))))
        threads[-1].start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 2


def test_nothing_is_left_of_it():
    files = open_files()
    program = answers("[os.getpid()] * n")
    pid = int(draw(program, 1)[0])
    assert is_running(pid)
    assert open_files() == files + 3
    copy = cloudpickle.loads(cloudpickle.dumps(program))
    assert copy == program
    other = int(draw(copy, 1)[0])
    assert other != pid
    program.close()
    del copy
    assert not is_running(pid)
    assert not is_running(other)
    assert open_files() == files
    assert int(draw(program, 1)[0]) not in (pid, other)


def test_it_ends_with_python():
    code = (
        "import sys, numpy as np; from dpaudit.mechanisms.adapters import Program\n"
        "p = Program(eval(sys.argv[1])); print(p.sample([], 1, np.random.default_rng(1))[0])"
    )
    stubborn = "if n: write(f'[{os.getpid()}]\\n'); flush(); time.sleep(99)"
    command = [sys.executable, "-c", code, repr(script(stubborn).command)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert not is_running(int(done.stdout))


def test_a_forked_process_leaves_the_programs_of_its_parent_alone():
    program = answers("[os.getpid()] * n")
    pid = int(draw(program, 1)[0])
    child = os.fork()
    if child == 0:
        try:
            own = int(program.sample((1, 2), 1, np.random.default_rng(1))[0])
            program.close()
            os._exit(0 if own != pid else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert int(draw(program, 1)[0]) == pid


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"command": "./mech --scale 2"}, MechanismError, "shlex.split"),
        ({"command": []}, MechanismError, "not a list of words"),
        ({"command": ["mech", "a\0b"]}, MechanismError, "not a list of words"),
        ({"command": ["mech"], "seconds": 0}, OptionError, "seconds=0 is not a time limit"),
        ({"command": ["mech"], "retries": -1}, OptionError, "retries=-1"),
        ({"command": ["mech"], "adjacency": "rows"}, OptionError, "adjacency='rows'"),
        ({"command": ["mech"], "failures": "output"}, OptionError, "with placeholders"),
        ({"command": ["mech", "{input.csv}"], "failures": "ignore"}, OptionError, "failures='ignore' is unknown"),
        ({"command": ["mech", "{input.csv}"], "encoding": "klingon"}, OptionError, "encoding='klingon' is unknown"),
        ({"command": ["mech", "{input.csv}"], "columns": "age"}, OptionError, "columns='age' are not names"),
    ],
)
def test_options_are_checked(options, error, message):
    with pytest.raises(error, match=message):
        Program(**options)


def test_a_program_that_is_not_there_or_cannot_be_run(tmp_path):
    with pytest.raises(MechanismError, match=r"no-such-program.* cannot be started \(.*No such file"):
        draw(Program(["./no-such-program"], folder=tmp_path))
    (tmp_path / "text").write_text("hello")
    with pytest.raises(MechanismError, match=r"cannot be started \(.*Permission denied"):
        draw(Program(["./text"], folder=tmp_path))


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="the system does not show the environment")
def test_what_a_program_starts_in_a_session_of_its_own_ends_with_it(tmp_path):
    """Also a process whose parent has ended; NaN and infinite numbers reach the program."""
    said = tmp_path / "number"
    code = f"""
import json, os, sys, time
for line in sys.stdin:
    request = json.loads(line)
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        for pipe in range(3):
            os.close(pipe)
        open({str(said)!r} + ".part", "w").write(str(os.getpid()))
        os.rename({str(said)!r} + ".part", {str(said)!r})
        time.sleep(60)
    while not os.path.exists({str(said)!r}):
        time.sleep(0.01)
    print(json.dumps(request["dataset"]), flush=True)
"""
    program = Program([sys.executable, "-c", code])
    answer = program.sample([math.nan, math.inf, -0.0], 3, np.random.default_rng(0))
    assert repr(answer.tolist()) == "[nan, inf, -0.0]"
    assert is_running(said.read_text())
    program.close()
    assert has_ended(said.read_text())


# Misbehaviour.


def draw_in_time(program, seconds=0.4, at_most=None, **options):
    """Draw with a time limit that excludes the program's start, by asking for a single run first."""
    draw(program, 1)
    object.__setattr__(program, "seconds", seconds)
    started = time.monotonic()
    try:
        return draw(program, **options)
    finally:
        assert time.monotonic() - started < (seconds + 1.5 if at_most is None else at_most)


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
    "says why when it has closed its output": (
        "os.close(1); time.sleep(0.05); os.write(2, b'late'); os._exit(5)",
        "ended with status 5 before .*ends with 'late'",
    ),
    "says why before many frames": (
        "at = 150 * '\\tat org.example.Deep.call(Deep.java:12)\\n'\n"
        "    sys.stderr.write('Error: no such city\\n' + at + 'Caused by: no map\\n' + at); sys.exit(1)",
        r"ends with 'Error: no such city(\\n\\tat org[^\\]*){4}\\n…\\nCaused by: no map(\\n\\tat org[^\\]*){4}\\n…'",
    ),
    "half a line": ("write('[1, 2'); flush(); time.sleep(9)", r"did not answer for 0.4 seconds \(5 bytes came"),
    "too few": ("write(json.dumps([1] * (n - 1)) + '\\n')", "answered 999 outputs, asked for 1000 runs"),
    "two lines": ("write(json.dumps([1] * n) + '\\nDone.\\n')", r"wrote 'Done.\\n' after its answer"),
    "huge shape": ("header([n, 10**12])", "announced 8000000000000000 bytes"),
    "raw and short": ("header([n]); raw(bytes(8 * n - 1))", r"did not answer .*7999 bytes of 8000 came"),
    "raw and long": ("header([n]); raw(bytes(8 * n + 1))", r"wrote '\\x00' after its answer"),
    "no end of line": ("while True: write('1' * 65536)", "bytes without the end of a line, which begin with '1111"),
    "floods and dies": (
        "sys.stderr.write('x' * 10**7 + '\\nlast'); sys.exit(4)",
        r"ended with status 4 .*ends with 'x+.nlast'",
    ),
}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"hello", "answered 'hello', which is not JSON"),
        (b"7", "answered '7', which is not an array"),
        (b"[1, 2, 3, 4]", "answered 4 outputs"),
        (b"[" * 10**6, "nested too deeply"),
        (b"[" + b"9" * 10**4 + b"]", "not JSON"),
        (b'["\xff"]', "which is not UTF-8"),
        (b'{"format": "float32", "shape": [3]}', "answered the header"),
        (b"{}", "answered the header '{}'"),
        (b'{"format": "int64", "shape": [2]}', r"answered the shape \[2\]"),
        (b'{"format": "int64", "shape": [3, 1, 1]}', r"answered the shape \[3, 1, 1\]"),
        (b'{"format": "int64", "shape": [3, -1]}', r"answered the shape \[3, -1\]"),
    ],
)
def test_an_answer_that_breaks_the_protocol_is_named(line, message):
    with pytest.raises(OutputError, match=message):
        (read_header if line.startswith(b"{") else read_array)(line, 3)


@pytest.mark.parametrize(("code", "message"), MISBEHAVING.values(), ids=MISBEHAVING)
def test_misbehaviour_is_an_error_in_time(code, message, monkeypatch):
    monkeypatch.setattr(programs, "MOST_BYTES", 1 << 22)
    files = open_files()
    program = script(f"if n > 1:\n    {code}\nelse: write('[0]\\n')")
    with pytest.raises(MechanismError, match=message) as caught:
        draw_in_time(program, 0.4 if "did not answer" in message else 10.0, seed=5)
    seed = int(np.random.default_rng(5).integers(2**53))
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
        ("time.sleep(9)", [1], r"did not answer .*\(0 bytes came\)"),
        ("time.sleep(9)", [1] * 100_000, r"and \d{6} bytes of the request were not read"),
        ("os.close(0); time.sleep(9)", [1] * 100_000, "closed its standard input before"),
        ("print([1] * 1000, flush=True); time.sleep(9)", [1] * 100_000, "before it (was asked|had read)"),
        ("raise SystemExit('no licence')", [1], "ended with status 1 before .*'no licence'"),
    ],
    ids=["prompt", "deaf", "deaf to a large request", "closed input", "unasked", "refuses to start"],
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
    assert has_ended(child)
    assert open_files() <= files


def test_a_program_that_dies_before_a_child_that_holds_its_output_has_its_exit_status():
    dying = "import subprocess; subprocess.Popen(['sleep', '99'])\nif n > 1: write('[1'); flush(); os._exit(4)\n"
    dying += "write('[0]\\n')"
    with pytest.raises(MechanismError, match=r"ended with status 4 before its answer was complete \(2 bytes came"):
        draw_in_time(script(dying), seconds=60.0, at_most=3.0)


def test_the_time_limit_is_for_silence():
    slow = "write('[0'); flush()\nfor _ in range(n - 1): time.sleep(0.1); write(', 0'); flush()\nwrite(']\\n')"
    assert draw_in_time(script(slow), seconds=0.4, at_most=30.0, size=6).tolist() == [0] * 6  # half a second in total
    held_back = "time.sleep(0.2 * (n - 1)); write(json.dumps([0] * n) + '\\n')"
    with pytest.raises(
        MechanismError, match=r"did not answer for 0.4 seconds \(0 bytes came\).* without a byte of an answer"
    ):
        draw_in_time(script(held_back), seconds=0.4, size=6)


def test_an_answer_that_begins_before_the_request_is_read_stops_nothing():
    code = "import sys, json; print('[' + ' ' * 10**6, flush=True, end='')"
    loop = "for line in sys.stdin: print(json.dumps([len(json.loads(line)['dataset'])])[1:], flush=True)"
    program = Program([sys.executable, "-I", "-S", "-c", f"import time; time.sleep(0.1)\n{code}\n{loop}"], seconds=5.0)
    assert program.sample([7] * 100_000, 1, np.random.default_rng(1)).tolist() == [100_000]


def test_retries_put_the_same_request_again(tmp_path):
    log = tmp_path / "seeds"
    code = f"""with open({str(log)!r}, "a+") as log:
    log.write(f"{{r['seed']}}\\n"); log.seek(0); earlier = log.readlines()
if len(earlier) < 3: sys.exit(3)
write(json.dumps([r["seed"]] * n) + "\\n")"""
    with pytest.raises(MechanismError, match=r"ended with status 3 before .* \(2 times\), asked for 5 runs"):
        draw(script(code, retries=1), 5)
    log.unlink()
    outputs = draw(script(code, retries=2), 5)
    seeds = log.read_text().split()
    assert len(seeds) == 3
    assert set(seeds) == {str(int(np.random.default_rng(1).integers(2**53)))}
    assert outputs[0] == int(seeds[0])


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
