"""Changed inputs, none of which may crash, hang or do anything else: measured as a table of the benchmarks."""

import argparse
import contextlib
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

from dpaudit.experiments.benchmarks.measure import Effort, Figures, Seeds, Table, at_most, measure

from .examples import Attempt, commands, results, stores, values
from .sandbox import TooSlow, Yard, hook

EXAMPLES, QUICK_EXAMPLES = 100_000, 60
_METHOD = (
    "Good inputs in which something was changed are refused with a message (at the command line with exit status 2) or "
    "accepted; anything else has failed: another exception, more than 30 s, a file outside of the output that is "
    "changed or new, an import or a program that was not asked for, a pickle that is loaded, a connection, or a store "
    "that gives another result. Example n is the same on every machine."
)
_PATIENCE = 30.0  # seconds that an example may take; the slowest, a report with its figures, takes less than one
_SHARES: dict[str, tuple[float, Callable[[Yard], Attempt]]] = {
    "command line": (0.08, commands),
    "files of results": (0.32, results),
    "stores": (0.22, stores),
    "stored values": (0.38, values),
}
"""Targets with their shares of the examples: the slower, the smaller."""


def try_one(target: str, attempt: Attempt, yard: Yard, rng: Random) -> bool:
    """Tries one example; whether it was accepted, rather than refused in words.

    Raises
    ------
    Exception
        For anything else that becomes of it.
    """
    yard.clear()
    with yard.watched(_PATIENCE, may_start=target == "command line"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return attempt(rng)


@contextlib.contextmanager
def prepared(target: str) -> Iterator[tuple[Attempt, Yard]]:
    """A target with its yard, which is the current folder."""
    hook()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        yard = Yard(Path(folder))
        yard.clear()
        yield _SHARES[target][1](yard), yard


def _measured(effort: Effort, seeds: Seeds, target: str, share: float) -> Figures:
    examples = max(1, round(share * (effort.audits or EXAMPLES)))
    accepted = failed = 0
    first, slowest, started = "", 0.0, time.perf_counter()
    with prepared(target) as (attempt, yard):
        for number in range(examples):
            before = time.perf_counter()
            try:
                accepted += try_one(target, attempt, yard, Random(f"{target} {number}"))
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


_ROWS = {target: (target, share) for target, (share, _) in _SHARES.items()}
FUZZ = Table("fuzz", 99, _ROWS, _measured, quick=tuple(_SHARES))


def main(arguments: Sequence[str]) -> int:
    """Measures the table; 1 if an example failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=_METHOD)
    parser.add_argument("--only", action="append", choices=list(_SHARES), default=[], help="a target; all by default")
    parser.add_argument("--examples", type=int, help=f"inputs in all; by default {EXAMPLES:,}, quick {QUICK_EXAMPLES}")
    parser.add_argument("--quick", action="store_true", help="few examples, to see that everything works")
    parser.add_argument("--out", type=Path, help="folder for fuzz.json")
    chosen = parser.parse_args(arguments)
    examples = QUICK_EXAMPLES if chosen.quick and chosen.examples is None else chosen.examples
    effort = Effort.of(quick=chosen.quick, audits=examples, jobs=1)
    file = None if chosen.out is None else chosen.out / f"fuzz{'-quick' * chosen.quick}.json"
    return 0 if measure([FUZZ], effort, only=chosen.only, file=file) else 1
