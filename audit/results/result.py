"""The head of all results: what repeats a result, what was claimed and found, and how it raises and is shown."""

from __future__ import annotations

import enum
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple, Self

from ..errors import AuditError, ExcessError, InconclusiveError, RefutedError
from ..printing import did_you_mean, verdict_text

Shown = Literal["words", "detectable", "to_dict", "card", "plot"]
SHOWN: Final[dict[Shown, Callable[..., Any]]] = {}


def show_with(name: Shown, function: Callable[..., Any]) -> None:
    """Register a function of a result that a later subpackage provides; this one knows neither files nor figures."""
    SHOWN[name] = function


_RAISED: Final[dict[str, type[AuditError]]] = {
    "REFUTED": RefutedError,
    "DIFFERENT": RefutedError,
    "EXCESS": ExcessError,
    "INCONCLUSIVE": InconclusiveError,
    "UNDETERMINED": InconclusiveError,
}


_QUESTIONS: Final = {"is_refuted", "refuted", "passed", "failed", "ok", "success", "is_private", "violation"}
_BOUNDS: Final = {"epsilon", "eps", "lower_bound", "lower", "lower_limit", "epsilon_lower", "eps_lower"}
"""Names that other libraries use for the answer, and for the bound."""


class ConfidenceInterval(NamedTuple):
    """Limits that hold together with the confidence of the result, as in scipy.stats."""

    low: float
    high: float


class _OnDemand:
    """A field that may be given as a function of no arguments, which is called when the field is first read."""

    def __init__(self, *default: Any) -> None:
        self._default = default

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self._name = name

    def __set__(self, result: Any, value: Any) -> None:
        vars(result)[self._name] = value

    def __get__(self, result: Any, owner: type[Any] | None = None) -> Any:
        if result is None:  # a dataclass asks for the default
            if not self._default:
                raise AttributeError(self._name)
            return self._default[0]
        value = vars(result)[self._name]
        if callable(value):
            value = vars(result)[self._name] = value()
        return value


