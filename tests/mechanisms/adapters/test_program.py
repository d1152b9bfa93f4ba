"""Programs as mechanisms: audits of the example programs, requests, and permitted answers."""

import json
import math
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import cloudpickle
import joblib
import numpy as np
import pytest

from dpaudit import AddRemove, ApproxDP, PureDP, Verdict, check
from dpaudit.audit.errors import DatasetError, MechanismError, OptionError
from dpaudit.audit.sampling.sampler import as_sampler
from dpaudit.mechanisms.adapters import Program
from dpaudit.mechanisms.adapters.program_protocol import request_line

EXAMPLES = Path(__file__).parents[3] / "examples" / "programs"
X, Y = [1.0, 2.0, 3.0], [1.0, 2.0]


def script(code, *, before="", **options):
    """Return a program that runs `before` at its start and `code` for each request."""
    command = [sys.executable, "-I", "-S", Path(__file__).with_name("answering_program.py"), code, before]
    return Program(command, **{"name": "script", "seconds": 10.0, **options})


def answers(code, **options):
    return script(f"write(json.dumps({code}) + '\\n')", **options)


def draw(program, size=1000, dataset=(1, 2), seed=1):
    return as_sampler(program).draw(dataset, size, np.random.default_rng(seed))


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def open_files():
    return len(os.listdir("/dev/fd"))


@pytest.fixture(scope="module")
def c_count(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler (cc or gcc)")
    path = tmp_path_factory.mktemp("program") / "laplace"
    subprocess.run([compiler, "-O2", "-o", path, EXAMPLES / "laplace.c", "-lm"], check=True)
    return [str(path)]


@pytest.fixture(scope="module")
def node_count():
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no Node (node)")
    return [node, str(EXAMPLES / "laplace.js")]


@pytest.mark.parametrize("language", ["c_count", "node_count"])
def test_the_examples_keep_their_claim_and_break_it_with_too_little_noise(language, request):
    command = request.getfixturevalue(language)
    for scale, verdict in (("1.0", Verdict.NOT_REFUTED), ("0.7", Verdict.REFUTED)):
        program = Program([*command, scale], claim=PureDP(1.0), adjacency=AddRemove(), claim_source="README")
        result = check(program, X, Y, claim=program.claim, adjacency=program.adjacency, alpha=1e-6, runs=6_000, jobs=1)
        assert result.verdict is verdict
        assert result.is_replayable
        assert result.low_bits is None or not result.low_bits.is_suspicious
        program.close()


def test_the_c_example_counts_rows(c_count):
    program = Program([*c_count, "0.001"])
    for rows in ([], [5], [1.5, -2, 3e7]):
        assert np.abs(draw(program, dataset=rows) - len(rows)).max() < 0.05
        assert draw(program, dataset=np.array(rows)).shape == (1000,)


def test_two_workers_count_what_one_counts(c_count):
    program = Program(c_count)
    results = [check(program, X, Y, claim=PureDP(1.0), runs=60_000, jobs=jobs) for jobs in (1, 2)]
    assert results[0] == results[1]
    assert results[0].counts.runs_x > 50_000


def test_worker_processes_start_their_own(c_count):
    program = Program(c_count)
    here = check(program, X, Y, claim=PureDP(1.0), runs=20_000, jobs=1)
    with joblib.parallel_config(backend="loky"):
        there = check(program, X, Y, claim=PureDP(1.0), runs=20_000, jobs=2)
    assert here == there


@pytest.mark.parametrize(
    ("code", "first", "dtype"),
    [
        ("[1.5] * n", 1.5, np.float64), ("[3] * n", 3, np.int64), ("[True] * n", True, np.int64),
        ("[2**70] * n", 2**70, object), ("[2**62] * n", 2**62, object), ("[1, 0.5] * (n // 2)", 1.0, np.float64),
        ("[float('nan')] * n", math.nan, np.float64), ("[float('-inf')] * n", -math.inf, np.float64),
        ("['ä'] * n", "ä", object), ("[None] * n", None, object), ("[[1, ['a', None]]] * n", (1, ("a", None)), object),
        ("[[]] * n", (), object),
    ],
)  # fmt: skip
def test_what_json_holds_is_an_output(code, first, dtype):
    outputs = draw(answers(code))
    assert outputs.dtype == dtype
    assert outputs.shape == (1000,)
    assert outputs[0] == first or (first != first and outputs[0] != outputs[0])


def test_vectors_come_as_arrays_and_raw():
    for code in (
        "[i, i + 0.5]",
        "[float(i), i + 0.5]",
    ):  # checked one by one, and converted directly
        vectors = draw(answers(f"[{code} for i in range(n)]"))
        assert vectors.shape == (1000, 2)
        assert vectors[7].tolist() == [7, 7.5]
    assert draw(answers("[[i, 2 * i] for i in range(n)]")).dtype == np.int64
    assert draw(answers("[[i] * (i % 2) for i in range(n)]"))[:2].tolist() == [(), (1,)]
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
    seed = int(np.random.default_rng(1).integers(2**63))
    assert json.loads(text) == [{"runs": 3, "seed": seed, "dataset": {"rows": [[1, 2.5]], "name": "é"}}, "here", "/"]
    assert seed >= 2**53  # beyond the whole numbers of a double


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


def test_health_checks_see_a_seed_of_its_own_and_a_program_with_entropy_is_fine():
    laplace = "round(random.expovariate(1) - random.expovariate(1), 6)"
    noise = f"write(json.dumps([len(r['dataset']) + {laplace} for _ in range(n)]) + '\\n')"
    fixed = check(script(f"random.seed(1); {noise}"), X, Y, claim=PureDP(1.0), runs=20_000, jobs=1)
    assert fixed.verdict is Verdict.INCONCLUSIVE
    assert {finding.check.value for finding in fixed.findings} >= {"repeated-blocks"}
    free = check(script(noise), X, Y, claim=ApproxDP(1.0, 1e-3), runs=10_000, jobs=1, alpha=1e-6)
    assert free.verdict is Verdict.NOT_REFUTED
    assert not free.is_replayable


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        ({"rows": {1, 2}}, r"dataset\['rows'\] is a set, which JSON cannot hold"),
        ({1: 2}, "dataset is a dict with keys other than strings"),
        (b"x", "dataset is a bytes"),
        (np.array([1j]), r"dataset\[0\] is a complex"),
    ],
)
def test_what_json_cannot_hold_is_named(dataset, message):
    with pytest.raises(DatasetError, match=message):
        draw(answers("[1] * n"), dataset=dataset)


