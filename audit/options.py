"""The checks of the options that functions share: one rule for each name, with the values it allows and what to write.

`known_options.with_known_options` applies the rules to every call of a public function.
"""

from __future__ import annotations

import functools
import math
import numbers
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Literal

from .errors import AuditError, ClaimError, OptionError
from .printing import shorten

Progress = bool | Callable[[int], None] | None
"""Whether progress is shown on standard error, or a function that receives the number of runs just finished."""

FloatingPoint = Literal["warn", "test", "ignore"]
"""Whether floating-point leaks are tested for a warning, tested with the verdict, or not looked for."""

LEAST_RUNS = 40  # fewest runs on each dataset that an audit can split into a pilot and a test
MOST_RUNS = 10**10
"""Most runs on each dataset: a mechanism that draws 10⁷ runs a second, as vectorised noise does, takes half an hour.

A vectorised mechanism draws them in 76,000 blocks, a function of one run in 10⁷, whose counts take a gigabyte.
"""
LEAST_SEARCH = 400  # fewest runs of a search for the worst pair
MOST_JOBS = 1024  # most workers; a phase has at most four tasks for each
MOST_IN_BLOCK = 1 << 17  # most runs, or numbers, in a block: a megabyte, the fastest of 2¹⁵ … 2¹⁷
USUAL_RUNS = 1_000_000  # runs on each dataset without a number in the call: .2 s for vectorised noise
_MOST_BINS = 128  # each has a share of alpha and its line in a table (docs/decisions/0025-limits.md)
LONGEST_NAME = 1000  # characters, so that a name or a path is not a pasted dataset
_SEEDS = 1 << 256  # a seed has at most 256 bits, twice those of the pool of numpy's seed sequences

_WRONG: Any = object()  # what a rule reads from a value that it does not allow


@dataclass(frozen=True, slots=True)
class Rule:
    """The values that an option allows: `read` returns the value in the type that functions compute with."""

    read: Callable[[Any], Any]
    what: str
    way_out: str
    error: type[AuditError] = OptionError

    def check(self, name: str, value: Any) -> Any:
        """Return the value as `read` reads it; raise the rule's error, which names the option, if it is not allowed."""
        found = self.read(value)
        if found is _WRONG:
            raise self.error(f"{name}={shorten(value)} {self.what}; use {self.way_out}.", **{name: value})
        return found


def as_number(value: Any) -> float:
    """Return a real number as a float, infinite if it is too large for one; NaN for anything else, and for a bool."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    try:
        return float(value) if is_number else math.nan
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number, such as 5 or 5.0, and not a bool."""
    if type(value) is int or isinstance(value, numbers.Integral):
        return not isinstance(value, bool)
    number = as_number(value)
    return math.isfinite(number) and number == int(number)


def _whole(least: int, most: int, *also: int) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        number = int(value) if is_whole(value) else None
        return _WRONG if number is None or not (least <= number <= most or number in also) else number

    return read


def _number(low: float, high: float, *, low_too: bool = False, high_too: bool = False) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        number = as_number(value)
        is_allowed = low < number < high or (low_too and number == low) or (high_too and number == high)
        return number if is_allowed else _WRONG  # NaN fails

    return read


def _one_of(*choices: str) -> Rule:
    *others, last = (f'"{choice}"' for choice in choices)
    way_out = f"{', '.join(others)} or {last}" if others else f"{last}, or None"
    return Rule(lambda value: value if isinstance(value, str) and value in choices else _WRONG, "is unknown", way_out)


def is_flag(value: Any) -> bool:
    """Whether a value is a bool, of Python or numpy, which this module does not import because commands read it."""
    kind = type(value)
    return kind is bool or (kind.__module__ == "numpy" and kind.__name__ in ("bool", "bool_"))


def _flag(value: Any) -> Any:
    return bool(value) if is_flag(value) else _WRONG


def _callable(value: Any) -> Any:
    return value if callable(value) else _WRONG


def _distance(value: Any) -> Any:
    number = _number(0, math.inf)(value)
    return int(number) if number is not _WRONG and number == int(number) else number


