"""Files of datasets and outputs (CSV, TSV, JSON, text), kept apart because the command line reads datasets too.

Missing values, NaN and infinities keep their differences: in CSV a missing value is an empty field and the others are
NaN, Infinity and -Infinity, as in JSON, which numbers of C, Java, JavaScript, Python, R and Rust can be read from. In a
data frame of pandas, NaN is a missing value. Floats are written with the digits that determine them.
"""

from __future__ import annotations

import csv
import datetime
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ...audit.datasets.rows import as_list, collected, columns_by_name, is_frame
from ...audit.errors import DatasetError
from ...audit.files import regular

MOST_BYTES = 1 << 28
"""Longest output: 256 MiB, so that an endless line does not fill the memory."""

FORMATS = ("csv", "tsv", "json", "jsonl", "txt")
"""Endings of the files that are written and read."""

_SEPARATORS = {"csv": ",", "tsv": "\t"}
_SHOWN = 60  # characters of an output in a message
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?|nan)", re.ASCII | re.IGNORECASE)
_INTEGER = re.compile(r"[+-]?\d{1,4000}", re.ASCII)  # Python refuses to read integers of 4,301 digits


class OutputError(Exception):
    """Output that cannot be used: what the program did, when (with a leading space, or empty), and the remedy if it is
    not the rule for all outputs.

    `has_ended` says whether the program has probably ended; `status` is then its exit status (negative for a signal),
    if it is known, and `words` are the end of its standard error.
    """

    def __init__(self, what: str, way_out: str = "", *, when: str = "", has_ended: bool = False) -> None:
        super().__init__(what)
        self.what = what
        self.when = when
        self.way_out = way_out
        self.has_ended = has_ended
        self.status: int | None = None
        self.words = ""


def shown(content: bytes | bytearray | str) -> str:
    """Return the start of a program's output for a message, escaped and on one line."""
    text = content if isinstance(content, str) else content[: 4 * _SHOWN].decode("utf-8", "backslashreplace")
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


# Datasets to files.


def content_of(dataset: Any, ending: str, *, columns: Sequence[str] | None = None, encoding: str = "utf-8") -> bytes:
    """Return the file of a dataset; `columns` name the columns of a table whose rows have no names.

    Examples
    --------
    >>> content_of([{"age": 31, "city": "Bern, BE"}, {"age": None, "city": ""}], "csv")
    b'age,city\\n31,"Bern, BE"\\n,""\\n'
    """
    try:
        if ending == "json":
            text = json.dumps(plain(dataset, "dataset"))
        elif ending == "txt":
            text = dataset if isinstance(dataset, str) else "".join(f"{_line(row)}\n" for row in _elements(dataset))
        elif ending == "jsonl":
            names, rows = _named_rows(dataset)
            values = rows if names is None else _records(names, rows)
            text = "".join(f"{json.dumps(value)}\n" for value in values)
        else:
            text = _table(dataset, columns, _SEPARATORS[ending])
        return text.encode(encoding)
    except UnicodeEncodeError as error:
        raise DatasetError(
            f"the dataset has the character {error.object[error.start]!r}, which encoding={encoding!r} lacks; use "
            'encoding="utf-8", or other text.',
            encoding=encoding,
        ) from error
    except RecursionError as error:
        raise DatasetError("the dataset is nested too deeply for a file, or holds itself; flatten it.") from error


def _table(dataset: Any, columns: Sequence[str] | None, separator: str) -> str:
    own, rows = _named_rows(dataset)
    names = columns if own is None else own
    rows = [row if isinstance(row, list) else [row] for row in rows]
    width = len(names if names is not None else [*rows, []][0])
    for place, row in enumerate(rows):
        if len(row) != width:
            raise DatasetError(
                f"the table has {width} column{'s' * (width != 1)}, and dataset[{place}] has {len(row)}; use rows of "
                "one length, and a name in columns= for each cell.",
                row=place,
            )
    lines = chain([] if names is None else [names], rows)
    return "".join((separator.join(_field(cell, separator) for cell in line) or '""') + "\n" for line in lines)


def _field(value: Any, separator: str) -> str:
    """Return a cell; an empty text is quoted, as an empty field is a missing value."""
    text = _line(value)
    if isinstance(value, str) and (not text or any(mark in text for mark in (separator, '"', "\r", "\n"))):
        return '"' + text.replace('"', '""') + '"'
    return text


def _line(value: Any) -> str:
    """Return a value as text without a format."""
    if isinstance(value, (list, dict)):
        kind = type(value).__name__
        raise DatasetError(f"a cell of the dataset is a {kind}; use numbers, texts and None, or a file of JSON.")
    return "" if value is None else str(value) if isinstance(value, (str, bool, int)) else json.dumps(value)


