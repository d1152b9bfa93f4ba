"""Lossless conversion of results to JSON and back. Reading a file never executes or imports anything from it."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import functools
import json
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Any, NoReturn, Union, cast, get_args, get_origin

import numpy as np
from cattrs import Converter, ForbiddenExtraKeysError, IterableValidationError, IterableValidationNote, transform_error
from cattrs.gen import make_dict_structure_fn

from ..claims.claim import ApproxDP, Claim, GaussianDP, GroupClaim, PureDP
from ..claims.mironov_propositions import NFoldComposition, ProbabilityPreservation
from ..claims.privacy_profile import PrivacyProfile, TradeOffCurve
from ..claims.renyi import RenyiDP, ZeroConcentratedDP
from ..errors import AuditError, RecordError, described
from ..events import events, features, leaves, scores, text_columns
from ..events.named_parts import Dictionary, Mark, distinct, printed
from ..events.outputs import Raised
from ..events.plain_outputs import Foreign
from ..files import AnyPath, path_of, regular, write_atomically
from ..guesses.canary_guesses import CanaryGuesses, CanaryTest
from ..health.findings import Finding, HealthCheck
from ..inference.divergence_test import DivergenceTest
from ..inference.event_test import Counts
from ..inference.guess_test import Guesses
from ..portfolio.floating_point_leaks import FloatingPointLeak
from ..printing import shorten
from ..results.audit_result import FixedSizeResult, InterimAnalysis, OtherDirection, SequentialResult
from ..results.bin_result import BinCounts
from ..results.canary_result import CanaryResult, ScoreSketch
from ..results.claim_pair_and_alpha import Pair
from ..results.result import Result
from ..results.statement_result import Point, Series, StatementResult
from ..results.verdict import Verdict
from ..sampling.object_identity import Provenance
from . import suite as suites
from .suite import Checked, Entry, Suite, is_side_check, side_check

SCHEMA = 8  # version of the file format, the only one that is read

_SAME, _NUMBERS = frozenset({str, bool, type(None)}), frozenset({int, float})
_PLAIN, _NESTED = _SAME | _NUMBERS, frozenset({dict, list})
ROUNDED = 2.0**sys.float_info.mant_dig  # from here on floating-point numbers skip integers, and many readers round them
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
_MOST_BITS = 14_000  # of an integer: Python prints at most 4,300 digits
_MOST_NAMED = 3  # results in the title of a suite without a title
_DEEPEST = 62  # levels of objects and lists in a file: 59 in an entry


@dataclass(frozen=True, slots=True)
class Opaque:
    """An outcome whose type JSON cannot represent, kept as text."""

    text: str

    def __repr__(self) -> str:
        return self.text


TYPES: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        PureDP, ApproxDP, GaussianDP, GroupClaim, RenyiDP, ZeroConcentratedDP, PrivacyProfile, TradeOffCurve,
        ProbabilityPreservation, NFoldComposition, events.Intervals, events.Outcomes, events.Scored,
        scores.Number, scores.Coordinate, scores.Column, scores.DifferentSizes, scores.LowestBit,
        scores.Residue, scores.Remainder, scores.Decimals, scores.Units, scores.TrailingZeros, scores.LastDigits,
        scores.NegativeZero, scores.Additive, scores.Projection, features.Coordinates, features.Standardised,
        features.OrderStatistics, features.Released, features.Conditional, features.Products, features.Parities,
        features.Statistics, leaves.Leaves, leaves.Summaries, leaves.KeyedValues, text_columns.TextColumn,
        text_columns.TextColumns, Counts, Guesses, OtherDirection, DivergenceTest, Pair, Provenance, Finding,
        InterimAnalysis, BinCounts, FloatingPointLeak, events.Sketch, FixedSizeResult, SequentialResult, Point, Series,
        StatementResult, CanaryGuesses, CanaryTest, ScoreSketch, CanaryResult, suites.Recount, suites.Accepted,
        suites.ReplayRow, suites.ReplayTable, suites.ExactRow, suites.ExactTable, suites.SideCheck, Entry, suites.Topic,
        Suite, Raised, Dictionary, Foreign, Opaque,
    )
}  # fmt: skip
_DERIVED = frozenset({"type", "summary"})  # names in objects that are not fields
ENUMS: dict[str, type[enum.Enum]] = {"Verdict": Verdict, "HealthCheck": HealthCheck, "Mark": Mark}


def told_apart(suite: Suite) -> list[str]:
    """Return distinct names of the entries; repeated names get a number."""
    return list(distinct((entry.name for entry in suite.entries), "{} #{}"))


def to_json(suite: Suite) -> str:
    """Return the suite as JSON text with a line for each entry, from which `from_json` restores an equal suite."""
    derived = {
        "verdicts": {
            name: entry.result.verdict.value for name, entry in zip(told_apart(suite), suite.entries, strict=True)
        },
        "is_met": suite.is_met if any(entry.expected is not None for entry in suite.entries) else None,
        "refuted": [entry.name for entry in suite.entries if entry.result.is_refuted],
        "checks": {check.name: check.word for check in suite.checks},
    }
    whole = plain_data(dataclasses.replace(suite, entries=(), environment={}))
    whole.pop("environment")
    whole["entries"] = [_entry_data(entry) for entry in suite.entries]
    audits = [_plain(entry.result.environment) for entry in suite.entries]
    environment = {"suite": _plain(suite.environment), "audits": audits}
    body = {"schema": SCHEMA, "summary": derived, "suite": whole, "environment": environment}
    return json_text(body, levels=3)


def _entry_data(entry: Entry) -> dict[str, Any]:
    data: dict[str, Any] = plain_data(entry)
    data["result"].pop("environment")
    data["summary"] = str(entry.result)
    return data


def json_text(value: Any, levels: int) -> str:
    """Return JSON with a line for each part of the upper `levels` of objects and lists.

    Lone surrogates, which UTF-8 cannot encode, are escaped.

    >>> print(json_text({"a": [{"b": 1, "c": [2]}, 3], "d": []}, levels=2), end="")
    {
     "a": [
      {"b": 1, "c": [2]},
      3
     ],
     "d": []
    }
    """
    return _lines(value, levels, "\n").encode("utf-8", "backslashreplace").decode() + "\n"


def _lines(value: Any, levels: int, margin: str) -> str:
    if not levels or not value or not isinstance(value, (dict, list)):
        return _ENCODER.encode(value)
    inner, (opening, closing) = f"{margin} ", "{}" if isinstance(value, dict) else "[]"
    if isinstance(value, dict):
        parts = [f"{_ENCODER.encode(str(name))}: {_lines(part, levels - 1, inner)}" for name, part in value.items()]
    else:
        parts = [_lines(part, levels - 1, inner) for part in value]
    return opening + inner + f",{inner}".join(parts) + margin + closing


def _plain(value: Any) -> Any:
    """An environment as JSON values; infinities, NaN and other objects become text."""
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    is_plain = value is None or isinstance(value, (int, str)) or (isinstance(value, float) and math.isfinite(value))
    return value if is_plain else str(value)


def from_json(text: str) -> Suite:
    """Read the text that `to_json` wrote; raise a `RecordError` for other text, schemas and impossible values."""
    try:
        body = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise RecordError(
            f"the results are not JSON ({error}); the file may be truncated, so run the audit again."
        ) from error
    if not isinstance(body, dict) or not isinstance(body.get("schema"), int) or not isinstance(body.get("suite"), dict):
        raise RecordError('these are not audit results; expected an object with "schema" and "suite".')
    if body["schema"] != SCHEMA:
        remedy = "run the audits again" if body["schema"] < SCHEMA else "use the version that wrote the file"
        raise RecordError(
            f"schema={body['schema']} is of another version of dpaudit, and this one reads schema {SCHEMA} only; "
            f"{remedy}.",
            schema=body["schema"],
        )
    try:
        return _restored(body)
    except ExceptionGroup as group:
        wrong = faults(group, "$.suite")
        raise RecordError(f"the results contain an impossible value: {wrong}; run the audit again.") from group
    except (TypeError, ValueError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        raise RecordError(f"the results are damaged ({described(error)}); run the audit again.") from error


def _restored(body: dict[str, Any]) -> Suite:
    """The suite of these data, with the environments that the file keeps beside it."""
    _check_depth(body)
    environment = body.get("environment", {})
    whole, audits = environment.get("suite", {}), environment.get("audits", [])
    if not all(isinstance(each, dict) for each in (whole, *audits)):
        raise TypeError("an environment is not an object")
    suite: Suite = _declared(body["suite"], Suite)
    for entry, audit in zip(suite.entries, audits, strict=True):
        entry.result.environment.update(audit)
    return dataclasses.replace(suite, environment=whole)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _check_depth(body: Any) -> None:
    """Raise a `ValueError` if objects and lists are nested more than 62 deep."""
    level = [body]
    for _ in range(_DEEPEST):
        inner = [each.values() if isinstance(each, dict) else each for each in level]
        level = [part for parts in inner for part in parts if type(part) in _NESTED]
    if level:
        raise ValueError(f"objects nested more than {_DEEPEST} deep")


def save(results: Suite | Result | Mapping[str, Any] | Sequence[Any], path: AnyPath) -> None:
    """Write a suite, a single result or several named results to a JSON file that `load` reads, atomically.

    Parameters
    ----------
    results : Suite, result, sequence of results, or mapping of str to results
        What to write: results of audits, statements, replays, comparisons of versions and searches for a sensitivity.
        Names of a mapping become those of the entries.
    path : str or path
        File to write. An existing file is replaced only when the new one is complete.

    Raises
    ------
    OptionError
        If no file can have the name.
    RecordError
        If a file could not restore the results: another type, a claim from outside the library, an impossible name.
    WriteError
        If the file cannot be written, or the path is a link, a folder, a pipe or a device.

    See Also
    --------
    load : Read the file.
    results.Suite : Several results under a title.

    Notes
    -----
    The file holds all fields of the results, with seeds and versions, so that equal results are read again; verdicts
    and sentences are derived from them. Its JSON schema is docs/results.schema.json. Audits hold no rows unless
    `keep_datasets` asks for them, but a replay holds by how much the input of each call moved, which may be a value of
    the row in which the datasets differ.

    Examples
    --------
    >>> import os, tempfile
    >>> from dpaudit import check, load, save
    >>> def noisy(value, size, rng):
    ...     return value + rng.laplace(size=size)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "results.json")
    ...     save({"noisy": check(noisy, 0, 1, claim=0.5, runs=10_000)}, path)
    ...     load(path).entries[0].result.verdict.value
    'refuted'
    """
    target = path_of(path)
    if not isinstance(results, Suite):
        results = _suite_of(results)
    try:
        content = to_json(results)
        from_json(content)
    except RecordError as error:
        raise RecordError(f"these results would not be read again, so nothing was written: {error}") from error
    write_atomically(target, content.encode())


def _suite_of(results: Any) -> Suite:
    """A suite of one or several results, with the current time in its environment."""
    several = list(results) if isinstance(results, (list, tuple)) else [results]
    by_subject = [(getattr(one, "subject", ""), one) for one in several]
    named = list(results.items()) if isinstance(results, Mapping) else by_subject
    foreign = (one for _, one in named if not isinstance(one, Checked) and not is_side_check(one))
    if kinds := sorted({type(one).__name__ for one in foreign}):
        raise RecordError(
            f"results of type {' or '.join(kinds)} cannot be saved; pass an AuditResult (of a search, its .audit), "
            'several by name as {"count": result, …}, or a Suite(title=…, entries=(Entry(name=…, result=…), …)).'
        )
    if others := [name for name, _ in named if not isinstance(name, str)]:
        raise RecordError(f"name={others[0]!r} of a result is not text; name each result by a text.")
    names = [name for name, _ in named]
    more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED + 1 else ""
    title = f"Audits of {', '.join(names[:_MOST_NAMED] if more else names)}{more}"
    checks = tuple(side_check(name, one) for name, one in named if not isinstance(one, Checked))
    if not isinstance(results, (Mapping, list, tuple)):
        kind = checks[0].kind if checks else "audit"
        what = "Exact audit" if kind == "exact" else kind.capitalize()
        title = results.statement if isinstance(results, StatementResult) else f"{what} of {names[0]}"
    return Suite(
        title=title,
        entries=tuple(Entry(name=name, result=one) for name, one in named if isinstance(one, Checked)),
        checks=checks,
        environment={"saved": this_moment()},
    )


def this_moment() -> str:
    """Return the date and time in UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def load(path: AnyPath) -> Suite:
    """Read a file that `save` wrote.

    Parameters
    ----------
    path : str or path
        File to read.

    Returns
    -------
    Suite
        Audits and statements equal to those saved, in `entries`; verdict, text and table of other checks in `checks`.

    Raises
    ------
    RecordError
        If the file cannot be read or is inconsistent; the message names the path.

    See Also
    --------
    save : Write the file.

    Examples
    --------
    >>> import os, tempfile
    >>> from dpaudit import check_outputs, load, save
    >>> result = check_outputs([0] * 500, [0] * 500, claim=1.0, name="constant", ignore="constant-output")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "results.json")
    ...     save({"constant": result}, path)
    ...     load(path).entries[0].result == result
    True
    """
    file = path_of(path)
    try:
        return from_json(regular(file).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"{os.fsdecode(path)} cannot be read: {error}", path=str(file)) from error
    except RecordError as error:
        raise RecordError(f"{os.fsdecode(path)}: {error}", path=str(file)) from error