def _name(value: Any) -> Any:
    is_name = isinstance(value, str) and value.strip() and value.isprintable() and len(value) <= LONGEST_NAME
    return value if is_name else _WRONG


def _text(value: Any) -> Any:
    """A text that can be written to a file: lone surrogates cannot."""
    return value if isinstance(value, str) and value == value.encode(errors="replace").decode() else _WRONG


def _progress(value: Any) -> Any:
    return value if callable(value) else _flag(value)


_FLAG: Final = Rule(_flag, "is unknown", "a bool")
_LISTENER: Final = Rule(_callable, "cannot be called", "a function, or None")
_POSITIVE: Final = Rule(_number(0, math.inf), "is not allowed", "a positive finite number")


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Where an exact audit ends, and the excess that it does not count.

    Attributes
    ----------
    remainder : float
        The probability on each dataset that may stay unexplored.
    tolerance : float
        A claim is verified if the excess of δ is at most this. A certain excess refutes it all the same, unless
        rounding can cause it; with 0, that of rounding does too.
    executions, states : int
        The most executions of the code on a dataset, and states of it that are kept apart.
    seconds : float
        The longest time on a dataset.

    Raises
    ------
    OptionError
        For a number that is not positive; `tolerance` may be 0.
    """

    remainder: float = 1e-10  # a tenth of the tolerance, whatever is in it
    tolerance: float = 1e-9
    executions: int = 1_000_000
    states: int = 100_000  # 200 MB
    seconds: float = 600.0

    def __post_init__(self) -> None:
        check_fields(self)
        for each in fields(self):
            if not (value := getattr(self, each.name)) > 0 and (each.name, value) != ("tolerance", 0):
                raise OptionError(
                    f"{each.name}={value!r} is not a budget; use a positive number.", **{each.name: value}
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of `check` and `find_worst_pair`, each with its type and default; `RULES` has their rules.

    The docstring of `check` explains those that its signature names, that of `settings` the others.
    """

    claim: Any = None  # as for `check`, whose types are defined above this module
    adjacency: Any = None
    runs: int | None = None
    alpha: float = 0.05
    seed: int = 0
    sequential: bool = False
    output: Any = None
    distance: float = 1
    exact: bool | Budget = False
    # what is asked
    detect: float | None = None
    power: float = 0.95
    seconds: float | None = None
    bins: int = 0
    floating_point: FloatingPoint = "warn"
    ignore: str | Iterable[str] = ()
    # what the result records
    name: str | None = None
    claim_source: str = ""
    keep_datasets: bool = False
    # how the runs are made
    jobs: int | None = None
    progress: Progress = None
    on_interim: Callable[[Any], bool | None] | None = None
    chunk_seconds: float | None = None
    store: Any = None


DEFAULTS: Final[dict[str, Any]] = {each.name: each.default for each in fields(Options)}
"""The default of each option of `check`."""
NAMED: Final = ("claim", "adjacency", "runs", "alpha", "seed", "sequential", "output", "distance", "exact")
"""The options of `check` that its signature names."""
EXACT_OPTIONS: Final = (
    "claim", "adjacency", "output", "distance", "exact", "seconds", "name", "claim_source", "keep_datasets", "progress",
)  # fmt: skip
"""The options of `check` that an exact audit takes."""
OTHERS: Final = tuple(name for name in DEFAULTS if name not in NAMED)  # the options that `settings` explains

