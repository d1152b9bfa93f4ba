"""Faults: attacks on audits by code, data and machine, and audits that are killed and resumed."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...audit.store.sqlite_store import FILE, JOURNAL_MAGIC
from .measure import Effort, Figures, Seeds, Table, at_most, by_name, timed

# Attacks that need processes, folders or another state of the machine, with the required outcomes.

_HEAD = """
import os, signal, subprocess, sys, time
import numpy as np
from dpaudit import AddRemove, PureDP, check, save

def settings(**changed):
    return {"claim": PureDP(1.0), "runs": 4_000, "seed": 1, "jobs": 1, "floating_point": "ignore"} | changed

def noisy(dataset, rng):
    return dataset + rng.laplace()

def command_line(words, **options):
    program = "from dpaudit.reports.cli.main import program; program()"
    return subprocess.run([sys.executable, "-c", program, *words.split()], **options)

def print_result(work):
    try:
        print(work())
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
"""


@dataclass(frozen=True, slots=True)
class Attack:
    """A program in Python that attacks an audit, and a regular expression for the whole outcome that it must print."""

    program: str
    outcome: str

    @property
    def script(self) -> str:
        return _HEAD + self.program


ATTACKS: dict[str, Attack] = {
    "joblib's multiprocessing backend": Attack(
        """
import joblib

if __name__ == "__main__":
    plain = check(noisy, 0, 1, **settings())
    with joblib.parallel_config("multiprocessing", n_jobs=2):
        print_result(lambda: f"the same result: {check(noisy, 0, 1, **settings(jobs=None)) == plain}")
""",
        "the same result: True",
    ),
    "exceptions in the main runs only": Attack(
        """
def rare(dataset, rng):
    if rng.random() < 1e-4:
        raise ValueError
    return dataset + rng.laplace()

print_result(lambda: "; ".join(check(rare, 0, 1, **settings(runs=60_000)).notes))
""",
        r"ValueError was raised in \d+ of 57,000 main runs on x; ValueError was raised in \d+ of 57,000 main runs on y",
    ),
    "antithetic noise at half a block": Attack(
        """
