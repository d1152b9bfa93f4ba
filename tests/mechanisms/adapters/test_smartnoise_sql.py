"""Queries of SmartNoise SQL: the same releases as of the engine, its claims, and faulty metadata on natural pairs."""

import pickle
from importlib import import_module
from math import inf

import numpy as np
import pytest

from dpaudit import AddRemove, UserLevel, Verdict, check
from dpaudit.adapters import from_smartnoise_sql
from dpaudit.audit.errors import DatasetError, MechanismError
from dpaudit.audit.events.outputs import Raised
from dpaudit.domains import SameQuery
from dpaudit.experiments.library_suites.audited_library import NotCovered, PublicCallable
from dpaudit.experiments.library_suites.library_names import library_named

snsql = pytest.importorskip("snsql", reason="smartnoise-sql is not installed; make matrix ROWS=smartnoise-sql")

COLUMNS = {
    "person": {"type": "string", "private_id": True},
    "town": {"type": "string"},
    "spent": {"type": "float", "lower": 0, "upper": 10},
}
VISITS = [
    {"person": f"p{number}", "town": "Bern" if number % 3 else "Oslo", "spent": number % 11} for number in range(60)
]


def metadata(**options):
    return {"": {"main": {"visits": {**COLUMNS, **options}}}}


def query_of(query, epsilon=1.0, delta=0.01, **options):
    return from_smartnoise_sql(query, metadata(**options), privacy=snsql.Privacy(epsilon=epsilon, delta=delta))


def drawn(mechanism, dataset, size=1):
    return mechanism.sample(dataset, size, np.random.default_rng(0))


BY_TOWN = "SELECT town, COUNT(*) AS n, SUM(spent) AS s FROM main.visits GROUP BY town"


class TestRelease:
    @pytest.fixture
    def shifted(self, monkeypatch):
        """Noise that is its scale, in the place where the engine makes its measurements; the list counts them."""
        made = []

        def make(domain, metric, scale):
            made.append(scale)
            return lambda value: value + scale

        for name in ("laplace", "gaussian"):
            monkeypatch.setattr(import_module(f"snsql.sql._mechanisms.{name}"), f"make_{name}", make)
        return made

    @pytest.mark.parametrize(
        ("query", "kind", "options"),
        [
            (BY_TOWN, "laplace", {}),
            (BY_TOWN, "laplace", {"censor_dims": False, "max_ids": 3}),
            ("SELECT AVG(spent) AS a, VAR(spent) AS v FROM main.visits WHERE spent > 2", "laplace", {}),
            (f"{BY_TOWN} HAVING n > 30 ORDER BY n DESC LIMIT 1", "laplace", {"clamp_counts": True}),
            ("SELECT COUNT(DISTINCT person) AS n FROM main.visits", "gaussian", {}),
        ],
    )
    def test_outputs_are_those_of_the_engine_number_for_number(self, shifted, query, kind, options):
        """An exact comparison: the same exact results, scales, thresholds and post-processing as without a memory."""
        privacy = snsql.Privacy(epsilon=0.7, delta=0.01)
        privacy.mechanisms.map |= dict.fromkeys(privacy.mechanisms.map, getattr(snsql.Mechanism, kind))
        made = from_smartnoise_sql(query, metadata(**options), privacy=privacy)
        database = made._database(VISITS)
        plain = snsql.from_connection(database, privacy=privacy, metadata=metadata(**options), engine="sqlite")
        names, *rows = plain.execute(query)
        is_by_town = names[0] == "town"
        labels = [f"[{row[0]}]" if is_by_town else "" for row in rows]
        expected = {
            f"{name}{label}": value
            for label, row in zip(labels, rows, strict=True)
            for name, value in list(zip(names, row, strict=True))[is_by_town:]
        }
        if is_by_town:
            expected["groups"] = "; ".join(row[0] for row in rows)
        assert rows
        assert drawn(made, VISITS, 3) == [expected] * 3
        scales = {symbol.mechanism.scale for symbol in plain._rewrite(query)[0]._select_symbols if symbol.mechanism}
        assert set(shifted) == scales

    def test_what_is_kept_is_made_once_and_noise_is_drawn_in_each_run(self):
        made = query_of(BY_TOWN)
        outputs = drawn(made, VISITS, 40)
        reader = made.reader(made.name)
        first = reader._rewrite(BY_TOWN)
        assert reader._rewrite(BY_TOWN) is first
        assert reader.parse_query_string(BY_TOWN) is reader.parse_query_string(BY_TOWN)
        assert len({output["s[Bern]"] for output in outputs}) > 5

    def test_the_exact_result_is_kept_only_where_no_rows_are_sampled(self):
        """Of a person with visits of 0 and of 10, each run has one. Noise moves a rounded sum with probability e⁻³⁰."""
        rows = [{"person": "p", "town": "Bern", "spent": spent} for spent in (*[0] * 20, *[10] * 20)]
        big = query_of("SELECT SUM(spent) AS s FROM main.visits", epsilon=600.0, censor_dims=False)
        sums = {round(output["s"]) for output in drawn(big, rows, 200)}
        assert sums == {0, 10}
        kept = query_of(big.name, epsilon=600.0, censor_dims=False, sample_max_ids=False)
        assert {round(output["s"]) for output in drawn(kept, rows, 20)} == {200}

    def test_cells_that_are_missing_or_beyond_the_bounds(self):
        pandas = pytest.importorskip("pandas", reason="a dependency of smartnoise-sql")
        frame = pandas.DataFrame({"town": ["Bern"] * 3, "spent": [np.nan, 500.0, -inf], "person": ["a", "b", "c"]})
        rows = frame.to_dict("records")
        exact = query_of("SELECT AVG(spent) AS a, SUM(spent) AS s FROM main.visits", epsilon=600.0, censor_dims=False)
        tuples = [tuple(row[name] for name in COLUMNS) for row in rows]
        for dataset in (frame, rows, tuples):
            (output,) = drawn(exact, dataset)
            assert {name: round(value) for name, value in output.items()} == {"a": 5, "s": 10}
        with pytest.raises(DatasetError, match="has not the columns of the metadata: person, town, spent"):
            drawn(exact, [{"person": "a"}])

    def test_groups_by_an_expression_and_columns_without_names(self):
        by_digit = query_of("SELECT spent % 2, SUM(spent) FROM main.visits GROUP BY spent % 2", epsilon=600.0)
        (output,) = drawn(by_digit, VISITS)
        assert output.pop("groups") == "0; 1"
        sums = {f"SUM(spent)[{digit}]": sum(v["spent"] for v in VISITS if v["spent"] % 2 == digit) for digit in (0, 1)}
        assert {name: round(value) for name, value in output.items()} == sums

    def test_an_error_of_the_database_is_an_output(self):
        largest = query_of("SELECT COUNT(*) AS n FROM main.visits WHERE ABS(spent) > 3", row_privacy=False)
        least = [{"person": "p", "town": "Bern", "spent": -(2**63)}]
        assert drawn(largest, least, 2) == [Raised("OperationalError")] * 2

    def test_it_can_be_sent_to_a_worker(self):
        made = pickle.loads(pickle.dumps(query_of(BY_TOWN)))
        assert drawn(made, VISITS)[0]["groups"] == "Bern; Oslo"