RULES: Final[dict[str, Rule]] = {
    "runs": Rule(
        _whole(LEAST_RUNS, MOST_RUNS),
        "is not a number of runs",
        f"a whole number from {LEAST_RUNS} to {MOST_RUNS:,} for each dataset",
    ),
    "alpha": Rule(
        _number(0, 1),
        "is not an allowed error probability",
        "0 < alpha < 1 (0.05 allows one false alarm in 20 audits of mechanisms that attain their claim)",
    ),
    "seed": Rule(_whole(0, _SEEDS - 1), "is not a seed", "a whole number >= 0 of at most 256 bits"),
    "jobs": Rule(_whole(1, MOST_JOBS, -1), "is not a number of workers", f"1 to {MOST_JOBS:,}, or -1 for every core"),
    "progress": Rule(_progress, "is unknown", "a bool, or a function of the number of runs just finished"),
    "power": Rule(_number(0, 1), "is not a power", "0 < power < 1, such as 0.95"),
    "distance": Rule(_distance, "is not a distance", "a positive finite number", ClaimError),
    "detect": Rule(_number(0, math.inf), "is not an excess", "a positive finite number in the units of the claim"),
    "seconds": Rule(_number(0, math.inf, high_too=True), "is not a time limit", "a positive number"),
    "chunk_seconds": Rule(_number(0, math.inf, high_too=True), "is not a time limit", "a positive number"),
    "bins": Rule(_whole(2, _MOST_BINS, 0), "is not a number of bins", f"a whole number from 2 to {_MOST_BINS}, or 0"),
    "floating_point": _one_of("warn", "test", "ignore"),
    "name": Rule(_name, "is not a name", f"one line of text of at most {LONGEST_NAME:,} characters"),
    "claim_source": Rule(_text, "is not a text", "a string that names the source of the claim"),
    "keep_datasets": _FLAG,
    "sequential": _FLAG,
    "exact": Rule(
        lambda value: value if is_flag(value) or isinstance(value, Budget) else _WRONG,
        "is unknown",
        "a bool, or a dpaudit.exact.Budget",
    ),
    "on_interim": _LISTENER,
    "search_runs": Rule(
        _whole(LEAST_SEARCH, MOST_RUNS),
        "is not a possible number of runs",
        f"a whole number from {LEAST_SEARCH} to {MOST_RUNS:,}",
    ),
    "evaluations": Rule(
        _whole(LEAST_RUNS, MOST_RUNS),
        "is not a possible number of evaluations",
        f"a whole number from {LEAST_RUNS} to {MOST_RUNS:,}",
    ),
    "budget": Rule(_number(0, 1), "is not a probability", "a probability, 0 < budget < 1, such as 0.01"),
    "monotonic": _FLAG,
    "made_up": _FLAG,
    "pairs": _FLAG,
    "on_round": _LISTENER,
    "query": Rule(_callable, "is not a function", "one that maps a dataset to numbers"),
    "step": Rule(
        _callable, "is not a function", "one that maps a batch, or a batch and a generator, to what it releases"
    ),
    "guide": _one_of("replay"),
    "margin": Rule(_number(0, 1), "is not a total variation distance to show", "0 < margin < 1"),
    "tolerance": Rule(_number(0, 1, low_too=True), "is not a relative error", "0 <= tolerance < 1, such as 0.01"),
    "epsilon": _POSITIVE,
    "sensitivity": _POSITIVE,
    "delta": Rule(_number(0, 1, low_too=True), "is not a probability", "0 <= delta < 1", ClaimError),
    "bound": Rule(
        _number(0, math.inf, low_too=True),
        "is not a sensitivity",
        "a finite number >= 0 (0 states that the query never changes)",
    ),
    "probability": Rule(
        _number(0, 1),
        "is not a probability of inclusion",
        "0 < probability < 1 (0.5 for a fair coin for each canary)",
    ),
    "n": Rule(_whole(2, MOST_RUNS), "is not a number of examples", "a whole number from 2"),
    "q": Rule(_number(0, 1), "is not a sampling rate", "0 < q < 1, such as the expected batch size over n"),
    "batch_size": Rule(_whole(1, MOST_RUNS), "is not a batch size", "a positive whole number"),
    "rounds": Rule(_whole(1, MOST_RUNS), "is not a number of batches", "a positive whole number"),
    "noise_multiplier": Rule(
        _number(0.01, 1e6, low_too=True, high_too=True), "is not a noise multiplier", "a number from 0.01 to a million"
    ),
    "sampling": _one_of("poisson", "fixed", "shuffled", "with replacement"),
    "norm": _one_of("l1", "l2", "linf"),
    "inclusion": replace(
        _one_of("independent", "fixed"),
        way_out='"independent" (a bit for each canary) or "fixed" (a split into a fixed number of canaries in and out)',
    ),
    "guess": _one_of("both", "in", "out"),
    "phase": _one_of("pilot", "main"),
    "side": _one_of("x", "y"),
    "number": Rule(_whole(0, (1 << 63) - 1), "is not the number of a block", "a whole number >= 0 of 63 bits"),
    "size": Rule(
        _whole(1, MOST_IN_BLOCK), "is not a number of runs of a block", f"a whole number from 1 to {MOST_IN_BLOCK:,}"
    ),
}
"""The rule of each option. The same name means the same in every function."""


