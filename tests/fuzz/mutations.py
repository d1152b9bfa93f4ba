"""Odd values, and files that something has happened to: what a fuzzed example is made of.

Every function takes its choices from a `random.Random`, so an example is known by the seed of its generator.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

_NUMBERS = (
    0, 1, -1, 2, 3, 0.5, -0.5, 1e-9, 1e-300, 5e-324, 1e16, 1e300, 1.7976931348623157e308, -0.0, 2**31, 2**53, 2**63,
    2**64, -(2**63), 10**30, 10**400, float("inf"), float("-inf"), float("nan"),
)  # fmt: skip
_TEXTS = (
    "", " ", "0", "x", "é", "\u2028", "\ud800", "\udcff", "\U0001f600", "\n", "\t", "\x1b[31m", "a" * 300,
    "null", "NaN",
    "Infinity", "[", "{}", "-", "--", "--help", "1,5", "1e999", "0x10", "1_000", "٣", "%s%n", "{0}", "../..",
    "/dev/null",
    "trap:object", "os:system", "__import__('trap')", "!!python/object:trap", "PureDP", "inf", "-inf", "nan", "[red]",
)  # fmt: skip
_WORDS = ("type", "enum", "int", "float", "dict", "value", "values", "schema", "suite", "entries", "result", "claim")
_LITERALS = (
    "NaN", "-Infinity", "1e999", "-0", "1" * 5000, '{"int": "' + "9" * 5000 + '"}', '{"float": "nan"}',
    '{"type": "trap"}',
    '{"type": "os.system"}', '{"type": ["PureDP"]}', '{"type": {}}', '{"enum": "Verdict", "value": 1}', '{"enum": []}',
    '{"dict": [[1]]}', '{"dict": [[{"dict": []}, 1]]}', '{"type": "Suite", "title": "", "entries": []}', '"\\ud800"',
    '{"int": null}', '{"float": []}', '{"type": "PureDP", "epsilon": true}', '{"type": "Opaque", "text": 3}', "[[[]]]",
)  # fmt: skip
_DEPTHS = (10, 59, 100, 2_000, 100_000)


def odd_number(rng: Random) -> int | float:
    """A number at an end of what there is, or any other."""
    return rng.choice(_NUMBERS) if rng.random() < 0.7 else rng.uniform(-2.0, 5.0)


def odd_text(rng: Random) -> str:
    """Text as it is pasted, cut and encoded wrongly; now and then what looks like code, or any characters."""
    if rng.random() < 0.8:
        return rng.choice(_TEXTS)
    return "".join(
        chr(rng.choice((rng.randrange(1, 128), rng.randrange(1, 0x110000)))) for _ in range(rng.randrange(9))
    )


def odd_value(rng: Random, depth: int = 3) -> Any:
    """Any value that JSON may hold, and numbers that it may not."""
    kind = rng.randrange(8 if depth else 5)
    if kind < 2:
        return odd_number(rng)
    if kind < 3:
        return odd_text(rng)
    if kind < 5:
        return rng.choice((None, True, False, [], {}))
    if kind < 6:
        return [odd_value(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {rng.choice((*_WORDS, odd_text(rng))): odd_value(rng, depth - 1) for _ in range(rng.randrange(4))}


def mutated_bytes(rng: Random, content: bytes) -> bytes:
    """The bytes, flipped, cut off, repeated, overwritten or replaced by others."""
    changed = bytearray(content)
    kind = rng.randrange(7)
    if kind == 0:
        return rng.randbytes(rng.choice((0, 1, 16, 100, 4096)))
    if kind == 1:
        return content[: rng.randrange(len(content) + 1)]
    for _ in range(rng.choice((1, 1, 1, 2, 5, 20))):
        place = rng.randrange(max(len(changed), 1))
        if kind <= 3:
            changed[place : place + 1] = bytes([rng.randrange(256)])
        elif kind == 4:
            changed[place : place + 1] = bytes([changed[place] ^ (1 << rng.randrange(8))] if changed else b"")
        elif kind == 5:
            changed[place : place + rng.randrange(64)] = rng.choice((b"", bytes(32), rng.randbytes(8), b"\xff" * 4))
        else:
            other = rng.randrange(max(len(changed), 1))
            changed[place:place] = changed[other : other + rng.randrange(64)]
    return bytes(changed)


def mutated_json(rng: Random, text: str) -> bytes:
    """A file of JSON after something has happened to it: mostly to one of its values, else to its bytes."""
    kind = rng.randrange(10)
    if kind == 0:
        return mutated_bytes(rng, text.encode())
    if kind == 1:
        start = rng.randrange(len(text))
        put: str = rng.choice((odd_text(rng), *'"{}[]:,-.0e\\'))
        return (text[:start] + put + text[start + 1 :]).encode("utf-8", "surrogatepass")
    if kind == 2:
        return rng.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"[", text.encode())) + text.encode(
            rng.choice(("utf-8", "utf-16", "latin-1")), "replace"
        )
    body = json.loads(text)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        _change(rng, body)
    changed: str = json.dumps(body, ensure_ascii=rng.random() < 0.5)
    if _HOLE in changed:
        changed = changed.replace(f'"{_HOLE}"', _literal(rng))
    return changed.encode("utf-8", "surrogatepass")


_HOLE = "what is filled in later"


def _literal(rng: Random) -> str:
    """Text in place of a value: what no writer of JSON makes."""
    if rng.random() < 0.7:
        return rng.choice(_LITERALS)
    depth = rng.choice(_DEPTHS)
    opening, closing = rng.choice((("[", "]"), ('{"a":', "}"), ('{"dict": [[1,', "]]}")))
    return opening * depth + "1" + closing * (depth if rng.random() < 0.7 else depth - 1)


def _change(rng: Random, body: Any) -> None:
    """One place of a body changed in it."""
    places = list(_places(body))
    if not places:
        return
    inside, key = rng.choice(places)
    kind = rng.randrange(8)
    if kind == 0:
        del inside[key]
    elif kind == 1:
        inside[key] = _HOLE
    elif kind == 2:
        other, name = rng.choice(places)
        inside[key] = json.loads(json.dumps(other.get(name) if isinstance(other, dict) else other[name : name + 1]))
    elif kind == 3 and isinstance(inside, dict):
        inside[rng.choice((*_WORDS, odd_text(rng)))] = inside.pop(key)
    elif kind == 4 and isinstance(inside, list):
        inside[:] = inside * rng.choice((0, 2, 3, 50))
    elif kind == 5 and isinstance(inside[key], (int, float)) and not isinstance(inside[key], bool):
        inside[key] = rng.choice((-inside[key], inside[key] + 1, inside[key] * 10**6, odd_number(rng)))
    else:
        inside[key] = odd_value(rng)


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every place below the root: what it lies in, and its key there."""
    keys: Sequence[Any] = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    for key in keys:
        yield node, key
        yield from _places(node[key])
