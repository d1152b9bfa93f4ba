"""Queries of SmartNoise SQL, with the cost that the engine states as the claim."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from importlib.metadata import version
from threading import get_ident
from typing import Any

import numpy as np

from ...audit.claims.claim import ApproxDP, PureDP
from ...audit.datasets.adjacency import AddRemove, Adjacency, SameQuery, UserLevel
from ...audit.datasets.rows import as_rows, is_frame
from ...audit.errors import DatasetError, MechanismError
from ...audit.events.outputs import Raised
from ...audit.printing import shorten
from .library_calls import Adapted, imported, released

# Readers that calibrate the noise of a query once.
#
# The engine rewrites and calibrates a query in every call, which takes a tenth of a second. What is kept depends on the
# query, the metadata and the privacy parameters alone: the parsed query, the rewritten one, and OpenDP's measurements.
# Each run executes the query, draws noise from the measurements and does all that follows anew.


@lru_cache(maxsize=1)
def _reader_class() -> Any:
    """Return the class of such readers; it needs the library."""
    reader: Any = imported("snsql.sql.private_reader", "smartnoise-sql").PrivateReader

    class CalibratedReader(reader):  # type: ignore[misc]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            self.kept: dict[Any, Any] = {}
            super().__init__(*arguments, **options)

        def parse_query_string(self, query_string: str) -> Any:
            if query_string not in self.kept:
                self.kept[query_string] = super().parse_query_string(query_string)
            return self.kept[query_string]

        def _rewrite_ast(self, query: Any) -> Any:
            key = "rewritten", str(query)
            if key not in self.kept:
                self.kept[key] = super()._rewrite_ast(query)
                for symbol in self.kept[key][0]._select_symbols:
                    _keep_measurement(symbol.mechanism)
            self._options.max_contrib = query.max_ids  # the original sets it too
            return self.kept[key]

    return CalibratedReader


def _keep_measurement(mechanism: Any) -> None:
    """Let a mechanism of the engine invoke the measurement that its `release` makes, instead of a new one each time.

    A mechanism whose `release` makes none, or several, stays as it is.
    """
    if mechanism is None or not np.isfinite(mechanism.sensitivity):
        return  # a key, or an unbounded column, which the engine refuses later
    module, made = sys.modules[type(mechanism).release.__module__], list[Any]()
    makers = {name: maker for name, maker in vars(module).items() if name in ("make_laplace", "make_gaussian")}

    def recorded(maker: Any, *given: Any) -> Any:
        made.append(maker(*given))
        return made[-1]

    for name, maker in makers.items():
        setattr(module, name, partial(recorded, maker))
    try:
        mechanism.release([0.0])
    finally:
        for name, maker in makers.items():
            setattr(module, name, maker)
    if len(made) == 1:
        (measurement,) = made
        mechanism.release = lambda values: [measurement(float(value)) for value in values]


# Queries as mechanisms, on rows in a database in memory.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SmartNoiseQuery(Adapted):
    """Mechanism for queries of SmartNoise SQL; use `from_smartnoise_sql` to create one.

    Attributes
    ----------
    epsilons : dict
        The queries, with the epsilon of each of their statistics.
    privacy, metadata
        As in `from_smartnoise_sql`; the metadata as an object of the library.
    asks : bool
        Whether datasets are ``(query, rows)``.
    """

    library = "SmartNoise SQL"
    epsilons: dict[str, float] = field(repr=False)
    privacy: Any = field(repr=False)
    metadata: Any = field(repr=False)
    asks: bool

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> list[Any]:
        """Return `size` outputs with the entropy of OpenDP and of the database.

        The exact result is computed once for all of them if it is the same in each run: unless the engine samples rows
        of users, and a user has more than one.
        """
        query, rows = dataset if self.asks else (next(iter(self.epsilons)), dataset)
        reader = _kept_reader(self, query, get_ident())
        with closing(self._database(rows)) as connection:
            reader.reader.conn = connection
            exact, _ = reader._rewrite(query)
            is_fixed = "RANDOM" not in str(exact) or self._has_single_rows(connection)
            result = released(reader.reader._execute_ast, exact) if is_fixed else None
            if isinstance(result, Raised):
                return [result] * size
            with np.errstate(all="ignore"):  # of the root of a negative noisy sum, as an example
                return [released(_answer, reader, query, result) for _ in range(size)]

    def reader(self, query: str) -> Any:
        """Return a reader of an empty table, with the epsilon of the query."""
        given = self.privacy
        privacy = type(given)(epsilon=self.epsilons[query], delta=given.delta, mechanisms=given.mechanisms)
        return _reader_class().from_connection(
            self._database([]), privacy=privacy, metadata=self.metadata, engine="sqlite"
        )

    def _has_single_rows(self, connection: sqlite3.Connection) -> bool:
        """Whether each row is the only one of its user."""
        (key,) = self.metadata.tables()[0].key_cols()
        counts = connection.execute(f'SELECT COUNT(*), COUNT(DISTINCT "{key.name}") FROM {self._table}').fetchone()
        return bool(counts[0] == counts[1])

    @property
    def _table(self) -> str:
        (table,) = self.metadata.tables()
        return f'"{table.schema or "main"}"."{table.name}"'

    def _database(self, dataset: Any) -> sqlite3.Connection:
        """Return a database in memory that holds the rows."""
        (table,) = self.metadata.tables()
        columns = [column.name for column in table.columns()]
        quoted, marks = ", ".join(f'"{column}"' for column in columns), ", ".join("?" * len(columns))
        connection = sqlite3.connect(":memory:")
        if table.schema not in ("", "main"):
            connection.execute(f'ATTACH ":memory:" AS "{table.schema}"')
        connection.execute(f"CREATE TABLE {self._table} ({quoted})")
        connection.executemany(f"INSERT INTO {self._table} VALUES ({marks})", _records(dataset, columns))
        connection.commit()  # the engine rolls back where a query raises
        return connection


@lru_cache(maxsize=256)
def _kept_reader(mechanism: SmartNoiseQuery, query: str, thread: int) -> Any:
    """Return the reader of a query, which a thread has for itself, as each changes its database."""
    return mechanism.reader(query)


def _records(dataset: Any, columns: list[str]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows as tuples, with None for missing cells."""
    rows = as_rows(dataset)
    if is_frame(rows):
        rows = rows[columns].astype(object).where(rows[columns].notna(), None).itertuples(index=False, name=None)
    for row in rows.tolist() if isinstance(rows, np.ndarray) else rows:
        cells = [row.get(column, _records) for column in columns] if isinstance(row, dict) else row
        if len(cells) != len(columns) or _records in cells:
            raise DatasetError(f"the row {shorten(row)} has not the columns of the metadata: {', '.join(columns)}.")
        yield tuple(cells)


