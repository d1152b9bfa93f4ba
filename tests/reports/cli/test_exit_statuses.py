"""An exit status is that of the verdict, or 2: whatever audited code does, and wherever the output goes."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from dpaudit.audit.errors import UnknownNameError
from dpaudit.audit.records.json_codec import load
from dpaudit.reports.cli.dataset_arguments import import_object

from ...processes import has_ended

MODULE = """
import os, sys
from pathlib import Path

def noisy(rows, size, rng):
    return len(rows) + rng.laplace(size=size)

def moving(rows, size, rng):
    os.chdir(Path(__file__).parent / "other")
    return noisy(rows, size, rng)

def leaving(rows, size, rng):
    if size > 20:
        os._exit(0)
    return noisy(rows, size, rng)

def one(rows, rng):
    os._exit(0)

"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine.py").write_text(MODULE)
    return tmp_path


# Runs each command in a fork of this process, which has loaded the library: a new process takes a second to load it.
LOADED = """
import gc, json, os, sys
from dpaudit.reports.cli.main import main, program

sys.argv[1:] = "audit first:noisy --x 1 --y 0 --epsilon 1 --runs 100 --jobs 1 --out out".split()
try:
    with open(os.devnull, "w") as sys.stdout:
        main()
except SystemExit:
    sys.stdout = sys.__stdout__
gc.freeze()  # so that no child copies what it does not change

def opened(path):
    if path != "a reader who left":
        return os.open(path, os.O_RDWR | os.O_CREAT)
    reader, writer = os.pipe()
    os.close(reader)
    return writer

for line in sys.stdin:
    folder, paths, sys.argv[1:] = json.loads(line)
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        for number, path in enumerate(paths):
            os.dup2(opened(path), number)
        program()
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
AUDIT = ("--x", "[1,1]", "--y", "[1]", "--runs", "600", "--floating-point", "ignore")


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    first, pipes = tmp_path_factory.mktemp("first"), {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    (first / "first.py").write_text("def noisy(answer, size, rng): return answer + rng.laplace(size=size)")
    with subprocess.Popen([sys.executable, "-c", LOADED], cwd=first, text=True, **pipes) as process:
        yield process


@pytest.fixture
def begun(loaded, folder):
    """Begins a command, and returns the number of its process and a function that waits for its end.

    The function returns the exit status, standard output and standard error.
    """

    def begin(*arguments, stdout="stdout", stderr="stderr"):
        paths = [os.devnull, stdout, stderr]
        loaded.stdin.write(json.dumps([str(folder), paths, arguments]) + "\n")
        loaded.stdin.flush()
        number = int(loaded.stdout.readline())

        def ended():
            status = int(loaded.stdout.readline())
            shown = [folder / path for path in (stdout, stderr)]
            texts = [path.read_text() if path.parent == folder and path.exists() else "" for path in shown]
            for path in shown:
                if path.parent == folder:
                    path.unlink(missing_ok=True)
            return status, *texts

        return number, ended

    return begin


@pytest.fixture
def audited(begun):
    """An audit of a mechanism with one added row: exit status, standard output and standard error."""

    def audit(mechanism, *options, epsilon="1", **streams):
        return begun("audit", mechanism, *AUDIT, "--epsilon", epsilon, "--jobs", "1", *options, **streams)[1]()

    return audit


@pytest.mark.parametrize("code", ["raise SystemExit(0)", "raise GeneratorExit"])
def test_a_module_that_ends_on_import_is_an_error(tmp_path, monkeypatch, code):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "ends_on_import.py").write_text(code)
    with pytest.raises(UnknownNameError, match=r"ends_on_import' failed with (SystemExit|GeneratorExit)"):
        import_object("ends_on_import:f")


@pytest.mark.parametrize(("mechanism", "jobs"), [("mine:leaving", "1"), ("mine:one", "2")])
def test_code_that_ends_the_process_gives_no_verdict(audited, mechanism, jobs):
    status, out, err = audited(mechanism, "--jobs", jobs, "--out", "out")
    assert (status, out) == (2, "")
    assert err.startswith("MechanismError: ")


def test_the_report_is_written_where_the_output_is_closed(folder):
    """A closed output does not change the status. A separate process begins without these streams."""
    command = [sys.executable, "-m", "dpaudit", "audit", "mine:noisy", *AUDIT, "--epsilon", "0.1", "--out", "out"]
    shell = ["sh", "-c", '"$@" 1>&- 2>&-', "sh", *command, "--jobs", "1"]
    done = subprocess.run(shell, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
    assert load(folder / "out" / "results.json").entries[0].result.is_refuted


def test_the_report_is_written_although_nobody_reads_the_output(audited, folder):
    """A reader who left takes no part in the status; where output was wanted and lost, the status is 2."""
    full = {"stdout": "/dev/full", "stderr": "/dev/full"}
    assert audited("mine:noisy", "--out", "out", **full)[0] == 2
    assert not load(folder / "out" / "results.json").entries[0].result.is_refuted
    status, _, err = audited("mine:noisy", "--bins", "4", "--out", "left", stdout="a reader who left")
    assert (status, err) == (0, "")
    assert (folder / "left" / "report.html").exists()
    status, _, err = audited("mine:noisy", stdout="/dev/full")
    assert (status, err) == (2, "OSError: standard output cannot be written (No space left on device).\n")


REPLACING = """
sys.stdout = sys.stderr = sys.__stdout__ = open("/dev/full", "w"); print(1)
del sys.stdout, sys.stderr; sys.exit = print
sys.stdout.close(); sys.stdout.buffer.close(); sys.stdout.detach()
atexit.register(setattr, sys, "stdout", open("/dev/full", "w")); atexit.register(print, 1)
atexit.register(os._exit, 0)
"""


@pytest.mark.parametrize("statement", REPLACING.strip().splitlines())
def test_a_verdict_is_printed_to_the_streams_that_the_command_had(audited, folder, statement):
    code = "import atexit, os, sys\nonce = []\ndef f(rows, size, rng):\n    if not once:\n        once.append(1)\n"
    code += f"        {statement}\n    return len(rows) + rng.laplace(size=size)\n"
    (folder / "replaces.py").write_text(code)
    status, out, err = audited("replaces:f", epsilon="0.1")
    assert (status, err) == (1, "")
    assert out.startswith("REFUTED")


PROGRAM = """
import json, random, subprocess, sys, time
none = subprocess.DEVNULL
child = subprocess.Popen(["sleep", "60"], stdin=none, stdout=none, stderr=none)
open("child", "w").write(f"{child.pid} ")
for line in sys.stdin:
    print([random.random() for _ in range(json.loads(line)["runs"])], flush=True)
    time.sleep(0.2)
