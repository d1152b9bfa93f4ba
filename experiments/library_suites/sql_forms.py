"""Queries of two SQL engines, kept apart because one grammar serves both: each aggregate with every clause.

An engine that refuses a query says so in the coverage, in its own words.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np

from ...audit.claims.claim import ApproxDP, Claim
from ...audit.datasets.adjacency import Adjacency, SameQuery, UserLevel
from ...audit.datasets.domains import Rows
from ...audit.datasets.tables import Queries
from ...audit.errors import MechanismError
from ...mechanisms.adapters import from_smartnoise_sql
from ...mechanisms.adapters.library_calls import released
from .audited_library import Form, NotCovered, PublicCallable, Target, targets_of

COLUMNS = ("person", "city", "x", "f")
# A search begins with the first two rows of each person.
_CELLS = (("Bern", 0, 0.0), ("Bern", 500, 9.0), ("Oslo", 10, 1.0), ("Oslo", None, None), (None, 3, -9.0))
ROWS = tuple(
    dict(zip(COLUMNS, (person, *cells), strict=True)) for person, cells in product(map("p{}".format, range(9)), _CELLS)
)
"""Rows of nine persons, of which some lack values, or have values beyond the declared bounds 0 and 10, and -1 and 1."""
AGGREGATES = (
    *("COUNT(*)", "COUNT(x)", "COUNT(DISTINCT x)", "COUNT(DISTINCT person)", "SUM(x)", "SUM(DISTINCT x)", "SUM(f)"),
    *("AVG(x)", "VAR(x)", "STDDEV(f)", "MIN(x)", "MAX(f)", "MEDIAN(x)", "PERCENTILE_CONT(x)"),
    *("SUM(CASE WHEN x > 3 THEN 1 ELSE 0 END)", "SUM(x * x)", "SUM(person)"),
)
CLAUSES = {
    "all rows": "SELECT {0} AS n FROM {1}",
    "WHERE": "SELECT {0} AS n FROM {1} WHERE x > 3 AND NOT city IS NULL",
    "GROUP BY city": "SELECT city, {0} AS n FROM {1} GROUP BY city",
    "GROUP BY x": "SELECT x, {0} AS n FROM {1} GROUP BY x",
    "GROUP BY an expression": "SELECT x % 3 AS m, {0} AS n FROM {1} GROUP BY x % 3",
    "HAVING": "SELECT city, {0} AS n FROM {1} GROUP BY city HAVING n > 2",
    "ORDER BY and LIMIT": "SELECT city, {0} AS n FROM {1} GROUP BY city ORDER BY n DESC LIMIT 1",
    "arithmetic": "SELECT SQRT({0}) * 2 AS n FROM {1}",
    "a subquery": "SELECT {0} AS n FROM (SELECT person, city, x, f FROM {1}) AS q",
    "JOIN": "SELECT {0} AS n FROM {1} JOIN {1} AS q USING (person)",
    "a condition with a query": "SELECT {0} AS n FROM {1} WHERE x > (SELECT AVG(x) FROM {1})",
}
_EPSILON, _DELTA = 1.0, 0.1
"""At this delta groups of three persons are released, which a search finds in tables of eight rows."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Engine:
    """An engine of SQL.

    `make` makes a mechanism of queries in a configuration, and raises a `MechanismError` for one that it refuses. Where
    groups are not censored, no query asks for them. `known` names defects by aggregate or by configuration.
    """

    name: str
    table: str
    runs: int
    configurations: dict[str, dict[str, Any]]
    make: Callable[[tuple[str, ...], dict[str, Any]], Any]
    known: dict[str, str]

    def refusal(self, aggregate: str, clause: str) -> str:
        """Return the engine's sentence about a query that it refuses; empty for one that it answers."""
        return _refusal(self, CLAUSES[clause].format(aggregate, self.table))


@cache
def _refusal(engine: Engine, query: str) -> str:
    try:
        engine.make((query,), next(iter(engine.configurations.values())))
    except MechanismError as error:
        return str(error)
    return ""


def sql_public(engine: Engine) -> tuple[PublicCallable, ...]:
    """Return the aggregates, the clauses that the engine refuses for a count of rows, and other refused queries."""
    clauses = [clause for clause in CLAUSES if engine.refusal("COUNT(*)", clause)]
    answered = [aggregate for aggregate in AGGREGATES if not engine.refusal(aggregate, "all rows")]
    others = product(answered, [clause for clause in CLAUSES if clause not in clauses])
    refused = [f"{aggregate}, {clause}" for aggregate, clause in others if engine.refusal(aggregate, clause)]
    return tuple(PublicCallable(name, None) for name in (*AGGREGATES, *clauses, *refused))


def sql_form(engine: Engine, public: PublicCallable) -> Form:
    """Return the targets of an aggregate, or the sentence by which the engine refuses it, or a clause."""
    aggregate, _, clause = ("COUNT(*)", "", public.name) if public.name in CLAUSES else public.name.partition(", ")
    if refused := engine.refusal(aggregate, clause or "all rows"):
        return NotCovered(refused)
    answered = [words for words in CLAUSES if not engine.refusal(public.name, words)]
    found: list[Target] = []
    for name, options in engine.configurations.items():
        is_censored = options.get("censor_dims", True)
        clauses = [CLAUSES[words] for words in answered if is_censored or "GROUP BY" not in CLAUSES[words]]
        queries = tuple(clause.format(public.name, engine.table) for clause in clauses)
        known = engine.known.get(public.name) or engine.known.get(name, "")
        domain = Queries(queries, Rows(values=ROWS, most=8, rows_per_user=3))
        points = [(name, partial(engine.make, queries, options), domain)]
        found += targets_of(public, points, runs=engine.runs, search_runs=10_000, cost=3, known=known)
    return tuple(found)


