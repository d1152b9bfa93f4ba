"""A file that does not exist, and the file that was probably meant."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from ...audit.errors import RecordError
from ...audit.printing import did_you_mean

_RESULTS = "results.json"


def near_file(path: Path, endings: Collection[str]) -> str:
    """Ask whether a file beside the path, with a similar name and one of the endings, was meant."""
    beside = path.parent.iterdir() if path.parent.is_dir() else ()
    return did_you_mean(str(path), [str(each) for each in beside if each.suffix in endings])


def no_such_file(path: Path, endings: Collection[str]) -> str:
    """Say that a file does not exist, and which file was probably meant."""
    return f"the file does not exist{near_file(path, endings) or '; check the path.'}"


def check_results(*paths: Path) -> None:
    """Raise a `RecordError` for a path that is not a file of results, naming the file that was probably meant."""
    for path in paths:
        if path.is_dir():
            inside = path / _RESULTS
            hint = f"; did you mean {str(inside)!r}?" if inside.exists() else "; name a file of results in it."
            raise RecordError(f"{path} cannot be read: it is a folder{hint}", path=str(path))
        if not path.exists():
            raise RecordError(f"{path} cannot be read: {no_such_file(path, {'.json'})}", path=str(path))