def test_a_dataset_that_holds_itself_is_refused():
    loop = []
    loop.append(loop)
    with pytest.raises(DatasetError, match="holds itself"):
        request_line(loop, 1, 1)


@pytest.mark.parametrize(
    ("dataset", "text"),
    [
        (np.float32(0.5), "0.5"), (np.array(3), "3"), (np.array([[True], [False]]), "[[true], [false]]"),
        (np.array(["a", None], dtype=object), '["a", null]'), ((1, ("b", None)), '[1, ["b", null]]'),
        ({"a\n": "\ud800é"}, r'{"a\n": "\ud800\u00e9"}'),
    ],
)  # fmt: skip
def test_datasets_as_json(dataset, text):
    assert request_line(dataset, 10, 2) == f'{{"runs": 10, "seed": 2, "dataset": {text}}}\n'.encode("ascii")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"command": "./mech --scale 2"}, MechanismError, "shlex.split"),
        ({"command": Path("mech")}, MechanismError, "shlex.split"),
        ({"command": []}, MechanismError, "not a list of words"),
        ({"command": ["mech", 2]}, MechanismError, "not a list of words"),
        ({"command": ["mech", "a\0b"]}, MechanismError, "not a list of words"),
        ({"command": ["mech"], "seconds": 0}, OptionError, "seconds=0 is not a time limit"),
        ({"command": ["mech"], "seconds": math.nan}, OptionError, "seconds=nan"),
        ({"command": ["mech"], "retries": -1}, OptionError, "retries=-1"),
        ({"command": ["mech"], "adjacency": "rows"}, OptionError, "adjacency='rows'"),
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


def test_names_are_legible():
    assert str(Program(["mech", "--scale", "2 3"])) == "mech --scale '2 3'"
    assert str(Program(["mech"], name="count")) == "count"
    assert str(Program(["mech", "\x1b[31m"])).isprintable()
    assert len(str(Program(["mech", "x" * 200]))) == 80
    assert "hunter2" not in repr(Program(["mech"], environment={"TOKEN": "hunter2"}))


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
    status = Path(f"/proc/{said.read_text()}/stat")
    assert status.read_text().split()[2] != "Z"
    program.close()
    started = time.monotonic()
    while status.exists() and status.read_text().split()[2] != "Z" and time.monotonic() < started + 5:
        time.sleep(0.01)
    assert not status.exists() or status.read_text().split()[2] == "Z"
