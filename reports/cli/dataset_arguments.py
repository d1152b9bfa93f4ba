"""Datasets, mechanisms and scores of canaries from the arguments of the command line."""

from __future__ import annotations

import ast
import csv
import importlib
import json
import pkgutil
import re
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...audit.errors import DatasetError, OptionError, UnknownNameError, described
from ...audit.files import regular
from ...audit.printing import did_you_mean
from .shared_options import names_file, streams_kept

Array = npt.NDArray[np.float64]

_SHOWN = 60  # characters of JSON in a message
_DEFINITIONS = (ast.FunctionDef, ast.ClassDef)
_FLAGS = {"true": 1.0, "false": 0.0, "in": 1.0, "out": 0.0, "yes": 1.0, "no": 0.0}


def _unusable(path: Path, text: str, **facts: Any) -> DatasetError:
    """The error of a file that holds no dataset; `text` follows its name."""
    return DatasetError(f"{path}{text}", path=str(path), **facts)


# JSON in arguments: what is wrong with it, and the likely remedy.


def read_json(text: str, name: str) -> Any:
    """Return the value of a JSON text."""
    try:
        return json.loads(text, object_pairs_hook=partial(_object, name))
    except json.JSONDecodeError as error:
        told = f"{name} is not JSON (character {error.pos + 1}: {error.msg}); {_remedy(text)}."
        raise DatasetError(told, name=name) from error
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"{name} is not JSON ({error}); use JSON such as [1, 0, 2].", name=name) from error


