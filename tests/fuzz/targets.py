"""What is fuzzed: the command line, files of results and stores, each with the examples that it is given."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterator
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
from dpaudit.reports import csv, junit, markdown, privacy_card, privacy_card_markdown, sarif

from .mutations import mutated_bytes, mutated_json, odd_value
from .sandbox import MisstepError, Yard

Attempt = Callable[[Random], bool]
"""Makes an example from a generator and tries it; whether it was accepted, not refused in words.

Whatever it raises is a failure.
"""
_SETTINGS: dict[str, Any] = {"claim": PureDP(1.0), "runs": 600, "jobs": 1, "seed": 5, "bits": False}


def laplace(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """A mechanism that keeps its claim of 1-DP."""
    return dataset + rng.laplace(size=size)


@cache
def sample_results() -> Suite:
    """A suite with what files of results hold, from small audits."""
    audits = {
        "cells": check(laplace, 0, 1, cells=4, **_SETTINGS),
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
        for form in (markdown, csv, junit, sarif, privacy_card, privacy_card_markdown):
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