def _named_rows(dataset: Any) -> tuple[list[str] | None, list[Any]]:
    """Return the names of the columns, None if the rows have none, and the rows of a table in types of JSON."""
    dataset = collected(dataset)
    if is_frame(dataset):
        names, rows = list(dataset.columns), dataset.astype(object).where(dataset.notna(), None).to_numpy().tolist()
    elif isinstance(dataset, np.ndarray) and dataset.dtype.names is not None:
        names, rows = list(dataset.dtype.names), dataset.tolist()
    elif (by_name := columns_by_name(dataset)) is not None:
        names, rows = list(by_name), zip(*map(as_list, by_name.values()), strict=True)
    else:
        rows = _elements(dataset)
        if not rows or not all(isinstance(row, dict) for row in rows):
            return None, rows
        names = list(dict.fromkeys(chain.from_iterable(rows)))
        rows = [[row.get(name) for name in names] for row in rows]
    return list(map(str, names)), [plain(list(row), f"dataset[{place}]") for place, row in enumerate(rows)]


def _records(names: list[str], rows: list[Any]) -> list[dict[str, Any]]:
    if len(set(names)) < len(names):
        raise DatasetError("two columns of a frame have one name, which JSON cannot hold; rename one.", names=names)
    return [dict(zip(names, row, strict=True)) for row in rows]


def _elements(dataset: Any) -> list[Any]:
    found = plain(dataset, "dataset")
    if isinstance(found, (str, dict)):
        raise DatasetError(
            f"the dataset is a {type(dataset).__name__} and not a table; use a data frame, a list of rows, a dict of "
            "columns of one length, or {input.json}."
        )
    return found if isinstance(found, list) else [found]


def plain(value: Any, where: str) -> Any:
    """Return a value in the types of JSON: frames as lists of records, dates as text; a `DatasetError` says where not.

    Floats that are not finite stay, and are written as NaN, Infinity and -Infinity.
    """
    value = collected(value)
    if is_frame(value) or (not isinstance(value, dict) and columns_by_name(value) is not None):
        names, rows = _named_rows(value)
        return _records(names or [], rows)
    if isinstance(value, (np.ndarray, np.generic)):
        is_plain = value.dtype.kind in "biuf" and value.dtype.itemsize <= 8
        value = (value.astype(str) if value.dtype.kind in "mM" else value).tolist()
        if is_plain and not isinstance(value, np.generic):
            return value
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, (datetime.date, datetime.time, datetime.timedelta, Decimal)):
        return str(value)
    if isinstance(value, (list, tuple)):
        return [plain(part, f"{where}[{i}]") for i, part in enumerate(value)]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: plain(part, f"{where}[{key!r}]") for key, part in value.items()}
    kind = f"a {type(value).__name__}" + (" with keys other than strings" if isinstance(value, Mapping) else "")
    raise DatasetError(
        f"{where} is {kind}, which no file can hold; use numbers, strings, None, lists, data frames, and dicts with "
        "string keys.",
        where=where,
        type=type(value).__name__,
    )


# Outputs from files, and datasets of the command line.


def output_in(content: bytes, ending: str, encoding: str = "utf-8") -> Any:
    """Return the output in a file or a stream with this ending; an `OutputError` says what is wrong with it.

    A table is a dict of columns if its first line has no number and so names them, else a list of rows. Of a single
    row without names it is this row, and of a single cell its value.

    Examples
    --------
    >>> output_in(b"city,n\\nBern,3.5\\nOslo,\\n", "csv")
    {'city': ['Bern', 'Oslo'], 'n': [3.5, None]}
    >>> output_in(b"3.5,4\\n", "csv"), output_in(b"3.5\\n", "csv"), output_in(b"NaN\\n", "json")
    ([3.5, 4], 3.5, nan)
    """
    try:
        text = content.decode("utf-8-sig" if encoding == "utf-8" else encoding)
    except UnicodeDecodeError as error:
        what = f"wrote {shown(content)}, which is not {encoding.upper()}"
        raise OutputError(what, 'name its encoding, such as Program(…, encoding="latin-1")') from error
    found = _value_in(text, ending, number_in)
    if ending in _SEPARATORS and isinstance(found, list) and len(found) == 1:
        return found[0] if len(found[0]) > 1 else found[0][0]
    return found