class TestClaim:
    @pytest.mark.parametrize(
        ("query", "options", "epsilon", "adjacency"),
        [
            ("SELECT COUNT(*) AS n FROM main.visits", {}, 2.0, UserLevel("person")),
            ("SELECT COUNT(*) AS n FROM main.visits", {"censor_dims": False}, 1.0, UserLevel("person")),
            ("SELECT AVG(spent) AS a FROM main.visits", {"censor_dims": False}, 2.0, UserLevel("person")),
            (BY_TOWN, {"row_privacy": True, "person": {"type": "string"}}, 2.0, AddRemove()),
        ],
    )
    def test_it_is_the_cost_that_the_engine_states(self, query, options, epsilon, adjacency):
        made = query_of(query, **options)
        plain = snsql.from_connection(
            made._database([]), privacy=made.privacy, metadata=metadata(**options), engine="sqlite"
        )
        assert (made.claim.epsilon, made.claim.delta) == tuple(map(float, plain.get_privacy_cost(query)))
        assert (made.claim.epsilon, made.adjacency) == (epsilon, adjacency)
        assert made.claim_source.startswith("get_privacy_cost of smartnoise-sql ")

    def test_all_queries_cost_as_much_as_the_first(self):
        queries = (
            "SELECT COUNT(DISTINCT person) AS n FROM main.visits",
            BY_TOWN,
            "SELECT VAR(spent) AS v FROM main.visits",
        )
        made = query_of(queries, epsilon=0.6)
        assert list(made.epsilons.values()) == pytest.approx([0.6, 0.2, 0.15])
        assert made.claim.epsilon == pytest.approx(0.6)
        assert made.adjacency == SameQuery(UserLevel("person"))
        assert set(drawn(made, (BY_TOWN, VISITS))[0]) > {"groups"}

    def test_refused(self):
        with pytest.raises(MechanismError, match=r"refuses 'SELECT MAX.*ValueError: We don't know how to rewrite"):
            query_of("SELECT MAX(spent) AS n FROM main.visits")
        both = {"": {"main": {"visits": COLUMNS, "towns": COLUMNS}}}
        with pytest.raises(MechanismError, match="with metadata of 2 tables"):
            from_smartnoise_sql(BY_TOWN, both, privacy=snsql.Privacy())


