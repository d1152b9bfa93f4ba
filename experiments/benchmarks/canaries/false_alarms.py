"""False alarms of every method where the claim holds with equality, and on hostile mechanisms."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from functools import partial

import numpy as np

from ....audit.canaries.canary_draws import CanaryDraws
from ....audit.canaries.canary_tests import has_lines, refutes
from ....audit.canaries.guess_order import right_from_both_ends
from ....audit.canaries.plan import METHODS, fixed_numbers, plan_tests
from ....audit.claims.claim import Claim
from ....audit.guesses.canary_guesses import CanaryGuesses, CanaryTest
from ....audit.guesses.guess_bets import guess_numbers, largest_refuted
from ....audit.inference.binomial_tails import probability_limits
from ..core.bench_json import CERTAIN, Figures, Row, Value, at_most, columns
from ..core.effort import ALPHA, Bench, Effort, Task, counted, seeds_of
from .known_scores import KNOWN

_CANARIES = (200, 1_000, 5_000)
_BATCH = 250
_TABLE = 39
_QUICK = ("randomised response", "all revealed with probability delta")


class Remembered:
    """Verdicts of a test by the number that decides them: larger numbers refute if smaller ones do."""

    def __init__(self, test: CanaryTest, claim: Claim) -> None:
        self.test, self.claim = test, claim
        self.kept, self.refuted = -math.inf, math.inf

    def __call__(self, guesses: CanaryGuesses) -> bool:
        if self.test.kind == "betting":
            decisive = largest_refuted(guesses.right, guesses.numbers, self.test.alpha)
        else:
            decisive = float(guesses.right_among(self.test.guesses))
        if not self.kept < decisive < self.refuted:
            return decisive >= self.refuted
        is_refuted = refutes(self.test, self.claim, guesses)
        if is_refuted:
            self.refuted = decisive
        else:
            self.kept = decisive
        return is_refuted


def _refuted(method: str) -> str:
    """Name of the number of refuted claims, beside that of their share."""
    return f"{method}_refuted"


def _methods(claim: Claim) -> list[str]:
    return [method for method in METHODS if method in ("auto", "f-dp") or has_lines(claim)]


def _alarms(name: str, canaries: int, seeds: range) -> Counter[str]:
    known = KNOWN[name]
    claim = known.claim(canaries)
    numbers = tuple(sorted({*guess_numbers(canaries), *fixed_numbers(canaries)}))
    shape = CanaryGuesses(canaries=canaries, numbers=numbers, right=(0,) * len(numbers))
    tests = {method: plan_tests(method, None, claim, shape, ALPHA) for method in _methods(claim)}
    decide = {test: Remembered(test, claim) for planned in tests.values() for test in planned}
    found = Counter({"audits": len(seeds)})
    for seed in seeds:
        rng = np.random.default_rng(seed)
        included = rng.random(canaries) < 0.5
        right = np.cumsum(right_from_both_ends(CanaryDraws(known.draw(included, rng), included), rng))
        guesses = CanaryGuesses(canaries=canaries, numbers=numbers, right=tuple(right[np.array(numbers) - 1].tolist()))
        for method, planned in tests.items():
            found[_refuted(method)] += any(decide[test](guesses) for test in planned)
    return found


def _cells(name: str, canaries: int, counts: Counter[str]) -> Figures:
    audits, claim = counts["audits"], KNOWN[name].claim(canaries)
    cells: dict[str, Value] = {"mechanism": name, "claim": str(claim), "canaries": canaries, "audits": audits}
    targets = []
    for method in _methods(claim):
        refuted = counts[_refuted(method)]
        cells[method] = refuted / audits
        certain = probability_limits(refuted, audits, alpha=CERTAIN)[0]
        targets.append(at_most(f"99.9% lower limit, {method}", certain, ALPHA))
    cells.update({_refuted(method): counts[_refuted(method)] for method in METHODS})
    return cells, targets


def _row(effort: Effort, key: str, place: int, name: str, canaries: int, former: Row | None) -> Iterator[Row]:
    wanted = effort.audits
    yield from counted(
        key,
        partial(_alarms, name, canaries),
        partial(_cells, name, canaries),
        former,
        names=("audits", *map(_refuted, METHODS)),
        seeds=lambda used: seeds_of(_TABLE, place, used, max(0, wanted - used)),
        batch=_BATCH,
        jobs=effort.jobs,
    )


def _tasks(effort: Effort) -> Iterator[Task]:
    for place, name in enumerate(KNOWN):
        for size, canaries in enumerate(_CANARIES):
            if effort.wants(name) and (not effort.is_quick or (name in _QUICK and size == 0)):
                key = f"{name}, {canaries:,} canaries"
                number = len(_CANARIES) * place + size
                yield Task(key, partial(_row, effort, key, number, name, canaries))


FALSE_ALARMS = Bench(
    name="canary-false-alarms",
    title="False alarms where the claim holds with equality",
    method=(
        f"Audits of one run at alpha {ALPHA:g}, each with new coins; shares refuted, by method. Every canary attains "
        "the claim. Hostile mechanisms reveal canaries with the probability that δ allows, one by one or all at once, "
        "or follow the law of right answers for which the bound of theorem 2 is attained with all canaries guessed. "
        "--audits sets the number of audits, and --resume adds to those that were made."
    ),
    columns=columns(
        "mechanism | claim | canaries :, | audits :, | auto :.4f | betting :.4f | counts :.4f | steinke :.4f | "
        "f-dp :.4f"
    ),
    names=tuple(KNOWN),
    tasks=_tasks,
)
