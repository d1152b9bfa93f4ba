"""Defects of released code that the search finds, each with a twin that lacks it and is not refuted.

docs/findings.md explains them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, Literal

import numpy as np

from ...audit.datasets.adjacency import AddRemove, Adjacency, Replace, Within
from ...audit.datasets.domains import Answers, Domain, Rows
from ...audit.results.audit_result import AuditResult
from ...audit.search.find_worst_pair import find_worst_pair
from ...mechanisms import LaplaceMechanism
from ...mechanisms.adapters import from_diffprivlib, from_diffprivlib_tool, from_opendp, from_pydp
from ..published.bounded_mean import BoundedMean
from ..published.exposed_means import ExposedMean

_NAN = float("nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """What is searched, and with how many executions.

    Attributes
    ----------
    words : str
        What it is, for a table.
    make : callable
        Makes the mechanism.
    domain : Domain
    runs, search_runs : int
        Of the audit, on each dataset; and of the search.
    adjacency : Adjacency, optional
        Where the mechanism does not say.
    """

    words: str
    make: Callable[[], Any] = field(repr=False)
    domain: Domain
    runs: int
    search_runs: int
    adjacency: Adjacency | None = None

    def audit(self, *, seed: int, bits: bool, alpha: float) -> AuditResult:
        found = find_worst_pair(
            self.make(),
            self.domain,
            adjacency=self.adjacency,
            runs=self.runs,
            search_runs=self.search_runs,
            alpha=alpha,
            seed=seed,
            bits=bits,
            jobs=1,
        )
        return found.audit


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    """A released mechanism that breaks its claim, and the nearest one that does not.

    Attributes
    ----------
    name : str
    library : {"opendp", "diffprivlib", "pydp", ""}
        That has to be installed; empty where the mechanism is written here from its definition.
    by : {"values", "low bits"}
        What shows it.
    broken, twin : Searched
    """

    name: str
    library: Literal["opendp", "diffprivlib", "pydp", ""]
    by: Literal["values", "low bits"]
    broken: Searched
    twin: Searched


def defects() -> list[Defect]:
    """Every defect that is looked for, with its twin."""
    return [*_models(), *_tools(), *_thresholds(), *_low_bits(), _exposed_mean()]


def _models() -> list[Defect]:
    rows = Rows(low=(0.1, 0.0), high=(1.0, 1.0))
    long, short = (Rows(low=(-norm, 0), high=(norm, 1), most=1) for norm in (30.0, 1.0))

    def regression(low: float) -> Callable[[], Any]:
        return lambda: from_diffprivlib_tool(
            _of("models", "LinearRegression"),
            example=[(1.0, 1.0)],
            adjacency=Replace(),
            output=lambda model: model.coef_,
            epsilon=1.0,
            bounds_X=(low, 1),
            bounds_y=(0, 1),
            fit_intercept=False,
        )

    def logistic(norm: float) -> Callable[[], Any]:
        def fit(rows: Sequence[Any], **options: Any) -> Any:
            x, label = np.array([(0.0, 0), (0.0, 1), *rows]).T
            model = _of("models", "LogisticRegression")(data_norm=norm, fit_intercept=False, **options)
            return model.fit(x[:, None], label.astype(int))

        return lambda: from_diffprivlib_tool(
            fit, example=[(1.0, 1)], adjacency=Replace(), output=lambda model: model.coef_[0, 0], epsilon=1.0
        )

    return [
        Defect(
            name="LinearRegression",
            library="diffprivlib",
            by="values",
            broken=Searched(
                words="bounds_X from 0 to 1", make=regression(0), domain=rows, runs=2_000, search_runs=2_000
            ),
            twin=Searched(
                words="bounds_X from -1 to 1", make=regression(-1), domain=rows, runs=2_000, search_runs=2_000
            ),
        ),
        Defect(
            name="LogisticRegression",
            library="diffprivlib",
            by="values",
            broken=Searched(words="rows of norm 30", make=logistic(30.0), domain=long, runs=20_000, search_runs=40_000),
            twin=Searched(words="rows of norm 1", make=logistic(1.0), domain=short, runs=20_000, search_runs=40_000),
        ),
    ]


def _tools() -> list[Defect]:
    def of_rows(name: str, known: Sequence[float]) -> Callable[[], Any]:
        """A tool on rows of which some are known: a mean of nothing is NaN, without noise."""
        return lambda: from_diffprivlib_tool(
            lambda rows, **options: _of("tools", name)([*known, *rows], **options),
            example=[1.0],
            adjacency=Replace(),
            epsilon=1.0,
            bounds=(0.0, 1.0),
        )

    def total(name: str, low: float, high: float) -> Callable[[], Any]:
        return lambda: from_diffprivlib_tool(
            _of("tools", name), example=[low], adjacency=Replace(), epsilon=1.0, bounds=(low, high)
        )

    def missing(name: str, known: float, runs: int, search_runs: int, most: int) -> Defect:
        return Defect(
            name=name,
            library="diffprivlib",
            by="values",
            broken=Searched(
                words="rows of NaN, 0 and 1",
                make=of_rows(name, [known]),
                domain=Rows(values=(_NAN, 0.0, 1.0), most=most),
                runs=runs,
                search_runs=search_runs,
            ),
            twin=Searched(
                words="rows of 0 and 1",
                make=of_rows(name, [known]),
                domain=Rows(values=(0.0, 1.0), most=most),
                runs=runs,
                search_runs=search_runs,
            ),
        )

    large, small = 2.0**52, 0.0
    return [
        missing("nanmean", 0.5, 20_000, 60_000, 5),
        missing("nanvar", 0.0, 20_000, 40_000, 12),
        missing("nanstd", 0.0, 20_000, 40_000, 12),
        Defect(
            name="nansum",
            library="diffprivlib",
            by="values",
            broken=Searched(
                words="bounds from 9 to 10",
                make=total("nansum", 9.0, 10.0),
                domain=Rows(values=(9.0, 10.0, _NAN)),
                runs=10_000,
                search_runs=10_000,
            ),
            twin=Searched(
                words="bounds from 0 to 1",
                make=total("nansum", 0.0, 1.0),
                domain=Rows(values=(0.0, 1.0, _NAN)),
                runs=10_000,
                search_runs=10_000,
            ),
        ),
        Defect(
            name="sum",
            library="diffprivlib",
            by="values",
            broken=Searched(
                words="bounds 2⁵² and 2⁵² + 1",
                make=total("sum", large, large + 1),
                domain=Rows(values=(large, large + 1)),
                runs=20_000,
                search_runs=20_000,
            ),
            twin=Searched(
                words="bounds 0 and 1",
                make=total("sum", small, small + 1),
                domain=Rows(values=(small, small + 1)),
                runs=20_000,
                search_runs=20_000,
            ),
        ),
    ]


def _thresholds() -> list[Defect]:
    """Counts of words. A word that is there once is released where 1 + noise ≥ threshold; delta is for >."""
    words = Rows(values=("a", "b", "c"))

    def counts(threshold: int, claimed: int) -> Callable[[], Any]:
        def measurement(threshold: int) -> Any:
            dp = import_module("opendp.prelude")
            dp.enable_features("contrib")
            space = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
            return space >> dp.t.then_count_by() >> dp.m.then_laplace_threshold(scale=1.0, threshold=threshold)

        return lambda: replace(from_opendp(measurement(threshold)), claim=from_opendp(measurement(claimed)).claim)

    return [
        Defect(
            name="make_laplace_threshold",
            library="opendp",
            by="values",
            broken=Searched(words="counts from 3 on", make=counts(3, 3), domain=words, runs=20_000, search_runs=80_000),
            twin=Searched(
                words="counts from 4 on, with the claim of 3",
                make=counts(4, 3),
                domain=words,
                runs=20_000,
                search_runs=80_000,
            ),
        )
    ]


def _low_bits() -> list[Defect]:
    answers = Answers(low=0.0, high=2.0)

    def continuous() -> Any:
        made = _of("mechanisms", "Laplace")(epsilon=1.0, sensitivity=1.0)
        return from_diffprivlib(made, adjacency=Within("l1", 1.0))

    def noise(name: str, *arguments: float) -> Callable[[], Any]:
        found = "pydp.algorithms.numerical_mechanisms"
        return lambda: from_pydp(lambda: getattr(import_module(found), name)(*arguments))

    return [
        Defect(
            name="Laplace",
            library="diffprivlib",
            by="low bits",
            broken=Searched(words="as it is", make=continuous, domain=answers, runs=20_000, search_runs=20_000),
            twin=Searched(
                words="the reference Laplace, on a grid",
                make=lambda: LaplaceMechanism(1.0),
                domain=answers,
                runs=20_000,
                search_runs=20_000,
                adjacency=Within("l1", 1.0),
            ),
        ),
        Defect(
            name="GaussianMechanism",
            library="pydp",
            by="low bits",
            broken=Searched(
                words="(1, 1e-5)-DP",
                make=noise("GaussianMechanism", 1.0, 1e-5, 1.0),
                domain=answers,
                runs=50_000,
                search_runs=50_000,
            ),
            twin=Searched(
                words="LaplaceMechanism",
                make=noise("LaplaceMechanism", 1.0, 1.0),
                domain=answers,
                runs=50_000,
                search_runs=50_000,
            ),
        ),
    ]


def _exposed_mean() -> Defect:
    """DP-Auditorium's `private_mean`, beside a mean whose noise does not depend on the noisy count."""
    unit, runs = Rows(low=0.0, high=1.0), 20_000

    def searched(words: str, make: Callable[[], Any]) -> Searched:
        return Searched(words=words, make=make, domain=unit, runs=runs, search_runs=runs, adjacency=AddRemove())

    return Defect(
        name="private_mean of DP-Auditorium, by its definition",
        library="",
        by="values",
        broken=searched("noise scaled by a noisy count", lambda: ExposedMean(1.0)),
        twin=searched("a noisy sum over a noisy count", lambda: BoundedMean(1.0, 0.0, 1.0)),
    )


def _of(module: str, name: str) -> Any:
    return getattr(import_module(f"diffprivlib.{module}"), name)
