"""Experiments: a statement from the literature, its source, and the cases that test it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from ...audit.claims.claim import Claim, ClaimAtDistance, claim_at
from ...audit.datasets.adjacency import Adjacency
from ...audit.errors import UnknownNameError
from ...audit.events.outcome_text import printed
from ...audit.printing import did_you_mean
from ...audit.procedures.check import check
from ...audit.records.json_codec import plain_data, read_data
from ...audit.records.suite import Entry
from ...audit.results.audit_result import AuditResult, Verdict
from ...audit.results.statement_result import StatementResult
from ...audit.sampling.object_identity import versions
from ...audit.store.sqlite_store import Store

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_LONGEST = 2_000  # characters of a dataset in a report


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditCase:
    """An audit of a mechanism on a pair of datasets, with the expected verdict.

    Attributes
    ----------
    name : str
        Name on the command line.
    mechanism, x, y : Any
    claim : Claim or callable
        Claim at distance 1, or a function from the distance to a claim.
    adjacency : Adjacency
    distance : float
        Distance of the pair.
    expected : Verdict
        NOT_REFUTED for a true version, REFUTED for a false one.
    exact : float, optional
        Exact strength on this pair, from the mechanism's law; infinite where no finite claim holds.
    runs : int
        Runs on each dataset, enough for the expected verdict at alpha 1e-5 with every seed.
    note : str
        Noun phrase that says what the case shows.
    cells : int
        Number of output cells to count for the figures of a report.
    """

    name: str
    mechanism: Any
    x: Any
    y: Any
    claim: Claim | ClaimAtDistance
    adjacency: Adjacency
    distance: float = 1
    expected: Verdict
    exact: float | None = None
    runs: int = 1_000_000
    note: str = ""
    cells: int = 0

    @property
    def claimed(self) -> str:
        """The claim at the pair's distance, as text."""
        claim = str(claim_at(self.claim, self.distance))
        return claim if self.distance == 1 else f"{claim} at distance {self.distance:g}"

    def run(
        self,
        *,
        runs: int,
        alpha: float,
        seed: int,
        jobs: int | None,
        progress: Callable[[int], None] | None,
        store: Store | None = None,
    ) -> AuditResult:
        return check(
            self.mechanism,
            self.x,
            self.y,
            claim=self.claim,
            adjacency=self.adjacency,
            distance=self.distance,
            runs=runs,
            alpha=alpha,
            seed=seed,
            cells=self.cells,
            keep_datasets=_are_short(self.x, self.y),
            jobs=jobs,
            progress=progress,
            store=None if store is None else store.part(self.name),
        )


