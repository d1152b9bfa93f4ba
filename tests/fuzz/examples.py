"""Files of results, stores and stored values in which something was changed, and what becomes of them.

Every function takes its choices from a `random.Random`, so an example is known by the seed of its generator. An attempt
returns whether the example was accepted, not refused with a message; whatever it raises is a failure.
"""

import contextlib
import json
import sqlite3
from functools import cache

import numpy as np

from dpaudit.audit.claims.claim import ApproxDP, PureDP
from dpaudit.audit.errors import AuditError
from dpaudit.audit.procedures.check import check
from dpaudit.audit.records.json_codec import load, to_json
from dpaudit.audit.records.suite import Entry, Suite
from dpaudit.audit.results.statement_result import Point, StatementResult
from dpaudit.audit.store.sqlite_store import FILE, JOURNAL_MAGIC, Store, checksum, packed, unpacked
from dpaudit.reports import junit, markdown, privacy_card, privacy_card_markdown, sarif

from .sandbox import MisstepError

# Changed bytes and JSON.

_NUMBERS = (
    0, 1, -1, 2, 3, 0.5, -0.5, 1e-9, 1e-300, 5e-324, 1e16, 1e300, 1.7976931348623157e308, -0.0, 2**31, 2**53, 2**63,
    2**64, -(2**63), 10**30, 10**400, float("inf"), float("-inf"), float("nan"),
)  # fmt: skip
_TEXTS = (
    "", " ", "0", "é", "\u2028", "\ud800", "\udcff", "\U0001f600", "\n", "\x1b[31m", "a" * 300, "null", "NaN", "1e999",
    "٣", "%s%n", "{0}", "../..", "/dev/null", "trap:object", "os:system", "__import__('trap')",
    "!!python/object:trap", "PureDP", "[red]",
)  # fmt: skip
_KEYS = ("type", "enum", "int", "float", "dict", "value", "values", "schema", "suite", "entries", "result", "claim")
_LITERALS = (
    "NaN", "-Infinity", "1e999", "-0", "1" * 5000, '{"int": "' + "9" * 5000 + '"}', '{"float": "nan"}',
    '{"type": "trap"}', '{"type": "os.system"}', '{"type": ["PureDP"]}', '{"type": {}}',
    '{"enum": "Verdict", "value": 1}', '{"enum": []}', '{"dict": [[1]]}', '{"dict": [[{"dict": []}, 1]]}',
    '{"type": "Suite", "title": "", "entries": []}', '"\\ud800"', '{"int": null}', '{"float": []}',
    '{"type": "PureDP", "epsilon": true}', '{"type": "Opaque", "text": 3}', "[[[]]]",
)  # fmt: skip
_NESTED = (("[", "]"), ('{"a":', "}"), ('{"dict": [[1,', "]]}"))
_DEPTHS = (10, 59, 100, 2_000, 100_000)
_HOLE = "what is filled in later"


def odd_value(rng, depth=3):
    """Any value that JSON may hold, and numbers that it may not."""
    kind = rng.randrange(7 if depth else 5)
    if kind < 2:
        return rng.choice(_NUMBERS)
    if kind < 3:
        return rng.choice(_TEXTS)
    if kind < 5:
        return rng.choice((None, True, False, [], {}))
    if kind < 6:
        return [odd_value(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {rng.choice(_KEYS + _TEXTS): odd_value(rng, depth - 1) for _ in range(rng.randrange(4))}


def mutated_bytes(rng, content):
    """The bytes, cut off, overwritten, flipped, left out or repeated; now and then others."""
    if rng.random() < 0.15:
        return rng.randbytes(rng.choice((0, 1, 16, 100, 4096)))
    changed, kind = bytearray(content), rng.randrange(5)
    for _ in range(rng.choice((1, 1, 1, 2, 5, 20))):
        place, other = rng.randrange(len(changed) + 1), rng.randrange(len(changed) + 1)
        if kind == 0:
            del changed[place:]
        elif kind == 1:
            changed[place : place + 1] = rng.randbytes(1)
        elif kind == 2:
            changed[place : place + 1] = bytes(byte ^ (1 << rng.randrange(8)) for byte in changed[place : place + 1])
        elif kind == 3:
            changed[place : place + rng.randrange(64)] = rng.choice((b"", bytes(32), rng.randbytes(8), b"\xff" * 4))
        else:
            changed[place:place] = changed[other : other + rng.randrange(64)]
    return bytes(changed)


def mutated_json(rng, text):
    """A file of JSON after something has happened to it: mostly to one of its values, else to its bytes."""
    kind = rng.randrange(10)
    if kind == 0:
        return mutated_bytes(rng, text.encode())
    if kind == 1:
        start = rng.randrange(len(text))
        put = rng.choice((rng.choice(_TEXTS), *'"{}[]:,-.0e\\'))
        return (text[:start] + put + text[start + 1 :]).encode("utf-8", "surrogatepass")
    if kind == 2:
        start = rng.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"[", text.encode()))
        return start + text.encode(rng.choice(("utf-8", "utf-16", "latin-1")), "replace")
    body = json.loads(text)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        _change(rng, body)
    changed = json.dumps(body, ensure_ascii=rng.random() < 0.5)
    return changed.replace(f'"{_HOLE}"', _literal(rng)).encode("utf-8", "surrogatepass")


