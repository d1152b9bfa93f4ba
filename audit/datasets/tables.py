"""Tables of categorical and numeric columns, as numbers, and as a domain; several tables, and queries about data.

The neighbours of the domain may hold values outside the declared ones.
"""

from __future__ import annotations

import itertools
import math
import numbers
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from ..errors import DatasetError, MechanismError
from ..extras import require
from ..known_options import with_known_options
from ..options import check_fields, in_a_tuple
from ..printing import shorten
from .domains import ODD, Domain, Rows, check_range, check_whole, in_order, take_size
from .rows import as_list, columns_by_name, is_frame, is_missing

Codes: TypeAlias = npt.NDArray[np.int64]

_OTHER, _MISSING = -1, -2  # codes of cells that are in no declared cell of their column
_REST = ("other", "missing")  # names of their counts


@dataclass(frozen=True, slots=True)
class CategoricalColumn:
    """A column with declared categories.

    Parameters
    ----------
    values : tuple
        Two or more categories: texts, whole numbers or booleans.
    """

    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", in_order("values", self.values))
        if not all(isinstance(value, Hashable) for value in self.values) or len(
            dict.fromkeys(map(_comparable, self.values))
        ) < max(len(self.values), 2):
            raise DatasetError(
                f"values={shorten(self.values)} are not the categories of a column; list two or more different ones.",
                values=self.values,
            )

    @property
    def ends(self) -> tuple[Any, Any]:
        """The first and the last category."""
        return self.values[0], self.values[-1]

    @property
    def cells(self) -> tuple[str, ...]:
        """Names of the declared cells of the column."""
        return tuple(f"= {value}" for value in self.values)

    def codes(self, column: Sequence[Any]) -> Codes:
        """Return the place of each cell among the declared ones; negative for other and for missing values."""
        places = {_comparable(value): place for place, value in enumerate(self.values)}
        return np.array(
            [_MISSING if is_missing(cell) else places.get(_comparable(cell), _OTHER) for cell in column],
            dtype=np.int64,
        )


@dataclass(frozen=True, slots=True)
class NumericColumn:
    """A column of numbers with a declared range.

    Parameters
    ----------
    low, high : float
        The smallest and the largest number, finite.
    integer : bool
        Whether numbers are whole.
    bins : int
        Number of equal parts of the range whose counts describe a table.
    """

    low: float
    high: float
    integer: bool = False
    bins: int = 4

    def __post_init__(self) -> None:
        check_fields(self, DatasetError)
        check_range(self.low, self.high, integer=self.integer)
        check_whole("bins", self.bins, "parts of a range")

    @property
    def ends(self) -> tuple[Any, Any]:
        """The lowest and the highest number."""
        return (int(self.low), int(self.high)) if self.integer else (float(self.low), float(self.high))

    @property
    def cells(self) -> tuple[str, ...]:
        """Names of the declared cells of the column, each closed below, the last one on both sides."""
        edges = np.linspace(self.low, self.high, self.bins + 1)
        return tuple(f"from {low:.6g} to {high:.6g}" for low, high in itertools.pairwise(edges))

    def codes(self, column: Sequence[Any]) -> Codes:
        """Return the part of the range of each cell; negative for numbers outside, and for anything else."""
        found = numbers_of(column)
        with np.errstate(invalid="ignore", over="ignore"):
            places = np.floor((found - self.low) / (self.high - self.low) * self.bins)
        inside = (found >= self.low) & (found <= self.high)
        codes = np.full(len(found), _OTHER, dtype=np.int64)
        codes[inside] = np.minimum(places[inside], self.bins - 1).astype(np.int64)
        codes[[is_missing(cell) for cell in column]] = _MISSING
        return codes


Column: TypeAlias = CategoricalColumn | NumericColumn


def declared_columns(columns: Any) -> tuple[tuple[str, Column], ...]:
    """Return the names and declarations of columns; raise a `DatasetError` if they are none."""
    given = columns.items() if isinstance(columns, Mapping) else columns
    pairs = tuple(map(in_a_tuple, in_a_tuple(given) if not isinstance(given, str) else ()))
    if not pairs or not all(
        len(pair) == 2 and isinstance(pair[0], str) and isinstance(pair[1], CategoricalColumn | NumericColumn)
        for pair in pairs
    ):
        raise DatasetError(
            f"columns={shorten(columns)} are not the columns of a table; use a dict of names to CategoricalColumn or "
            "NumericColumn.",
            columns=columns,
        )
    return pairs


