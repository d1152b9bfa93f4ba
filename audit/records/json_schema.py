"""JSON Schema of results files, derived from the dataclasses of `records`.

As in reading a file, fields with a default may be missing, and a name that is not a field is refused: a misspelt one
would silently leave its field at the default. Summaries are required, although the reader ignores them. The reader
checks conditions beyond a schema, such as counts not exceeding runs.
"""

from __future__ import annotations

import dataclasses
import enum
import json
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ..results.verdict import Verdict
from .json_codec import ENUMS, SCHEMA, TYPES
from .suite import Entry, Suite

Schema = dict[str, Any]


def _object(**properties: Schema) -> Schema:
    return {"type": "object", "required": list(properties), "properties": properties}


def _tuple(*parts: Schema) -> Schema:
    return {"type": "array", "prefixItems": list(parts), "items": False, "minItems": len(parts)}


_ANY: Schema = {"$ref": "#/$defs/value"}
_ENCODED: dict[str, Schema] = {
    "wholeNumber": {
        "title": "whole number",
        "description": "An integer, written as text from 2^53 on because many readers would round it.",
        "anyOf": [{"type": "integer"}, {"$ref": "#/$defs/longWholeNumber"}],
    },
    "longWholeNumber": _object(int={"type": "string", "pattern": "^-?[0-9]+$"}),
    "anyNumber": {
        "title": "number",
        "description": "A number that may be infinite or undefined, for which JSON has no literals.",
        "anyOf": [{"type": "number"}, {"$ref": "#/$defs/oddNumber"}, {"$ref": "#/$defs/longWholeNumber"}],
    },
    "oddNumber": _object(float={"enum": ["inf", "-inf", "nan"]}),
    "value": {
        "title": "any value",
        "description": "Any outcome of a mechanism; tuples are arrays, and types that JSON cannot represent are text "
        "(Opaque).",
        "anyOf": [
            {"type": ["null", "boolean", "string", "number"]},
            {"type": "array", "items": _ANY},
            {"$ref": "#/$defs/oddNumber"},
            {"$ref": "#/$defs/longWholeNumber"},
            {"$ref": "#/$defs/dictionary"},
            *({"$ref": f"#/$defs/{name}"} for name in [*ENUMS, *TYPES]),
        ],
    },
    "dictionary": _object(
        dict={"type": "array", "items": _tuple({"$ref": "#/$defs/value"}, {"$ref": "#/$defs/value"})}
    ),
}


def json_schema() -> Schema:
    """Return the JSON Schema (draft 2020-12) that every file written by `save` satisfies.

    >>> found = json_schema()
    >>> found["$id"] == f"urn:dpaudit:results:{found['properties']['schema']['const']}"
    True
    >>> found["$defs"]["PureDP"]["properties"]["epsilon"]
    {'$ref': '#/$defs/anyNumber'}
    """
    definitions = {name: _dataclass(kind) for name, kind in TYPES.items()}
    entry = definitions[Entry.__name__]
    entry["required"].append("summary")
    entry["properties"]["summary"] = {"description": "The result in a sentence.", "type": "string"}
    definitions |= {name: _enum(kind) for name, kind in ENUMS.items()}
    for kind in dict.fromkeys(base for known in TYPES.values() for base in _bases(known)):
        members = [{"$ref": f"#/$defs/{name}"} for name, known in TYPES.items() if issubclass(known, kind)]
        definitions[kind.__name__] = {**_titled(kind), "anyOf": members}
    verdicts = {"type": "object", "additionalProperties": {"enum": [verdict.value for verdict in Verdict]}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:dpaudit:results:{SCHEMA}",
        "title": "Results of dpaudit",
        "description": "Audits and checked statements with their counts, as `save` writes them.",
        "type": "object",
        "required": ["schema", "summary", "suite", "environment"],
        "properties": {
            "schema": {"const": SCHEMA},
            "summary": {
                "description": "Verdicts, derived from the suite.",
                "type": "object",
                "required": ["verdicts", "is_met"],
                "properties": {
                    "verdicts": verdicts,
                    "is_met": {"type": ["boolean", "null"]},
                    "refuted": {"type": "array", "items": {"type": "string"}},
                    "checks": {"type": "object", "additionalProperties": {"type": "string"}},
                },
            },
            "suite": {"$ref": f"#/$defs/{Suite.__name__}"},
            "environment": {
                "description": "Everything that may differ between two runs with the same seed, for the suite and for "
                "each entry in order.",
                **_object(suite={"type": "object"}, audits={"type": "array", "items": {"type": "object"}}),
            },
        },
        "$defs": definitions | _ENCODED,
    }


def schema_text() -> str:
    """Return the text of ``docs/results.schema.json``."""
    return json.dumps(json_schema(), indent=1, ensure_ascii=False) + "\n"


def _titled(kind: type[Any]) -> Schema:
    return {"title": kind.__name__, "description": (kind.__doc__ or "").strip().partition("\n")[0]}


def _bases(kind: type[Any]) -> list[type[Any]]:
    """Base classes within the project, such as `Claim`."""
    return [base for base in kind.__mro__[1:] if base.__module__.startswith(__name__.partition(".")[0] + ".")]


def _dataclass(kind: type[Any]) -> Schema:
    """Schema of a dataclass, tagged by its name; fields excluded from comparison are stored elsewhere."""
    fields = {each.name: each for each in dataclasses.fields(kind) if each.compare}
    missing = dataclasses.MISSING
    required = [name for name, each in fields.items() if each.default is each.default_factory is missing]
    hints = get_type_hints(kind)
    return {
        **_titled(kind),
        "type": "object",
        "required": ["type", *required],
        "properties": {"type": {"const": kind.__name__}, **{name: _typed(hints[name]) for name in fields}},
        "additionalProperties": False,
    }


def _enum(kind: type[enum.Enum]) -> Schema:
    return _titled(kind) | _object(enum={"const": kind.__name__}, value={"enum": [member.value for member in kind]})


def _typed(hint: Any) -> Schema:
    """Schema of the values of a declared type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return {"anyOf": [_typed(option) for option in arguments]}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is tuple and arguments[-1] is Ellipsis:
        return {"type": "array", "items": _typed(arguments[0])}
    if origin is tuple:
        return _tuple(*map(_typed, arguments))
    if hint in _PLAIN:
        return _PLAIN[hint]
    return {"$ref": f"#/$defs/{hint.__name__}"}


_PLAIN: dict[Any, Schema] = {
    Any: _ANY,
    int: {"$ref": "#/$defs/wholeNumber"},
    float: {"$ref": "#/$defs/anyNumber"},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
}