"""


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="reads /proc")
def test_a_signal_ends_what_a_program_has_started(begun, folder):
    (folder / "program.py").write_text(PROGRAM)
    program = f"{sys.executable} program.py"
    command = ["audit", "--program", program, "--x", "[1,1]", "--y", "[1]", "--epsilon", "1", "--runs", "100000"]
    audit, ended = begun(*command)
    until = time.monotonic() + 60
    while not (folder / "child").exists() or not (child := (folder / "child").read_text()).endswith(" "):
        assert time.monotonic() < until
        time.sleep(0.05)
    os.kill(audit, signal.SIGTERM)
    status, _, err = ended()
    assert (status, "interrupted" in err) == (128 + signal.SIGTERM, True)
    assert has_ended(child.strip())


def test_every_path_is_resolved_at_the_start(audited, folder):
    other = folder / "other" / "out"
    other.mkdir(parents=True)
    (other / "audit.sqlite").write_text("draws")
    (other / "results.json").write_text("results")
    (folder / "x.json").write_text("[1, 1]")
    status, out, _ = audited("mine:moving", "--x", "@x.json", "--out", "out")
    assert status == 0
    assert "report: out/report.html\n" in out
    assert sorted(os.listdir(folder / "out")) == ["report.html", "report.md", "results.json"]
    assert {path.name: path.read_text() for path in other.iterdir()} == {
        "audit.sqlite": "draws",
        "results.json": "results",
    }


def test_a_verdict_is_printed_although_its_report_cannot_be_written(begun, audited, folder):
    """A link is refused before an audit that may take hours, and after one of a moment."""
    (folder / "out").mkdir()
    (folder / "out" / "report.html").symlink_to("elsewhere")
    status, out, err = audited("mine:noisy", "--out", "out")
    assert (status, out) == (2, "")
    assert "report.html is a symbolic link" in err
    coins = np.random.default_rng(1).random(400) < 0.5
    (folder / "scores.csv").write_text("score,included\n" + "".join(f"{coin},{coin}\n" for coin in coins))
    status, out, _ = begun("canaries", "scores.csv", "--epsilon", "1", "--out", "out")[1]()
    assert status == 2
    assert out.startswith("REFUTED")
    assert json.loads((folder / "out" / "results.json").read_text())["summary"]["refuted"] == ["training run"]