def is_storable(value: Any) -> bool:
    """Whether a file restores an equal value."""
    try:
        return bool(read_data(plain_data(value)) == value)
    except (AuditError, ExceptionGroup, TypeError, ValueError, KeyError):
        return False


def plain_data(value: Any) -> Any:
    """Return a value as JSON that `read_data` restores: tuples as arrays, other values as an object with one tag."""
    kind: Any = type(value)
    if kind in _SAME or (kind in _NUMBERS and abs(value) < ROUNDED):
        return value
    known: Any = TYPES.get(kind.__name__)
    if known is kind:
        names = [field.name for field in dataclasses.fields(kind)]
        return {"type": kind.__name__} | {name: plain_data(getattr(value, name)) for name in names}
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, enum.Enum):
        name = type(value).__name__
        if name in ENUMS:
            return {"enum": name, "value": value.value}
        return {"type": "Opaque", "text": f"{name}.{value.name}"}
    if isinstance(value, int) and value.bit_length() <= _MOST_BITS:
        return value if abs(value) < ROUNDED else {"int": str(value)}
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, tuple):
        return [plain_data(part) for part in value]
    if isinstance(value, dict):
        return {"dict": [[plain_data(key), plain_data(part)] for key, part in value.items()]}
    if isinstance(value, (Claim, events.Event)):
        raise RecordError(
            f"{type(value).__name__} is not a type of the library, so a file cannot restore it; use a claim of the "
            "library, such as PrivacyProfile or TradeOffCurve.",
            type=type(value).__name__,
        )
    return {"type": "Opaque", "text": printed(value)}


