"""The worst pair that a search found, with its audit and the pairs that were tried."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..datasets.description import as_code
from ..printing import confidence
from .audit_result import AuditResult
from .result import Result

_LONGEST = 1_000  # characters of a dataset, which may be pasted, on a line


@dataclass(frozen=True, slots=True, kw_only=True)
class SimplePair:
    """A simpler pair than the found one, on which the claim is refuted too.

    Attributes
    ----------
    x, y : Any
        The datasets.
    summary : str
        The datasets on one line: their contents if `shows_data`, else their types and sizes.
    shows_data : bool
        Whether the rows may be shown: the search made them up, or `keep_datasets` asks for them.
    alpha : float
        That of the search: the probability of showing a simpler pair on which the claim holds.
    audit : AuditResult
        Audit of this pair on fresh runs. It has a share of that alpha; the rest is for other simple pairs.
    """

    x: Any = field(repr=False, compare=False)
    y: Any = field(repr=False, compare=False)
    summary: str
    shows_data: bool = field(default=True, repr=False, compare=False)
    alpha: float
    audit: AuditResult

    @property
    def lines(self) -> list[str]:
        """The datasets, as Python code if it may be shown and is not too long, and what refutes the claim on them."""
        codes = [as_code(dataset) or "" for dataset in (self.x, self.y)]
        is_code = self.shows_data and all(0 < len(code) <= _LONGEST for code in codes)
        pair = [f"{name} = {code}" for name, code in zip("xy", codes, strict=True)] if is_code else [self.summary]
        runs = f"{self.audit.runs:,} more runs per dataset"
        return [*pair, f"refuted on this simpler pair too, with {confidence(self.alpha)}, by {runs}"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedPair:
    """A pair that the search tried.

    Attributes
    ----------
    label : str
        Description of the pair.
    summary : str
        The datasets; types and sizes of a caller's own, unless `keep_datasets` asks for their rows.
    runs : int
        Runs from which the pair was judged, on x and y together; other pairs with these datasets share them.
    bound : float
        Expected bound of an audit, from pilot outputs that did not serve to choose the event, shrunk towards the bounds
        of similar pairs according to its uncertainty. In the units of the claim's privacy parameter; at least 0. It is
        0 for a pair that was left after fewer than a hundred runs.
    error : str, optional
        Why the search skipped the pair.
    """

    label: str
    summary: str
    runs: int
    bound: float
    error: str | None = None

    def __str__(self) -> str:
        if self.error is not None:
            return f"{self.label}: {self.error}"
        return f"{self.bound:.3g} after {self.runs:,} runs: {self.label}"


def _of_audit(name: str, doc: str | None = None) -> Any:
    def get(pair: WorstPair) -> Any:  # a function, which dataclasses with slots need from Python 3.14 on
        return getattr(pair.audit, name)

    return property(get, doc=doc)


@dataclass(frozen=True, kw_only=True, repr=False)
class WorstPair(Result):
    """The worst pair that a search found, audited on fresh runs.

    Attributes
    ----------
    x, y : Any
        The datasets.
    ranking : tuple of TriedPair
        Every pair tried: the chosen pair, then the others in order of decreasing pilot size, then of the expected bound
        or, without one, of how far their outputs are apart, and finally the skipped pairs. Another pair may have a
        larger expected bound than the chosen one, if it is less certain.
    replayed : int
        Pairs that were ranked by replays, if those guided the search.
    untried : int
        Pairs (given or patterns) that had no runs.
    simple : SimplePair, optional
        A simpler pair on which the claim is refuted too: fewer rows, fewer different values, rounder ones. None if the
        claim is not refuted, or none was found.
    simplifying_runs : int
        Runs that looked for it, and audited it; at most as many as the search may take, half those that the audit
        may take, and half those that both made.
    simpler_tried : int
        Simpler pairs on trial in these runs.
    audit : AuditResult
        Audit of the chosen pair. It is valid however the pair was found, because it counts no runs of the search; they
        only help to choose the event (`searched`).
    """

    kind: ClassVar = "search"
    x: Any = field(compare=False)
    y: Any = field(compare=False)
    ranking: tuple[TriedPair, ...]
    replayed: int = 0
    untried: int = 0
    simple: SimplePair | None = None
    simplifying_runs: int = 0
    simpler_tried: int = 0
    audit: AuditResult

    # What is said of the pair is said by its audit.
    subject = _of_audit("subject", "Name of the mechanism.")
    claimed = _of_audit("claimed", "The claim.")
    measured = _of_audit("measured", "Lower confidence bound of the audit, as text.")
    verdict = _of_audit("verdict", "Verdict of the audit of fresh runs.")
    bound = _of_audit("bound", "Lower confidence bound of the audit.")
    pvalue = _of_audit("pvalue", "The p-value of the audit.")
    _limits = _of_audit("_limits")

    def to_dict(self) -> dict[str, Any]:
        """Return what the audit says, and the runs of the search."""
        return self.audit.to_dict() | {"search_runs": self.runs}

    def plot(self, kind: str | None = None, ax: Any = None) -> Any:
        """Draw the audit."""
        return self.audit.plot(kind, ax)

    @property
    def simpler_lines(self) -> list[tuple[str, str]]:
        """Lines of the simple pair and their names; a note if pairs were tried and none was refuted."""
        if self.simple is not None:
            return [*zip(("simpler", "", ""), self.simple.lines, strict=False)]
        runs = f"{self.simpler_tried:,} tried, {self.simplifying_runs:,} runs"
        return [("note", f"no simpler pair was refuted ({runs})")] if self.simpler_tried else []

    @property
    def search_in_words(self) -> str:
        """How many pairs were tried, and what is known beside the audited pair, in a sentence."""
        return self._words.observation