def checked(name: str, value: Any, *, or_none: bool = False) -> Any:
    """Return the value of an option as its rule reads it; raise the rule's error if it is not allowed.

    None is returned as it is if `or_none`.

    >>> checked("runs", 1000.0)
    1000
    >>> checked("sequential", "no")
    Traceback (most recent call last):
    dpaudit.audit.errors.OptionError: sequential='no' is unknown; use a bool.
    """
    return None if or_none and value is None else RULES[name].check(name, value)


def checked_seed(seed: Any) -> int:
    """Return a seed that is allowed; a fresh one for None."""
    return secrets.randbits(63) if seed is None else int(checked("seed", seed))


def check_sequential(options: Options, sequential: bool, runs: int | None) -> None:
    """Raise an `OptionError` for options of sequential audits in another audit, or of fixed sizes in a sequential one.

    An audit without a limit of runs and time is an error, too.
    """
    if not sequential and options.on_interim is not None:
        raise OptionError("on_interim is for sequential audits, no other has interim analyses; use sequential=True.")
    if runs is None and options.seconds == math.inf:
        raise OptionError(
            "seconds=inf without runs would never end; set runs or a finite time limit.", seconds=math.inf
        )
    if options.bins and sequential:
        raise OptionError(
            f"bins={options.bins} needs a fixed number of runs; use sequential=False, and no seconds=.",
            bins=options.bins,
        )


_TYPES: Final[dict[str, tuple[Callable[[Any], bool], str]]] = {
    "int": (is_whole, "a whole number"),
    "float": (
        lambda value: type(value) is float or (isinstance(value, numbers.Real) and not isinstance(value, bool)),
        "a number",
    ),
    "str": (lambda value: isinstance(value, str), "a text"),
    "bool": (is_flag, "a bool"),
}


def check_fields(instance: Any, error: type[AuditError] = OptionError) -> None:
    """Raise an error that names the first field of a dataclass whose value is not of its annotated type.

    Checked are numbers, texts, bools, tuples of these, and tuples of anything, each also with ``| None``.
    """
    for name, or_none, of_many, is_of, words in _checked_fields(instance.__class__):
        value = getattr(instance, name)
        if value is None and or_none:
            continue
        if not (isinstance(value, tuple) and all(map(is_of, value)) if of_many else is_of(value)):
            wanted = f"a tuple of {words.removeprefix('a ')}" + "s" * (words != "values") if of_many else words
            raise error(f"{name}={shorten(value)} has the wrong type; use {wanted}.", **{name: value})


@functools.cache
def _checked_fields(kind: type[Any]) -> tuple[tuple[str, bool, bool, Callable[[Any], bool], str], ...]:
    """Of each field that is checked: name, whether it may be None, whether it is a tuple, and its entry of `_TYPES`."""
    found = []
    for each in fields(kind):
        whole = str(each.type).removesuffix(" | None")
        part = whole.removeprefix("tuple[").removesuffix(", ...]")
        if whole in _TYPES or whole.startswith("tuple["):
            is_of, words = _TYPES.get(part, (lambda _: True, "values"))
            found.append((each.name, whole != each.type, part != whole, is_of, words))
    return tuple(found)


def is_single(values: Any) -> bool:
    """Whether a value has no members: it is not iterable, or an array of no dimension."""
    return not isinstance(values, Iterable) or getattr(values, "shape", None) == ()


def names_in(values: Any) -> tuple[Any, ...]:
    """Return the names that an option lists; a text, bytes or a mapping is one value, so an empty one is refused."""
    return (values,) if isinstance(values, (str, bytes, bytearray, Mapping)) else in_a_tuple(values)


def in_a_tuple(values: Any) -> tuple[Any, ...]:
    """Return the members of an iterable; of anything else the value alone."""
    return (values,) if is_single(values) else tuple(values)