def read_data(value: Any) -> Any:
    """Restore a value from the data of `plain_data`.

    Invalid data raises a Type-, Value- or KeyError, or an ExceptionGroup of what is wrong with the fields of an object.
    """
    if type(value) not in _NESTED:
        return value
    if type(value) is list:
        return tuple(value if _PLAIN.issuperset(map(type, value)) else map(read_data, value))
    if "type" in value:
        fields = {name: part for name, part in value.items() if name not in _DERIVED}
        return _reader(value["type"])(fields, None)
    if "enum" in value:
        return ENUMS[value["enum"]](value["value"])
    if "int" in value:
        return int(value["int"])
    if "float" in value:
        return float(value["float"])
    return {read_data(key): read_data(part) for key, part in cast(list[Any], value["dict"])}


def faults(error: Exception, place: str) -> str:
    """Describe an error of `read_data`; those of fields by their paths, which begin with `place`."""
    if isinstance(error, ExceptionGroup):
        return "; ".join(transform_error(error, place, lambda each, _: _fault(each)))
    return described(error)


def _fault(error: BaseException) -> str:
    if isinstance(error, ForbiddenExtraKeysError):
        return f"{error.cl.__name__} has no field {' or '.join(sorted(error.extra_fields))}"
    return described(error)


@functools.cache
def _reader(name: str) -> Callable[[Any, Any], Any]:
    """The function that makes a dataclass of an object, each field by its declared type, and refuses other names."""
    return make_dict_structure_fn(TYPES[name], _CONVERTER, _cattrs_forbid_extra_keys=True)