@with_known_options()
def table_features(
    table: Any, columns: Mapping[str, Column] | Iterable[tuple[str, Column]], *, pairs: bool = False
) -> dict[str, float]:
    """Describe a synthetic table by numbers, which a mechanism's events are then about.

    The names are the same for every table, so the numbers of two runs can be compared. They are a function of the
    table, so what they show about the data the table shows, too: a claim about the table holds for them.

    Parameters
    ----------
    table : pandas or polars data frame, dict of columns, list of dicts, or list of tuples in the order of `columns`
        The output of one run.
    columns : mapping of str to CategoricalColumn or NumericColumn
        The declared columns.
    pairs : bool
        Whether to count the two-way marginals too.

    Returns
    -------
    dict of str to float
        The number of rows, and of columns that are not declared; for each column the rows in each declared cell (a
        category, or a part of the range), with another value, and with a missing one, and for numbers the smallest and
        the largest; with `pairs`, for each two columns the rows in each pair of declared cells. All numbers of a column
        that the table lacks are NaN, as is the smallest of no numbers.

    Raises
    ------
    MechanismError
        If the output is not a table.

    See Also
    --------
    Tables : The domain, whose method `features` calls this function.

    Examples
    --------
    >>> from dpaudit.domains import NumericColumn, table_features
    >>> table_features({"age": [31, 57, 120]}, {"age": NumericColumn(0, 100, bins=2)})
    {'rows': 3.0, 'other columns': 0.0, 'age: from 0 to 50': 1.0, 'age: from 50 to 100': 1.0, 'age: other': 1.0, \
'age: missing': 0.0, 'age: min': 31.0, 'age: max': 120.0}
    """
    declared = dict(declared_columns(columns))
    n_rows, found = _columns_of(table, tuple(declared))
    features = {"rows": float(n_rows), "other columns": float(len(found.keys() - declared.keys()))}
    codes = {name: column.codes(found[name]) for name, column in declared.items() if name in found}
    for name, column in declared.items():
        words = [f"{name}: {label}" for label in (*_labels(column), *_REST)]
        found_codes = codes.get(name)
        if found_codes is not None:  # other and missing values come after the declared cells
            found_codes = np.where(found_codes < 0, len(column.cells) - 1 - found_codes, found_codes)
        features |= _counts(words, found_codes)
        if isinstance(column, NumericColumn):
            values = numbers_of(found.get(name, ()))
            values = values[~np.isnan(values)] + 0.0  # of the zeros, the one that rows put first would be the least
            for word, ends in (("min", values.min), ("max", values.max)):
                features[f"{name}: {word}"] = float(ends()) if len(values) else math.nan
    for (a, one), (b, other) in itertools.combinations(declared.items(), 2) if pairs else ():
        words = [f"{a} {cell} and {b} {cell_b}" for cell in one.cells for cell_b in other.cells]
        both = None
        if a in codes and b in codes:
            are_declared = (codes[a] >= 0) & (codes[b] >= 0)
            both = np.where(are_declared, codes[a] * len(other.cells) + codes[b], _OTHER)
        features |= _counts(words, both)
    return features


def _counts(words: list[str], codes: Codes | None) -> dict[str, float]:
    """Return how often each code from 0 on occurs, by its name; NaN for a column that the table lacks."""
    if codes is None:
        return dict.fromkeys(words, math.nan)
    counts = np.bincount(codes[codes >= 0], minlength=len(words)).astype(np.float64)
    return dict(zip(words, counts.tolist(), strict=True))


def _labels(column: Column) -> list[str]:
    """Return names of the declared cells; categories of one spelling, or named like other values, have their place."""
    labels = [cell.removeprefix("= ") for cell in column.cells]
    return [
        f"{label} (category {place})" if label in _REST or labels.count(label) > 1 else label
        for place, label in enumerate(labels, 1)
    ]


