"""A suite as a SARIF 2.1.0 file, for viewers of findings and for code scanning, and the values that reviewers see.

References
----------
OASIS, Static Analysis Results Interchange Format (SARIF) Version 2.1.0.
"""

from __future__ import annotations

import datetime
import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from ...audit.claims.claim import Claim, GroupClaim
from ...audit.errors import OptionError, RecordError
from ...audit.files import regular
from ...audit.records.json_codec import ROUNDED, json_text, told_apart
from ...audit.records.suite import Checked, Entry, Scalar, Suite, rows
from ...audit.results.verdict import Verdict
from ..pages.audit_facts import (
    INSTALLED,
    SOURCE_ROOT,
    SourcePlace,
    logical_name,
    place_of_mechanism,
    place_of_row,
    place_of_test,
    repetition,
    uri_of,
)
from ..plain_text import APART, cautions, prose, visible

# JSON without literals that a strict reader refuses, and the recorded values of an entry as JSON.

_LONG: Final = 2_000

_ELSEWHERE: Final = frozenset({"name", "experiment", "is_met", "exact", "seconds"})
"""Columns of `Suite.to_frame` that a report shows in another place, or that change from run to run."""
_OF_COUNTS: Final = frozenset({"bound", "estimate", "pvalue", "min_detectable_excess"})
"""What a failed health check leaves without a meaning."""