def _are_short(*datasets: Any) -> bool:
    """Whether the datasets, which are synthetic, fit a report as text, and the text is the same in every process."""
    texts = [printed(dataset) for dataset in datasets]
    return all(len(text) <= _LONGEST and " at 0x" not in text for text in texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementCase:
    """A check of a statement about estimated numbers, with the expected verdict.

    Attributes
    ----------
    name, expected, exact, note
        As in an `AuditCase`; `exact` is the true value of the estimated number, where known.
    claimed : str
        Short form of the statement.
    measure : callable
        Function that simulates: ``measure(runs=, alpha=, seed=)`` returns a `StatementResult`.
    runs : int
        Runs on each dataset, enough for the expected verdict at alpha 1e-5 with every seed.
    """

    name: str
    claimed: str
    measure: Callable[..., StatementResult]
    expected: Verdict
    exact: float | None = None
    runs: int = 1_000_000
    note: str = ""

    def run(
        self,
        *,
        runs: int,
        alpha: float,
        seed: int,
        jobs: int | None,
        progress: Callable[[int], None] | None,
        store: Store | None = None,
    ) -> StatementResult:
        started = time.perf_counter()
        settings = {"claim": self.claimed, "runs": runs, "alpha": alpha, "seed": seed, **dict(versions())}
        section = None if store is None else store.section(self.name, settings)
        kept = None if section is None else section.recall("result")
        if kept is None:
            result = self.measure(runs=runs, alpha=alpha, seed=seed)
            if section is not None:
                section.keep("result", json.dumps(plain_data(result)))
        else:
            result = read_data(json.loads(kept))
        result.environment["seconds"] = round(time.perf_counter() - started, 3)
        if progress is not None:
            progress(2 * runs)
        return result


Case: TypeAlias = AuditCase | StatementCase


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A statement and the cases that test it: true versions must not be refuted, false ones must.

    Attributes
    ----------
    id : str
        Such as "E2".
    document : str
        Document that makes the statement, by its name on the command line.
    statement : str
        One sentence.
    source : str
        Theorem, definition or example in the document.
    cases : tuple of Case
    draw : callable, optional
        Map from the entries of the cases to a figure.
    """

    id: str
    document: str
    statement: str
    source: str
    cases: tuple[Case, ...]
    draw: Callable[[Sequence[Entry]], Figure] | None = None


def true_version(name: str, mechanism: Any, x: Any, y: Any, claim: Any, adjacency: Adjacency, **rest: Any) -> AuditCase:
    """Return an audit that must not refute its claim."""
    given = {"name": name, "mechanism": mechanism, "x": x, "y": y, "claim": claim, "adjacency": adjacency}
    return AuditCase(**given, expected=Verdict.NOT_REFUTED, **rest)


def false_version(
    name: str, mechanism: Any, x: Any, y: Any, claim: Any, adjacency: Adjacency, **rest: Any
) -> AuditCase:
    """Return an audit that must refute its claim."""
    given = {"name": name, "mechanism": mechanism, "x": x, "y": y, "claim": claim, "adjacency": adjacency}
    return AuditCase(**given, expected=Verdict.REFUTED, **rest)


def true_statement(name: str, claimed: str, measure: Callable[..., StatementResult], **rest: Any) -> StatementCase:
    """Return a check that must not refute its statement."""
    return StatementCase(name=name, claimed=claimed, measure=measure, expected=Verdict.NOT_REFUTED, **rest)


def false_statement(name: str, claimed: str, measure: Callable[..., StatementResult], **rest: Any) -> StatementCase:
    """Return a check that must refute its statement."""
    return StatementCase(name=name, claimed=claimed, measure=measure, expected=Verdict.REFUTED, **rest)


def select(experiments: Sequence[Experiment], names: Sequence[str], documents: Sequence[str]) -> list[Experiment]:
    """Return the experiments with these ids or documents; of those chosen by names of cases, only these cases.

    Names are ids, names of cases, or "all". Ids are not case-sensitive.

    Raises
    ------
    UnknownNameError
        If a name or a document does not exist.
    """
    known = {case.name for experiment in experiments for case in experiment.cases}
    ids = {experiment.id.lower() for experiment in experiments}
    for name in names:
        if name not in known and name.lower() not in ids and name != "all":
            hint = did_you_mean(name, [*known, *(experiment.id for experiment in experiments)]) or ";"
            raise UnknownNameError(
                f"{name!r} is not an experiment or a case{hint} `dpaudit list all` shows the names.", name=name
            )
    for document in documents:
        if document not in {experiment.document for experiment in experiments}:
            found = ", ".join(dict.fromkeys(experiment.document for experiment in experiments))
            hint = did_you_mean(document, found.split(", ")) or "."
            raise UnknownNameError(f"{document!r} is not a document; use one of {found}{hint}", name=document)
    wanted = {name.lower() for name in names}
    chosen = []
    for experiment in experiments:
        if "all" in names or experiment.id.lower() in wanted or experiment.document in documents:
            chosen.append(experiment)
        elif cases := tuple(case for case in experiment.cases if case.name in names):
            chosen.append(replace(experiment, cases=cases, draw=None))
    return chosen
