"""Tables of categorical and numeric columns, as a domain whose neighbours may hold values outside the declared ones."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from ..errors import DatasetError
from ..extras import require
from ..printing import shorten
from .domains import Domain, check_numbers_of_rows, check_whole, in_order
from .table_features import CategoricalColumn, NumericColumn, declared_columns, table_features

Column: TypeAlias = CategoricalColumn | NumericColumn
Row: TypeAlias = tuple[Any, ...]
Oddity = Literal["beyond", "new", "missing"]
Form = Literal["frame", "columns", "rows", "tuples"]

_FAR = 10  # widths of the range between its end and a number far outside
_ODD = 0.15  # share of the cells of a random row that are outside the declared values
_NEW = "value outside the domain"


@dataclass(frozen=True, slots=True)
class Tables(Domain):
    """Tables whose columns have declared categories or ranges, in which a row may also break the declaration.

    A generator of synthetic data is told the domain, or learns it from the data. A declaration does not decide what is
    in the data: one row may hold a number beyond the range, a new category, or nothing. So the
    neighbours of a search include such rows; what the generator does with them is its business. `outside` limits them.
    Neighbours are defined by `AddRemove` or `Replace`.

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

    Examples
    --------
    >>> from dpaudit import CategoricalColumn, NumericColumn, Tables
    >>> tables = Tables({"sex": CategoricalColumn(("f", "m")), "age": NumericColumn(0, 100)}, form="columns")
    >>> tables.build([("f", 31.0), ("m", 57.0)])
    {'sex': ['f', 'm'], 'age': [31.0, 57.0]}
    >>> tables.features({"sex": ["f", "f", "x"], "age": [31.0, 57.0, 1e6]})["sex: other"]
    1.0
    """

    columns: tuple[tuple[str, Column], ...]
    most: int = 5
    least: int = 0
    size: int | None = None
    form: Form = "frame"
    outside: tuple[Oddity, ...] = ("beyond", "new", "missing")
    _corners: tuple[Row, ...] = field(init=False, repr=False, compare=False)
    _numbers: tuple[float, ...] = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        columns: Mapping[str, Column] | Iterable[tuple[str, Column]],
        most: int = 5,
        least: int = 0,
        size: int | None = None,
        form: Form = "frame",
        outside: Iterable[Oddity] = ("beyond", "new", "missing"),
    ) -> None:
        pairs = declared_columns(columns)
        for name, value in (
            ("columns", pairs),
            ("most", most if size is None else size),
            ("least", least if size is None else size),
            ("size", size),
            ("form", form),
            ("outside", in_order("outside", outside)),
        ):
            object.__setattr__(self, name, value)
        self._check()
        object.__setattr__(self, "_numbers", ())
        object.__setattr__(self, "_corners", tuple(self._rows_at_corners()))

    def _check(self) -> None:
        if self.size is not None:
            check_whole("size", self.size, "rows")
        check_numbers_of_rows(self.least, self.most)
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

    @property
    def values(self) -> tuple[Row, ...]:
        """Representative rows, as `corners`; a search varies rows among them and not along a range."""
        return self._corners

    @property
    def ranges(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """No ranges, because columns are not all numbers."""
        return (), ()

    @property
    def usual(self) -> tuple[Row, Row]:
        """The two most different rows that keep to the declaration: all lowest or first, and all highest or last."""
        return self._corners[0], self._corners[1]

    def corners(self) -> tuple[Row, ...]:
        """Return representative rows: the usual two, then those that break the declaration in all columns or in one."""
        return self._corners

    def _rows_at_corners(self) -> Iterable[Row]:
        columns = [column for _, column in self.columns]
        low, high = tuple(column.ends[0] for column in columns), tuple(column.ends[1] for column in columns)
        rows: list[Row] = [low, high]
        for odd in (self._far, self._missing):
            cells = [odd(column) for column in columns]
            rows.append(tuple(usual if cell is _NONE else cell for usual, cell in zip(low, cells, strict=True)))
            for place, cell in enumerate(cells):
                if cell is not _NONE:
                    rows.append((*low[:place], cell, *low[place + 1 :]))
        return {_key(row): row for row in rows}.values()

    def _far(self, column: Column) -> Any:
        """A value outside the declaration of the column, or `_NONE` where the domain has none."""
        if isinstance(column, NumericColumn):
            far = column.high + _FAR * (column.high - column.low)
            return (math.ceil(far) if column.integer else far) if "beyond" in self.outside else _NONE
        if "new" not in self.outside:
            return _NONE
        are_numbers = all(isinstance(value, numbers.Real) for value in column.values)
        return max(column.values) + 1 if are_numbers else _NEW

    def _missing(self, column: Column) -> Any:
        return None if "missing" in self.outside else _NONE

    @property
    def columns_of_floats(self) -> tuple[NumericColumn, ...]:
        """The columns of numbers that need not be whole."""
        return tuple(each for _, each in self.columns if isinstance(each, NumericColumn) and not each.integer)

    def row_of(self, number: float) -> Row:
        """Return a usual row with this number in all columns of numbers that need not be whole."""
        floats = self.columns_of_floats
        low = zip(self.columns, self._corners[0], strict=True)
        return tuple(number if column in floats else cell for (_, column), cell in low)

    def with_numbers(self, numbers: tuple[float, ...]) -> Tables:
        """Return the domain in which rows may also hold these numbers, such as NaN."""
        larger = copy(self)
        usual, odd = self._corners[:2], self._corners[2:]
        object.__setattr__(larger, "_corners", (*usual, *map(self.row_of, numbers), *odd))
        object.__setattr__(larger, "_numbers", numbers)
        return larger

    @property
    def empty(self) -> Row | None:
        """A row of missing values; None if the domain has none."""
        return (None,) * len(self.columns) if "missing" in self.outside else None

    def draw(self, rng: np.random.Generator) -> Row:
        """Draw a row: cells at an end or inside the declared values, and some outside them."""
        return tuple(self._cell(column, rng) for _, column in self.columns)

    def _cell(self, column: Column, rng: np.random.Generator) -> Any:
        odd = [cell for cell in (self._far(column), self._missing(column)) if cell is not _NONE]
        odd += self._numbers if column in self.columns_of_floats else ()
        if odd and rng.random() < _ODD:
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
        names = [name for name, _ in self.columns]
        if self.form == "rows":
            return [dict(zip(names, row, strict=True)) for row in rows]
        cells = {name: [row[place] for row in rows] for place, name in enumerate(names)}
        if self.form == "columns":
            return cells
        require("pandas", 'form="frame" needs', "pandas")
        import pandas as pd

        return pd.DataFrame(
            {name: pd.Series(cells[name], dtype=_dtype(column, cells[name])) for name, column in self.columns}
        )

    def features(self, table: Any) -> dict[str, float]:
        """Return what `table_features` reads from a synthetic table: pass it as ``output=tables.features``."""
        return table_features(table, self.columns)

    def pair_features(self, table: Any) -> dict[str, float]:
        """Return the same with the two-way marginals."""
        return table_features(table, self.columns, pairs=True)


_NONE: Any = object()


def _key(row: Row) -> str:
    return repr(row)


def _dtype(column: Column, cells: Sequence[Any]) -> str:
    """The type that a column of these cells has in a frame that was read from a file."""
    if isinstance(column, NumericColumn):
        return "int64" if column.integer and None not in cells else "float64"
    return "object"
