"""Which findings at calls are excesses: those of values that the output shows.

A value that is drawn and does not show (the largest of several is released, a threshold is passed, a draw is rejected)
costs less than its law says. So does noise on a sample of rows.

Proof: docs/proofs/replay.md
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from ..claims.claim import Claim
from .comparison import NOT_NOISE, call_findings, is_noise, sum_finding
from .laws import Law
from .other_values import Calls, Reruns, is_unmoved
from .replayed_call import Finding, FindingKind, ReplayedCall

_HIDDEN: Final = "; the output does not show the value"
_CHOSEN: Final = "; a draw that may choose rows, or among answers, is made as well"
_UNRECORDED: Final = "; what is not recorded may hide the value"


def judged(
    calls: Calls, claim: Claim | None, distance: float, reruns: Reruns, *, is_recorded: bool, is_determined: bool
) -> list[Finding]:
    """Return the findings at the calls and of their sum, as excesses only where the output shows the values.

    An input that moves beyond the sensitivity that its primitive declares is an excess whatever the output shows,
    unless what the primitives are given varies by itself (not `is_determined`).
    """
    chooses = any(map(_may_choose, calls))
    shown: dict[int, ReplayedCall | None] = {}

    def part_shown(number: int) -> ReplayedCall | None:
        if number not in shown:
            call = calls[number]
            shown[number] = call if call.is_inferred else _shown_part(call, reruns.shown(number))
        return shown[number]

    found = []
    for number, call in enumerate(calls):
        for each in call_findings(call, claim, distance):
            words = ""
            if each.is_excess and each.kind is not FindingKind.BEYOND_SENSITIVITY:
                words = _CHOSEN if chooses else "" if is_recorded else _UNRECORDED
                if not words:
                    part = part_shown(number)
                    is_shown = part is not None and any(more.is_excess for more in call_findings(part, claim, distance))
                    words = "" if is_shown else _HIDDEN
            is_excess = each.is_excess and not words and is_determined
            found.append(replace(each, message=each.message + words, is_excess=is_excess, call=number))
    if any(each.is_excess for each in found) or sum_finding(calls, claim) is None:
        return found
    if chooses or not is_recorded:
        return [*found, *_no_excess(sum_finding(calls, claim), _CHOSEN if chooses else _UNRECORDED)]
    parts = [part_shown(number) for number, call in enumerate(calls) if is_noise(call) and call.worst_loss != 0.0]
    total = sum_finding(tuple(part for part in parts if part is not None), claim)
    return [*found, total] if total is not None else [*found, *_no_excess(sum_finding(calls, claim), _NOT_ALL)]


_NOT_ALL: Final = "; the output does not show all of their values"


def _no_excess(total: Finding | None, words: str) -> Iterator[Finding]:
    if total is not None:
        yield replace(total, message=total.message + words, is_excess=False)


def _may_choose(call: ReplayedCall) -> bool:
    """Whether a call may choose rows or flip an answer, so that the noise of others costs less than its law says."""
    if call.declared_on_x is not None:
        return False
    name = call.law_on_x.name
    return name in NOT_NOISE or name == "binomial" or (name == "discrete" and is_unmoved(call))


def _shown_part(call: ReplayedCall, flags: npt.NDArray[np.bool_]) -> ReplayedCall | None:
    """Return the call with those of its independent numbers that show; None if none does."""
    if np.all(flags):
        return call
    x, y = call.law_on_x, call.law_on_y
    if not np.any(flags) or not (x.is_shifted and x.name == y.name) or call.declared_on_x is not None:
        return None
    laws = []
    for law in (x, y):
        if law.location is None or law.scale is None:
            return None
        held = {"location": law.location.reshape(-1)[flags], "scale": law.scale.reshape(-1)[flags]}
        laws.append(Law(law.name, held, (int(flags.sum()),), law.after, law.beside))
    value = np.asarray(call.value).reshape(-1)[flags]
    return replace(call, law_on_x=laws[0], law_on_y=laws[1], value=value)