# SmartNoise SQL, with the cost that it states for a query.


def _smartnoise_queries(queries: tuple[str, ...], options: dict[str, Any]) -> Any:
    privacy = import_module("snsql").Privacy(epsilon=_EPSILON, delta=_DELTA)
    key = {"type": "string"} | ({} if options.get("row_privacy") else {"private_id": True})
    x, f = {"type": "int", "lower": 0, "upper": 10}, {"type": "float", "lower": -1.0, "upper": 1.0}
    table = {**options, "person": key, "city": {"type": "string"}, "x": x, "f": f}
    return from_smartnoise_sql(queries, {"": {"main": {"visits": table}}}, privacy=privacy)


SMARTNOISE = Engine(
    name="smartnoise-sql",
    table="main.visits",
    runs=5_000,
    configurations={
        "one row of a person": {},
        "row privacy": {"row_privacy": True},
        "two rows of a person, sampled": {"max_ids": 2},
        "groups are not censored": {"censor_dims": False},
    },
    make=_smartnoise_queries,
    known=dict.fromkeys(("SUM(x)", "SUM(DISTINCT x)", "AVG(x)", "VAR(x)"), "a column that also groups is not clamped"),
)

# Qrlew, which rewrites a query for PostgreSQL, with the budget of the rewriting.

_VALUES = re.compile(r'\(VALUES ((?:\([^()]*\)(?:, )?)+)\) AS ("\w+") \(("\w+")\)')
_PERSONS, _CLAIM = SameQuery(UserLevel("person")), ApproxDP(_EPSILON, _DELTA)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QrlewQueries:
    """Mechanism for queries on datasets (query, rows), in SQLite with the functions of PostgreSQL that it lacks.

    Qrlew reads the table itself, or with a `size` a public table of so many rows; `most` rows of a person count.
    """

    size: int | None
    most: int
    adjacency: Adjacency = _PERSONS
    claim: Claim = _CLAIM
    claim_source: str = "epsilon_delta of rewrite_with_differential_privacy"

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> list[Any]:
        """`size` outputs with the random numbers of the audit."""
        query, rows = dataset
        with closing(_postgres(rows, rng)) as connection:
            text = _private_query(query, connection, self.most) if self.size is None else _public(query, self)
            return [released(_by_group, connection, text) for _ in range(size)]


@cache
def _public(query: str, mechanism: QrlewQueries) -> str:
    rows = [dict(zip(COLUMNS, ("public", "Bern", 0, 0.0), strict=True))] * (mechanism.size or 0)
    return _private_query(query, _postgres(rows, np.random.default_rng(0)), mechanism.most)


def _private_query(query: str, connection: sqlite3.Connection, most: int) -> str:
    """Return the query that Qrlew rewrites a query to, for SQLite; raises a `MechanismError` if it refuses it."""
    sql, qrlew = import_module("sqlalchemy"), import_module("pyqrlew")
    engine = sql.create_engine("sqlite://", creator=lambda: connection, poolclass=sql.pool.StaticPool)
    data = qrlew.dataset_from_database("visits", engine).with_possible_values(None, "visits", "city", ["Bern", "Oslo"])
    data = data.with_range(None, "visits", "x", 0, 10).with_range(None, "visits", "f", -1, 1)
    try:
        rewritten = data.relation(query).rewrite_with_differential_privacy(
            data,
            [("visits", [], "person")],
            {"epsilon": _EPSILON, "delta": _DELTA},
            max_multiplicity=most,
            max_privacy_unit_groups=most,
        )
    except BaseException as error:
        if not isinstance(error, RuntimeError) and type(error).__name__ != "PanicException":  # of Rust; no Exception
            raise
        words = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise MechanismError(f"Qrlew refuses {query!r}: {words}", query=query) from error
    # SQLite cannot name columns of VALUES.
    return _VALUES.sub(r"(SELECT column1 AS \3 FROM (VALUES \1)) AS \2", rewritten.relation().to_query())


def _postgres(rows: Any, rng: np.random.Generator) -> sqlite3.Connection:
    """Return a database in memory with the rows, and with functions of PostgreSQL."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE visits (person TEXT, city TEXT, x INTEGER, f FLOAT)")
    connection.executemany("INSERT INTO visits VALUES (:person, :city, :x, :f)", rows)
    connection.commit()  # sqlalchemy, through which Qrlew reads the table, rolls back
    connection.create_function("RANDOM", 0, rng.random)
    connection.create_function("MD5", 1, lambda text: text and hashlib.md5(text.encode()).hexdigest())
    for name, pick in (("LEAST", min), ("GREATEST", max)):
        connection.create_function(name, -1, partial(_of_known, pick))
    return connection


def _of_known(pick: Callable[..., Any], *given: Any) -> Any:
    return pick((each for each in given if each is not None), default=None)


def _by_group(connection: sqlite3.Connection, text: str) -> dict[str, Any]:
    """Return the last column by the others, which group."""
    return {f"n[{', '.join(map(str, keys))}]": n for *keys, n in connection.execute(text)}


def _qrlew_queries(queries: tuple[str, ...], options: dict[str, Any]) -> QrlewQueries:
    made = QrlewQueries(**options)
    for query in queries:
        made.sample((query, ROWS), 1, np.random.default_rng(0))
    return made


QRLEW = Engine(
    name="pyqrlew",
    table="visits",
    runs=20_000,
    configurations={
        "rewritten for 1,000 rows": {"size": 1_000, "most": 1},
        "two rows of a person": {"size": 1_000, "most": 2},
        "rewritten for the table itself": {"size": None, "most": 1},
    },
    make=_qrlew_queries,
    known={"rewritten for the table itself": "counts and sums are clamped by the number of rows"},
)