def _object(name: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if twice := [key for key, n in Counter(key for key, _ in pairs).items() if n > 1]:
        raise DatasetError(
            f"{name} has an object with the key {shown(twice[0])} more than once; give each key one value.", name=name
        )
    return dict(pairs)


def shown(text: str) -> str:
    """Return a text in quotes, cut to its beginning."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def _remedy(text: str) -> str:
    """Return the likely remedy: Python in place of JSON, or a file."""
    if not text.strip():
        return "the text is empty; write JSON such as [1, 0, 2]"
    if not text.isidentifier():  # else it may be a file
        with suppress(ValueError):  # the shell took the double quotes
            quoted = json.dumps(json.loads(re.sub(r"[^\W\d]\w*", r'"\g<0>"', text)))
            return f"in JSON this is {quoted}, in single quotes so that the shell keeps the double ones"
    try:
        value = ast.literal_eval(text)
        meant = "" if isinstance(value, (int, float, complex)) else json.dumps(value, allow_nan=False)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        meant = ""
    if 0 < len(meant) <= _SHOWN:
        return f"in JSON this is {meant}"
    return "use JSON such as [1, 0, 2], or the name of a file, such as x.csv"


def read_dataset(text: str, option: str = "--x", *, readers: Mapping[str, Callable[[Path], Any]] | None = None) -> Any:
    """Return a dataset from JSON text, or from a file; an @ before its name is left out.

    JSON gives Python lists and numbers, and ``.npy`` an array (never a pickle). A ``.csv`` of numbers gives an array,
    without a first line of names, with NaN for an empty cell; any other ``.csv`` gives a list of dicts of strings,
    keyed by the first line. `readers` read other endings, or these in another way.
    """
    if not names_file(text):
        return read_json(text, f"{option} {shown(text)}")
    known = {".json": _read_json, ".npy": _read_npy, ".csv": _read_csv}
    return _read(Path(text.removeprefix("@")), known | dict(readers or {}))


def _read(path: Path, readers: Mapping[str, Callable[[Path], Any]]) -> Any:
    """Return what the reader of the file's ending makes of a file."""
    ending = "/" if path.is_dir() else path.suffix
    if ending not in readers:
        *others, last = readers
        hint = near_file(path, readers) or "."
        raise _unusable(path, f" has an unknown ending; use {', '.join(others)} or {last}{hint}")
    try:
        return readers[ending](path)
    except FileNotFoundError as error:
        raise _unusable(path, f" cannot be read: {no_such_file(path, readers)}") from error
    except DatasetError:
        raise
    except (OSError, ValueError, EOFError, MemoryError, zipfile.BadZipFile) as error:
        raise _unusable(path, f" cannot be read: {error}") from error


def _read_json(path: Path) -> Any:
    return read_json(path.read_text(encoding="utf-8-sig"), str(path))


def _read_npy(path: Path) -> Any:
    try:
        return np.load(regular(path), allow_pickle=False)
    except (ValueError, EOFError, MemoryError) as error:
        raise _unusable(path, f" is not an array of numbers: {error}") from error


def _read_csv(path: Path) -> Any:
    lines = _csv_lines(path)
    if not lines:
        raise _unusable(path, " is empty; a dataset needs at least one line.")
    rows = [row for _, row in lines]
    has_names = not all(map(_is_number, rows[0]))
    names, body = (_column_names(path, lines), rows[1:]) if has_names else ([], rows)
    if body and all(_is_number(cell) for row in body for cell in row):
        table = np.array([[float(cell.strip() or "nan") for cell in row] for row in body])
        return table[:, 0] if table.shape[1] == 1 else table
    if not has_names:
        line = next(line for line, row in lines if not all(map(_is_number, row)))
        text = f"begins with a line of numbers, and line {line} has text; put a line of names first, or write numbers"
        raise _unusable(path, f" {text} only.", line=line)
    return [dict(zip(names, row, strict=True)) for row in body]


def _csv_lines(path: Path) -> list[tuple[int, list[str]]]:
    """Return the number and the cells of each line of a CSV file that is not empty."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file, strict=True)
        try:
            lines = [(reader.line_num, row) for row in reader if row]
        except csv.Error as error:
            raise _unusable(path, f", line {reader.line_num}: {error}.") from error
    for line, row in lines:
        if len(row) != len(lines[0][1]):
            text = (
                f", line {line}: {len(row)} cell{'s' * (len(row) != 1)}, and {len(lines[0][1])} in line {lines[0][0]}"
            )
            raise _unusable(path, f"{text}; give each line as many cells as the first.", line=line)
    return lines


def _column_names(path: Path, lines: list[tuple[int, list[str]]]) -> list[str]:
    """Return the names in the first line."""
    line, cells = lines[0]
    names = [cell.strip() for cell in cells]
    for name in names:
        if names.count(name) > 1:
            problem = f"the name {name!r} occurs {names.count(name)} times"
        elif _is_number(name):
            problem = f"the name {name!r} is a number"
        else:
            continue
        text = f", line {line}: {problem}; give each column its own name, in the first line."
        raise _unusable(path, text, line=line)
    return names


def _is_number(cell: str) -> bool:
    """Whether a cell is a number; an empty one is missing, NaN."""
    try:
        float(cell.strip() or "nan")
    except ValueError:
        return False
    return True


def import_object(path: str) -> Any:
    """Return the object at ``package.module:object``; modules in the current folder can be imported."""

    def unknown(text: str) -> UnknownNameError:
        return UnknownNameError(text, path=path)

    module_name, colon, attribute = path.partition(":")
    if not (module_name and colon and attribute) or module_name.endswith(".py"):
        raise unknown(f"{path!r} does not name an object; use {_object_meant(path)}.")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        with streams_kept():
            found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        missing = str(error.name)
        hint = did_you_mean(missing, _modules_beside(missing)) if f"{module_name}.".startswith(f"{missing}.") else ""
        otherwise = f"{hint} Otherwise" if hint else ";"
        told = f"module {missing!r} of {path!r} does not exist{otherwise} install it or run the command in its folder."
        raise unknown(told) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also exit(), or a test framework's skip: no status of theirs is a verdict
        told = f"importing {module_name!r} failed with {described(error)}; import it in Python to see where."
        raise unknown(told) from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            hint = did_you_mean(part, [name for name in dir(found) if not name.startswith("_")])
            raise unknown(f"{module_name!r} has no {attribute!r}{hint or '; check the name after the colon.'}")
        found = getattr(found, part)
    return found


def _object_meant(path: str) -> str:
    """Return the object that a file, a module or a name with a dot for the colon means, without importing anything."""
    name, _, attribute = path.replace("::", ":").partition(":")
    stem = name.removesuffix(".py").removeprefix("./").replace("/", ".").strip(".")
    module, _, last = stem.rpartition(".")
    for known, wanted in ((stem, attribute), (module, last)):
        file = Path(*known.split(".")).with_suffix(".py") if known else Path()
        if not file.is_file():
            continue
        with suppress(SyntaxError, ValueError, OSError):
            found = [each.name for each in ast.parse(file.read_bytes()).body if isinstance(each, _DEFINITIONS)]
            public = [each for each in found if not each.startswith("_")]
            return f"{known}:{wanted or (public[0] if public else 'object')}"
    return "package.module:object"


def _modules_beside(module: str) -> list[str]:
    """Names of the modules in the folder or package in which a missing module was looked for."""
    parent, dot, _ = module.rpartition(".")
    folders = getattr(sys.modules.get(parent), "__path__", []) if dot else [str(Path.cwd())]
    return [f"{parent}{dot}{found.name}" for found in pkgutil.iter_modules(list(folders))]


def read_scores(paths: list[Path], score: str, included: str) -> tuple[Array, Array]:
    """Return scores and flags of one or several training runs, of shape (canaries,) or (runs, canaries).

    Each run has a file with columns of the given names, or ``.npz`` arrays. An ``.npy`` holds a structured array with
    these names, or an array of shape (canaries, 2), score first.
    """
    if score == included:
        raise OptionError(f"--score and --included both name the column {score!r}; name two different columns.")
    runs = [_run_scores(path, score, included) for path in paths]
    if len(runs) == 1:
        return runs[0]
    shapes = sorted({scores.shape for scores, _ in runs})
    if len(shapes) > 1 or len(shapes[0]) > 1:
        raise DatasetError(
            f"the files have scores of shapes {' and '.join(map(str, shapes))}; give a file with as many canaries for "
            "each run, or audit each run by itself.",
            shapes=shapes,
        )
    return np.stack([scores for scores, _ in runs]), np.stack([flags for _, flags in runs])


def _run_scores(path: Path, score: str, included: str) -> tuple[Array, Array]:
    arrays = partial(_arrays, score=score, included=included)
    columns: dict[str, Any] = _read(path, {".csv": _csv_columns, ".npy": arrays, ".npz": arrays})
    for name, option in ((score, "--score"), (included, "--included")):
        if name not in columns:
            hint = did_you_mean(name, columns)
            raise UnknownNameError(
                f"{path} has no column {name!r}{hint or ';'} the columns are {', '.join(map(repr, columns))}; name one "
                f"with {option}.",
                path=str(path),
            )
    return _numbers(columns[score], path, score), _numbers(columns[included], path, included)


def _csv_columns(path: Path) -> dict[str, list[str]]:
    lines = _csv_lines(path)
    if len(lines) < 2:
        raise ValueError("a line of names and a line for each canary are needed.")
    names = _column_names(path, lines)
    return {name: [row[place].strip() for _, row in lines[1:]] for place, name in enumerate(names)}


def _arrays(path: Path, score: str, included: str) -> dict[str, Any]:
    found = np.load(regular(path), allow_pickle=False)
    if path.suffix == ".npz":
        with found:
            if twice := [name for name, n in Counter(found.files).items() if n > 1]:
                raise ValueError(f"it has {twice[0]!r} more than once; give each array its own name.")
            return {name: found[name] for name in found.files}
    if found.dtype.names is not None:
        return {name: found[name] for name in found.dtype.names}
    if found.ndim == 2 and found.shape[1] == 2:
        return {score: found[:, 0], included: found[:, 1]}
    raise ValueError(
        f"its array has shape {found.shape}; use shape (canaries, 2), score first, or an array with names."
    )


def _numbers(values: Any, path: Path, name: str) -> Array:
    """Numbers of a column; "true", "in" and "yes" are 1, their opposites 0."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        return values.astype(np.float64)
    cells = np.asarray(values, dtype=np.str_)
    try:
        return np.array(
            [_FLAGS[cell.lower()] if cell.lower() in _FLAGS else float(cell) for cell in cells.ravel().tolist()]
        ).reshape(cells.shape)
    except ValueError as error:
        raise DatasetError(f"column {name!r} of {path} is not made of numbers ({error}).", path=str(path)) from error


def near_file(path: Path, endings: Collection[str]) -> str:
    """Ask whether a file next to the path, with a similar name and one of the endings, was meant."""
    beside = path.parent.iterdir() if path.parent.is_dir() else ()
    return did_you_mean(str(path), [str(each) for each in beside if each.suffix in endings])


def no_such_file(path: Path, endings: Collection[str]) -> str:
    """Say that a file does not exist, and which file was probably meant."""
    return f"the file does not exist{near_file(path, endings) or '; check the path.'}"
