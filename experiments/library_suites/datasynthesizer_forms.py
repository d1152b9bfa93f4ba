"""The modes of DataSynthesizer, each as a generator of tables from tables."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...audit.claims.claim import PureDP
from ...audit.datasets.adjacency import AddRemove, Replace
from ...audit.datasets.table_features import CategoricalColumn, NumericColumn
from ...audit.datasets.tables import Tables
from ...mechanisms.adapters import from_datasynthesizer
from .audited_library import Form, NotCovered, PublicCallable, Target
from .known_defects import known_in
from .public_callables import parameters_of

_CLASSES = ("DataDescriber", "DataGenerator", "ModelInspector")
_MODES = {
    "describe_dataset_in_independent_attribute_mode": "independent",
    "describe_dataset_in_correlated_attribute_mode": "correlated",
}
_COLUMNS: dict[str, CategoricalColumn | NumericColumn] = {
    "sex": CategoricalColumn(("f", "m")),
    "age": NumericColumn(0.0, 100.0),
}
_NEIGHBOURS = (AddRemove(), Replace())
_NOTE = (
    "Types, categories and ranges are declared. The claim counts as refuted if it is for added and for replaced rows."
)
_RUNS, _SEARCH = 400, 1_000


@dataclass(frozen=True, slots=True)
class SummarisedTable:
    """A generator whose outputs are the features of its tables."""

    generator: Any
    tables: Tables

    @property
    def claim(self) -> PureDP:
        """Claim of the generator."""
        claim: PureDP = self.generator.claim
        return claim

    @property
    def claim_source(self) -> str:
        """Where the claim is from."""
        return str(self.generator.claim_source)

    def __call__(self, dataset: Any, rng: np.random.Generator) -> dict[str, float]:
        return self.tables.features(self.generator(dataset, rng))


def datasynthesizer_public() -> tuple[PublicCallable, ...]:
    """Return the public methods of the library's classes."""
    found = []
    for name in _CLASSES:
        held = getattr(__import__(f"DataSynthesizer.{name}", fromlist=[name]), name)
        for method, function in inspect.getmembers(held, inspect.isfunction):
            if not method.startswith("_"):
                found.append(PublicCallable(f"{name}.{method}", function))
    return tuple(found)


def datasynthesizer_form(public: PublicCallable) -> Form:
    """Return the targets of a method, or why it has none."""
    mode = _MODES.get(public.short)
    if mode is not None:
        return tuple(_targets(public, mode))
    if public.short.startswith("generate_"):
        return NotCovered("it draws from a description, and is audited together with the method that makes it")
    if "epsilon" in parameters_of(public.function):
        return NotCovered("it has an epsilon, and its form is unknown")
    return NotCovered("it claims no differential privacy")


def _targets(public: PublicCallable, mode: str) -> Iterator[Target]:
    points: list[tuple[str, dict[str, Any], str]] = [
        ("rows as declared", {"outside": (), "most": 12}, "codes of the data" if mode == "correlated" else ""),
        (
            "values beyond the range, new categories",
            {"outside": ("beyond", "new"), "most": 12},
            "the active domain, which the library says it does not hide",
        ),
        ("missing values", {"outside": ("missing",), "most": 30}, "shares of present rows"),
    ]
    for point, options, defect in points:
        tables = Tables(_COLUMNS, least=3, **options)
        yield Target(
            callable=public.name,
            point=point,
            make=_maker(tables, mode),
            domain=tables,
            adjacencies=_NEIGHBOURS,
            runs=_RUNS,
            search_runs=_SEARCH,
            cost=4 if mode == "correlated" else 3,
            known=known_in("datasynthesizer", defect),
            note=_NOTE,
        )


def _maker(tables: Tables, mode: Any) -> Any:
    return lambda: SummarisedTable(from_datasynthesizer(tables, mode=mode), tables)