def strict_json(value: Any, levels: int) -> str:
    """Return JSON as `json_text` does, in which infinite and undefined numbers and whole numbers from 2⁵³ on are text.

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
    return json_text(_strict(value), levels)


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
    result = entry.result
    left_out = _ELSEWHERE | (_OF_COUNTS if result.findings and result.claim is not None else set())
    left_out |= {"estimate"} if result.stopped is not None and not result.is_closed else set()
    own: dict[str, Scalar] = {
        name: visible(value, _LONG) if isinstance(value, str) else value
        for name, value in row.items()
        if value is not None and name not in left_out
    }
    if result.ignored:
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


# The rules of SARIF files: one for each family of claims, one for statements, one for floating-point leaks.

_FAMILIES: Final = {
    "PureDP": ("pure differential privacy (ε)", "Pr[M(x) ∈ S] ≤ e^ε Pr[M(y) ∈ S]"),
    "ApproxDP": ("approximate differential privacy (ε, δ)", "Pr[M(x) ∈ S] ≤ e^ε Pr[M(y) ∈ S] + δ"),
    "GaussianDP": (
        "Gaussian differential privacy (μ)",
        "the trade-off curve of two normal distributions at distance μ",
    ),
    "RenyiDP": ("Rényi differential privacy", "a limit on the Rényi divergence of one order"),
    "ZeroConcentratedDP": ("zero-concentrated differential privacy (ρ)", "limits on all Rényi divergences"),
    "PrivacyProfile": ("a privacy profile", "a limit on δ for each of several ε"),
    "TradeOffCurve": ("a trade-off curve", "a limit on the power of every test of x against y"),
    "ProbabilityPreservation": ("probability preservation under Rényi privacy", "Mironov (2017), proposition 10"),
    "NFoldComposition": ("a composition of pure differential privacy", "Mironov (2017), proposition 4"),
}
"""Name and boundary of each family, by the name of its type."""

STATEMENT, LEAK = "Statement", "FloatingPointLeak"

_HELP: Final = (
    "An audit runs the mechanism on two datasets and tests whether the observed counts of one event contradict the "
    "claim. An error says that they do: if the claim were true, this would happen with probability at most alpha. A "
    "warning says that the audit decided nothing: too few runs, or a failed health check. A result of kind pass says "
    "that the claim is not refuted on this pair by this event. It does not say that the claim is true. A result of "
    "kind review says the same with a caution, such as a minimum detectable excess larger than the claim."
)
_OTHERS: Final = {
    STATEMENT: (
        "Statement about a mechanism",
        "Audited: whether the interval of every number of the statement meets the range that the statement allows.",
        "A statement is refuted if an interval lies outside the range that it allows; all intervals hold together "
        "with probability 1 − alpha. A statement is not a privacy claim.",
    ),
    LEAK: (
        "Floating-point leaks",
        "Examined: whether the last digits or the sign of zero of the outputs of the pilot runs contradict the claim.",
        "The verdict of the audit is about values. This warning is about the floating-point representation of the "
        "outputs, examined in the pilot runs; audit with floating_point='test' for a verdict, or release rounded "
        "outputs.",
    ),
}
"""Name, description and help of the rules that are not about a claim."""


def rule_id(result: Checked) -> str:
    """Return the rule of a result: the family of its claim, without parameters and distance."""
    return STATEMENT if result.claim is None else family(result.claim)


def family(claim: Claim) -> str:
    """Return the name of the family of a claim; that of the claim for neighbours if the claim is for a group.

    Examples
    --------
    >>> from dpaudit import PureDP
    >>> family(PureDP(1.0)), family(PureDP(2.0).group(3))
    ('PureDP', 'PureDP')
    """
    return type(claim.base if isinstance(claim, GroupClaim) else claim).__name__


def rule(name: str) -> dict[str, Any]:
    """Return the reporting descriptor of a rule."""
    title, boundary = _FAMILIES.get(name, (f"the type {name}", "the boundary of the claim"))
    events = ", for all events S" * (name in ("PureDP", "ApproxDP"))
    of_claim = (f"Claim of {title}", f"Audited claim: {boundary}{events}.", _HELP)
    short, full, text = _OTHERS.get(name, of_claim)
    return {
        "id": name,
        "shortDescription": {"text": short},
        "fullDescription": {"text": full},
        "help": {"text": text},
        "defaultConfiguration": {"level": "warning" if name == LEAK else "error"},
        "properties": {"tags": ["privacy", "differential-privacy"]},
    }


SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOTS: Final = {
    SOURCE_ROOT: "The working directory of the audits, usually the root of the repository.",
    INSTALLED: "The folder of installed Python packages.",
}
_DEFAULT_FILE: Final = "results.json"
_MOST_RELATED: Final = 100  # places of one result that code scanning shows


def sarif(
    suite: Suite, *, files: Sequence[ResultsFile] = (), code_scanning: bool = False, today: datetime.date | None = None
) -> str:
    """Return the suite as SARIF 2.1.0; the same results give the same text.

    Each audit is a result of the rule for its family of claims. A refuted claim has the level ``error``, an
    inconclusive audit the level ``warning``, and a claim that is not refuted the kind ``pass``, or ``review`` if the
    audit has a caution. An unmet expectation is a warning too. A floating-point leak is a result of a separate rule.
    The location is the mechanism, and lines that a replay found are related locations. Partial fingerprints depend on
    no draw, so that a finding keeps its identity from run to run. Accepted and expected refutations are suppressed.

    Parameters
    ----------
    suite : Suite
    files : sequence of ResultsFile
        The files of the results, in order; they are listed as artifacts with their hashes.
    code_scanning : bool
        Whether the file is for a service that shows every result as an alert and refuses one without a file, as GitHub
        code scanning does. Results of kind ``pass`` or ``review`` and suppressed ones are then left out. Where no
        source is recorded, the location is the test of the audit, or else the file of the results.
    today : date, optional
        Day on which acceptances are checked; by default the current day.

    Raises
    ------
    OptionError
        If `files` have another number of entries than the suite.

    References
    ----------
    OASIS (2020), SARIF Version 2.1.0, sections 3.10 (URIs), 3.11 (messages), 3.27 (results).

    Examples
    --------
    >>> import json
    >>> json.loads(sarif(Suite(title="Nothing", entries=())))["runs"][0]["results"]
    []
    """
    day = today or datetime.date.today()
    homes: list[str] = [_DEFAULT_FILE] * len(suite.entries)
    if files:
        homes = [file.name for file in file_of_each(suite, files)]
    results = []
    for entry, name, row, home in zip(suite.entries, told_apart(suite), rows(suite), homes, strict=True):
        places = _places(entry, home, code_scanning)
        found = [_result(entry, name, row, places, day), *_low_bits(entry, name, places)]
        if code_scanning:
            found = [_for_code_scanning(one) for one in found if one["kind"] == "fail" and not one["suppressions"]]
        results += found
    used = list(dict.fromkeys(result["ruleId"] for result in results))
    for result in results:
        result["ruleIndex"] = used.index(result["ruleId"])
    versions = {version for entry in suite.entries for name, version in entry.result.versions if name == "dpaudit"}
    driver: dict[str, Any] = {"name": "dpaudit", "rules": [rule(name) for name in used]}
    if versions:
        driver["version"] = ", ".join(sorted(versions))
    run = {
        "tool": {"driver": driver},
        "originalUriBaseIds": {name: {"description": {"text": text}} for name, text in _ROOTS.items()},
        "artifacts": _artifacts(suite, files),
        "columnKind": "unicodeCodePoints",
        "results": results,
        "properties": {"title": visible(suite.title)},
    }
    return strict_json({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, levels=4)


def _result(
    entry: Entry, name: str, row: dict[str, Scalar], places: tuple[dict[str, Any], ...], day: datetime.date
) -> dict[str, Any]:
    """The result of an entry, without the index of its rule."""
    result = entry.result
    kind, level = "fail", "error" if result.is_refuted else "warning"
    if result.verdict is Verdict.NOT_REFUTED and entry.is_met:
        needs_review = any(one.kind != "floating-point leak" for one in cautions(result))  # it is a result of their own
        kind, level = "review" if needs_review else "pass", "none"
    related = _related(entry)
    return _finding(entry, name, rule_id(result), places, kind=kind, level=level) | {
        "message": {"text": _words(entry, name, related)},
        "relatedLocations": related,
        "suppressions": _suppressions(entry, day),
        "properties": recorded(entry, row),
    }


def _finding(
    entry: Entry, name: str, rule_name: str, places: tuple[dict[str, Any], ...], *, kind: str, level: str
) -> dict[str, Any]:
    """What every result has; its message and its properties are added."""
    return {
        "ruleId": rule_name,
        "kind": kind,
        "level": level,
        "message": {},
        "locations": list(places),
        "relatedLocations": [],
        "partialFingerprints": {"auditedClaim/v1": _fingerprint(entry, name, rule_name)},
        "suppressions": [],
    }


def _low_bits(entry: Entry, name: str, places: tuple[dict[str, Any], ...]) -> list[dict[str, Any]]:
    """The result of a warning of a floating-point leak, if there is one."""
    result = entry.result
    if result.floating_point_leak is None:
        return []
    own = {
        "message": {"text": _message(f"{visible(name)}: {prose(str(result.floating_point_leak))}")},
        "properties": {"claim": visible(str(result.claim)), "seed": result.seed, "runs": result.runs},
    }
    return [_finding(entry, name, LEAK, places, kind="fail", level="warning") | own]


def _words(entry: Entry, name: str, related: list[dict[str, Any]]) -> str:
    """The message: verdict, what was audited, what must be read with it, and links to the places of a replay."""
    result = entry.result
    parts = [_ended(f"{visible(name)}: {prose(result.sentence)}")]
    if result.claim is None:
        parts.append(_ended(f"Statement: {prose(result.statement)}"))
    else:
        of_one = " of one canary" * (result.kind == "canaries")
        parts.append(f"Claim: {visible(result.claimed)} ({visible(result.adjacency)}{of_one}).")
    apart = f"WARNING: {result.floating_point_leak}"  # a separate result
    parts += [_ended(prose(remark)) for remark in result.remarks if remark != apart]
    parts += [_ended(prose(f"WARNING: {one.text}")) for one in cautions(result) if one.kind in APART]
    if not entry.is_met and entry.expected is not None:
        parts.append(f"Expected: {entry.expected.value}.")
    if entry.replay is not None:
        parts.append(_ended(f"Replay: {prose(entry.replay.sentence)}"))
    return _message(" ".join(parts)) + "".join(f" [{_link(place)}]({place['id']})" for place in related)


def _ended(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _link(place: dict[str, Any]) -> str:
    """File and line of a related location, as the text of an embedded link."""
    physical = place["physicalLocation"]
    shown = f"{unquote(physical['artifactLocation']['uri'])}:{physical['region']['startLine']}"
    return re.sub(r"([\\\[\]])", r"\\\1", _message(visible(shown)))


def _message(text: str) -> str:
    """Text in which nothing is a placeholder or an embedded link."""
    return text.replace("{", "{{").replace("}", "}}").replace("](", "] (")


def _places(entry: Entry, home: str, needs_file: bool) -> tuple[dict[str, Any], ...]:
    """The location of a mechanism: its file and line, or else its name alone, or a file that names the audit."""
    name = visible(logical_name(entry), 300)
    own = {"fullyQualifiedName": name, "name": name.rpartition(".")[2] or name}
    found: dict[str, Any] = {"logicalLocations": [own]}
    place = place_of_mechanism(entry)
    if needs_file and (place is None or place.root != SOURCE_ROOT):
        place = place_of_test(entry) or SourcePlace(file=home, root=SOURCE_ROOT)
        found["message"] = {"text": "The source of the mechanism is not recorded as a file of this project."}
    if place is not None:
        found["physicalLocation"] = _physical(place, first_line=needs_file)
    return (found,)


def _physical(place: SourcePlace, *, first_line: bool = False) -> dict[str, Any]:
    artifact: dict[str, Any] = {"uri": place.uri}
    if place.root and "://" not in place.uri:
        artifact["uriBaseId"] = place.root
    line = 1 if place.line is None and first_line else place.line
    return {"artifactLocation": artifact} | ({} if line is None else {"region": {"startLine": line}})


def _related(entry: Entry) -> list[dict[str, Any]]:
    """The calls with a finding of the entry's replay."""
    found: list[dict[str, Any]] = []
    for row in entry.replay.rows if entry.replay is not None else ():
        place = place_of_row(row) if row.finding else None
        if place is None or len(found) == _MOST_RELATED:
            continue
        one: dict[str, Any] = {"id": len(found) + 1, "physicalLocation": _physical(place)}
        own = place_of_mechanism(entry)
        if own is not None and own.file == place.file:
            one["physicalLocation"]["artifactLocation"]["uriBaseId"] = own.root
        if row.source:
            one["physicalLocation"]["region"]["snippet"] = {"text": visible(row.source)}
        if place.function:
            one["logicalLocations"] = [{"name": visible(place.function, 300)}]
        said = row.finding if row.finding.startswith(row.primitive) else f"{row.primitive}: {row.finding}"
        found.append(one | {"message": {"text": _message(prose(said))}})
    return found


