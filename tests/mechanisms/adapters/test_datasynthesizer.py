"""The adapter of DataSynthesizer, and the forms of its suite. Most tests run where the library is installed."""

import importlib

import numpy as np
import pytest

from dpaudit import AddRemove, CategoricalColumn, NumericColumn, PureDP, Replace, Tables, check
from dpaudit.audit.errors import ClaimError, MissingExtraError, OptionError
from dpaudit.experiments.libraries.installed import is_installed
from dpaudit.experiments.library_suites.audited_library import NotCovered
from dpaudit.experiments.library_suites.library_names import library_named
from dpaudit.experiments.library_suites.run_target import example_of
from dpaudit.mechanisms.adapters import from_datasynthesizer

TABLES = Tables({"sex": CategoricalColumn(("f", "m")), "age": NumericColumn(0.0, 100.0)}, least=2)
ROWS = [("f", 20.0), ("m", 60.0), ("f", 30.0)]
pytestmark = pytest.mark.filterwarnings("ignore")  # of the library, about pandas
needs_library = pytest.mark.skipif(not is_installed("datasynthesizer"), reason="DataSynthesizer is not installed")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"mode": "random"}, OptionError, "mode='random' is unknown"),
        ({"epsilon": 0.0}, ClaimError, "epsilon=0.0"),
    ],
)
def test_options_outside_their_range(options, error, message):
    with pytest.raises(error, match=message):
        from_datasynthesizer(TABLES, **options)


def test_tables_are_frames():
    with pytest.raises(OptionError, match="the library reads data frames"):
        from_datasynthesizer(Tables(TABLES.columns, form="columns"))


def test_the_extra_is_named_without_the_library(monkeypatch):
    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(importlib.import_module("dpaudit.mechanisms.adapters.library_calls"), "import_module", absent)
    with pytest.raises(MissingExtraError, match=r"dpaudit\[datasynthesizer\]"):
        from_datasynthesizer(TABLES)


@needs_library
@pytest.mark.parametrize("mode", ["independent", "correlated"])
def test_a_run_is_a_table_that_its_seed_fixes(mode):
    generator = from_datasynthesizer(TABLES, mode=mode, epsilon=2.0, rows=7)
    assert (generator.claim, generator.adjacency) == (PureDP(2.0), AddRemove())
    assert generator.claim_source.startswith("epsilon of DataDescriber, DataSynthesizer 0.")
    tables = [generator(TABLES.build(ROWS), np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert all(len(table) == 7 and list(table.columns) == ["sex", "age"] for table in tables)
    assert tables[0].equals(tables[1])
    assert not tables[0].equals(tables[2])


@needs_library
def test_the_library_seeds_its_noise_with_zero():
    generator = from_datasynthesizer(TABLES, seeded=False)
    first, second = (generator(TABLES.build(ROWS), np.random.default_rng(seed)) for seed in (1, 2))
    assert first.equals(second)


@needs_library
def test_missing_values_show():
    """A false alarm has probability at most 1e-6; the defect of the findings is caught."""
    tables = Tables({"sex": CategoricalColumn(("f", "m"))}, most=40)
    few = [(None,)] * 37 + [("f",), ("m",)]
    result = check(
        from_datasynthesizer(tables, adjacency=Replace()), tables.build([*few, ("f",)]), tables.build([*few, ("m",)]),
        runs=150, alpha=1e-6, output=tables.features, bits=False, jobs=1,
    )  # fmt: skip
    assert result.is_refuted


@needs_library
def test_every_method_has_targets_or_a_reason():
    library = library_named("datasynthesizer")
    forms = {public.name: library.form_of(public) for public in library.public()}
    audited = {name for name, form in forms.items() if not isinstance(form, NotCovered)}
    assert audited == {
        "DataDescriber.describe_dataset_in_independent_attribute_mode",
        "DataDescriber.describe_dataset_in_correlated_attribute_mode",
    }
    assert forms["DataDescriber.describe_dataset_in_random_mode"] == NotCovered("it claims no differential privacy")
    for name in audited:
        for target in forms[name]:
            features = target.make()(example_of(target.domain), np.random.default_rng(0))
            assert features["rows"] == 20
