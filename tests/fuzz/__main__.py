"""Changed inputs, none of which may crash, hang or do anything else: measured as a table of the benchmarks.

An example is refused with a message or accepted; anything else has failed: another exception, more than 30 s, a file
outside of the output that is changed or new, an import or a program that was not asked for, a pickle that is loaded, a
connection, or a store that gives another result. Example n is the same on every machine.
"""

import argparse
import contextlib
import sys
import tempfile
import time
import warnings
from pathlib import Path
from random import Random

from dpaudit.experiments.benchmarks.measure import Effort, Table, at_most, measure

from .examples import results, stores, values
from .sandbox import TooSlow, Yard, hook

EXAMPLES = 70_000
_PATIENCE = 30.0  # seconds that an example may take; the slowest takes about one
_TARGETS = {"files of results": (0.35, results), "stores": (0.2, stores), "stored values": (0.45, values)}
"""Targets with their shares of the examples: the slower, the smaller."""


def try_one(attempt, yard, rng):
    """Return whether an example was accepted, not refused; whatever it raises is a failure."""
    yard.clear()
    with yard.watched(_PATIENCE), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return attempt(rng)


@contextlib.contextmanager
def prepared(target):
    """A target with its yard, which is the current folder."""
    hook()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        yard = Yard(Path(folder))
        yard.clear()
        yield _TARGETS[target][1](yard), yard


def _measured(effort, seeds, target, share):
    examples = max(1, round(share * effort.audits))
    accepted = failed = 0
    first, slowest, started = "", 0.0, time.perf_counter()
    with prepared(target) as (attempt, yard):
        for number in range(examples):
            before = time.perf_counter()
            try:
                accepted += try_one(attempt, yard, Random(f"{target} {number}"))
            except (Exception, TooSlow) as error:
                failed += 1
                first = first or f"{number}: {type(error).__name__}: {error}"
            slowest = max(slowest, time.perf_counter() - before)
    return {
        "target": target,
        "examples": examples,
        "refused": examples - accepted - failed,
        "accepted": accepted,
        "failed": failed,
        "seconds": time.perf_counter() - started,
        "slowest": slowest,
        "first": first[:200] or None,
    }, [at_most("failed", failed, 0)]


FUZZ = Table("fuzz", 99, {target: (target, share) for target, (share, _) in _TARGETS.items()}, _measured)


def main(arguments):
    """Measure the table; 1 if an example failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--examples", type=int, default=EXAMPLES, help="inputs in all; by default %(default)s")
    parser.add_argument("--only", action="append", choices=list(_TARGETS), default=[], help="a target; by default all")
    parser.add_argument("--out", type=Path, help="folder for fuzz.json")
    chosen = parser.parse_args(arguments)
    file = None if chosen.out is None else chosen.out / "fuzz.json"
    effort = Effort.of(quick=False, audits=chosen.examples, jobs=1)
    return 0 if measure([FUZZ], effort, only=chosen.only, file=file) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
