"""Replays in a test session: the message of one with an excess, and the replay that explains a refuted audit."""

from __future__ import annotations

from ...audit.errors import AuditError
from ...audit.replay.replay import replay
from ...audit.replay.replay_result import ReplayResult, ReplayVerdict
from ...audit.results.audit_result import AuditResult
from ...audit.results.replay_table import ReplayTable
from ..plain_text import visible
from .failure import Case

_BOUNDED = (
    "  The counts refute the claim all the same. The recorded calls have noise enough on this path, so look at what "
    "the replay does not see: other paths, noise that is not drawn anew in each run, and low bits of the outputs."
)


def excess_message(result: ReplayResult) -> str:
    """Return the failure message of a replay with an excess."""
    return "\n".join([*(visible(line, 1_000) for line in str(result).splitlines()), f"  seed    {result.seed}"])


def explanation(case: Case, result: AuditResult) -> tuple[str, ReplayTable | None]:
    """Return what a replay shows on the pair of an audit: for its failure message, and as a table for its report."""
    try:
        found = replay(
            case.mechanism,
            case.x,
            case.y,
            claim=lambda distance: result.claim,  # which is at the pair's distance already
            distance=result.pair.distance,
            output=case.options.get("output"),
            seed=result.seed,
        )
    except AuditError as error:
        return f"  replay     not made: {visible(str(error), 1_000)}", None
    first, *rest = (visible(line, 1_000) for line in str(found).splitlines())
    if result.is_refuted and found.verdict is ReplayVerdict.BOUNDED:
        rest.append(_BOUNDED)
    return "\n".join([f"  replay     {first}", *(f"           {line}" for line in rest)]), found.tabulated()
