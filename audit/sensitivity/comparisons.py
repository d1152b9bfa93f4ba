"""Pairs compared by the query's answers: every dataset is evaluated once, and the first ones twice."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from ..clock import now
from ..datasets.contents import Kept
from ..errors import described
from ..search.candidates import Candidate, show
from ..search.climb import ROUNDING
from .query_answer import Answer, Change, Norm, answer_of, answer_text, change_between, norm_of

_REPEATED = 8  # datasets that are evaluated twice at once
_MOST_FAILED = 500  # pairs on which the query fails, if it has an answer on none
_MOST_KEPT = 2**23  # numbers in the answers that are kept


@dataclass(frozen=True, slots=True)
class Compared:
    """A pair with the query's answers on it, and their change."""

    candidate: Candidate
    x: Answer
    y: Answer
    change: Change

    @property
    def size(self) -> float:
        """The size of the change."""
        return self.change.size

    def rounding(self, norm: Norm) -> float:
        """Return how much of the change may be due to rounding in the query; none between whole numbers."""
        if (self.x.is_whole and self.y.is_whole) or math.isinf(self.change.size):
            return 0.0
        return ROUNDING * max(norm_of(side, norm) for side in (self.x, self.y))


@dataclass(slots=True)
class Comparisons:
    """Comparisons of pairs, as many as a number of evaluations and a time limit allow.

    Attributes
    ----------
    bound : float
        Stated sensitivity.
    most : int
        Largest number of evaluations, and of pairs.
    deadline : float
        Time of `clock.now` at which no other pair is compared.
    evaluations, pairs, failed, not_finite : int
        Evaluations so far, pairs compared, pairs on which the query failed, and evaluations that had NaN or infinite
        numbers.
    first_error : str
        The error of the first pair that failed, and its dataset.
    unsteady : str
        What differed between two evaluations on one dataset, or what the query changed; empty if nothing.
    """

    query: Callable[[Any], Any]
    norm: Norm
    bound: float
    most: int
    deadline: float = math.inf
    evaluations: int = 0
    pairs: int = 0
    failed: int = 0
    not_finite: int = 0
    first_error: str = ""
    unsteady: str = ""
    _answers: dict[Hashable, Answer | None] = field(default_factory=dict)  # None where the query failed
    _kept: int = 0  # numbers in these
    _repeated: int = 0

    def has_room(self, share: float) -> bool:
        """Whether less than this share of the evaluations, and not all of the time, has been used.

        There is no room for a query that always fails, or that is not a function of its dataset.
        """
        return (
            max(self.evaluations, self.tried) < share * self.most
            and (self.pairs > 0 or self.failed < _MOST_FAILED)
            and not self.unsteady
            and not self.is_late
        )

    @property
    def tried(self) -> int:
        """Pairs so far, those on which the query failed included."""
        return self.pairs + self.failed

    @property
    def is_late(self) -> bool:
        """Whether the time is over."""
        return now() >= self.deadline

    def compare(self, candidate: Candidate) -> Compared | None:
        """Return the change of the query on a pair; None if the query fails on a dataset of it."""
        ends = candidate.ends or (None, None)
        x = self._answer(candidate.x, ends[0])
        y = None if x is None else self._answer(candidate.y, ends[1])
        if x is None or y is None:
            self.failed += 1
            return None
        self.pairs += 1
        return Compared(candidate, x, y, change_between(x, y, self.norm))

    def confirmed(self, pair: Compared) -> tuple[Any, Any]:
        """Return copies of the query's outputs on a pair, evaluated again, and note whether they differ from before."""
        outputs = list[Any]()
        for dataset, before in ((pair.candidate.x, pair.x), (pair.candidate.y, pair.y)):
            outputs.append(None)
            kept = Kept(dataset)
            try:
                output = self._evaluated(dataset)
                answer = answer_of(output)
                outputs[-1] = _copied(output, answer)
                self._note_difference(dataset, before, answer)
            except Exception as error:  # a query may raise anything
                self._note(f"{answer_text(before)}, then {described(error)}", dataset)
            self._note_change(dataset, kept)
        return outputs[0], outputs[1]

    def _answer(self, dataset: Any, end: Hashable) -> Answer | None:
        if end is not None and end in self._answers:
            return self._answers[end]
        is_repeated = self._repeated < _REPEATED
        kept = Kept(dataset) if is_repeated else None
        try:
            answer = answer_of(self._evaluated(dataset))
            self.not_finite += not answer.is_finite
        except Exception as error:  # a query may raise anything
            answer = None
            self.first_error = self.first_error or f"{described(error)} on {show(dataset)}"
        if kept is not None and answer is not None:
            self._repeated += 1
            self._note_change(dataset, kept)
            try:
                self._note_difference(dataset, answer, answer_of(self._evaluated(dataset)))
            except Exception as error:
                self._note(f"{answer_text(answer)}, then {described(error)}", dataset)
        if end is not None:
            self._keep(end, answer)
        return answer

    def _evaluated(self, dataset: Any) -> Any:
        self.evaluations += 1
        return self.query(dataset)

    def _keep(self, end: Hashable, answer: Answer | None) -> None:
        self._kept += 1 if answer is None else answer.size
        if self._kept > _MOST_KEPT:
            self._answers, self._kept = {}, 0
        self._answers[end] = answer

    def _note_difference(self, dataset: Any, before: Answer, after: Answer) -> None:
        size = change_between(before, after, self.norm).size
        if size > ROUNDING * max(norm_of(before, self.norm), self.bound):
            self._note(f"{answer_text(before)}, then {answer_text(after)}", dataset)

    def _note(self, values: str, dataset: Any) -> None:
        self.unsteady = self.unsteady or f"the query is not deterministic: {values} on {show(dataset)}"

    def _note_change(self, dataset: Any, kept: Kept) -> None:
        if kept.has_changed():
            self.unsteady = self.unsteady or (
                f"the query changes its dataset, which is now {show(dataset)}; copy it in the query"
            )


def _copied(output: Any, answer: Answer) -> Any:
    """Return a copy of an output, which the query may change later; its numbers if it cannot be copied."""
    try:
        return copy.deepcopy(output)
    except Exception:  # an object's own copying may raise anything
        return answer_text(answer)
