"""Ctrl-C during an audit with worker processes ends the script with one traceback, its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

SCRIPT = """
import signal
import time
from dpaudit import PureDP, check

def slow(rows, rng):
    time.sleep(0.001)
    return len(rows) + rng.laplace()

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # programs in the background start without it
    from dpaudit.audit.sampling import workers
    started = workers._parallel
    def announced(*arguments):
        print("workers", flush=True)
        return started(*arguments)
    workers._parallel = announced
    check(slow, [1, 1], [1], claim=PureDP(1.0), runs=1_000_000, jobs=2)
"""


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="the signals of POSIX are needed")
@pytest.mark.parametrize("seconds", [0.15, 0.4])
def test_workers_that_start_print_no_traceback(tmp_path, seconds):
    (tmp_path / "script.py").write_text(SCRIPT)
    process = subprocess.Popen(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "workers\n"
    time.sleep(seconds)  # while the workers import their modules
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode != 0
    assert errors.count("Traceback") == 1
    assert errors.rstrip().endswith("KeyboardInterrupt")