def _literal(rng):
    """Text in place of a value: what no writer of JSON makes."""
    if rng.random() < 0.7:
        return rng.choice(_LITERALS)
    depth, (opening, closing) = rng.choice(_DEPTHS), rng.choice(_NESTED)
    return opening * depth + "1" + closing * (depth - (rng.random() < 0.3))


def _change(rng, body):
    """Change one place of a body in it."""
    places = list(_places(body))
    if not places:
        return
    inside, key = rng.choice(places)
    kind = rng.randrange(7)
    if kind == 0:
        del inside[key]
    elif kind == 1:
        inside[key] = _HOLE
    elif kind == 2:
        other, name = rng.choice(places)
        inside[key] = json.loads(json.dumps(other[name]))
    elif kind == 3 and isinstance(inside, dict):
        inside[rng.choice(_KEYS + _TEXTS)] = inside.pop(key)
    elif kind == 4 and isinstance(inside, list):
        inside[:] = inside * rng.choice((0, 2, 3, 50))
    elif kind == 5 and isinstance(inside[key], int | float) and not isinstance(inside[key], bool):
        inside[key] = rng.choice((-inside[key], inside[key] + 1, inside[key] * 10**6))
    else:
        inside[key] = odd_value(rng)


def _places(node):
    """Yield every place below the root: what it lies in, and its key there."""
    for key in list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
        yield node, key
        yield from _places(node[key])


_SETTINGS = {"claim": PureDP(1.0), "runs": 600, "jobs": 1, "seed": 5, "floating_point": "ignore"}


def laplace(dataset, size, rng):
    return dataset + rng.laplace(size=size)


@cache
def sample_results():
    """A suite with what files of results hold, from small audits."""
    audits = {
        "cells": check(laplace, 0, 1, bins=4, **_SETTINGS),
        "sequential": check(laplace, 0, 1, sequential=True, **{**_SETTINGS, "claim": ApproxDP(1.0, 1e-3)}),
        "outcomes": check(lambda dataset, rng: ("a", int(rng.integers(3))), 0, 1, **_SETTINGS | {"runs": 100}),
    }
    point = Point(estimate=1.0, lower=0.5, upper=1.5)
    stated = StatementResult(
        statement="s", quantity="q", points=(point,), alpha=0.05, method="m", runs=100, seed=1, environment={}
    )
    entries = [Entry(name=name, result=result, note="a note") for name, result in audits.items()]
    return Suite(title="Audits", entries=(*entries, Entry(name="stated", result=stated)), environment={"host": "h"})


def _is_refused(error):
    """False, for a refusal with a message."""
    if not str(error).strip():
        raise MisstepError(f"{type(error).__name__} without a message")
    return False


def results(yard):
    """Return the attempt at a file of results."""
    text = to_json(sample_results())

    def attempt(rng):
        path = yard.out / "results.json"
        path.write_bytes(mutated_json(rng, text))
        try:
            suite = load(path)
        except AuditError as error:
            return _is_refused(error)
        again = to_json(suite)
        path.write_text(again, encoding="utf-8")
        if to_json(load(path)) != again:
            raise MisstepError("what was read is written in another way")
        suite.adjusted_pvalues()
        for form in (markdown, junit, sarif, privacy_card, privacy_card_markdown):
            form(suite)
        sarif(suite, code_scanning=True)
        return True

    return attempt


_STATEMENTS = (
    "DROP TABLE about", "DROP TABLE sections", "DROP TABLE blocks", "DELETE FROM about", "CREATE TABLE more (x)",
    "UPDATE about SET value = '7'", "UPDATE about SET value = x'31'", "UPDATE about SET value = 1e999",
    "UPDATE sections SET settings = '3'", "UPDATE sections SET settings = x'ff00'", "UPDATE sections SET name = x'ff'",
    "UPDATE sections SET settings = replace(hex(zeroblob(500000)), '00', '[')", "UPDATE sections SET number = -7",
    "UPDATE sections SET settings = '{\"runs\": [1], \"code\": {\"trap\": \"trap:object\"}}'",
    "UPDATE blocks SET key = 1", "UPDATE blocks SET key = replace(key, 'on y', 'on z')",
    "UPDATE blocks SET value = (SELECT value FROM blocks ORDER BY key DESC LIMIT 1)",
    "UPDATE blocks SET value = 'text'", "UPDATE blocks SET value = 3", "UPDATE blocks SET value = 2.5",
    "UPDATE blocks SET value = zeroblob(3000000)", "UPDATE blocks SET value = x''", "UPDATE blocks SET section = 'x'",
    "CREATE TRIGGER t AFTER INSERT ON blocks BEGIN DELETE FROM blocks; END", "CREATE VIEW v AS SELECT * FROM blocks",
    "DROP TABLE blocks; CREATE VIEW blocks AS SELECT 1 AS section, 'k' AS key, x'00' AS value",
    "DROP TABLE about; CREATE VIEW about AS SELECT 'schema' AS name, '1' AS value",
    "DROP TABLE about; CREATE TABLE about (name, value); INSERT INTO about VALUES ('schema', '1')",
    "CREATE INDEX i ON blocks (abs(section))", "CREATE VIRTUAL TABLE f USING fts5(x)", "PRAGMA journal_mode = WAL",
    "PRAGMA user_version = 7", "PRAGMA application_id = 7", "VACUUM",
    "PRAGMA writable_schema = ON; DELETE FROM sqlite_master",
    "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = 'CREATE TABLE '",
    "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = x'ff' WHERE name = 'blocks'",
    "PRAGMA writable_schema = ON; UPDATE sqlite_master SET rootpage = 1", "PRAGMA encoding = 'UTF-16'; VACUUM",
    "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = 'CREATE TABLE about (x)'",
    "INSERT INTO about VALUES ('note run', x'ff')",
    "ALTER TABLE blocks ADD COLUMN trap DEFAULT (load_extension('trap'))",
)  # fmt: skip
_FOREIGN = (
    "CREATE TABLE people (name, age)", "CREATE TABLE about (x)", "CREATE VIEW about AS SELECT 1",
    "PRAGMA page_size = 512",
)  # fmt: skip


