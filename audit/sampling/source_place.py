"""The place of a mechanism's source, as it was when the audit ran: file, line, and SHA-256 of the file."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Final

from .provenance import loaded_code

ADAPTERS: Final = f"{__name__.partition('.')[0]}.mechanisms.adapters."
"""Modules whose objects call a mechanism that is defined elsewhere."""


def source_of(mechanism: Any) -> dict[str, dict[str, str | int]]:
    """Return the place of a mechanism's source as an entry ``source`` of a result's environment, or no entry.

    The path is relative to the working directory, or to the folder of installed packages, and has forward slashes.
    There is none for code without a file (a prompt, a notebook, a builtin), for a file elsewhere, whose path would
    reveal the layout of a machine, and for adapters, which do not hold the mechanism's code.

    Returns
    -------
    dict
        Under ``source``: ``file``, ``line``, ``sha256`` of the file's bytes, and ``below``, which is "working
        directory" or "installed packages".

    Examples
    --------
    >>> import statistics
    >>> source_of(len), source_of(eval("lambda rows, rng: 0"))
    ({}, {})
    """
    module, _, codes = loaded_code(mechanism)
    if not codes or f"{module}.".startswith(ADAPTERS):
        return {}
    file = codes[0].co_filename
    line = min(code.co_firstlineno for code in codes if code.co_filename == file)
    below, path = _relative(Path(file))
    if path is None:
        return {}
    try:
        content = Path(file).read_bytes()
    except OSError:  # the code came from elsewhere, or its file is gone
        return {}
    digest = hashlib.sha256(content).hexdigest()
    return {"source": {"file": path, "line": line, "sha256": digest, "below": below}}


def below_packages(path: Path) -> str | None:
    """Return the path from the folder of installed packages; None for a file elsewhere."""
    for marker in ("site-packages", "dist-packages"):
        if marker in path.parts:
            at = len(path.parts) - 1 - path.parts[::-1].index(marker)
            return "/".join(path.parts[at + 1 :])
    return None


def _relative(path: Path) -> tuple[str, str | None]:
    """The root that a file lies below, and its path from there."""
    if (installed := below_packages(path)) is not None:
        return "installed packages", installed
    try:
        return "working directory", path.resolve().relative_to(Path.cwd().resolve()).as_posix()
    except (ValueError, OSError):
        return "", None
