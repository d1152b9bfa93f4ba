"""From pilot outputs to the event to test: the event with the largest expected lower bound.

By the Neyman-Pearson lemma the best events are {likelihood ratio ≥ t}, and {likelihood ratio ≤ t} for the other
direction. Families of such events come from several estimates of the ratio, and the expected lower bound decides which
event is tested. The test never sees these outputs, so the choice costs no alpha.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..claims.claim import Claim
from ..events.events import Outcomes
from ..events.outputs import tally
from ..families.event_families import TABLE, Effort, Family, event_families
from ..families.low_bits import bit_families
from ..families.one_sided_sets import one_sided_sets
from ..families.pilot_split import PilotSplit
from ..floating_point_errors import in_one_thread
from ..inference.boundary_test import Direction
from ..inference.guess_test import is_symmetric
from .both_directions import choose_together
from .choice import Choice, chosen, value_of
from .clear_excess import clearest, intervals_for, or_interval
from .contenders import contenders
from .event_criterion import Criterion
from .event_value import (
    CAUTION,
    DIRECTIONS,
    Best,
    best_by_caution,
    best_each_way,
    best_event,
    leading,
    normal_quantile,
    with_the_larger,
)

# If the best event is rare even in a long pilot, the ratio grows into the tail and caution costs depth, so less is
# subtracted. Among the many families of a long vector, one has such a tail by chance.
_RARE_CAUTION, _RARE_HITS, _FEW_FAMILIES, _RARE_AMONG_MANY = 2.0, 1000, 8, 5.0
# An event that contradicts the claim by this many standard errors in the pilot is preferred to one that does not: it
# may be rare, and the most cautious choice would never take it.
_SUSPICION = 3.0
_BOLD_CAUTION, _BOLD_Z, _BOLD_HITS = 1.0, 2.6, 6
# Standard errors by which an event must exceed the claim to be tested in place of a set of outputs seen on one side
# only, and by which the main event exceeds it so clearly that no other such event is of use.
_CLEARER = 5.0
# Fewest hits of a set of outputs seen on one dataset only beyond those that the claim allows, as with a delta it allows
# some, and the standard errors of these by which they are exceeded. Correct noise of one number leaves such a set in at
# most a tenth of the pilots.
_HITS_ON_ONE_SIDE, _BEYOND_ALLOWED = 3, 2.0
# If the pilot shows no difference, an event that occurs nearly always or hardly ever has the best bound but could show
# no excess. The pilot is then made longer; if it still shows nothing, an event is taken that has at least this share of
# the runs, as has its complement, and that shows a difference with less caution, reduced step by step. If all outputs
# but one are rare, a smaller share is enough.
_COMMON, _LESS_COMMON, _LESS_CAUTION = 0.05, (0.05, 0.005, 0.0005), (4.0, 3.0, 2.0, 1.0)
_LONG = 10_000  # runs from which a sequential audit learns trees too
_COMMON_FROM = 200  # runs from which it bets on common events if nothing shows a difference
# Bets learn their events again and again: from few runs a bold choice wins more, and a wrong one is soon replaced.
_PER_LOG, _OFFSET, _LEAST_EARLY, _MOST_LATE = 0.75, 2.0, 1.0, 6.0


@in_one_thread
def choose_event(
    split: PilotSplit,
    claim: Claim,
    runs: int,
    alpha: float,
    *,
    deep: bool = False,
    settle: bool = False,
    bits: bool = False,
    both: bool = False,
    with_contenders: bool = False,
) -> Choice:
    """The event with the largest expected lower bound from `runs` runs on each dataset, in either direction.

    Parameters
    ----------
    split : PilotSplit
        Pilot outputs: one half to learn scores on, the other to choose on.
    claim : Claim
        The claim to be tested: p on the likelier side against the boundary, or its reverse if that side is y.
    runs, alpha : int, float
        Runs on each dataset and error probability of the test.
    deep : bool
        Whether the pilot was made longer because the best event is rare or nothing was seen.
    settle : bool
        Whether to take a common event at once if the pilot shows nothing, as no longer one can follow.
    bits : bool
        Whether to include events by the low bits of outputs.
    both : bool
        Whether an event of the other direction may be tested together with the best one, and a bold event beside it.
    with_contenders : bool
        Whether fresh runs will choose again, among this event and others.
    """
    found = _families(split, bits, "trees", with_statistics=True)
    families = [family for family in found if not family.for_intervals]
    statistics = [family for family in found if family.for_intervals]
    intervals = [*intervals_for(families, claim), *intervals_for(statistics, claim)]
    criterion = Criterion(claim, runs, normal_quantile(alpha), CAUTION)
    choice = _best_choice(families, intervals, criterion, split, deep=deep, settle=settle, both=both)
    return replace(choice, contenders=contenders(families, criterion, split)) if with_contenders else choice


def _best_choice(
    families: Sequence[Family[Any]],
    intervals: Sequence[Family[Any]],
    criterion: Criterion,
    split: PilotSplit,
    *,
    deep: bool,
    settle: bool,
    both: bool,
) -> Choice:
    claim = criterion.claim
    found = or_interval(_best_or_suspect(families, criterion), intervals, criterion)
    best = leading(found)
    if best is not None and _shows_nothing(best, claim):
        if not (deep or settle or _nearly_always_happens(best)):
            return replace(chosen(best), shows_nothing=True)
        found = [_common_one(families, criterion) or best]
    elif deep:
        rare = _RARE_CAUTION if len(families) <= _FEW_FAMILIES else _RARE_AMONG_MANY
        bolder = best_each_way(families, replace(criterion, caution=rare))
        bold = leading(bolder)
        is_enough = best is not None and best.value > 0 and min(best.hits) > _RARE_HITS
        found = bolder if bold is not None and min(bold.hits) <= _RARE_HITS and not is_enough else found
    best = leading(found)
    if best is None:
        return _likelier(_anything_else(split))
    if not both:
        return chosen(best)
    together = None
    if is_symmetric(claim) and len(found) == len(DIRECTIONS):
        together = choose_together(with_the_larger(list(found), families, criterion), criterion, split)
    return replace(together or chosen(best), bold=_bold(families, intervals, criterion, best, split))


def _bold(
    families: Sequence[Family[Any]],
    intervals: Sequence[Family[Any]],
    criterion: Criterion,
    best: Best,
    split: PilotSplit,
) -> Choice | None:
    """An event worth a small share of alpha in case `best` is the wrong choice; None if there is no other.

    A rare leak that the pilot saw a few times is a set of outputs that it saw on one dataset only. Noise without a leak
    seldom leaves one, and each hit in the pilot promises many in the main runs. Unless `best` itself exceeds the claim
    clearly, a small excess may be an event that does. Otherwise it is the event that would be best if the few pilot
    runs in it were typical; about half of these are chance finds.
    """
    alone = chosen(best)
    is_clear = value_of(alone, replace(criterion, z=0.0, is_one_way=True), _CLEARER) > 0.0
    clear = None if is_clear else clearest([*families, *intervals], criterion)
    on_one_side = _on_one_side(split, criterion.claim)
    if on_one_side and (clear is None or clear.caution < _CLEARER):
        return max(on_one_side, key=_more_hits)
    if clear is not None and (choice := chosen(clear)).event != alone.event:
        return choice
    found = best_event(families, replace(criterion, z=max(criterion.z, _BOLD_Z), caution=_BOLD_CAUTION))
    if found is None or found.value <= max(best.value, 0.0):
        return None
    bold = chosen(found)
    return bold if _more_hits(bold) >= _BOLD_HITS else None


def _on_one_side(split: PilotSplit, claim: Claim) -> list[Choice]:
    """Sets of outputs seen on one dataset only, three times or more than the claim allows where the other has none."""
    x, y = split.whole
    sets = zip(one_sided_sets(split, least=_HITS_ON_ONE_SIDE), DIRECTIONS, (claim, claim.reversed()), strict=True)
    found = []
    for event, direction, directed_claim in sets:
        if event is None:
            continue
        choice = Choice(event, direction, event.count(x), event.count(y), len(x))
        allowed = len(x) * float(directed_claim.max_power(0.0)[0])
        if _more_hits(choice) >= allowed + _HITS_ON_ONE_SIDE + _BEYOND_ALLOWED * math.sqrt(allowed):
            found.append(choice)
    return found


def _more_hits(choice: Choice) -> int:
    return max(choice.pilot_hits_x, choice.pilot_hits_y)


@in_one_thread
def choose_event_each_way(
    split: PilotSplit,
    claim: Claim,
    runs: int,
    alpha: float,
    *,
    bits: bool = False,
) -> tuple[Choice | None, Choice | None]:
    """The best event for each direction, as in `choose_event`; None for a direction without a useful event.

    For a claim that is the same in both directions, the complement of an event says the same in the other direction. So
    events of probability above a half, on average over the datasets, are left to the other direction: the two events
    then say different things, and a bet on both wins more.
    """
    runs_learned = len(split.learn_x)
    families = _families(split, bits, "trees" if runs_learned >= _LONG else "sums")
    caution = float(np.clip(_PER_LOG * math.log(runs) - _OFFSET, _LEAST_EARLY, _MOST_LATE))
    is_small = is_symmetric(claim)
    criterion = Criterion(claim, runs, normal_quantile(alpha), caution, is_one_way=True, is_small=is_small)
    found = best_each_way(families, criterion)
    if any(best is not None and best.value <= 0 for best in found):
        suspects = best_each_way(families, replace(criterion, caution=_SUSPICION))
        found = [_or_suspect(best, suspect) for best, suspect in zip(found, suspects, strict=True)]
    if found == [None, None]:
        return _anything_else(split)
    if is_small:  # an event of the wrong direction stands for none
        found = [None if best is None or not _is_likelier(best) else best for best in found]
        found = with_the_larger(found, families, criterion)
    if runs_learned >= _COMMON_FROM and claim.strength > 0:
        bold = best_event(families, replace(criterion, caution=_SUSPICION))
        if all(best is None or _shows_nothing(best, claim) for best in (*found, bold)):
            common = [_common_one(families, criterion, (direction,)) for direction in DIRECTIONS]
            found = [better or best for better, best in zip(common, found, strict=True)]
    if found == [None, None]:  # the best events of both directions were likelier in the other one
        return _anything_else(split)
    best_x, best_y = found
    return None if best_x is None else chosen(best_x), None if best_y is None else chosen(best_y)


@in_one_thread
def choose_among(
    families: list[Family[Any]], claim: Claim, runs: int, alpha: float, *, cautions: Sequence[float] = (CAUTION,)
) -> list[Choice | None]:
    """For each caution the best event of these families in either direction for a test of `runs` runs, if any."""
    criterion = Criterion(claim, runs, normal_quantile(alpha), CAUTION)
    best = [leading(found) for found in best_by_caution(families, criterion, cautions)]
    return [None if one is None else chosen(one) for one in best]


def expected_excess(choice: Choice, claim: Claim, runs: int, alpha: float, *, caution: float) -> float:
    """Expected excess over the claim of the bound from `runs` runs of an event; −∞ if the event is useless.

    Computed from the pilot counts of the choice minus `caution` standard errors.
    """
    return value_of(choice, Criterion(claim, runs, normal_quantile(alpha), caution, is_one_way=True), caution)


def _families(split: PilotSplit, bits: bool, effort: Effort, *, with_statistics: bool = False) -> list[Family[Any]]:
    found = event_families(split, effort=effort, with_statistics=with_statistics)
    return [*found, *(bit_families(split) if bits else ())]


def _anything_else(split: PilotSplit) -> tuple[Choice, Choice]:
    """For each direction the set of outputs seen on that side, or its complement if every output is in it.

    For outputs that never vary, or hardly ever occur twice. The learning half alone settles the events; their hits are
    those of the held-out half.
    """
    choices = []
    for side, direction in zip((split.learn_x, split.learn_y), DIRECTIONS, strict=True):
        times, names = tally(side)
        event = Outcomes(tuple(names[key] for key, _ in times.most_common(TABLE)))
        hits_x, hits_y, runs = event.count(split.held_x), event.count(split.held_y), split.held_runs
        if hits_x + hits_y == 2 * runs:
            choices.append(Choice(replace(event, others=True), direction, 0, 0, runs))
            continue
        more, fewer = (hits_x, hits_y) if direction == "x" else (hits_y, hits_x)
        shows_nothing = more - fewer <= _SUSPICION * math.sqrt(more + fewer)
        choices.append(Choice(event, direction, hits_x, hits_y, runs, shows_nothing))
    return choices[0], choices[1]


def _likelier(choices: tuple[Choice, Choice]) -> Choice:
    """The choice whose hits differ by more."""
    return max(choices, key=lambda one: (one.pilot_hits_x - one.pilot_hits_y) * (1 if one.likelier_on == "x" else -1))


def _best_or_suspect(families: Sequence[Family[Any]], criterion: Criterion) -> list[Best | None]:
    """The best event for each direction; if none shows an excess, suspect ones if these do."""
    found = best_each_way(families, criterion)
    best = leading(found)
    if best is not None and best.value <= 0:
        suspects = best_each_way(families, replace(criterion, caution=_SUSPICION))
        suspect = leading(suspects)
        if suspect is not None and suspect.value > 0:
            return suspects
    return found


def _or_suspect(best: Best | None, suspect: Best | None) -> Best | None:
    """The best event, or a suspect one that shows an excess where the best shows none."""
    is_better = best is not None and suspect is not None and best.value <= 0 < suspect.value
    return suspect if is_better else best


def _common_one(
    families: Sequence[Family[Any]], criterion: Criterion, directions: Sequence[Direction] = DIRECTIONS
) -> Best | None:
    """The best event that is neither rare nor nearly certain, with less caution if that shows a difference."""
    for share in _LESS_COMMON:
        best: Best | None = None
        for caution in _LESS_CAUTION:
            common = best_event(families, replace(criterion, least_share=share, caution=caution), directions)
            best = common or best
            if common is not None and not _shows_nothing(common, criterion.claim):
                break
        if best is not None:
            return best
    return None


def _shows_nothing(best: Best, claim: Claim) -> bool:
    """Whether not even the best event shows a difference; δ itself is not a difference between the laws."""
    return best.value + claim.strength <= 0 and claim.strength_name != "delta"


def _is_likelier(best: Best) -> bool:
    """Whether the pilot has more hits of an event on its dataset than on the other."""
    ours, theirs = best.hits if best.direction == "x" else best.hits[::-1]
    return ours > theirs


def _nearly_always_happens(best: Best) -> bool:
    runs = best.family.runs
    return runs - min(best.hits) <= min(_RARE_HITS, _COMMON * runs)
