"""Changed inputs, none of which may crash, hang or do anything else: measured as a page of the benchmarks."""

from __future__ import annotations

import argparse
import contextlib
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from random import Random

from dpaudit.experiments.benchmarks.core.bench_json import Column, Value
from dpaudit.experiments.benchmarks.core.bench_json import Target as Limit
from dpaudit.experiments.benchmarks.core.page import Bench, Effort, Page, Task, effort_of, once, run_benches

from .command_lines import commands
from .sandbox import TooSlow, Yard, hook
from .targets import Attempt, results, stores, values

EXAMPLES, QUICK_EXAMPLES = 100_000, 60
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


def _measured(target: str, examples: int) -> tuple[dict[str, Value], list[Limit]]:
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
    cells: dict[str, Value] = {
        "target": target,
        "examples": examples,
        "refused": examples - accepted - failed,
        "accepted": accepted,
        "failed": failed,
        "seconds": time.perf_counter() - started,
        "slowest": slowest,
        "first": first[:200] or None,
    }
    return cells, [Limit(what="failed", value=failed, sense="<=", limit=0)]


def _tasks(effort: Effort) -> Iterator[Task]:
    for target, (share, _) in _SHARES.items():
        if effort.wants(target):
            yield once(target, partial(_measured, target, max(1, round(share * effort.audits))))


_FUZZ = Bench(
    name="fuzz",
    title="Fuzzed inputs",
    method=(
        "Good inputs in which something was changed: command lines, files of results, stores, "
        "and the values in a store under a checksum that is right. Each is refused in words (at the command line with "
        f"exit status 2) or accepted; anything else has failed: another exception, more than {_PATIENCE:g} s, a file "
        "outside of the output that is changed or new, an import that nobody asked for, a pickle that is loaded, a "
        "connection, a program that is started, a store that gives another result. Example n is the same on every "
        "machine. One process."
    ),
    columns=(
        Column("target", "target"),
        Column("examples", "examples", ",d"),
        Column("refused in words", "refused", ",d"),
        Column("accepted", "accepted", ",d"),
        Column("failed", "failed", ",d"),
        Column("seconds in all", "seconds", ".0f"),
        Column("slowest example, s", "slowest", ".2f"),
        Column("first failure", "first"),
    ),
    names=tuple(_SHARES),
    tasks=_tasks,
)

FUZZ = Page("fuzz", "Hostile input, measured", (_FUZZ,), audits=EXAMPLES)


def main(arguments: Sequence[str]) -> int:
    """Measures the page; 1 if an example failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=_FUZZ.method)
    parser.add_argument("--only", action="append", choices=list(_SHARES), default=[], help="a target; all by default")
    parser.add_argument("--examples", type=int, help=f"inputs in all; by default {EXAMPLES:,}, quick {QUICK_EXAMPLES}")
    parser.add_argument("--quick", action="store_true", help="few examples, to see that everything works")
    parser.add_argument("--out", type=Path, help="folder for fuzz.md and fuzz.json")
    chosen = parser.parse_args(arguments)
    examples = QUICK_EXAMPLES if chosen.quick and chosen.examples is None else chosen.examples
    effort = effort_of(FUZZ, quick=chosen.quick, audits=examples, jobs=1, only=chosen.only)
    return 0 if run_benches(FUZZ, FUZZ.benches, effort, out=chosen.out, watch=print) else 1
