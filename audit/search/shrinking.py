"""The simplest pair that loses as much as the one that was found: fewer rows, equal rows, round values.

It is shown beside the found pair, and the audit is that of the found one, so that simplicity costs no power. If the
simpler pair loses clearly more by the same runs, it is the one that is audited.

References
----------
MacIver & Donaldson (2020), Test-case reduction via test-case generation: insights from the Hypothesis reducer.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from ..results.worst_pair import SimplePair
from .candidates import Candidate
from .coupled_draws import CoupledDraws
from .pool import Pool
from .trial import Judge, Trial

_LEAST = 100  # runs of each pair
_SHARE = 10  # one execution in ten of a search is for simpler pairs
_TRIES = 12  # pairs that are run at most, the found one included
_KEPT = 0.97  # share of the found pair's score, by the same runs, that a simpler pair must have
# Times its score with which a simpler pair is audited in place of the found one, and the largest standard error of both
# scores, as a share of them: of small losses a percent is chance, and the found pair has longer pilots.
_WORSE, _LARGEST_ERROR = 1.01, 0.2
_SHOWN = (
    0.9  # share of its score in the search that the found pair must reach by so few runs: else they show too little
)


def for_simpler_pairs(budget: int) -> int:
    """Return the executions of a search that are kept for simpler pairs; none of a budget that is too small."""
    share = budget // _SHARE
    return share if share >= 2 * _TRIES * _LEAST else 0


def simplest(
    pool: Pool, judge: Judge, found: Trial, executions: int, number: int
) -> tuple[SimplePair | None, Trial | None, int]:
    """Return the simplest pair that loses about as much as the found one, its trial if it loses clearly more, and the
    executions that it took to find it.

    The search is greedy: it takes the first simplification that keeps the loss, and simplifies that one further. The
    result is None if none keeps the loss, or if the executions are too few to compare any. In a store the trials have
    this `number` and the following ones.
    """
    runs = executions // (2 * _TRIES)
    if runs < _LEAST or next(pool.simpler(found.candidate, set()), None) is None:
        return None, None, 0
    numbers, judge = count(number), replace(judge, draws=CoupledDraws())
    reference = _scored(found.candidate, runs, judge, next(numbers))
    best, seen, tried = reference, {found.candidate.key}, 1
    is_simpler = reference.score is not None and reference.score.value >= _SHOWN * found.merit > 0.0
    while is_simpler and reference.score is not None:
        is_simpler = False
        for candidate in pool.simpler(best.candidate, seen):
            if tried == _TRIES:
                break
            trial, tried = _scored(candidate, runs, judge, next(numbers)), tried + 1
            if trial.score is not None and trial.score.value >= _KEPT * reference.score.value:
                best, is_simpler = trial, True
                break
            judge.draws.keep({*reference.ends, *best.ends})
    if best is reference or best.score is None or reference.score is None:
        return None, None, judge.draws.executions
    chosen = best.candidate
    simple = SimplePair(
        x=chosen.x,
        y=chosen.y,
        summary=chosen.summary,
        bound=best.score.value,
        found_bound=reference.score.value,
        runs=runs,
    )
    is_known = all(score.error <= _LARGEST_ERROR * score.value for score in (best.score, reference.score))
    is_worse = is_known and simple.bound >= _WORSE * simple.found_bound
    if not is_worse:
        return simple, None, judge.draws.executions
    best.merit = best.score.value
    return simple, best, judge.draws.executions


def _scored(candidate: Candidate, runs: int, judge: Judge, number: int) -> Trial:
    """Return the trial of a pair with this many coupled runs, without its outputs."""
    trial = Trial(candidate, number)
    trial.extend([runs], judge, is_coupled=True)
    trial.forget()
    return trial