def on_demand(*default: Any) -> Any:
    """Declare a field of a result that may be computed when it is first read, with its default if it has one."""
    return _OnDemand(*default)


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What a result says; `Result` has each text under the same name unless noted."""

    sentence: str
    headline: str = ""  # empty if the sentence is the headline
    claimed: str = ""  # only for results without a claim
    measured: str = ""
    seen: str = ""
    remarks: tuple[str, ...] = ()
    next_step: str = ""
    below: tuple[str, ...] = ()
    # Of audits, guesses, searches and comparisons.
    events: tuple[str, ...] = ()  # the event, and that of the other direction
    observation: str = ""
    why_not_reproducible: str = ""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Result(ABC):
    """Base of all results.

    Attributes
    ----------
    alpha : float
        Largest probability of a refutation of what holds; 0 for a result that is certain.
    runs : int
        Runs on each dataset, on average; of a training, the runs of it; of a search, a replay or a step all runs. 0 if
        nothing was drawn.
    seed : int
        Random seed that repeats every number.
    notes : tuple of str
        Remarks that qualify the result: exceptions, outputs that never vary.
    versions : tuple of (str, str)
        Names and versions of the libraries.
    environment : dict
        Timings and machine: all that may differ between two runs with the same seed; and the call. Not compared.
    """

    kind: ClassVar[str]  # as tables and files of results name it
    # Names of attributes, which may be dotted.
    _subject_field: ClassVar[str] = "mechanism"
    _claim_field: ClassVar[str] = "claim"
    _limit_fields: ClassVar[tuple[str, str | None]]  # of the confidence interval; None for infinity
    _dict_fields: ClassVar[tuple[str, ...]] = ()  # what `to_dict` has beside verdict and claim
    _question: ClassVar[str] = "is_refuted"  # what to ask in place of the truth value

    alpha: float = 0.0
    runs: int = 0
    seed: int = 0
    notes: tuple[str, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    environment: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def subject(self) -> str:
        """Name of what was examined, such as the mechanism."""
        return str(getattr(self, self._subject_field))

    @cached_property
    def _words(self) -> Words:
        words: Words = SHOWN["words"](self)
        return words

    @property
    def claimed(self) -> str:
        """What was claimed of the subject, as text; empty if nothing was."""
        claim = getattr(self, self._claim_field, None)
        return self._words.claimed if claim is None else str(claim)

    @property
    def measured(self) -> str:
        """The number beside the claim, as text; empty if there is none."""
        return self._words.measured

    def tabulated(self) -> Any:
        """Return the table that a file of results keeps beside the text; None if there is none."""
        return None

    @property
    def sentence(self) -> str:
        """The verdict in a sentence."""
        return self._words.sentence

    @property
    def remarks(self) -> tuple[str, ...]:
        """What must be read with the verdict; printed below it."""
        return self._words.remarks

    @property
    @abstractmethod
    def verdict(self) -> enum.Enum:
        """What the result says of the claim."""

    @property
    def is_refuted(self) -> bool:
        """Whether the runs contradict the claim; false where a health check failed."""
        return _RAISED.get(self.verdict.name) is RefutedError

    @property
    def headline(self) -> str:
        """The first line of the printed result."""
        return self._words.headline or self._words.sentence

    @property
    def seen(self) -> str:
        """The counts that refute the claim; empty for another verdict, or if a remark has them."""
        return self._words.seen

    @property
    def next_step(self) -> str:
        """What to do after the verdict; empty if a remark says it, or nothing is to be done."""
        return self._words.next_step

    @property
    def details(self) -> tuple[str, ...]:
        """The lines below the headline: what was seen, the remarks, and what to do next."""
        following = f"next: {self.next_step}" if self.next_step else ""
        return tuple(filter(None, (self.seen, *self.remarks, following)))

    @property
    def below(self) -> tuple[str, ...]:
        """Further lines that are printed below the details, such as those of a search."""
        return self._words.below

    def __str__(self) -> str:
        return "\n".join([verdict_text(self.headline, self.details), *self.below])

    def __repr__(self) -> str:
        words = (f"{self.subject}: {self.verdict.value}", self.measured, self.claimed and f"claim {self.claimed}")
        return f"<{type(self).__name__} {', '.join(filter(None, words))}>"

    def confidence_interval(self) -> ConfidenceInterval:
        """Return limits of the number in question, at confidence 1 − alpha.

        For an audit the limits of the claim's privacy parameter, such as ε. The upper limit is infinite, because no
        number of runs bounds a privacy loss from above. For an exact audit both ends of the excess, which are certain;
        for a statement the interval of its worst number; for two versions the limits of their total variation distance;
        for a replay 0 and the worst-case loss of the output on its path, infinite if unknown; for a step the limits of
        μ; for batches those of the probability that a row is included; for a sensitivity the largest change found, and
        infinity; for an accountant or a filter those of the true ε, or δ, of the worst case.
        """
        return ConfidenceInterval(*self._limits)

    @property
    def _limits(self) -> tuple[float, float]:
        low, high = self._limit_fields
        return attrgetter(low)(self), math.inf if high is None else attrgetter(high)(self)

    def __getstate__(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def __bool__(self) -> bool:
        name = type(self).__name__
        raise TypeError(
            f"a{'n' * (name[0] in 'AEIOU')} {name} is neither true nor false; use .{self._question}, .verdict or "
            ".raise_if_refuted()."
        )

    if not TYPE_CHECKING:  # a type checker knows the names

        def __getattr__(self, name: str) -> Any:
            known = [each for each in dir(self) if not each.startswith("_")]
            bound = "bound" if "bound" in known else "confidence_interval"
            meant = self._question if name in _QUESTIONS else bound if name in _BOUNDS else None
            meant = f"; did you mean {meant!r}?" if meant in known else did_you_mean(name, known)
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}{meant}", name=name, obj=self
            )

    def raise_if_refuted(self) -> Self:
        """Return the result, unless the claim is refuted or the audit is inconclusive.

        Raises
        ------
        RefutedError, InconclusiveError, ExcessError
            With the result as text; each is an `AssertionError`. The last is that of a replay.
        """
        if self.verdict.name in _RAISED:
            raise _RAISED[self.verdict.name](str(self), result=self)
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return what the result says as a flat dict of numbers and strings; `save` keeps everything."""
        numbers = {name.replace(".", "_"): attrgetter(name)(self) for name in self._dict_fields}
        return {"verdict": self.verdict.value, "claim": self.claimed, **numbers}

    def plot(self, kind: str | None = None, ax: Any = None) -> Any:
        """Draw the result with `dpaudit.reports.plot`, and return matplotlib's axes."""
        return SHOWN["plot"](self, kind, ax)

    def _repr_html_(self) -> str:
        """A card for notebooks."""
        card: str = SHOWN["card"](self)
        return card
