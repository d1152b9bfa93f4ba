"""Events that could be better than the chosen one, and the choice among them by fresh runs that are counted, not kept.

A pilot that keeps its outputs is limited by memory, and its choice is cautious because the best of many events looks
better than it is. A few dozen events chosen with more and less caution can be counted in any number of fresh runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..claims.claim import Claim
from ..events.events import Event, Outcomes, Scored, ways_apart
from ..events.outputs import outcome_list, tally
from ..events.scores import Forest
from ..families.event_families import Family
from ..families.outcome_counts import count_outcomes
from ..families.pilot_split import PilotSplit
from ..inference.guess_test import coins_for, is_symmetric
from .both_directions import value_together
from .choice import Choice, chosen, value_of
from .event_criterion import Criterion, Events
from .event_value import DIRECTIONS, Best, best_places

# Standard errors of the pilot, and of a fitted curve, with which contenders are chosen, and how many for each.
_CAUTIONS, _CURVE_CAUTIONS, _EACH = (4.0, 3.0, 2.0, 1.0, 0.5, 0.0), (4.0, 2.0, 1.0, 0.5, 0.0), 3
# Probabilities of the half-lines of a learned score that are contenders, and the sides of how many scores.
_LADDER, _LADDERS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4), 6
# Outcomes of a pilot that are contenders by themselves, and most outcomes of which some are.
_SINGLE_OUTCOMES, _FEW_OUTCOMES, _LOOKED_AT, _BOLDEST = 8, 64, 2_000, 0.5
# Standard errors of the fresh runs that are subtracted, and the fewest hits in these of an event that the pilot itself
# did not choose: some contenders are rare chance finds.
_FRESH_CAUTION, _LEAST_HITS = 2.0, 100


def contenders(families: Sequence[Family[Any]], criterion: Criterion, split: PilotSplit) -> tuple[Choice, ...]:
    """The best events with more and less caution, by the counts and by the fitted curves of the families.

    Of a few outcomes the most promising ones are contenders by themselves.
    """
    found: dict[tuple[int, bool, int], Best] = {}
    for fitted, cautions in ((False, _CAUTIONS), (True, _CURVE_CAUTIONS)):
        for each in best_places(families, criterion, cautions, fitted=fitted):
            seen = sorted((best for best in each if best.value > -math.inf), key=lambda best: -best.value)
            for best in seen[:_EACH]:
                found.setdefault((id(best.family), best.is_inside, best.index), best)
    for best in _half_lines(families, criterion):
        found.setdefault((id(best.family), best.is_inside, best.index), best)
    events = {choice.event: choice for choice in (*map(chosen, found.values()), *_single_outcomes(split, criterion))}
    return tuple(choice for event, choice in events.items() if not _is_slow(event))


def _half_lines(families: Sequence[Family[Any]], criterion: Criterion) -> list[Best]:
    """Half-lines of many probabilities, of the scores whose half-lines show most in the pilot.

    The pilot cannot rank thresholds far in a tail, and more thresholds of a score that is read anyway cost little.
    """
    ladders: list[list[Best]] = []
    for family in families:
        if family.fitted is not None or not family.is_learned:
            continue
        share = (family.hits_x + family.hits_y) / (2.0 * family.runs)
        if np.any(np.diff(share) < 0.0):
            continue
        places = np.unique(np.searchsorted(share, _LADDER).clip(max=len(share) - 1)).tolist()
        hits = family.hits_x[places], family.hits_y[places]
        for direction in DIRECTIONS:
            seen = Events(*hits, family.runs, True, direction, _BOLDEST)
            values = criterion.values_of_each([seen])[0].tolist()
            ladders.append(
                [
                    Best(value, family, True, direction, place, _BOLDEST)
                    for value, place in zip(values, places, strict=True)
                ]
            )
    ladders.sort(key=lambda ladder: -max(best.value for best in ladder))
    return [best for ladder in ladders[:_LADDERS] for best in ladder if best.value > -math.inf]


def _single_outcomes(split: PilotSplit, criterion: Criterion) -> list[Choice]:
    x, y = split.whole
    if len(tally(np.concatenate([x[:_LOOKED_AT], y[:_LOOKED_AT]]))[0]) > _FEW_OUTCOMES:
        return []
    table = count_outcomes(split)
    if len(table) > _FEW_OUTCOMES:
        return []
    hits = table.counts[:2] + table.counts[2:]
    singles = [
        Choice(Outcomes((value,)), "x" if on_x >= on_y else "y", on_x, on_y, len(x))
        for value, (on_x, on_y) in zip(outcome_list(table.values), hits.T.tolist(), strict=True)
    ]
    return sorted(singles, key=lambda each: -value_of(each, criterion, _BOLDEST))[:_SINGLE_OUTCOMES]


def _is_slow(event: Event) -> bool:
    """Whether counting the event takes twenty times as long as counting others."""
    return isinstance(event, Scored) and isinstance(event.score, Forest)


def winner(choice: Choice, others: Iterable[Choice], claim: Claim, runs: int, z: float) -> Choice:
    """The best of a choice and some other events, all counted in the same fresh runs, for a test of `runs` runs.

    Events of both directions that exclude each other may be tested together, if the claim allows that.
    """
    criterion = Criterion(claim, runs, z, _FRESH_CAUTION, is_one_way=True)
    plain = replace(choice, opposite=None, bold=None, shows_nothing=False)
    common = (each for each in others if min(each.pilot_hits_x, each.pilot_hits_y) >= _LEAST_HITS)
    singles = list({each.event: each for each in (plain, *choice.others, *common)}.values())
    singles = [_directed(each, criterion) for each in singles]
    ranked = sorted(singles, key=lambda each: -value_of(each, criterion, _FRESH_CAUTION))
    best, most = ranked[0], value_of(ranked[0], criterion, _FRESH_CAUTION)
    if most + claim.strength <= 0.0:
        return choice
    pairs: list[tuple[Choice, Choice]] = [] if choice.opposite is None else [(plain, choice.opposite)]
    if is_symmetric(claim) and coins_for(runs):
        on_x, on_y = ([each for each in ranked if each.likelier_on == side][:_EACH] for side in DIRECTIONS)
        pairs += [(x, y) for x in on_x for y in on_y if len(ways_apart(x.event, y.event)) == 1]

    def value(pair: tuple[Choice, Choice]) -> float:
        return value_together(*pair, criterion, _FRESH_CAUTION)

    together = max(pairs, key=value, default=None)
    if together is not None and value(together) >= most:
        first, second = sorted(together, key=lambda each: -value_of(each, criterion, _FRESH_CAUTION))
        best = replace(first, opposite=second)
    bold = choice.bold
    return replace(best, bold=None if bold is None or bold.event == best.event else bold)


def _directed(choice: Choice, criterion: Criterion) -> Choice:
    """The event in the direction in which it has the larger value."""
    other = replace(choice, likelier_on="y" if choice.likelier_on == "x" else "x")
    return max((choice, other), key=lambda each: value_of(each, criterion, _FRESH_CAUTION))