def antithetic(dataset, size, rng):
    half = rng.laplace(size=(size + 1) // 2)
    return dataset + np.concatenate([half, -half])[:size]

print_result(lambda: check(antithetic, 0, 1, **settings(runs=20_000)).findings[0])
""",
        r"the \w+.* on x vary 0\.[01]\d times as much between the .* chunks as they would in independent runs .*",
    ),
    "the parent process is killed": Attack(
        """
program = '''
import os, time
from dpaudit import PureDP, check
def slow(dataset, rng):
    open(f"worker-{os.getpid()}", "w").close()
    time.sleep(0.2)
    return dataset + rng.laplace()
check(slow, 0, 1, claim=PureDP(1.0), runs=10_000, jobs=2)
'''

def running(pid):
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
    return bool(state) and not state.startswith("Z")

parent = subprocess.Popen([sys.executable, "-c", program])
workers, end = set(), time.monotonic() + 60
while len(workers) < 2 and time.monotonic() < end:
    time.sleep(0.1)
    workers = {int(name.split("-")[1]) for name in os.listdir() if name.startswith("worker-")} - {parent.pid}
parent.kill()
parent.wait()
started = time.monotonic()
while any(map(running, workers)) and time.monotonic() < started + 30:
    time.sleep(0.1)
print(len(workers), "workers, ended within 5 seconds:", time.monotonic() - started < 5)
""",
        "2 workers, ended within 5 seconds: True",
    ),
    "the clock is set back": Attack(
        """
print_result(lambda: check(noisy, 0, 1, **settings(runs=None, sequential=True, seconds=0.2)).stopped)
real = time.time
def turned(dataset, rng):
    time.time = lambda: real() - 86_400 * rng.random()
    return dataset + rng.laplace()
started = time.monotonic()
print_result(lambda: check(turned, 0, 1, **settings(runs=None, sequential=True, seconds=0.2)).stopped)
print("in time:", time.monotonic() - started < 5)
""",
        r"time\ntime\nin time: True",
    ),
    "a file that the mechanism reads changes under a store": Attack(
        """
def reading(dataset, rng):
    with open("scale.txt") as file:
        return dataset + rng.laplace(scale=float(file.read()))

def until(look):
    return look.runs > 1_000

kept = settings(runs=20_000, sequential=True, store="kept")
with open("scale.txt", "w") as file:
    file.write("1")
check(reading, 0, 1, on_interim=until, **kept)
with open("scale.txt", "w") as file:
    file.write("1.5")
print_result(lambda: check(reading, 0, 1, **kept))
""",
        r"StoreError: reading draws other outputs than those in the store, from the same seed: .*",
    ),
    "a dataset is changed in a worker process": Attack(
        """
def rarely(rows, rng):
    if rng.random() < 0.01:
        rows.append(1)
    return rng.laplace()

if __name__ == "__main__":
    print_result(lambda: check(rarely, [1, 2], [1], **settings(jobs=2)))
""",
        r"INCONCLUSIVE  rarely: failed health check: dataset-mutated\s+the mechanism changed 2 of the 2 datasets "
        r".*its copy in a worker process.*",
    ),
    "a worker process dies under joblib's multiprocessing backend": Attack(
        """
import joblib

def dies(dataset, rng):
    if rng.random() < 1e-3:
        os._exit(3)
    return rng.laplace()

if __name__ == "__main__":
    with joblib.parallel_config("multiprocessing", n_jobs=2):
        print_result(lambda: check(dies, 0, 1, **settings(jobs=None)))
""",
        r"MechanismError: a worker process that ran dies died .*",
    ),
    "vectors of 50,000 numbers, test of low bits": Attack(
        """
import resource

def wide(dataset, size, rng):
    return dataset + rng.laplace(size=(size, 50_000))

result = check(wide, 0.0, 1.0, **settings(runs=64, floating_point="warn"))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10  # MiB
print(f"{result.verdict.value}, within 1 GiB: {peak < 1024}")
""",
        "refuted, within 1 GiB: True",
    ),
    "a read-only folder, unprivileged user": Attack(
        """
os.mkdir("locked")
os.chmod("locked", 0o555)
if os.getuid() == 0:
    os.chmod(".", 0o755)
    os.setuid(65534)
print_result(lambda: check(noisy, 0, 1, **settings(store="locked")))
""",
        r"StoreError: .*/locked/audit\.sqlite cannot be used \(.*Permission denied.*\).* permit writing .*",
    ),
    "a mechanism that changes the folder": Attack(
        """
with open("mine.py", "w") as file:
    file.write("import os\\ndef moving(dataset, rng):\\n    if os.path.isdir('elsewhere'):\\n")
    file.write("        os.chdir('elsewhere')\\n    return dataset + rng.laplace()\\n")
os.mkdir("elsewhere")
options = "audit mine:moving --x 0 --y 1 --epsilon 1 --adjacency local --runs 4000 --out report"
done = command_line(options, capture_output=True)
print(done.returncode, os.path.exists("report/report.html"), os.listdir("elsewhere"))
""",
        r"0 True \[\]",
    ),
    "a journal planted in a store, by which SQLite would delete a file": Attack(
        """
def until(look):
    return look.runs > 1_000

def big_endian(*numbers):
    return b"".join(number.to_bytes(4, "big") for number in numbers)

kept = settings(runs=20_000, sequential=True, store="kept")
check(noisy, 0, 1, on_interim=until, **kept)
with open("victim", "w") as file:
    file.write("of somebody else")
with open("kept/audit.sqlite", "rb") as file:
    content = file.read()
page, victim, magic = int.from_bytes(content[16:18], "big"), os.path.abspath("victim").encode(), SQLITE_JOURNAL
head = magic + big_endian(0, 0, len(content) // page, 512, page)
named = big_endian(2**30 // page + 1) + victim + big_endian(len(victim), sum(victim))  # as the super-journal
with open("kept/audit.sqlite-journal", "wb") as file:
    file.write(head.ljust(512, bytes(1)) + named + magic)
print_result(lambda: check(noisy, 0, 1, **kept))
print("the file is there:", os.path.exists("victim"))
""".replace("SQLITE_JOURNAL", repr(JOURNAL_MAGIC)),
        r"StoreError: .*audit\.sqlite-journal.*\nthe file is there: True",
    ),
    "a refuted audit in a thread of a test": Attack(
        """
with open("test_it.py", "w") as file:
    file.write(
        "import threading\\n"
        "def noisy(dataset, rng):\\n    return 3 * dataset + rng.laplace()\\n"
        "def test_it(dp_audit):\\n"
        "    audit = lambda: dp_audit(noisy, 0, 1, claim=1.0, adjacency='local', runs=4_000)\\n"
        "    thread = threading.Thread(target=audit)\\n    thread.start()\\n    thread.join()\\n"
    )
command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:threadexception"]
done = subprocess.run(command, capture_output=True, text=True)
print(done.returncode, "1 failed" in done.stdout)
""",
        "1 True",
    ),
    "a reader that left before the verdict": Attack(
        """
with open("mine.py", "w") as file:
    file.write("def noisy(dataset, rng):\\n    return dataset + rng.laplace()\\n")
reading, writing = os.pipe()
os.close(reading)
options = "audit mine:noisy --x 0 --y 1 --epsilon 1 --adjacency local --runs 4000"
done = command_line(options, stdout=writing, stderr=subprocess.DEVNULL)
print(done.returncode)
""",
        "0",
    ),
}
_PATIENCE = 300.0  # seconds
_SHOWN = 160


def _run(program: Path, folder: str) -> tuple[str, bool]:
    """Return the output of a program, or its errors, and whether its exit status was 0."""
    command = [sys.executable, str(program)]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        return f"still running after {_PATIENCE:g} seconds", False
    return (done.stdout.strip(), True) if done.returncode == 0 else (done.stderr.strip(), False)


def _attack_cells(effort: Effort, seeds: Seeds, name: str) -> Figures:
    attack = ATTACKS[name]
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "attack.py")
        program.write_text(attack.script, encoding="utf-8")
        program.chmod(0o644)
        Path(folder).chmod(0o755)
        (said, has_ended), seconds = timed(_run, program, folder)
    is_met = has_ended and re.fullmatch(attack.outcome, said, re.DOTALL) is not None
    shown = " / ".join(said.splitlines())
    outcome = shown[:_SHOWN] + "…" * (len(shown) > _SHOWN)
    return {"name": name, "outcome": outcome, "seconds": seconds}, [at_most("unexpected outcomes", not is_met, 0)]


# Audits that are killed repeatedly and resumed, compared with undisturbed audits.

_KILLS, _QUICK_KILLS = 15, 1
_LONGEST = 3.0  # seconds until a process is killed; it takes about one to start
_QUICK_LONGEST = 0.1  # seconds from the existence of the store; a slow machine would kill most processes before it
_POLLED = 0.01  # seconds between two looks for the store

# The additional means make the functions slow, so that a kill interrupts their work, and barely change the noise.
_MODULE = """
import numpy as np
from dpaudit import Rows

def block(dataset, size, rng):
    return dataset + rng.laplace(size=size) + 1e-3 * rng.normal(size=(40, size)).mean(axis=0)

def looped(dataset, rng):
    return float(dataset + rng.laplace() + 1e-3 * rng.normal(size=2_000).mean())

def vectors(dataset, size, rng):
    return dataset + rng.laplace(scale=5.0, size=(size, 5)) + 1e-3 * rng.normal(size=(20, size, 5)).mean(axis=0)

def texts(dataset, rng):
    return f"{dataset + rng.geometric(0.6) - rng.geometric(0.6) + 0 * rng.normal(size=1_000).mean():.0f}"

def counting(rows, rng):
    return looped(len(rows), rng)

domain = Rows(low=0.0, high=1.0, most=3)
"""


@dataclass(frozen=True, slots=True)
class _Kind:
    """Kind of audit: the function, its runs and further options of the command line."""

    function: str
    runs: int
    options: tuple[str, ...] = ("--x", "0", "--y", "1")


_KINDS = {
    "fixed size": _Kind("block", 20_000_000),
    "sequential": _Kind("block", 20_000_000, ("--x", "0", "--y", "1", "--sequential")),
    "one run at a time": _Kind("looped", 300_000),
    "vectors": _Kind("vectors", 5_000_000),
    "texts": _Kind("texts", 300_000),
    "search": _Kind("counting", 200_000, ("--search", "slow_noise:domain", "--adjacency", "add-remove")),
}
_QUICK_RUNS = 300_000


def _command(kind: str, runs: int, out: Path) -> list[str]:
    own = _KINDS[kind]
    program = [sys.executable, "-c", "from dpaudit.reports.cli.main import program; program()"]
    audit = ["audit", f"slow_noise:{own.function}", *own.options, "--epsilon", "1", "--alpha", "1e-6", "--jobs", "2"]
    return [*program, *audit, "--runs", str(runs), "--out", str(out)]


def _results(out: Path) -> Any:
    body = json.loads((out / "results.json").read_text(encoding="utf-8"))
    body.pop("environment")
    return body


def _is_sound(file: Path) -> bool:
    """Return whether SQLite finds the store intact."""
    connection = sqlite3.connect(file)
    try:
        return bool(connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)])
    finally:
        connection.close()


def _killed(command: list[str], folder: Path, seconds: float, store: Path | None) -> bool:
    """Run the command for some seconds, from when the store exists; return whether it had to be killed."""
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    while store is not None and process.poll() is None and not store.exists():
        time.sleep(_POLLED)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=seconds)
        return False
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return True


def _kill_cells(effort: Effort, seeds: Seeds, kind: str) -> Figures:
    runs, wanted = effort.either(_QUICK_RUNS, _KINDS[kind].runs), effort.either(_QUICK_KILLS, _KILLS)
    longest, rng = effort.either(_QUICK_LONGEST, _LONGEST), np.random.default_rng(seeds(1)[0])
    kills = early = rounds = unsound = different = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "slow_noise.py").write_text(_MODULE, encoding="utf-8")
        whole = _command(kind, runs, folder / "whole")
        _, seconds = timed(subprocess.run, whole, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        while kills < wanted:
            rounds += 1
            out = folder / f"round {rounds}"
            command = _command(kind, runs, out)
            store = out / FILE if effort.is_quick else None
            while kills < wanted and _killed(command, folder, rng.uniform(0.0, longest), store):
                if not (out / FILE).exists():
                    early += 1
                    continue
                kills += 1
                unsound += not _is_sound(out / FILE)
                command = [*_command(kind, runs, out), "--resume"]
            if not (out / "results.json").exists():
                subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
            different += _results(out) != _results(folder / "whole")
    return {
        "kind": kind,
        "runs": runs,
        "seconds": seconds,
        "kills": kills,
        "early": early,
        "rounds": rounds,
        "unsound": unsound,
        "different": different,
    }, [at_most("damaged stores", unsound, 0), at_most("different results", different, 0)]


TABLES = (
    Table(
        "faults", 49, by_name(ATTACKS), _attack_cells,
        quick=("antithetic noise at half a block", "the clock is set back"),
    ),
    Table("kills", 50, by_name(_KINDS), _kill_cells, quick=("fixed size",)),
)  # fmt: skip
