"""What all results can do: refuse to be a truth value, raise, and show themselves."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple, Self

from ..errors import AuditError, InconclusiveError, RefutedError
from ..printing import did_you_mean, verdict_text

Shown = Literal["to_dict", "card", "plot"]
_SHOWN: Final[dict[Shown, Callable[..., Any]]] = {}


def show_with(name: Shown, function: Callable[..., Any]) -> None:
    """Register a function of a result that a later subpackage provides; this one knows neither files nor figures."""
    _SHOWN[name] = function


_RAISED: Final[dict[str, type[AuditError]]] = {
    "REFUTED": RefutedError,
    "DIFFERENT": RefutedError,
    "INCONCLUSIVE": InconclusiveError,
    "UNDETERMINED": InconclusiveError,
}


_QUESTIONS: Final = {"refuted", "passed", "failed", "ok", "success", "is_private", "violation"}
_BOUNDS: Final = {"epsilon", "eps", "lower_bound", "lower", "lower_limit", "epsilon_lower", "eps_lower"}
"""Names that other libraries use for the answer, and for the bound."""


class ConfidenceInterval(NamedTuple):
    """Limits that hold together with the confidence of the result, as in scipy.stats."""

    low: float
    high: float


class Result(ABC):
    """Base of all results of an audit, a check of a statement or a comparison of versions."""

    __slots__ = ()
    _question: ClassVar[str] = "is_refuted"

    @property
    @abstractmethod
    def sentence(self) -> str:
        """The verdict in a sentence."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """What must be read with the verdict; printed below it."""
        return ()

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
        return self.sentence

    @property
    def details(self) -> tuple[str, ...]:
        """The lines below it: what was seen, the remarks, and what to do next."""
        return self.remarks

    def __str__(self) -> str:
        return verdict_text(self.headline, self.details)

    def confidence_interval(self) -> ConfidenceInterval:
        """Return limits of the number in question, at confidence 1 − alpha.

        For an audit the limits of the claim's privacy parameter, such as ε. The upper limit is infinite, because no
        number of runs bounds a privacy loss from above. For an exact audit both ends of the excess, which are certain;
        for a statement the interval of its worst number; for two versions the limits of their total variation distance.
        """
        return ConfidenceInterval(*self._limits)

    @property
    @abstractmethod
    def _limits(self) -> tuple[float, float]: ...

    def __bool__(self) -> bool:
        name = type(self).__name__
        raise TypeError(
            f"a{'n' * (name[0] in 'AEIOU')} {name} is neither true nor false; use .{self._question}, .verdict or "
            ".raise_if_refuted()."
        )

    if not TYPE_CHECKING:  # a type checker knows the names

        def __getattr__(self, name: str) -> Any:
            known = [each for each in dir(type(self)) if not each.startswith("_")]
            meant = self._question if name in _QUESTIONS else "bound" if name in _BOUNDS else None
            meant = f"; did you mean {meant!r}?" if meant in known else did_you_mean(name, known)
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}{meant}", name=name, obj=self
            )

    def raise_if_refuted(self) -> Self:
        """Return the result, unless the claim is refuted or the audit is inconclusive.

        Raises
        ------
        RefutedError, InconclusiveError
            With the result as text; both are an `AssertionError`.
        """
        if self.verdict.name in _RAISED:
            raise _RAISED[self.verdict.name](str(self), result=self)
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return what the result says as a flat dict of numbers and strings; `save` keeps everything."""
        flat: dict[str, Any] = _SHOWN["to_dict"](self)
        return flat

    def plot(self, kind: str | None = None, ax: Any = None) -> Any:
        """Draw the result with `dpaudit.reports.plot`, and return matplotlib's axes."""
        return _SHOWN["plot"](self, kind, ax)

    def _repr_html_(self) -> str:
        """A card for notebooks."""
        card: str = _SHOWN["card"](self)
        return card
