"""Queries of Qrlew in SQLite: seeded, as its budget says, and what a table of its own size shows."""

from contextlib import closing

import numpy as np
import pytest

from dpaudit import ApproxDP, UserLevel, check
from dpaudit.domains import SameQuery
from dpaudit.experiments.library_suites.audited_library import NotCovered, PublicCallable
from dpaudit.experiments.library_suites.library_names import library_named
from dpaudit.experiments.library_suites.sql_forms import QRLEW, ROWS, QrlewQueries, _postgres, _private_query

pytest.importorskip("pyqrlew", reason="pyqrlew is not installed; make matrix ROWS=pyqrlew")

COUNT = "SELECT COUNT(*) AS n FROM visits"
PERSONS = [{"person": f"p{number}", "city": "Bern", "x": 5, "f": 0.5} for number in range(20)]
GUEST = {"person": "guest", "city": "Bern", "x": 500, "f": 9.0}


def test_runs_are_reproducible_and_groups_are_named():
    made = QrlewQueries(size=1_000, most=1)
    query = "SELECT city, SUM(x) AS n FROM visits GROUP BY city"
    first, again = (made.sample((query, ROWS), 3, np.random.default_rng(7)) for _ in range(2))
    assert first == again
    assert [set(output) for output in first] == [{"n[Bern]", "n[Oslo]"}] * 3


def test_the_engine_of_postgresql_is_emulated():
    with closing(_postgres(PERSONS, np.random.default_rng(0))) as database:
        uniform = np.array([database.execute("SELECT RANDOM()").fetchone()[0] for _ in range(100)])
        assert uniform.tolist() == np.random.default_rng(0).random(100).tolist()
        asked = "SELECT MD5('a'), MD5(NULL), LEAST(3, NULL, 2), GREATEST(3, NULL, 2), LEAST(NULL, NULL)"
        expected = ("0cc175b9c0f1b6a831c399e269772661", None, 2, 3, None)  # of md5sum, and of PostgreSQL's manual
        assert database.execute(asked).fetchone() == expected


def test_a_count_is_clamped_to_the_rows_of_the_table_itself():
    """Exactly: no output of one table is above its number of rows, and half of those of its neighbour are."""
    for rows in (PERSONS, [*PERSONS, GUEST]):
        with closing(_postgres(rows, np.random.default_rng(0))) as database:
            assert f"LEAST({len(rows)}, " in _private_query(COUNT, database, 1)
    own, public = QrlewQueries(size=None, most=1), QrlewQueries(size=1_000, most=1)
    outputs = own.sample((COUNT, PERSONS), 400, np.random.default_rng(0))
    more = own.sample((COUNT, [*PERSONS, GUEST]), 400, np.random.default_rng(0))
    assert max(output["n[]"] for output in outputs) == 20
    assert 150 < sum(output["n[]"] == 21 for output in more) < 250
    x, y = (COUNT, [*PERSONS, GUEST]), (COUNT, PERSONS)
    audit = {"runs": 2_000, "alpha": 1e-6, "jobs": 1, "floating_point": "ignore", "ignore": "no-power"}
    assert check(own, x, y, **audit).is_refuted
    assert not check(public, x, y, **audit).is_refuted


def test_rows_of_a_person_are_bounded_and_missing_values_are_not_counted():
    made = QrlewQueries(size=1_000, most=1)
    many = [{**GUEST, "x": value} for value in (10, 10, 10, None, 500)]
    query = "SELECT SUM(x) AS n FROM visits"
    draws = [
        np.mean([output["n[]"] for output in made.sample((query, rows), 400, np.random.default_rng(1))])
        for rows in ([*PERSONS, *many], PERSONS)
    ]
    assert draws[0] - draws[1] == pytest.approx(10.0, abs=1e-6)  # of common random numbers, below both clamps


def test_the_suite():
    library = library_named("pyqrlew")
    public = [each.name for each in library.public()]
    assert "a condition with a query" in public
    assert "JOIN" not in public
    refused = library.form_of(PublicCallable("MAX(f)", None))
    assert isinstance(refused, NotCovered)
    assert "UnreachableProperty: differential_privacy is unreachable" in refused.reason
    targets = library.form_of(PublicCallable("COUNT(*)", None))
    assert [bool(target.known) for target in targets] == [False, False, True]
    made = targets[0].make()
    assert (made.claim, made.adjacency) == (ApproxDP(1.0, 0.1), SameQuery(UserLevel("person")))
    assert len(targets[0].domain.queries) == len(QRLEW.configurations) + 7
