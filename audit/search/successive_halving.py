"""Successive halving of candidate pairs: each round keeps the better half and spends as much as the others."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from itertools import chain, islice

from .candidates import Candidate
from .pool import Pool
from .pooled_scores import pooled
from .rounds import first_pilot, grows, is_scored, next_pilot, survivors, variations
from .sweep import swept
from .trial import Judge, Trial

_UPPER = 0.5  # deviations by which an uncertain pair is favoured in all rounds but the last
_EQUAL, _DIFFERENT = 0.95, 2.0  # share of the leader's merit, and standard errors below it, that make a pattern equal
_KNOWN = 0.1  # deviation, as a share of its merit, up to which a pair is worth varying
# Standard errors above the claim that count at most; by how many more of them a pair is clearly more certain to refute
# it than another; and the largest share of the other's standard error that its own may be.
_SURE, _SURER, _BETTER_KNOWN = 2.0, 0.5, 0.7
_MOST_FAILED = 5  # pairs that may replace each initial pair on which the mechanism fails


def halve(
    pool: Pool,
    judge: Judge,
    budget: int,
    tell: Callable[[Trial], None] | None = None,
    given: Sequence[Candidate] | None = None,
) -> tuple[list[Trial], int, int]:
    """Return all tried pairs, the number of patterns left out, and that of executions.

    The best pair comes first, unless all were skipped; only this one still has its outputs.

    Parameters
    ----------
    budget : int
        Total executions, on all datasets.
    tell : callable, optional
        Called with the leading pair after each round.
    given : sequence of Candidate, optional
        The initial pairs, best first; by default those of the pool.

    References
    ----------
    Karnin, Koren & Somekh (2013), Almost optimal exploration in multi-armed bandits (sequential halving).
    """
    if given is None:
        places, spent = swept(pool, judge, budget)
        budget -= spent
        first, left = pool.first(budget, judge.claim.strength, places)
    else:
        first, left, spent = list(given), [], 0
    is_coupled, kept = len(first) > 1, len(first)
    datasets = _drawn([Trial(candidate, number) for number, candidate in enumerate(first)])
    pilots = [first_pilot(budget, kept, len(datasets))] if first else []
    trials, untried = _begun(pool, judge, first, left, pilots, budget // 2, is_coupled=is_coupled)
    running = trials[:]
    while True:
        finalists = [trial for trial in running if trial.error is None]
        _pool_scores(finalists)
        kept = survivors(kept, pilots[-1]) if kept > 1 else 1
        running = _survivors(finalists, kept, judge.claim.strength)
        if tell is not None and running:
            tell(min(running, key=Trial.rank))
        if kept == 1 or not running:
            break
        for trial in finalists:
            if trial not in running:
                trial.forget()
        judge.draws.keep({end for trial in running for end in trial.ends})
        spare, last = budget - judge.draws.executions, pilots[-1]
        moves = pool.moves([trial.candidate for trial in running[:2]], variations(kept) if _is_clear(running) else 0)
        new = [Trial(candidate, len(trials) + place) for place, candidate in enumerate(moves)]
        pilot = next_pilot(spare, kept, last, _drawn(running + new))
        if not grows(pilot, last):
            new, pilot = [], max(next_pilot(spare, kept, last, _drawn(running)), last)
        trials += new
        running += new
        if pilot > last:
            pilots.append(pilot)
        for trial in running:
            trial.extend(pilots, judge, is_coupled=is_coupled, is_scored=is_scored(kept, pilots[-1]))
    order = sorted(trials, key=lambda t: (t not in running, t.error is not None, -t.runs, *t.rank()))
    plain = _pattern_for(order[0], finalists, judge.claim.strength) if order else None
    judge.draws.keep(set())
    for trial in trials:
        if trial is not plain:
            trial.forget()
    return sorted(order, key=lambda t: t is not plain), untried, spent + judge.draws.executions


def _is_clear(running: list[Trial]) -> bool:
    """Whether the leading pair is known well enough to tell it from a variation, which begins without runs."""
    leader = min(running, key=Trial.rank)
    return leader.score is None or leader.score.is_empty or leader.deviation <= _KNOWN * leader.merit


def _drawn(trials: list[Trial]) -> list[int]:
    """Return the runs that each dataset of some pairs has had."""
    runs: dict[Hashable, int] = {}
    for trial in trials:
        for end in trial.ends:
            runs[end] = max(runs.get(end, 0), trial.runs)
    return list(runs.values())


def _begun(
    pool: Pool,
    judge: Judge,
    first: list[Candidate],
    left: list[Candidate],
    pilots: list[int],
    most: int,
    *,
    is_coupled: bool,
) -> tuple[list[Trial], int]:
    """Return the trials of the first round, and the number of patterns left out.

    A pair on which the mechanism fails is replaced by a pattern that was left out, or else by a random pair: a domain
    of which the mechanism takes a part has pairs enough. No pair is replaced after `most` executions if any is left.
    """
    trials: list[Trial] = []
    most_failed = _MOST_FAILED * len(first)
    spare = chain(left, pool.drawn(most_failed))
    for candidate in chain(first, islice(spare, most_failed)):
        running = sum(trial.error is None for trial in trials)
        if running >= len(first) or (len(trials) >= len(first) and running and judge.draws.executions >= most):
            break
        trial = Trial(candidate, len(trials))
        trial.extend(pilots, judge, is_coupled=is_coupled, is_scored=is_scored(len(first), pilots[-1]))
        trials.append(trial)
    return trials, max(len(left) - max(len(trials) - len(first), 0), 0)


def _pool_scores(trials: list[Trial]) -> None:
    """Give every trial its merit: its score, shrunk towards those of similar pairs.

    A pair that shows nothing has merit 0. Pooled with a pair that leaks, it would look like one that may leak.
    """
    seen = [(trial, trial.score) for trial in trials if trial.score is not None and not trial.score.is_empty]
    for trial in trials:
        trial.merit, trial.deviation = 0.0, 0.0
    if seen:
        values, errors = [score.value for _, score in seen], [score.error for _, score in seen]
        merits, deviations = pooled(values, errors, [trial.candidate.group for trial, _ in seen])
        for (trial, _), merit, deviation in zip(seen, merits.tolist(), deviations.tolist(), strict=True):
            trial.merit, trial.deviation = merit, deviation


def _survivors(trials: list[Trial], count: int, strength: float) -> list[Trial]:
    """Return the best trials: after every two by upper merit one by bold score, because rare events show late.

    After every one by the difference of its outputs, if runs are too few for a score, one in the order in which pairs
    were tried: large differences need not be losses, and the patterns that most often reveal a bug come early. The
    pair of which a replay shows most stays to the end. The last trial is the leader for a claim of this strength.
    """
    if count == 1:
        return [_leader(trials, strength)] if trials else []
    by_merit = sorted(trials, key=lambda trial: trial.rank(_UPPER))
    by_boldness = sorted(trials, key=lambda trial: -trial.bold)
    each = 2 if any(trial.score for trial in trials) else 1
    turns = [part for place, one in enumerate(by_boldness) for part in (*by_merit[each * place :][:each], one)]
    kept = list(dict.fromkeys(turns))[:count]
    promising = max(trials, key=lambda trial: trial.candidate.promise, default=None)
    if promising is not None and promising.candidate.promise > 0.0 and promising not in kept:
        kept[-1] = promising
    return kept


def _leader(trials: list[Trial], strength: float) -> Trial:
    """Return the trial to audit; of those within one deviation of it that of which a replay shows most.

    It has the largest merit, unless the claim is clearly more certain to be refuted on another. A merit of 1.4 with a
    deviation of 0.4 may be chance where another pair exceeds a claim of 1 by 0.03 with a deviation of 0.015.
    """
    best = min(trials, key=Trial.rank)
    surest = min(trials, key=lambda trial: (-_sureness(trial, strength), trial.rank()))
    if _is_surer(surest, best, strength):
        best = surest
    rivals = [
        trial
        for trial in trials
        if trial.candidate.promise > best.candidate.promise
        and abs(best.merit - trial.merit) <= math.hypot(best.deviation, trial.deviation)
        and not _is_surer(best, trial, strength)
    ]
    return max(rivals, key=lambda trial: trial.candidate.promise, default=best)


def _pattern_for(leader: Trial, finalists: list[Trial], strength: float) -> Trial:
    """Return the best pattern that is not worse than the leader, or else the leader.

    Among pairs of about equal merit a pattern is likelier to be the worst.
    """
    equals = [
        trial
        for trial in finalists
        if trial.candidate.is_pattern
        and trial.runs == leader.runs
        and trial.rank()[0] == leader.rank()[0]
        and _EQUAL * leader.merit <= trial.merit
        and leader.merit - trial.merit <= _DIFFERENT * math.hypot(leader.deviation, trial.deviation)
        and not _is_surer(leader, trial, strength)
    ]
    return min(equals, key=Trial.rank, default=leader)


def _is_surer(one: Trial, other: Trial, strength: float) -> bool:
    """Whether the claim is more certain to be refuted on one pair than on the other, as its merit is better known."""
    is_better_known = one.deviation <= _BETTER_KNOWN * other.deviation
    return is_better_known and _sureness(one, strength) >= _sureness(other, strength) + _SURER


def _sureness(trial: Trial, strength: float) -> float:
    """Return the standard errors, from 0 to `_SURE`, by which an audit of the pair should exceed the claim."""
    excess = trial.merit - strength
    error = math.hypot(trial.deviation, 0.0 if trial.score is None else trial.score.chance)
    return 0.0 if excess <= 0.0 else _SURE if excess >= _SURE * error else excess / error
