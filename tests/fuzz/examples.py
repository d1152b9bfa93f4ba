"""What is fuzzed: odd values and changed files, and the files of results, stores and command lines that are given them.

Every function takes its choices from a `random.Random`, so an example is known by the seed of its generator.
"""

import contextlib
import io
import json
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from dpaudit.audit.claims.claim import ApproxDP, PureDP
from dpaudit.audit.errors import AuditError
from dpaudit.audit.procedures.check import check
from dpaudit.audit.records.json_codec import load, to_json
from dpaudit.audit.records.suite import Entry, Suite
from dpaudit.audit.results.statement_result import Point, StatementResult
from dpaudit.audit.store.sqlite_store import FILE, Store, checksum, packed, unpacked
from dpaudit.reports import junit, markdown, privacy_card, privacy_card_markdown, sarif

from .sandbox import OUT, MisstepError, Yard

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


Attempt = Callable[[Random], bool]
"""Makes an example from a generator and tries it; whether it was accepted, not refused in words.

Whatever it raises is a failure.
"""
_SETTINGS: dict[str, Any] = {"claim": PureDP(1.0), "runs": 600, "jobs": 1, "seed": 5, "floating_point": "ignore"}


def laplace(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """A mechanism that keeps its claim of 1-DP."""
    return dataset + rng.laplace(size=size)


@cache
def sample_results() -> Suite:
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


def _is_refused(error: BaseException) -> bool:
    """False, for a refusal in words."""
    if not str(error).strip():
        raise MisstepError(f"{type(error).__name__} without a message")
    return False


# Files of results


def results(yard: Yard) -> Attempt:
    """Tries files of results."""
    text = to_json(sample_results())

    def attempt(rng: Random) -> bool:
        path = yard.out / "results.json"
        path.write_bytes(mutated_json(rng, text))
        try:
            suite = load(path)
        except AuditError as error:
            return _is_refused(error)
        again = to_json(suite)
        if to_json(load_text(yard, again)) != again:
            raise MisstepError("what was read is written in another way")
        suite.adjusted_pvalues()
        for form in (markdown, junit, sarif, privacy_card, privacy_card_markdown):
            form(suite)
        sarif(suite, code_scanning=True)
        return True

    return attempt


def load_text(yard: Yard, text: str) -> Suite:
    """The suite in a file with this text."""
    path = yard.out / "again.json"
    path.write_text(text, encoding="utf-8")
    return load(path)


# Stores


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


def stores(yard: Yard) -> Attempt:
    """Tries stores, by an audit or by recalling all that they have."""
    folder = yard.out / "made"
    plain = check(laplace, 0, 1, store=folder, **_SETTINGS)
    whole = (folder / FILE).read_bytes()
    with _rows(folder / FILE) as file:
        keys = [str(key) for (key,) in file.execute("SELECT key FROM blocks")]
        ((name, settings),) = file.execute("SELECT name, settings FROM sections")
    wanted = json.loads(settings)
    with Store(folder) as store:
        place = store.section(name, wanted).place

    def attempt(rng: Random) -> bool:
        path = yard.out / FILE
        is_forged = _spoil(rng, path, whole, place)
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
def _rows(path: Path) -> Iterator[sqlite3.Connection]:
    file = sqlite3.connect(path, isolation_level=None)
    try:
        yield file
    finally:
        file.close()


def _spoil(rng: Random, path: Path, whole: bytes, place: Callable[[str], str]) -> bool:
    """Writes a store that something has happened to; whether its values were changed with their checksums.

    Otherwise what is accepted has to give the result of an audit without a store.
    """
    kind = rng.randrange(10)
    if kind < 4:
        path.write_bytes(mutated_bytes(rng, whole))
        return False
    path.write_bytes(whole)
    if kind == 4:
        path.with_name(FILE + rng.choice(("-journal", "-wal", "-shm"))).write_bytes(
            rng.choice((rng.randbytes(700), mutated_bytes(rng, whole), _JOURNAL + rng.randbytes(600)))
        )
    elif kind == 5:
        path.unlink()
        _execute(path, rng.choice(_FOREIGN), "CREATE TABLE other (x)")
    elif kind < 8:
        for _ in range(rng.choice((1, 1, 2))):
            _execute(path, rng.choice(_STATEMENTS))
    else:
        with _rows(path) as file:
            for section, key, value in file.execute("SELECT * FROM blocks").fetchall():
                head, line, rest = bytes(value)[8:].partition(b"\n")
                content = mutated_json(rng, head.decode()) + line + rng.choice((rest, mutated_bytes(rng, rest)))
                new = checksum(content, place(key)) + content
                file.execute("UPDATE blocks SET value = ? WHERE section = ? AND key = ?", (new, section, key))
    return kind >= 8


_JOURNAL = bytes.fromhex("d9d505f920a163d7")


def _execute(path: Path, *statements: str) -> None:
    """Statements that change a file, as far as they can be executed."""
    with _rows(path) as file:
        for statement in statements:
            with contextlib.suppress(sqlite3.Error):
                file.executescript(statement)


def values(yard: Yard) -> Attempt:
    """The bytes of single values, which hold the arrays of a store."""
    kept = [
        packed(value) for value in ([[[1, 2, 3]], np.arange(4)], np.ones((2, 3)), np.array(["a", ("b", 1)], object))
    ]

    def attempt(rng: Random) -> bool:
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


_KINDS = (
    "<f8", "|O", "V8", "U10", "M8[ns]", "f8,f8", "(2,3)f8", "i1,3i4", "S5", "a5", ">i4", "g", "F", "trap", "", "{}",
)  # fmt: skip


_MODULE = """
def noisy(rows, size, rng):
    return len(rows) + rng.laplace(size=size)

def broken(rows, size, rng):
    raise ValueError("no such column")

def ragged(rows, size, rng):
    return [[0.0]] * len(rows)

class Holder:
    claim = 3
    inner = noisy

number = 3
"""
_TRAP = "raise SystemExit('imported')\n"
_LINES: tuple[tuple[str, ...], ...] = (
    ("audit", "mine:noisy", "--x", "[1]", "--y", "[]", "--epsilon", "1"),
    ("audit", "mine:noisy", "--x", "[1]", "--y", "[]", "--mu", "1", "--out", f"{OUT}/a"),
    ("audit", "mine:Holder.inner", "--x", "@data.csv", "--y", "@data.npy", "--rho", "0.1", "--sequential"),
    ("audit", "--program", "no-such-program 1", "--x", "1", "--y", "2", "--epsilon", "1"),
    ("plan", "--epsilon", "1", "--detect", "0.2"),
    ("report", f"{OUT}/results.json", "--markdown"),
    ("report", f"{OUT}/results.json", "kept/results.json", "--junit", "--json", "--out", f"{OUT}/r"),
    ("compare", f"{OUT}/results.json", "kept/results.json"),
    ("compare", "kept/results.json", f"{OUT}/results.json", "--markdown", "--out", f"{OUT}/c"),
    ("list", "E2"),
    ("run", "no-such", "--out", f"{OUT}/run"),
    ("run", "--resume", f"{OUT}/none"),
    ("bench", "inference", "--table", "none"),
    ("bench", "reports", "--only", "none"),
    ("schema",),
)  # fmt: skip
_OBJECTS = (
    "mine:noisy", "mine:broken", "mine:ragged", "mine:number", "mine:Holder", "mine:absent", "mine", "mine:", ":noisy",
    "mine.py:noisy", "absent:f", "mine:noisy.__globals__", "mine:noisy:x", "", "..:f", ".mine:f", "mine..x:f", "é:f",
    "mine:\udcff", "\udcff:f", "json:dumps", "mine/noisy:f",
)  # fmt: skip
_PATHS = (
    f"{OUT}/a", f"{OUT}/new/deep", "precious.txt", "precious.txt/x", f"{OUT}/" + "n" * 300, f"{OUT}/é", f"{OUT}/\udcff",
    "/dev/null/x", f"{OUT}/results.json", "kept/results.json", "data.csv",
)  # fmt: skip
_DATASETS = (
    "@data.csv", "@data.npy", "@odd", "@absent.json", "@data.txt", "@", "@kept/results.json", f"@{OUT}/odd.npy", "[1]",
    f"@{OUT}/odd.csv", f"@{OUT}/odd.json", "[1, 2]", "[[1], 2]", "{}", "trap:object", "NaN", "[" * 5000,
    "1e999", "null",
)  # fmt: skip
_PROGRAMS = ("no-such-program", "'open", "", " ", f"{OUT}", "precious.txt", "./absent 1 2", "\udcff", "é")
_OPTIONS = (
    "--epsilon", "--delta", "--mu", "--rho", "--detect", "--power", "--alpha", "--q", "--distance", "--seed",
)  # fmt: skip
_FLAGS = (
    "--sequential", "--keep-datasets", "--resume", "--html", "--markdown", "--json", "--version", "--help",
)  # fmt: skip
_NAMES = (
    "--adjacency", "--floating-point", "--ignore", "--name", "--title", "--bins", "--nothing",
    "-x",
)  # fmt: skip
_CHOICES = ("replace", "add-remove", "edge", "l2", "true", "false", "warn", "steady counts", "4", "2", "0.5", "E1")
_ALWAYS: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "audit": (
        ("--runs", ("200", "200", "200", "40", "39", "0", "-1", "x", "1e3")),
        ("--search-runs", ("100",)),
        ("--jobs", ("1", "1", "1", "0", "-2", "x")),
    ),
    "run": (("--runs", ("60", "0", "x")), ("--out", (f"{OUT}/run",))),
    "bench": (("--jobs", ("1", "0", "x")),),
    "report": (("--out", (f"{OUT}/r",)),),
}