def _columns_of(table: Any, names: tuple[str, ...]) -> tuple[int, dict[Any, list[Any]]]:
    """Return the number of rows, and the columns by name, or by place beyond these names."""
    if is_frame(table):
        return len(table), {name: table.iloc[:, place].tolist() for place, name in enumerate(table.columns)}
    by_column = None if isinstance(table, tuple) else columns_by_name(table)
    if by_column is not None:
        lists = {name: as_list(column) for name, column in by_column.items()}
        return len(next(iter(lists.values()))), lists
    rows = table.tolist() if isinstance(table, np.ndarray) else table
    if isinstance(rows, list | tuple) and all(isinstance(row, Mapping) for row in rows):
        keys = set().union(*rows) if rows else names
        return len(rows), {name: [row.get(name) for row in rows] for name in keys}
    is_of_rows = isinstance(rows, list | tuple) and all(isinstance(row, list | tuple) for row in rows)
    if is_of_rows and len({len(row) for row in rows}) == 1:
        labels = itertools.chain(names, itertools.count())
        return len(rows), dict(zip(labels, map(list, zip(*rows, strict=True)), strict=False))
    raise MechanismError(
        f"an output of type {type(table).__name__} is not a table; return a data frame, a dict of columns of equal "
        "length, a list of dicts, or a list of tuples of equal length.",
        type=type(table).__name__,
    )


def numbers_of(column: Sequence[Any]) -> npt.NDArray[np.float64]:
    """Return the cells of a column as numbers, NaN for texts and missing values."""
    return np.array([_number(cell) for cell in column], dtype=np.float64)


def _number(cell: Any) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError):
        return math.nan
    except OverflowError:
        return math.inf if cell > 0 else -math.inf


def _comparable(value: Any) -> Any:
    """Return what is equal for equal categories: numbers by value, texts by themselves, a boolean as its number."""
    if isinstance(value, np.generic):
        value = value.item()
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value


Row: TypeAlias = tuple[Any, ...]
Oddity = Literal["beyond", "new", "missing"]
Form = Literal["frame", "columns", "rows", "tuples"]

_FAR = 10  # widths of the range between its end and a number far outside
_NEW = "value outside the domain"


