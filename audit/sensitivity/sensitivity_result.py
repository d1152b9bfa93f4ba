"""The result of a search for a sensitivity, kept apart because `dpaudit.results` loads it without the search."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

from ..printing import shorten
from ..results.result import Result
from ..results.verdict import Verdict

Norm: TypeAlias = Literal["l1", "l2", "linf"]


class SearchEnd(enum.Enum):
    """Why a search for a sensitivity ended."""

    EVALUATIONS = "limit of evaluations"
    TIME = "time limit"
    EXHAUSTED = "no other pairs were found"
    UNBOUNDED = "no change can be larger"
    UNSTEADY = "the query is not a function of its dataset"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedPair:
    """A pair of neighbours, and what the query returned on it.

    Attributes
    ----------
    summary : str
        The datasets, on one line; if they are not to be shown, how they differ.
    change : float
        Norm of the difference of the answers.
    """

    x: Any = field(repr=False, compare=False)
    y: Any = field(repr=False, compare=False)
    summary: str
    answer_x: Any = field(repr=False, compare=False)
    answer_y: Any = field(repr=False, compare=False)
    change: float

    @property
    def values(self) -> str:
        """What the query returned, on one line."""
        return f"{shorten(self.answer_x)} on x, {shorten(self.answer_y)} on y"


@dataclass(frozen=True, kw_only=True, repr=False)
class SensitivityResult(Result):
    """The largest change of a query between neighbours that a search found, and the stated bound.

    A refutation is certain, as a pair is a counterexample. A bound that is not refuted may still be wrong.

    Attributes
    ----------
    query : str
        Name of the query.
    norm : {"l1", "l2", "linf"}
    output_adjacency : str
        Of a transformation, the relation in whose distance its outputs are compared; else empty.
    bound : float
        Stated sensitivity, or stability of a transformation.
    pair : ChangedPair
        The pair found.
    simple : ChangedPair, optional
        A simpler pair with at least 0.97 of the change, that refutes the bound if the found one does.
    rounding : float
        How much of the change may be due to rounding in the query.
    reason : str
        Why the change is infinite: NaN or infinity on one dataset alone, or arrays of different shapes.
    only_x, only_y : tuple of str
        Names of parts, such as keys, that the query returned on one dataset alone, and that count as 0 on the other.
    found_by : str
        Description of the pair when it was found: a pattern, a random pair or a variation.
    evaluations, pairs : int
        Evaluations of the query, and pairs compared.
    errors : int
        Pairs on which the query raised, or returned something else than numbers.
    first_error : str
        The first of these errors.
    not_finite : int
        Datasets on which the query returned NaN or infinite numbers.
    left_out : str
        Which of NaN, infinity and negative zero the search did not try, and why.
    unsteady : str
        What differed between two evaluations on one dataset, or that the query changes its dataset.
    end : SearchEnd
        Why the search ended.
    distance : float
        Distance of the pairs.
    adjacency : str
    """

    kind: ClassVar = "sensitivity"
    _subject_field: ClassVar = "query"
    _limit_fields: ClassVar = ("change", None)
    _dict_fields: ClassVar = (
        "query", "norm", "bound", "change", "distance", "adjacency", "found_by", "evaluations", "pairs", "errors",
        "pair.summary",
    )  # fmt: skip
    query: str
    norm: Norm
    output_adjacency: str = ""
    bound: float
    pair: ChangedPair
    simple: ChangedPair | None = None
    rounding: float = 0.0
    reason: str = ""
    only_x: tuple[str, ...] = ()
    only_y: tuple[str, ...] = ()
    found_by: str
    evaluations: int
    pairs: int
    errors: int = 0
    first_error: str = ""
    not_finite: int = 0
    left_out: str = ""
    unsteady: str = ""
    end: SearchEnd
    distance: float = 1
    adjacency: str

    @property
    def x(self) -> Any:
        """The first dataset of the pair found."""
        return self.pair.x

    @property
    def y(self) -> Any:
        """The second dataset of the pair found."""
        return self.pair.y

    @property
    def change(self) -> float:
        """The largest change found: a lower bound on the sensitivity."""
        return self.pair.change

    @property
    def verdict(self) -> Verdict:
        """REFUTED if the change exceeds the bound by more than rounding explains, INCONCLUSIVE without any change."""
        if self.unsteady or self.change == 0.0 < self.bound:
            return Verdict.INCONCLUSIVE
        return Verdict.REFUTED if exceeds(self.change, self.bound, self.rounding) else Verdict.NOT_REFUTED

    @property
    def shown(self) -> ChangedPair:
        """The simpler pair if it changes as much as the found one, else the found one."""
        is_as_large = self.simple is not None and self.simple.change >= self.change * (1.0 - 1e-9)
        return self.simple if self.simple is not None and is_as_large else self.pair


def exceeds(change: float, bound: float, rounding: float) -> bool:
    """Return whether a change exceeds a bound by more than rounding explains."""
    return change > bound * (1.0 + 1e-9) + rounding
