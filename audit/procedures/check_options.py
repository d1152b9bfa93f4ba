"""Options of `check` and `find_worst_pair` beyond the arguments that every call thinks of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypedDict

from ..known_options import unknown_option
from ..options import Bits, Progress
from ..results.interim_look import Look
from ..sampling.picking import OutputPart
from ..store.sqlite_store import Store, StorePart

ARGUMENTS = ("claim", "adjacency", "runs", "alpha", "seed", "sequential", "resolution")
"""The arguments that `check` and `find_worst_pair` name themselves."""


class CheckOptions(TypedDict, total=False):
    """Options of `check`, which its docstring explains."""

    # what is asked
    output: OutputPart | None
    distance: float
    power: float
    seconds: float | None
    cells: int
    bits: Bits
    ignore: str | Iterable[str]
    # what the result records
    name: str | None
    claim_source: str
    keep_datasets: bool
    # how the runs are made
    jobs: int | None
    progress: Progress
    on_look: Callable[[Look], bool | None] | None
    block_seconds: float | None
    store: Store | StorePart | str | Path | None


OPTIONS = tuple(CheckOptions.__annotations__)
"""The names of these options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of one call, each with a value; `check` explains them."""

    output: OutputPart | None = None
    distance: float = 1
    power: float = 0.95
    seconds: float | None = None
    cells: int = 0
    bits: Bits = "warn"
    ignore: str | Iterable[str] = ()
    name: str | None = None
    claim_source: str = ""
    keep_datasets: bool = False
    jobs: int | None = None
    progress: Progress = None
    on_look: Callable[[Look], bool | None] | None = None
    block_seconds: float | None = None
    store: Store | StorePart | str | Path | None = None


DEFAULTS = {each.name: each.default for each in fields(Options)}
"""The default of each of these options."""


def refuse_unknown(given: Iterable[str], function: str, *more: str) -> None:
    """Raise an `UnknownOptionError` for a name that is neither an option of `check` nor one of the names in `more`."""
    known = (*ARGUMENTS, *OPTIONS, *more)
    for name in given:
        if name not in known:
            raise unknown_option(name, function, known)