@dataclass(frozen=True, slots=True)
class Tables(Domain):
    """Tables whose columns have declared categories or ranges, in which a row may also break the declaration.

    A generator of synthetic data is told the domain, or learns it from the data. A declaration does not decide what is
    in the data: one row may hold a number beyond the range, a new category, or nothing. So the neighbours
    of a search include such rows; what the generator does with them is its business. `outside` limits them. Neighbours
    are defined by `AddRemove` or `Replace`.

    Parameters
    ----------
    columns : mapping of str to CategoricalColumn or NumericColumn
        The declared values of each column.
    most, least, size : int
        Largest and smallest number of rows, or a fixed number, as in `Rows`.
    form : {"frame", "columns", "rows", "tuples"}
        Type of the dataset: a pandas data frame, a dict of lists, or a list of dicts or of tuples.
    outside : iterable of {"beyond", "new", "missing"}
        Values outside the declaration that occur: numbers beyond the range, new categories, missing values. Empty for
        tables that keep to it. With "beyond", a search also tries NaN, infinity and negative zero.

    Raises
    ------
    DatasetError
        For a domain without columns, or arguments outside their range.

    See Also
    --------
    Rows : Rows of numbers, or of listed values.
    domains.table_features : Numbers that describe a synthetic table.

    Examples
    --------
    >>> from dpaudit import Tables
    >>> from dpaudit.domains import CategoricalColumn, NumericColumn
    >>> tables = Tables({"sex": CategoricalColumn(("f", "m")), "age": NumericColumn(0, 100)}, form="columns")
    >>> tables.build([("f", 31.0), ("m", 57.0)])
    {'sex': ['f', 'm'], 'age': [31.0, 57.0]}
    >>> tables.features({"sex": ["f", "f", "x"], "age": [31.0, 57.0, 1e6]})["sex: other"]
    1.0
    """

    columns: Mapping[str, Column] = field(compare=False)
    most: int = 5
    least: int = 0
    size: int | None = None
    form: Form = "frame"
    outside: tuple[Oddity, ...] = ("beyond", "new", "missing")
    _pairs: tuple[tuple[str, Column], ...] = field(init=False, repr=False)  # in order, and hashed, as no dictionary is
    _corners: tuple[Row, ...] = field(init=False, repr=False, compare=False)
    numbers: tuple[float, ...] = field(default=(), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_pairs", declared_columns(self.columns))
        object.__setattr__(self, "columns", dict(self._pairs))
        object.__setattr__(self, "outside", in_order("outside", self.outside))
        take_size(self)
        if not isinstance(self.form, str) or self.form not in get_args(Form):
            raise DatasetError(
                f'form={shorten(self.form)} is unknown; use "frame", "columns", "rows" or "tuples".', form=self.form
            )
        unknown = [name for name in self.outside if not isinstance(name, str) or name not in get_args(Oddity)]
        if unknown:
            raise DatasetError(
                f'outside={shorten(unknown[0])} is unknown; use "beyond" (numbers), "new" (categories) or "missing".',
                outside=self.outside,
            )
        object.__setattr__(self, "_corners", tuple(self._rows_at_corners()))

    @property
    def values(self) -> tuple[Row, ...]:
        """Representative rows, as `corners`; a search varies rows among them and not along a range."""
        return self._corners

    @property
    def ranges(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """No ranges, because columns are not all numbers."""
        return (), ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.columns)

    @property
    def usual(self) -> tuple[Row, Row]:
        """The two most different rows that keep to the declaration: all lowest or first, and all highest or last."""
        return self._corners[0], self._corners[1]

    def corners(self) -> tuple[Row, ...]:
        """Return representative rows: the usual two, then those that break the declaration in all columns or in one."""
        return self._corners

    def _rows_at_corners(self) -> Iterable[Row]:
        low, high = (tuple(column.ends[end] for column in self.columns.values()) for end in (0, 1))
        rows: list[Row] = [low, high]
        for odd in (self._far, self._missing):
            cells = [next(iter(odd(column)), column.ends[0]) for column in self.columns.values()]
            rows.append(tuple(cells))
            rows += [(*low[:place], cell, *low[place + 1 :]) for place, cell in enumerate(cells)]
        return {repr(row): row for row in rows}.values()

    def _far(self, column: Column) -> tuple[Any, ...]:
        """A value outside the declaration of the column, if the domain has one."""
        if isinstance(column, NumericColumn):
            far = column.high + _FAR * (column.high - column.low)
            return (math.ceil(far) if column.integer else far,) if "beyond" in self.outside else ()
        are_numbers = all(isinstance(value, numbers.Real) for value in column.values)
        return (max(column.values) + 1 if are_numbers else _NEW,) if "new" in self.outside else ()

    def _missing(self, column: Column) -> tuple[None, ...]:
        return (None,) if "missing" in self.outside else ()

    @property
    def columns_of_floats(self) -> tuple[NumericColumn, ...]:
        """The columns of numbers that need not be whole."""
        return tuple(each for each in self.columns.values() if isinstance(each, NumericColumn) and not each.integer)

    def row_of(self, number: float) -> Row:
        """Return a usual row with this number in all columns of numbers that need not be whole."""
        floats = self.columns_of_floats
        return tuple(number if column in floats else column.ends[0] for column in self.columns.values())

    def with_numbers(self, numbers: tuple[float, ...]) -> Tables:
        """Return the domain in which rows may also hold these numbers, such as NaN."""
        larger = Domain.with_numbers(self, numbers)
        usual, odd = self._corners[:2], self._corners[2:]
        object.__setattr__(larger, "_corners", (*usual, *map(self.row_of, numbers), *odd))
        return larger

    @property
    def empty(self) -> Row | None:
        """A row of missing values; None if the domain has none."""
        return (None,) * len(self.columns) if "missing" in self.outside else None

    def draw(self, rng: np.random.Generator) -> Row:
        """Draw a row: cells at an end or inside the declared values, and some outside them."""
        return tuple(self._cell(column, rng) for column in self.columns.values())

    def _cell(self, column: Column, rng: np.random.Generator) -> Any:
        odd = [*self._far(column), *self._missing(column)]
        odd += self.numbers if column in self.columns_of_floats else ()
        if odd and rng.random() < ODD:
            return odd[int(rng.integers(len(odd)))]
        if isinstance(column, CategoricalColumn):
            return column.values[int(rng.integers(len(column.values)))]
        share = rng.integers(0, 3) / 2 if rng.random() < 0.5 else rng.random()
        number = column.low + float(share) * (column.high - column.low)
        return math.floor(number) if column.integer else number

    def row(self, parts: Iterable[Any]) -> Row:
        """Return the row with these cells."""
        return tuple(parts)

    def build(self, rows: Sequence[Row]) -> Any:
        """Return the table with these rows."""
        if self.form == "tuples":
            return list(rows)
        if self.form == "rows":
            return [dict(zip(self.names, row, strict=True)) for row in rows]
        cells = {name: [row[place] for row in rows] for place, name in enumerate(self.names)}
        if self.form == "columns":
            return cells
        require("pandas", 'form="frame" needs', "pandas")
        import pandas as pd

        return pd.DataFrame(
            {name: pd.Series(cells[name], dtype=_dtype(column, cells[name])) for name, column in self.columns.items()}
        )

    def features(self, table: Any) -> dict[str, float]:
        """Return what `table_features` reads from a synthetic table: pass it as ``output=tables.features``."""
        return table_features(table, self.columns)

    def pair_features(self, table: Any) -> dict[str, float]:
        """Return the same with the two-way marginals."""
        return table_features(table, self.columns, pairs=True)


@dataclass(frozen=True, slots=True)
class SeveralTables(Domain):
    """Dictionaries of tables, each with its own domain."""

    tables: dict[str, Rows | Tables]

    @property
    def lists_values(self) -> bool:
        """Whether a table has rows that the caller listed."""
        return any(table.lists_values for table in self.tables.values())


def as_domain(domain: Any) -> Any:
    """Return a dictionary of domains of tables as one domain, and anything else as it is."""
    if not isinstance(domain, dict) or not any(isinstance(table, Domain) for table in domain.values()):
        return domain
    for name, table in domain.items():
        if not isinstance(table, Rows | Tables) or not isinstance(name, str):
            raise DatasetError(
                f"the domain of table {shorten(name)} is {shorten(table)}; use a dictionary of names to Rows or Tables."
            )
    return SeveralTables(dict(domain))


@dataclass(frozen=True, slots=True)
class Queries(Domain):
    """Datasets ``(query, data)``, of which a pair has the same query: a search chooses the query as well as the data.

    A query is public, so a mechanism that answers any query has to keep its claim for each. Instead of queries, the
    values may be anything else that a user of the mechanism chooses, such as bounds or columns. Neighbours are those of
    `SameQuery`.

    Parameters
    ----------
    queries : tuple
        The queries, at least one.
    data : Domain or dict
        The data that they are about; a dictionary of `Rows` or `Tables` for several tables. A search tries no NaN and
        no infinity beyond them.

    Raises
    ------
    DatasetError
        For no queries, or data that are not a domain.

    See Also
    --------
    SameQuery : Its neighbours.

    Examples
    --------
    >>> from dpaudit import Rows, find_worst_pair
    >>> from dpaudit.domains import Queries, SameQuery
    >>> def counted(dataset, size, rng):
    ...     query, rows = dataset
    ...     return (2 if query == "twice" else 1) * len(rows) + rng.laplace(size=size)
    >>> domain = Queries(("once", "twice"), Rows(values=("a", "b")))
    >>> found = find_worst_pair(counted, domain, claim=1.0, adjacency=SameQuery("add-remove"), runs=20_000)
    >>> found.verdict.value, found.x[0]
    ('refuted', 'twice')
    """

    queries: tuple[Any, ...]
    data: Domain

    def __post_init__(self) -> None:
        object.__setattr__(self, "queries", in_order("queries", self.queries))
        object.__setattr__(self, "data", as_domain(self.data))
        if not self.queries or not isinstance(self.data, Domain):
            raise DatasetError(
                f"queries={shorten(self.queries)} and data={shorten(self.data)} are not queries of a domain; use one "
                "query or more, and a domain such as Rows.",
                queries=self.queries,
                data=self.data,
            )

    @property
    def lists_values(self) -> bool:
        """Whether the data consist of values that the caller listed."""
        return self.data.lists_values


def _dtype(column: Column, cells: Sequence[Any]) -> str:
    """The type that a column of these cells has in a frame that was read from a file."""
    if isinstance(column, NumericColumn):
        return "int64" if column.integer and None not in cells else "float64"
    return "object"