def dataset_in(path: Path) -> Any:
    """Return the dataset in a file, or in a folder of tables, so that a program which takes files gets the same text.

    A table is a dict of columns, or a list of rows without names, and a text a list of lines.
    """
    if path.is_dir():
        return {each.name: dataset_in(each) for each in sorted(path.iterdir()) if each.suffix in READERS}
    text = regular(path).read_bytes().decode("utf-8-sig")
    try:
        found = _value_in(text, path.suffix[1:], _same_text)
        return found if path.suffix != ".txt" else found.split("\n") if text else []
    except OutputError as error:
        raise ValueError(f"it has {error.what.removeprefix('wrote ')}.") from error


READERS: dict[str, Callable[[Path], Any]] = dict.fromkeys((*(f".{ending}" for ending in FORMATS), "/"), dataset_in)


def _value_in(text: str, ending: str, value_of: Callable[[str], Any]) -> Any:
    if ending in _SEPARATORS:
        return _table_in(text, _SEPARATORS[ending], value_of)
    if ending == "jsonl":
        return [json_in(line, "wrote the line") for line in text.split("\n") if line.strip()]
    return json_in(text, "wrote") if ending == "json" else text.removesuffix("\n").removesuffix("\r")


def number_in(cell: str) -> Any:
    """Return the number in a cell, None for an empty one, or its text."""
    text = cell.strip()
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else cell if text else None


def _same_text(cell: str) -> Any:
    """Return the number in a cell if it is written as the cell is, so that a program gets the text of the file."""
    value = number_in(cell)
    return value if _line(value) == cell else cell


def json_in(text: str, did: str) -> Any:
    """Return the value of a JSON text, or a number that is written as in C or R, such as .5, nan and -Inf."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise OutputError(f"{did} {shown(text)}, which is nested too deeply") from error
    except ValueError as error:  # nothing, not JSON, or a number with thousands of digits
        if isinstance(value := number_in(text), (int, float)):
            return value
        if not text:
            raise OutputError("wrote nothing to its output") from error
        raise OutputError(f"{did} {shown(text)}, which is not JSON ({str(error)[:_SHOWN]})") from error


def _table_in(text: str, separator: str, value_of: Callable[[str], Any]) -> Any:
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True) if row]
    except csv.Error as error:
        raise OutputError(f"wrote {shown(text)}, which is not a table ({error})") from error
    for place, row in enumerate(rows):
        if len(row) != len(rows[0]):
            what = f"wrote a table with {len(rows[0])} columns, whose line {place + 1} has {len(row)}"
            raise OutputError(what, "write as many cells in each line")
    names = rows[0] if rows else []
    has_names = len(set(names)) == len(names) > 0 and all(isinstance(number_in(name), str) for name in names)
    values = [[value_of(cell) for cell in row] for row in rows[has_names:]]
    if not has_names:
        return values
    return {name: [row[place] for row in values] for place, name in enumerate(names)}


# Files of a run.


def contents_of(dataset: Any, endings: Iterable[str], **options: Any) -> dict[str, bytes]:
    """Return the files of a dataset by their paths: one for each ending, and for "/" a folder of its tables."""
    files = {f"input{ending}": content_of(dataset, ending[1:], **options) for ending in endings if ending != "/"}
    if "/" not in endings:
        return files
    names = list(dataset) if isinstance(dataset, Mapping) else [None]
    if not all(isinstance(name, str) and name == Path(name).name for name in names):
        tables = '{"users": frame, "visits.json": records}'
        raise DatasetError(f"{{input/}} needs a dict of tables whose keys are names of files, such as {tables}.")
    for name, table in dataset.items():
        file = Path("input", name if Path(name).suffix in READERS else f"{name}.csv")
        files[str(file)] = content_of(table, file.suffix[1:], **options)
    return files


def output_at(path: Path, ending: str, encoding: str) -> Any:
    """Return the output in a file, or by name those in a folder; an `OutputError` if a run has not written it."""
    if not os.path.lexists(path) or (ending == "/" and not any(path.iterdir())):
        name = f"{{output{ending}}}"
        raise OutputError(f"ended without writing {name}", f"let it write the path that takes the place of {name}")
    if ending == "/":
        return {each.name: output_at(each, each.suffix, encoding) for each in sorted(path.iterdir())}
    try:
        check_size(regular(path).stat().st_size)
        return output_in(path.read_bytes(), ending[1:], encoding)
    except OSError as error:
        raise OutputError(f"wrote {path.name}, which cannot be read ({error})", "write a regular file") from error


def check_size(size: int) -> None:
    """Raise an `OutputError` for more bytes than an output may have."""
    if size > MOST_BYTES:
        raise OutputError(f"wrote more than {MOST_BYTES:,} bytes", "write less, as that is the most in an output")