# Engines with a fault, made by metadata: each on a pair that differs in one visitor, with the claim of the correct one.

GUEST = {"person": "guest", "town": "Bern", "spent": 10}
FAULTS = {
    "no clamp": ("SELECT SUM(spent) AS s FROM main.visits", {"clamp_columns": False}, [{**GUEST, "spent": 500}]),
    "no bounds, but a sensitivity": (
        "SELECT SUM(spent) AS s FROM main.visits",
        {"clamp_columns": False, "spent": {"type": "int", "sensitivity": 10}},
        [{**GUEST, "spent": 500}],
    ),
    "no threshold for groups": (BY_TOWN, {"censor_dims": False}, [{**GUEST, "town": "Vaduz"}]),
    "no bound on the rows of a person": (
        "SELECT COUNT(*) AS n FROM main.visits",
        {"sample_max_ids": False},
        [{**GUEST, "spent": day % 11} for day in range(30)],
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_and_the_correct_engine_is_not_refuted(fault):
    query, options, more = FAULTS[fault]
    correct, faulty = query_of(query), query_of(query, **options)
    audit = {"claim": correct.claim, "runs": 600, "alpha": 1e-6, "jobs": 1, "floating_point": "ignore"}
    audit["ignore"] = "no-power"
    assert check(faulty, [*VISITS, *more], VISITS, **audit).is_refuted
    assert not check(correct, [*VISITS, *more], VISITS, **audit).is_refuted


def test_an_average_whose_parts_are_not_both_counted_is_found():
    """The engine counts a sum and a number of rows; one that counted only one of them would claim half of it."""
    query = "SELECT AVG(spent) AS a, SUM(spent) AS s, COUNT(spent) AS n FROM main.visits"
    average = query_of(query, epsilon=2.0, censor_dims=False)
    assert average.claim.epsilon == 4.0
    audit = {"runs": 4_000, "alpha": 1e-6, "jobs": 1, "floating_point": "ignore", "ignore": "no-power"}
    assert check(average, [GUEST], [], claim=2.0, **audit).is_refuted
    assert check(average, [GUEST], [], **audit).verdict is not Verdict.REFUTED


def test_a_column_that_also_groups_is_not_clamped_in_this_release():
    rows = [{**visit, "spent": 1_000} for visit in VISITS[:30]]
    grouped = query_of("SELECT spent, SUM(spent) AS s FROM main.visits GROUP BY spent", delta=1e-5)
    audit = {"runs": 800, "alpha": 1e-6, "jobs": 1, "floating_point": "ignore", "ignore": "no-power"}
    assert check(grouped, [*rows, {**GUEST, "spent": 1_000}], rows, **audit).is_refuted
    by_town = query_of("SELECT town, SUM(spent) AS s FROM main.visits GROUP BY town", delta=1e-5)
    assert not check(by_town, [*rows, {**GUEST, "spent": 1_000}], rows, **audit).is_refuted


class TestSuite:
    LIBRARY = library_named("smartnoise-sql")

    def test_refused_queries_are_lines_with_the_words_of_the_engine(self):
        public = {each.name for each in self.LIBRARY.public()}
        assert {"COUNT(*)", "MAX(f)", "JOIN", "a subquery"} <= public
        assert "WHERE" not in public
        for name, words in (("JOIN", "JOIN queries is currently disabled"), ("MAX(f)", "how to rewrite aggregate")):
            form = self.LIBRARY.form_of(PublicCallable(name, None))
            assert isinstance(form, NotCovered)
            assert words in form.reason

    def test_an_aggregate_is_asked_for_with_every_clause(self):
        targets = {target.point: target for target in self.LIBRARY.form_of(PublicCallable("SUM(x)", None))}
        assert len(targets["one row of a person"].domain.queries) == 8
        assert not any("GROUP BY" in query for query in targets["groups are not censored"].domain.queries)
        assert targets["row privacy"].make().adjacency == SameQuery(AddRemove())
        assert {target.known[:8] for target in targets.values()} == {"a column"}