def commands(yard: Yard) -> Attempt:
    """Tries command lines in the yard, which has a module, datasets, results and a module that nobody names."""
    import matplotlib.pyplot  # noqa: F401  (makes folders of its own when it is first imported)
    import numpy as np

    text = to_json(sample_results())
    array = io.BytesIO()
    np.save(array, np.ones(2))
    for name, content in (
        ("mine.py", _MODULE), ("trap.py", _TRAP), ("precious.txt", "precious\n"), ("data.csv", "income\n1\n2\n"),
        ("data.npy", array.getvalue()), ("data.txt", "1"), ("odd", "1"), ("kept/results.json", text),
    ):  # fmt: skip
        yard.plant(name, content)

    def attempt(rng: Random) -> bool:
        for suffix, content in (("npy", array.getvalue()), ("csv", b"a,b\n1,2\n"), ("json", b"[1, 2]")):
            if rng.random() < 0.2:
                (yard.out / f"odd.{suffix}").write_bytes(mutated_bytes(rng, content))
        whole = rng.random() < 0.3
        (yard.out / "results.json").write_bytes(text.encode() if whole else mutated_json(rng, text))
        return _run(_line(rng))

    return attempt


def _line(rng: Random) -> list[str]:
    """A command line: one that could take long has its length set, and none is told to write beside the output."""
    command, *words = rng.choice(_LINES)
    for _ in range(rng.choice((0, 0, 1, 1, 1, 2, 3))):
        _change_words(rng, words)
    for place, word in enumerate(words[:-1]):
        if word == "--out" and words[place + 1] not in _PATHS:
            words[place + 1] = rng.choice(_PATHS)
    always = [word for option, values in _ALWAYS.get(command, ()) for word in (option, rng.choice(values))]
    if command == "compare" and {"--html", "--markdown"} & set(words):
        always = ["--out", f"{OUT}/c"]
    words = ["--x=trap:object" if word == "trap:object" else word for word in words]  # nobody names it as an object
    return [command if rng.random() < 0.98 else odd_text(rng), *always, *words]


