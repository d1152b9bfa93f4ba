"""Results of rows, each a statement with a verdict, and that of a check of a training step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, TypeAlias, get_args

from ..claims.claim import Claim
from ..results.result import Result
from ..results.verdict import Verdict


@dataclass(frozen=True, kw_only=True, repr=False)
class RowsResult(Result):
    """A result with rows, of which each has a name and a verdict, and what was found as its text."""

    rows: tuple[Any, ...]

    def named(self, verdict: Verdict) -> list[str]:
        """Return the names of the rows with a verdict."""
        return [row.name for row in self.rows if row.verdict is verdict]

    @property
    def verdict(self) -> Verdict:
        """REFUTED if a row is, else INCONCLUSIVE if a row is."""
        return next((each for each in (Verdict.REFUTED, Verdict.INCONCLUSIVE) if self.named(each)), Verdict.NOT_REFUTED)

    def table(self) -> str:
        """Return the rows as text, a line each: name, verdict, what was found."""
        width = max(len(row.name) for row in self.rows)
        return "\n".join(f"{row.name:{width}}  {row.verdict.value:12}  {row}" for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        return Result.to_dict(self) | {f"{row.name}_verdict": row.verdict.value for row in self.rows}


# Steps.

RowName: TypeAlias = Literal[
    "noise-scale", "privacy", "sensitivity", "without-noise", "repeated-noise", "not-finite", "empty-batch",
    "isolation", "divisor", "order", "gaussian",
]  # fmt: skip
ROWS: Final[tuple[RowName, ...]] = get_args(RowName)


def few(names: Sequence[str]) -> str:
    """Return the first three names, and how many more there are."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """A statement about a step, and what was found.

    Attributes
    ----------
    name : str
        The statement, which `ignore=` leaves out by this name:
        "noise-scale", the noise is the same on neighbours, as neither its scale nor its draws depend on the data;
        "privacy", the contribution of an example, in standard deviations of the noise, keeps the claim;
        "sensitivity", the contribution of an example is at most the stated sensitivity;
        "without-noise", everything that depends on the data gets noise;
        "repeated-noise", no two numbers have the same noise;
        "not-finite", an example that is not finite, or whose gradient is not, shows no more than another one;
        "empty-batch", the step treats a batch without examples like others;
        "isolation", the contribution of an example does not depend on the other examples, only on their number;
        "divisor", the step is a sum over the examples, divided by nothing that depends on their number;
        "order", the order of the examples does not matter;
        "gaussian", the noise is normal, with one scale in each tensor.
    verdict : Verdict
        REFUTED by the counterexample x and y; INCONCLUSIVE if it could not be tested.
    found : str
        What was seen, with numbers.
    x, y : str
        The two batches, in short; empty where no batch is named.
    tensor : str
        Name of the tensor of the output; empty if it is the only one, or all are meant.
    place : str
        File, line and function of the finding of a replay; empty if it names none.
    """

    name: RowName
    verdict: Verdict
    found: str
    x: str = ""
    y: str = ""
    tensor: str = ""
    place: str = ""

    def __str__(self) -> str:
        tensor = f" [{self.tensor}]" if self.tensor else ""
        pair = f"; x = {self.x}; y = {self.y}" if self.x else ""
        place = f"; at {self.place}" if self.place else ""
        return f"{self.found}{tensor}{pair}{place}"


@dataclass(frozen=True, kw_only=True, repr=False)
class StepResult(RowsResult):
    """What a check of a training step found, a row for each statement.

    Attributes
    ----------
    step : str
        Name of the step.
    claim : Claim, optional
    adjacency : str
    rows : tuple of StepRow
    mu, mu_lower, mu_upper : float
        Contribution of an example in standard deviations of the noise: estimate and interval. NaN if unknown.
    sigma : tuple of (str, float)
        Standard deviation of the noise by tensor.
    sensitivity : float
        Largest contribution of an example found: the norm over all numbers with noise.
    bound : float, optional
        The stated sensitivity.
    """

    kind: ClassVar = "step"
    _subject_field: ClassVar = "step"
    _limit_fields: ClassVar = ("mu_lower", "mu_upper")
    _dict_fields: ClassVar = ("step", "adjacency", "mu", "mu_lower", "mu_upper", "sensitivity", "runs", "alpha", "seed")
    step: str
    claim: Claim | None
    adjacency: str
    rows: tuple[StepRow, ...]
    mu: float = math.nan
    mu_lower: float = math.nan
    mu_upper: float = math.inf
    sigma: tuple[tuple[str, float], ...] = ()
    sensitivity: float = math.nan
    bound: float | None = None
