"""Where a noise primitive was called: the innermost frame outside the primitive and outside dpaudit's audits."""

from __future__ import annotations

import linecache
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import CodeType
from typing import Final

from ..sampling.object_identity import below_packages

_INSIDE: Final = (
    "dpaudit.audit.",
    "dpaudit.mechanisms.adapters.",
    "numpy.",
    "scipy.",
    "opendp.",
    "pydp.",
    "random",
    "secrets",
    "functools",
    "contextlib",
)
"""Modules that carry out a call and did not ask for it; a name that ends in a dot stands for what is below it."""

_COMPREHENSIONS: Final = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


@dataclass(frozen=True, slots=True)
class Place:
    """A line of code; `file` is as Python knows it."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{_short(self.file)}:{self.line} in {self.function}"

    @property
    def source(self) -> str:
        """The text of the line; empty if the file cannot be read."""
        return linecache.getline(self.file, self.line).strip()


def place_of_call() -> Place:
    """Return the place that asked for the draw; the outermost frame if every frame is inside."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_inside(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    return Place(frame.f_code.co_filename, frame.f_lineno, _function(frame.f_code))


def _function(code: CodeType) -> str:
    """Return the name of the function of a frame; of a comprehension, that of the function that contains it."""
    parts = [part for part in code.co_qualname.split(".") if part != "<locals>"]
    while parts and parts[-1] in _COMPREHENSIONS:
        parts.pop()
    return parts[-1] if parts else "<module>"


@lru_cache
def _is_inside(module: str) -> bool:
    return any(module == each or (each.endswith(".") and f"{module}.".startswith(each)) for each in _INSIDE)


def _short(file: str) -> str:
    """Return a path from the working directory, or from the folder of installed packages, or the last two parts."""
    path = Path(file)
    if not path.is_absolute():
        return file
    if (installed := below_packages(path)) is not None:
        return installed
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except (ValueError, OSError):
        return "/".join(path.parts[-2:])