def _fingerprint(entry: Entry, name: str, rule_name: str) -> str:
    """A hash of what is audited, of nothing that was drawn and of no place in a file."""
    result = entry.result
    words = [rule_name, name, entry.experiment]
    if result.claim is None:
        words += [result.statement, result.quantity]
    else:
        words += [result.mechanism, str(result.claim), result.adjacency]
    joined = "\0".join(words).encode("utf-8", "surrogatepass")
    return hashlib.sha256(joined).hexdigest()[:32]


def _suppressions(entry: Entry, day: datetime.date) -> list[dict[str, Any]]:
    """Why a refutation or an inconclusive audit is not news: it was accepted, or it was expected."""
    accepted, expected = entry.accepted, entry.expected
    if accepted is not None and entry.is_excused(day):
        return [{"kind": "external", "status": "accepted", "justification": prose(str(accepted))}]
    if expected is not None and entry.is_met and expected is not Verdict.NOT_REFUTED:
        why = f"expected verdict: {expected.value}{f' ({prose(entry.note)})' if entry.note else ''}"
        return [{"kind": "external", "status": "accepted", "justification": why}]
    return []


def _for_code_scanning(result: dict[str, Any]) -> dict[str, Any]:
    """The result with the one fingerprint that GitHub code scanning reads."""
    (own,) = result["partialFingerprints"].values()
    result["partialFingerprints"]["primaryLocationLineHash"] = f"{own}:1"
    return result


def _artifacts(suite: Suite, files: Sequence[ResultsFile]) -> list[dict[str, Any]]:
    """The files of results and the sources of mechanisms, with their hashes."""
    known: dict[tuple[str, str, str], str] = {
        (uri_of(file.name), SOURCE_ROOT, file.sha256): "attachment" for file in files
    }
    for entry in suite.entries:
        place = place_of_mechanism(entry)
        if place is not None:
            known.setdefault((place.uri, place.root, place.sha256), "analysisTarget")
    return [
        {"location": {"uri": uri, "uriBaseId": root}, "hashes": {"sha-256": digest}, "roles": [role]}
        for (uri, root, digest), role in known.items()
    ]