def _declared(value: Any, hint: Any) -> Any:
    """Restore a value that must be of a class or of a union of classes; an integer may stand for a float."""
    found, kind = read_data(value), _CLASSES.get(hint, hint)
    if kind is float and type(found) is int and abs(found) < 2**1000:  # beyond it, arithmetic with floats overflows
        return found
    if not isinstance(found, kind) or (type(found) is bool and kind not in (bool, object)):
        raise TypeError(f"{shorten(found)} is not of type {getattr(kind, '__name__', kind)}")
    return found


def _array(value: Any, hint: Any) -> tuple[Any, ...]:
    """Restore a tuple of parts of one type, or of each its own type."""
    if type(value) is not list:
        raise TypeError(f"{shorten(value)} is not an array")
    kinds = get_args(hint)
    if kinds[-1] is Ellipsis:
        kinds = kinds[:1] * len(value)
    if len(kinds) != len(value):
        raise ValueError(f"{shorten(value)} is not an array of {len(kinds)} parts")
    parts: list[Any] = []
    try:
        for part, kind in zip(value, kinds, strict=True):
            parts.append(_CONVERTER.structure(part, kind))
    except Exception as error:  # the first one: cattrs would gather an error of two kilobytes for each wrong part
        error.add_note(IterableValidationNote("", len(parts), hint))
        raise IterableValidationError("an array", [error], hint) from None
    return tuple(parts)


def _is_of_classes(hint: Any) -> bool:
    """Whether a declared type is a class or a union of classes; cattrs reads ``| None`` itself."""
    return hint in _CLASSES or (get_origin(hint) in (None, Union, UnionType) and type(None) not in get_args(hint))


# The class to ask `isinstance` for, of declared types that it refuses.
_CLASSES: dict[Any, type[Any]] = {Any: object, tuple[Any, ...]: tuple, dict[str, Any]: dict}

# By itself cattrs would read "3" as 3, "ab" as ("a", "b"), and an object whatever its tag. It asks the last hook first.
_CONVERTER = Converter()
_CONVERTER.register_structure_hook_func(lambda hint: getattr(hint, "__origin__", None) is tuple, _array)
_CONVERTER.register_structure_hook_func(_is_of_classes, _declared)
for _kind in (str, int, float, enum.Enum):  # it asks no predicate for these
    _CONVERTER.register_structure_hook(_kind, _declared)