def _answer(reader: Any, query: str, exact: Any) -> dict[str, Any]:
    """Return the result of a run by column and group, and the groups in their order."""
    _, *rows = reader.execute(query, pre_aggregated=exact)
    asked = reader.parse_query_string(query)
    groups = [] if asked.agg is None else [each.expression for each in asked.agg.groupingExpressions]
    columns = [(str(each.name or each.expression), each.expression in groups) for each in asked.select.namedExpressions]
    labels = [", ".join(str(cell) for cell, (_, is_key) in zip(row, columns, strict=True) if is_key) for row in rows]
    found = {
        f"{name}[{label}]" if groups else name: cell
        for label, row in zip(labels, rows, strict=True)
        for cell, (name, is_key) in zip(row, columns, strict=True)
        if not is_key
    }
    return {"groups": "; ".join(labels), **found} if groups else found


def _costs(made: SmartNoiseQuery, query: str) -> tuple[float, float]:
    """Return epsilon and delta of a query that the engine states and answers; else raise a `MechanismError`."""
    try:
        reader = made.reader(query)
        with np.errstate(all="ignore"):
            epsilon, delta = reader.get_privacy_cost(query)
            reader.execute(query)
    except Exception as error:  # a ValueError, or what the parser and OpenDP raise
        words = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise MechanismError(f"SmartNoise SQL refuses {query!r}: {words}", query=query) from error
    return float(epsilon), float(delta)


