"""What replays say of many pairs: counts of the verdicts, and what the first excess names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from ....audit.errors import DatasetError, MechanismError
from ....audit.replay.replay import replay
from ....audit.replay.replay_result import ReplayResult, ReplayVerdict


class Named(NamedTuple):
    """The primitive that a finding names, its line, how far its input moved, and the sensitivity that it declares."""

    call: str
    line: str
    moved: str
    sensitivity: str


NOTHING = Named("none", "none", "–", "–")


class Verdicts(NamedTuple):
    """Numbers of pairs by verdict, the pairs on which the mechanism raises, and what the first excess names.

    `first` is the verdict on the first pair.
    """

    excess: int
    bounded: int
    open: int
    raised: int
    named: Named | None
    first: str


def named(result: ReplayResult) -> Named | None:
    """Return what the first excess of a replay names; None without an excess."""
    found = next((finding for finding in result.findings if finding.is_excess), None)
    if found is None:
        return None
    if found.call is None or found.place is None:
        return Named("all calls", found.message, "–", "–")
    call = result.calls[found.call]
    moved, sensitivity = ("–" if number is None else format(number, ".6g") for number in (call.moved, call.sensitivity))
    return Named(call.primitive, str(found.place), moved, sensitivity)


def verdicts(mechanism: Any, pairs: Iterable[tuple[Any, Any]], first_seed: int, **options: Any) -> Verdicts:
    """Replay every pair with a different seed, and count the verdicts."""
    said: list[str] = []
    at_fault: Named | None = None
    for seed, (x, y) in enumerate(pairs, start=first_seed):
        try:
            result = replay(mechanism, x, y, seed=seed, **options)
        except (MechanismError, DatasetError):  # it raises on both, or refuses one
            said.append("raised")
            continue
        said.append(result.verdict.name)
        at_fault = at_fault or named(result)
    counts, of = Counter(said), ReplayVerdict
    numbers = counts[of.EXCESS.name], counts[of.BOUNDED.name], counts[of.OPEN.name], counts["raised"]
    return Verdicts(*numbers, at_fault, said[0].lower() if said else "–")
