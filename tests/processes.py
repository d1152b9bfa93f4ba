"""Whether processes that a test has started run on; one that ended, and that nobody waits for, does not."""

import os
import time
from pathlib import Path


def is_running(number):
    try:
        os.kill(int(number), 0)
        has_states = Path("/proc/self/stat").exists()
        return not has_states or Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def has_ended(number, seconds=5.0):
    """Whether a process ends in this time: one that is killed takes a moment."""
    until = time.monotonic() + seconds
    while is_running(number) and time.monotonic() < until:
        time.sleep(0.01)
    return not is_running(number)
