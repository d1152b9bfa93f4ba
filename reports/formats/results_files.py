"""Files of results, identified by their SHA-256."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...audit.errors import OptionError, RecordError
from ...audit.records.suite import Suite


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsFile:
    """A file of results by name and hash.

    Attributes
    ----------
    name : str
        Path with forward slashes, relative to the working directory if the file lies below it.
    sha256 : str
        Of the file's bytes.
    entries : int
        Number of its entries; the files of a merged suite have them in order.
    """

    name: str
    sha256: str
    entries: int


def results_file(path: Path, suite: Suite) -> ResultsFile:
    """Return the file from which a suite was read.

    Raises
    ------
    RecordError
        If the file cannot be read.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RecordError(f"{path} cannot be read: {error}", path=str(path)) from error
    full, here = path.resolve(), Path.cwd().resolve()
    name = full.relative_to(here).as_posix() if full.is_relative_to(here) else path.name
    return ResultsFile(name=name, sha256=hashlib.sha256(content).hexdigest(), entries=len(suite.entries))


def file_of_each(suite: Suite, files: Sequence[ResultsFile]) -> list[ResultsFile]:
    """Return the file of each entry of a suite.

    Raises
    ------
    OptionError
        If the files have another number of entries together.
    """
    found = [file for file in files for _ in range(file.entries)]
    if len(found) != len(suite.entries):
        raise OptionError(
            f"files={[file.name for file in files]!r} have {len(found):,} entries, and the suite has "
            f"{len(suite.entries):,}; pass the files of this suite in order.",
            files=tuple(files),
        )
    return found
