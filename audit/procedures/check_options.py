"""Options of `check` and `find_worst_pair` beyond the arguments that every call thinks of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypedDict

from ..errors import UnknownOptionError
from ..options import Bits, Progress, check_flag, check_listener, check_name
from ..printing import did_you_mean
from ..results.interim_look import Look
from ..sampling.picking import OutputPart
from ..settings import or_setting
from ..store.sqlite_store import Store, StorePart, check_store

ARGUMENTS = ("claim", "adjacency", "runs", "alpha", "seed", "sequential", "resolution")
"""The arguments that `check` and `find_worst_pair` name themselves."""


_ELSEWHERE = {
    "epsilon": "claim=1.0",
    "eps": "claim=1.0",
    "delta": "claim=(1.0, 1e-5)",
    "mu": "claim=GaussianDP(1.0)",
    "rho": "claim=ZeroConcentratedDP(0.5)",
    "confidence": "alpha=0.05",
    "confidence_level": "alpha=0.05",
    "n": "runs=1_000_000",
    "samples": "runs=1_000_000",
    "n_samples": "runs=1_000_000",
    "iterations": "runs=1_000_000",
    "n_jobs": "jobs=4",
    "workers": "jobs=4",
    "verbose": "progress=True",
    "random_state": "seed=0",
    "neighbours": "find_worst_pair, or the fixture dp_audit",
}
"""Names that other libraries use, and what to write here."""


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

    @classmethod
    def of(cls, given: Mapping[str, Any], function: str = "check", *more: str) -> Options:
        """Return the given options, completed by the settings and the defaults.

        An error names the function, and lists the arguments in `more` too, which only this function has.

        Raises
        ------
        UnknownOptionError
            For a name that is not an option; the message has the most similar one.
        OptionError
            For a value that cannot be, of an option that needs no other argument to be judged.
        """
        refuse_unknown(given, function, *more)
        options = cls(**given)
        check_name(options.name)
        check_flag(options.keep_datasets, "keep_datasets")
        check_listener(options.on_look, "on_look")
        check_store(options.store)
        shared = {name: or_setting(name, getattr(options, name)) for name in ("jobs", "progress", "block_seconds")}
        return replace(options, **shared)


def refuse_unknown(given: Iterable[str], function: str, *more: str) -> None:
    """Raise an `UnknownOptionError` for a name that is neither an option of `check` nor one of the names in `more`."""
    known = (*ARGUMENTS, *(field.name for field in fields(Options)), *more)
    for name in given:
        if name not in known:
            meant = f"; write {_ELSEWHERE[name]}." if name in _ELSEWHERE else did_you_mean(name, known, otherwise=".")
            raise UnknownOptionError(
                f"{name} is not an option of {function}{meant} The options are {', '.join(known)}.",
                option=name,
            )