def from_smartnoise_sql(query: str | Sequence[str], metadata: Any, *, privacy: Any) -> SmartNoiseQuery:
    """Return a query of SmartNoise SQL with the cost that the engine states for it as claim.

    Each run executes the query in SQLite, on a table of the rows of the dataset. The noise is calibrated once, which
    makes a run about a hundred times as fast and does not change its distribution.

    Parameters
    ----------
    query : str or sequence of str
        The query. Of several, a search chooses one: datasets are then ``(query, rows)``, as in the domain `Queries`.
        All cost as much as the first, for which the epsilon of the others is scaled.
    metadata : dict, str or snsql.Metadata
        The metadata of one table, as the engine takes them. A row is a dictionary of these columns, or a tuple in their
        order.
    privacy : snsql.Privacy
        Epsilon of each statistic of the query, and delta.

    Returns
    -------
    SmartNoiseQuery
        For `check` and `find_worst_pair`. The claim is the result of ``get_privacy_cost``. Neighbours differ in all
        rows of one private key, or with `row_privacy` in one row. An output is a dictionary by column and group, such
        as ``{"groups": "Bern; Oslo", "n[Bern]": 12, "n[Oslo]": 31}``.

    Raises
    ------
    MechanismError, AuditError
        If the engine refuses a query, with its words, or the metadata are not of one table; if SmartNoise SQL cannot be
        imported.

    See Also
    --------
    dpaudit.find_worst_pair : Search for the rows, and for the query.
    domains.Queries : Datasets with a query.

    Examples
    --------
    In an environment with smartnoise-sql:

        from snsql import Privacy

        columns = {"user": {"type": "int", "private_id": True}, "city": {"type": "string"}}
        query = "SELECT city, COUNT(*) AS n FROM main.visits GROUP BY city"
        metadata = {"": {"main": {"visits": columns}}}
        counts = from_smartnoise_sql(query, metadata, privacy=Privacy(epsilon=0.5, delta=0.01))
        print(counts.claim)  # (1, 0.01495)-DP
    """
    kind = imported("snsql.metadata", "smartnoise-sql").Metadata
    queries, read = (query,) if isinstance(query, str) else tuple(query), kind.from_(metadata)
    tables, asks = read.tables(), not isinstance(query, str)
    if len(tables) != 1 or not queries:
        raise MechanismError(
            f"query={shorten(query)} with metadata of {len(tables)} tables; pass one query or more, and the metadata "
            "of one table.",
            tables=len(tables),
        )
    adjacency: Adjacency = AddRemove() if tables[0].row_privacy else UserLevel(tables[0].key_cols()[0].name)
    made = SmartNoiseQuery(
        claim=PureDP(0.0),  # until the engine states it
        claim_source=f"get_privacy_cost of smartnoise-sql {version('smartnoise-sql')}",
        adjacency=SameQuery(adjacency) if asks else adjacency,
        name=f"{len(queries)} queries" if asks else queries[0],
        epsilons=dict.fromkeys(queries, privacy.epsilon),
        privacy=privacy,
        metadata=read,
        asks=asks,
    )
    costs = {each: _costs(made, each)[0] for each in queries}
    shares = {each: privacy.epsilon * costs[queries[0]] / cost for each, cost in costs.items()}
    made = replace(made, epsilons=shares)
    epsilon, delta = map(max, zip(*(_costs(made, each) for each in queries), strict=True))
    return replace(made, claim=ApproxDP(epsilon, delta) if delta else PureDP(epsilon))