def stores(yard):
    """Return the attempt at a store, by an audit or by recalling all that it has."""
    folder = yard.out / "made"
    plain = check(laplace, 0, 1, store=folder, **_SETTINGS)
    whole = (folder / FILE).read_bytes()
    with _opened(folder / FILE) as file:
        keys = [str(key) for (key,) in file.execute("SELECT key FROM blocks")]
        ((name, settings),) = file.execute("SELECT name, settings FROM sections")
    wanted = json.loads(settings)
    with Store(folder) as store:
        place = store.section(name, wanted).place

    def attempt(rng):
        is_forged = _spoil(rng, yard.out / FILE, whole, place)
        try:
            if rng.random() < 0.25:
                result = check(laplace, 0, 1, store=yard.out, **_SETTINGS)
                if not is_forged and result != plain:
                    raise MisstepError("another result than that of an audit without a store")
                return True
            with Store(yard.out) as store:
                store.told("run")
                section = store.section(name, wanted)
                for key in keys:
                    section.recall(key)
                section.keep("new", [1, np.arange(3)])
            return True
        except AuditError as error:
            return _is_refused(error)

    return attempt


@contextlib.contextmanager
def _opened(path):
    file = sqlite3.connect(path, isolation_level=None)
    try:
        yield file
    finally:
        file.close()


def _spoil(rng, path, whole, place):
    """Write a store that something has happened to; whether its values were changed with their checksums.

    Otherwise what is accepted has to give the result of an audit without a store.
    """
    kind = rng.randrange(10)
    if kind < 4:
        path.write_bytes(mutated_bytes(rng, whole))
        return False
    path.write_bytes(whole)
    if kind == 4:
        content = rng.choice((rng.randbytes(700), mutated_bytes(rng, whole), JOURNAL_MAGIC + rng.randbytes(600)))
        path.with_name(FILE + rng.choice(("-journal", "-wal", "-shm"))).write_bytes(content)
    elif kind == 5:
        path.unlink()
        _execute(path, rng.choice(_FOREIGN), "CREATE TABLE other (x)")
    elif kind < 8:
        _execute(path, *rng.choices(_STATEMENTS, k=rng.choice((1, 1, 2))))
    else:
        with _opened(path) as file:
            for section, key, value in file.execute("SELECT * FROM blocks").fetchall():
                head, line, rest = bytes(value)[8:].partition(b"\n")
                content = mutated_json(rng, head.decode()) + line + rng.choice((rest, mutated_bytes(rng, rest)))
                new = checksum(content, place(key)) + content
                file.execute("UPDATE blocks SET value = ? WHERE section = ? AND key = ?", (new, section, key))
    return kind >= 8


def _execute(path, *statements):
    """Change a file by statements, as far as they can be executed."""
    with _opened(path) as file:
        for statement in statements:
            with contextlib.suppress(sqlite3.Error):
                file.executescript(statement)


_KINDS = (
    "<f8", "|O", "V8", "U10", "M8[ns]", "f8,f8", "(2,3)f8", "i1,3i4", "S5", "a5", ">i4", "g", "F", "trap", "", "{}",
)  # fmt: skip


def values(yard):
    """Return the attempt at the bytes of a single value, which hold the arrays of a store."""
    kept = [
        packed(value) for value in ([[[1, 2, 3]], np.arange(4)], np.ones((2, 3)), np.array(["a", ("b", 1)], object))
    ]

    def attempt(rng):
        head, _, rest = rng.choice(kept)[8:].partition(b"\n")
        body = mutated_json(rng, head.decode()).replace(b"\n", b" ")
        if rng.random() < 0.3:
            body = json.dumps({"array": rng.choice(_KINDS), "shape": odd_value(rng)}).encode()
        content = body + b"\n" + mutated_bytes(rng, rest)
        try:
            unpacked(checksum(content, "") + content, "it")
        except AuditError as error:
            return _is_refused(error)
        return True

    return attempt