def _change_words(rng: Random, words: list[str]) -> None:
    """A word left out, put in or replaced; or an option more."""
    place, kind = rng.randrange(len(words) + 1), rng.randrange(8)
    if kind == 0:
        del words[place : place + 1]
    elif kind == 1:
        words.insert(place, _odd_word(rng))
    elif kind == 2:
        words[place : place + 1] = [_odd_word(rng)]
    elif kind == 3:
        words += [rng.choice(_OPTIONS), rng.choice((repr(odd_number(rng)), odd_text(rng)))]
    elif kind == 4:
        words += [rng.choice(_FLAGS)]
    elif kind == 5:
        words += [rng.choice(_NAMES), rng.choice((*_CHOICES, odd_text(rng)))]
    elif kind == 6:
        words += rng.choice(
            (
                ["--out", rng.choice(_PATHS)], ["--x", rng.choice(_DATASETS)], ["--y", rng.choice(_DATASETS)],
                ["--search", rng.choice(_OBJECTS)], ["--program", rng.choice(_PROGRAMS)], [rng.choice(_PATHS)],
            )
        )  # fmt: skip
    else:
        words[:] = [rng.choice(_OBJECTS) if ":" in word and not word.startswith("-") else word for word in words]


def _odd_word(rng: Random) -> str:
    """Any word but one that would have the command write where it likes."""
    word = rng.choice((odd_text(rng), rng.choice(_OBJECTS), rng.choice(_DATASETS), rng.choice(_FLAGS)))
    return word if not set(word) & {"\0", "/"} or word.startswith("@") else "odd"


def _run(words: list[str]) -> bool:
    """Runs the command line; whether its status is not that of an error.

    Raises
    ------
    MisstepError
        For a traceback, an error without a message, or another status than the documented ones.
    """
    from dpaudit.reports.cli.main import main

    words = [word.replace("\0", "") for word in words]  # no system passes one on
    out, errors = (
        io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors=mode) for mode in ("strict", "backslashreplace")
    )
    with _as_command(words, out, errors):
        try:
            main()
            raise MisstepError(f"{words} does not end")
        except SystemExit as ended:
            status = ended.code
    said, complaint = (stream.detach().getvalue().decode() for stream in (out, errors))
    if "Traceback" in complaint:
        raise MisstepError(f"{words} ends with {complaint.strip().splitlines()[-1]}")
    if status not in (0, 1, 2, 3):
        raise MisstepError(f"{words} has the exit status {status}")
    if not (complaint if status == 2 else said).strip() and words[:1] != ["--version"]:
        raise MisstepError(f"{words} ends with {status} and says nothing")
    return status != 2


@contextlib.contextmanager
def _as_command(words: list[str], out: io.TextIOWrapper, errors: io.TextIOWrapper) -> Iterator[None]:
    """What a process of its own would have: arguments, streams and modules."""
    former, path = sys.argv, list(sys.path)
    sys.argv = ["dpaudit", *words]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            yield
            out.flush()
            errors.flush()
    finally:
        sys.argv, sys.path[:] = former, path
        for name in ("mine", "trap"):
            sys.modules.pop(name, None)
