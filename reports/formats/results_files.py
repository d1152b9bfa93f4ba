"""Files of results, identified by their SHA-256."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ...audit.errors import OptionError, RecordError
from ...audit.files import regular
from ...audit.records.json_codec import ROUNDED, json_bytes
from ...audit.records.suite import Entry, Scalar, Suite
from ...audit.results.audit_result import AuditResult
from ..pages.audit_facts import repetition
from ..plain_text import cautions, visible

# JSON without literals that a strict reader refuses, and the recorded values of an entry as JSON.

_LONG: Final = 2_000

_COLUMNS: Final = (
    "kind", "mechanism", "claim", "claim_type", "claim_source", "parameter_name", "claimed_parameter", "adjacency",
    "unit", "distance", "difference", "doubt", "verdict", "expected", "bound", "estimate", "alpha", "pvalue",
    "adjusted_pvalue", "min_detectable_excess", "power", "event", "more_likely_on", "count_x", "runs_x", "count_y",
    "runs_y", "quantity", "at", "lower", "upper", "low", "high", "inclusion", "canaries", "included", "guesses",
    "right_guesses", "max_attainable_bound", "runs", "pilot_runs", "stopped", "seed", "is_reproducible",
    "floating_point_leak", "findings", "notes", "accepted", "provenance", "versions",
)  # fmt: skip
_OF_COUNTS: Final = frozenset({"bound", "estimate", "pvalue", "min_detectable_excess"})
"""What a failed health check leaves without a meaning."""


def strict_json(value: Any, levels: int) -> str:
    """Return JSON as `json_bytes` does, in which infinite and undefined numbers and whole numbers from 2⁵³ on are text.

    Lone surrogates, which UTF-8 cannot encode, are written as visible escapes.

    Examples
    --------
    >>> print(strict_json([1.5, float("inf"), float("nan"), 2**53], levels=1), end="")
    [
     1.5,
     "inf",
     "nan",
     "9007199254740992"
    ]
    """
    return json_bytes(_strict(value), levels).decode()


def _strict(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_strict(name): _strict(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strict(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if isinstance(value, int) and abs(value) >= ROUNDED:
        return str(value)
    return value


def recorded(entry: Entry, row: dict[str, Scalar]) -> dict[str, Scalar]:
    """Return what a results file says of an entry, by the names of `Suite.to_frame`, and the call that repeats it.

    Silenced health checks are under ``ignored``, and what weakens the verdict under ``cautions``.

    Left out are bound, estimate, p-value and detectable excess after a failed health check, and the estimate of bets,
    which is biased.
    """
    result, left_out = entry.result, frozenset[str]()
    if isinstance(result, AuditResult):
        left_out = _OF_COUNTS if result.findings else frozenset()
        left_out |= {"estimate"} if result.stopped is not None and not result.is_closed else set()
    found = {name: row[name] for name in _COLUMNS if row[name] is not None and name not in left_out}
    own = {name: visible(value, _LONG) if isinstance(value, str) else value for name, value in found.items()}
    if isinstance(result, AuditResult) and result.ignored:
        own["ignored"] = visible(", ".join(result.ignored), _LONG)
    if read_with := cautions(result):
        own["cautions"] = visible("; ".join(one.text for one in read_with), _LONG)
    return own | {"repeat": visible(repetition(entry), _LONG)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsFile:
    """A file of results by name and hash."""

    name: str  # path with forward slashes, relative to the working directory if the file lies below it
    sha256: str  # of the file's bytes
    entries: int  # their number; the files of a merged suite have them in order


def results_file(path: Path, suite: Suite) -> ResultsFile:
    """Return the file from which a suite was read."""
    try:
        content = regular(path).read_bytes()
    except OSError as error:
        raise RecordError(f"{path} cannot be read: {error}", path=str(path)) from error
    full, here = path.resolve(), Path.cwd().resolve()
    name = full.relative_to(here).as_posix() if full.is_relative_to(here) else path.name
    return ResultsFile(name=name, sha256=hashlib.sha256(content).hexdigest(), entries=len(suite.entries))


def file_of_each(suite: Suite, files: Sequence[ResultsFile]) -> list[ResultsFile]:
    """Return the file of each entry of a suite."""
    found = [file for file in files for _ in range(file.entries)]
    if len(found) != len(suite.entries):
        raise OptionError(
            f"files={[file.name for file in files]!r} have {len(found):,} entries, and the suite has "
            f"{len(suite.entries):,}; pass the files of this suite in order.",
            files=tuple(files),
        )
    return found
