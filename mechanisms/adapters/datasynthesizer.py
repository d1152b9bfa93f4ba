"""DataSynthesizer: a description of a table with noise, and a table drawn from it, as a function of a single run."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from ...audit.claims.claim import PureDP, check_number
from ...audit.datasets.adjacency import AddRemove, Adjacency
from ...audit.datasets.table_features import CategoricalColumn, NumericColumn
from ...audit.datasets.tables import Tables
from ...audit.errors import OptionError
from .library_calls import imported

Mode = Literal["independent", "correlated"]
_SEEDS = 2**32
_EXTRA = "datasynthesizer"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DataSynthesizerTable:
    """A generator of DataSynthesizer as a function of a single run; use `from_datasynthesizer` to create one."""

    columns: tuple[tuple[str, CategoricalColumn | NumericColumn], ...] = field(repr=False)
    mode: Mode
    epsilon: float
    rows: int
    seeded: bool
    options: Mapping[str, Any] = field(repr=False)
    adjacency: Adjacency
    claim: PureDP
    claim_source: str

    def __str__(self) -> str:
        return f"DataSynthesizer, {self.mode} attributes"

    def __call__(self, dataset: Any, rng: np.random.Generator) -> Any:
        """Return one synthetic table, a data frame."""
        seeds = [{"seed": int(rng.integers(_SEEDS))} if self.seeded else {} for _ in range(2)]
        with tempfile.TemporaryDirectory() as folder:
            return self._run(dataset, Path(folder), *seeds)

    def _run(self, dataset: Any, folder: Path, for_noise: dict[str, int], for_rows: dict[str, int]) -> Any:
        describers = imported("DataSynthesizer.DataDescriber", _EXTRA)
        generators = imported("DataSynthesizer.DataGenerator", _EXTRA)
        data, domain, description = (str(folder / name) for name in ("data.csv", "domain.json", "description.json"))
        dataset.to_csv(data, index=False)
        categories = {name: list(one.values) for name, one in self.columns if isinstance(one, CategoricalColumn)}
        Path(domain).write_text(json.dumps(categories), encoding="utf-8")
        declared = {
            "attribute_to_datatype": {name: _type_of(column) for name, column in self.columns},
            "attribute_to_is_categorical": {name: _is_categorical(column) for name, column in self.columns},
            "attribute_to_is_candidate_key": {name: False for name, _ in self.columns},
            "categorical_attribute_domain_file": domain,
            "numerical_attribute_ranges": {
                name: [column.low, column.high] for name, column in self.columns if isinstance(column, NumericColumn)
            },
        }
        describer, generator = describers.DataDescriber(), generators.DataGenerator()
        with contextlib.redirect_stdout(io.StringIO()), _in_this_process():
            kind = f"describe_dataset_in_{self.mode}_attribute_mode"
            getattr(describer, kind)(data, epsilon=self.epsilon, **{**declared, **self.options, **for_noise})
            describer.save_dataset_description_to_file(description)
            kind = "independent_mode" if self.mode == "independent" else "correlated_attribute_mode"
            getattr(generator, f"generate_dataset_in_{kind}")(self.rows, description, **for_rows)
        return generator.synthetic_dataset


def from_datasynthesizer(
    tables: Tables,
    *,
    mode: Mode = "independent",
    epsilon: float = 1.0,
    rows: int = 20,
    seeded: bool = True,
    adjacency: Adjacency | None = None,
    **options: Any,
) -> DataSynthesizerTable:
    """Return a generator of DataSynthesizer with declared columns as a mechanism over data frames.

    Types, categories and ranges are declared for all columns, none of which is a key. Audit it with
    ``output=tables.features``.

    Parameters
    ----------
    tables : Tables
        The declared columns, and the form "frame".
    mode : {"independent", "correlated"}
        Of the attributes. The correlated mode needs two columns or more.
    epsilon : float
        The library's parameter, and the claim.
    rows : int
        Number of rows to generate.
    seeded : bool
        Whether every run has fresh random seeds. False leaves the library's own, which are 0 in every call.
    adjacency : Adjacency, optional
        `AddRemove()` by default: the library's notebooks say that ε is about removing one tuple.
    **options
        Of the describing method, such as ``k=1``; they override what is declared.

    Raises
    ------
    OptionError
        If `mode` is unknown, or the tables are not of data frames.
    ClaimError
        If epsilon is not positive: at 0 the library adds no noise.
    MissingExtraError
        If the library cannot be imported.
    """
    if mode not in get_args(Mode):
        raise OptionError(f'mode={mode!r} is unknown; use "independent" or "correlated".', mode=mode)
    if tables.form != "frame":
        raise OptionError(f'tables have form={tables.form!r}; the library reads data frames, so use "frame".')
    check_number("epsilon", epsilon, 0, np.inf, "the library adds no noise at 0", closed=False)
    imported("DataSynthesizer", _EXTRA)
    return DataSynthesizerTable(
        columns=tables.columns,
        mode=mode,
        epsilon=epsilon,
        rows=rows,
        seeded=seeded,
        options={"k": 1, **options} if mode == "correlated" else options,
        adjacency=AddRemove() if adjacency is None else adjacency,
        claim=PureDP(epsilon),
        claim_source=f"epsilon of DataDescriber, DataSynthesizer {version('DataSynthesizer')}",
    )


def _is_categorical(column: CategoricalColumn | NumericColumn) -> bool:
    return isinstance(column, CategoricalColumn)


def _type_of(column: CategoricalColumn | NumericColumn) -> str:
    if isinstance(column, NumericColumn):
        return "Integer" if column.integer else "Float"
    return "String" if all(isinstance(value, str) for value in column.values) else "Integer"


@contextlib.contextmanager
def _in_this_process() -> Iterator[None]:
    """Let the correlated mode compute its scores in this process, not in a pool for each column, with equal results."""
    module = imported("DataSynthesizer.lib.PrivBayes", _EXTRA)
    pool, module.Pool = module.Pool, _OneProcess
    try:
        yield
    finally:
        module.Pool = pool


class _OneProcess:
    """What the library uses of a pool of processes."""

    def __enter__(self) -> _OneProcess:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def map(self, function: Any, arguments: Any) -> list[Any]:
        return list(map(function, arguments))
