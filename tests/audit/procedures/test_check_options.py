"""Options of an audit: claims and names as people write them, and claims that mechanisms state themselves."""

import inspect
import logging
import math
import re
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import dpaudit
import dpaudit as dp
from dpaudit.audit.claims.claim import claim_at
from dpaudit.audit.datasets.adjacency import Local
from dpaudit.audit.datasets.domains import Answers
from dpaudit.audit.errors import AdjacencyError, ClaimError, OptionError, UnknownOptionError
from dpaudit.audit.procedures.check import ARGUMENTS, CheckOptions, Options, _pair, stated
from dpaudit.mechanisms import LaplaceMechanism

FEW = {"runs": 400, "jobs": 1}


def noisy(rows, size, rng):
    return len(rows) + rng.laplace(size=size)


def test_the_first_screen_of_the_help_is_what_a_call_thinks_of():
    named = [name for name in inspect.signature(dp.check).parameters if name != "options"]
    assert named == ["mechanism", "x", "y", *ARGUMENTS]
    text = inspect.getdoc(dp.check) or ""
    documented = re.findall(r"^(\w+)(?:, \w+)* : ", text, re.MULTILINE)
    assert {*documented} == {*named, *Options.__dataclass_fields__} - {"x", "y"} | {"x"}
    assert set(CheckOptions.__annotations__) == set(Options.__dataclass_fields__)


@pytest.mark.parametrize(
    ("given", "claim"),
    [
        (1, dp.PureDP(1.0)), (0.5, dp.PureDP(0.5)), (np.float32(0.5), dp.PureDP(0.5)), (Decimal("0.5"), dp.PureDP(0.5)),
        ((1, 1e-5), dp.ApproxDP(1.0, 1e-5)), ([1.0, 0], dp.PureDP(1.0)),
    ],
)  # fmt: skip
def test_numbers_are_claims(given, claim):
    """In a call, and as the attribute of a mechanism."""
    assert claim_at(given, 1.0) == claim

    def ok(answer, size, rng):
        return answer + rng.laplace(size=size)

    ok.claim = given
    said = stated(ok, None, None, "")
    assert (said.claim, said.source) == (claim, "the claim of ok")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("0.5", r"it is text, so write claim=PureDP\(0\.5\)"), ("pure", "use PureDP"),
        (dp.PureDP, r"it is a class, so write PureDP\(…\)"),
        ({"epsilon": 1.0}, r"write PureDP\(epsilon=1\.0\)"),
        ({"epsilon": 1.0, "delta": 1e-5}, r"write ApproxDP\(epsilon=1\.0, delta=1e-05\)"),
        ({"mu": 1.0}, r"write GaussianDP\(mu=1\.0\)"), ((1.0, 1e-5, 3), "is not a claim"), (True, "is not a claim"),
        (10**400, "epsilon=inf is not allowed"), (-1.0, "epsilon"), ((1.0, 2.0), "delta"),
    ],
)  # fmt: skip
def test_other_claims_are_refused_with_what_to_write(given, message):
    with pytest.raises(ClaimError, match=message):
        claim_at(given, 1.0)


def search(mechanism=noisy, **options):
    return dp.find_worst_pair(mechanism, [], **options)


def audit(mechanism=noisy, **options):
    return dp.check(mechanism, [1], [2], **options)


@pytest.mark.parametrize("function", [audit, search])
@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("claims", "; did you mean 'claim'?"), ("job", "; did you mean 'jobs'?"), ("Alpha", "; did you mean 'alpha'?"),
        ("bit", "; did you mean 'bits'?"), ("epsilon", "; write claim=1.0."), ("n_jobs", "; write jobs=4."),
        ("zzz", "."),
    ],
)  # fmt: skip
def test_a_misspelt_option_is_an_error_that_names_the_option_meant(function, wrong, meant):
    with pytest.raises(OptionError, match=rf"{wrong} is not an option of \w+") as caught:
        function(**{wrong: 1})
    assert f"{meant} The options are claim, adjacency" in str(caught.value)
    assert isinstance(caught.value, TypeError), "as for any other function"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: dp.check(noisy, neighbours=[], claim=1.0), r"neighbours is not an option of check; write find_worst"),
        (lambda: dp.check(noisy, neighbors=[], claim=1.0), r"neighbors is not an option of check; write find_worst"),
        (lambda: dp.check(noisy, [1], [], trials=9), "trials is not an option of check; write runs=1_000_000"),
        (lambda: dp.find_worst_pair(noisy, neighbours=[]), "write the domain as the second argument"),
        (lambda: dp.check_outputs([], [], epsilon=1.0), "epsilon is not an option of check_outputs; write claim=1.0"),
        (lambda: dp.check_outputs([], [], runs=9), "runs is not an option of check_outputs. The options are"),
        (lambda: dp.epsilon_lower(1, 2, 0, 2, confidence=0.95), "of epsilon_lower; write alpha=0.05"),
        (lambda: dp.check_canaries([], [], mu=1.0), "of check_canaries; write claim=GaussianDP"),
        (lambda: dp.plan_canaries(9, claims=1.0), "of plan_canaries; did you mean 'claim'"),
        (lambda: dp.epsilon_from_guesses(9, 9, alfa=1.0), "of epsilon_from_guesses; did you mean 'alpha'"),
        (lambda: dp.check_noise(noisy, [1], sample=9), "sample is not an option of check_noise"),
        (lambda: dp.check_slope(noisy, [1], [1], eps=1.0), "of check_slope; did you mean 'epsilon'"),
        (lambda: dp.check_independence(noisy, [1], rnus=9), "of check_independence; did you mean 'runs'"),
        (lambda: dp.check_sensitivity(noisy, [1], evaluation=9), "of check_sensitivity; did you mean 'evaluations'"),
        (lambda: dp.check_same_distribution(noisy, noisy, [1], n=9), "of check_same_distribution; write runs="),
        (lambda: dp.check_equivalence(noisy, noisy, [1], margn=9), "of check_equivalence; did you mean 'margin'"),
        (lambda: dp.count_cells(noisy, [1], [], cell=9), "of count_cells; did you mean 'cells'"),
        (lambda: dp.replay(noisy, [1], [], eps=9), "of replay; write claim=1.0"),
        (lambda: dp.check(noisy, [1], [], dp.PureDP(1.0)), r"takes only mechanism, x, y by place; .* claim=PureDP"),
        (lambda: dp.epsilon_lower(1, 2, 0, 2, 0.05), "only hits_x, runs_x, hits_y, runs_y by place; .* as alpha=0.05"),
    ],
)
def test_every_public_check_refuses_what_is_no_option(call, said):
    with pytest.raises(UnknownOptionError, match=said):
        call()


def untouched(dataset, size, rng):
    raise AssertionError("a run was drawn")


REFUSED = [
    *((audit, option, value, message) for option, value, message in [
        *(("alpha", a, "alpha=") for a in (0, 1, -0.1, 1.5, math.nan, 1e-12, "0.05", True)),
        *(("runs", r, "is not a number of runs") for r in (39, 0, 100.5, True, math.nan, math.inf, -(10**30))),
        *(("seed", s, "is not a seed") for s in (-1, 1.5, True, math.nan)),
        *(("resolution", r, "is not an excess") for r in (0, -1.0, math.inf, math.nan, True)),
        *(("distance", d, "distance=") for d in (0, 1.5, -1, math.nan, math.inf, True)),
        ("jobs", 0, "jobs=0"), ("seconds", 1.0, "sequential=True"), ("claim", str, "is not a claim"),
        ("name", " ", "name=' ' is not a name; use one line"),
        ("name", "a\nb", r"name='a\\nb' is not a name; use one line of text"),
        ("keep_datasets", 2, "keep_datasets=2 is unknown; use a bool"),
        ("block_seconds", True, "block_seconds=True is not a time limit"),
        ("on_look", 5, "on_look=5 cannot be called; use a function"),
        ("store", "", "store='' is empty, has a null character"),
    ]),
    *((function, option, value, message) for function in (audit, search) for option, value, message in [
        ("sequential", "no", "sequential='no' is unknown; use a bool"),
        ("name", 5, "name=5 is not a name; use one line of text"),
        ("bits", np.array(["warn"]), 'is unknown; use "warn", True or False'),
        ("on_look", print, "on_look is for sequential audits"),
        ("ignore", None, "ignore=None is not a health check; use one of repeated-blocks"),
        ("store", 5, "store=5 is not a store; name a folder"),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("function", "option", "value", "message"), REFUSED)
def test_a_value_that_cannot_be_is_refused_before_the_first_run(function, option, value, message):
    with pytest.raises((OptionError, ClaimError), match=message):
        function(
            **{"claim": 1.0, "adjacency": "local" if function is search else None, option: value}, mechanism=untouched
        )


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"sequential": True, "alpha": 2e-9}, OptionError, "use alpha > "),
        ({"cells": 8, "alpha": 1.1e-9}, OptionError, "use alpha > "),
        ({"x": [1, 2, 3], "y": [2, 2], "adjacency": "add-remove"}, AdjacencyError, "2 rows only in x, 1 only in y"),
    ],
)
def test_an_audit_that_cannot_be_costs_no_run(options, error, message):
    with pytest.raises(error, match=message):
        dp.check(untouched, **{"x": [1], "y": [2], "claim": 1.0, **options})


def test_numbers_that_are_no_floats():
    assert dp.check(noisy, [1], [], claim=1.0, bits=np.bool_(False), seed=10**40, **FEW).seed == 10**40
    with pytest.raises(OptionError, match="is not a number of runs"):
        dp.check(noisy, [1], [], claim=1.0, runs=-(10**400))
    with dpaudit.settings(block_seconds=1e-9):
        assert dp.check(noisy, [1], [], claim=1.0, block_seconds=math.inf, **FEW).runs == 400


FRAME = pd.DataFrame({"age": [1.0, 2.0, 3.0, 4.0]})


@pytest.mark.parametrize(
    ("x", "y", "rows"),
    [
        ([1, 2, 3], [1], 2), ([1, 2, 3], [4, 5, 3], 2), (np.ones(5), np.zeros(5), 5), (FRAME, FRAME[:1], 3),
        ({1, 2, 3}, {1}, 2),
    ],
)  # fmt: skip
def test_a_pair_that_differs_in_more_rows_is_doubted(x, y, rows):
    doubt = f"x and y differ in {rows} rows, and no adjacency makes them neighbours"
    assert _pair(x, y, None, 1.0, False, False).doubt == doubt
    assert not _pair(x, y, None, rows, False, False).doubt, "at that distance it was meant so"


def test_a_doubt_is_said_and_stored(tmp_path):
    result = dp.check(noisy, [1, 2, 3], [1], claim=1.0, **FEW)
    doubt = "x and y differ in 2 rows, and no adjacency makes them neighbours"
    assert result.sentence.endswith(f"; {doubt}")
    assert any(remark.startswith(f"WARNING: {doubt}. A claim for one row says nothing") for remark in result.remarks)
    dp.save(result, tmp_path / "results.json")
    assert dp.load(tmp_path / "results.json").entries[0].result.pair.doubt == doubt


@pytest.mark.parametrize(
    ("x", "y", "adjacency"),
    [
        ([1, 2], [1], None), ([1, 2], [1, 3], None), ([2, 1], [1, 2, 3], None), ([1, 2], [2, 3], dp.Replace()),
        (np.ones(5), np.zeros(5), dp.Within("linf")), ("abc", "xyz", None), ({"a": 1}, {"b": 2, "c": 3}, None),
        (0.0, 5.0, None),
    ],
)  # fmt: skip
def test_other_pairs_are_not_doubted(x, y, adjacency):
    assert not _pair(x, y, adjacency, 1.0, False, False).doubt


def test_a_pair_that_the_mechanism_has_checked_is_not_doubted():
    class Checking:
        claim = 1.0

        def check_pair(self, x, y, distance):
            pass

        sample = staticmethod(noisy)

    assert not dp.check(Checking(), np.ones(5), np.zeros(5), **FEW).pair.doubt


def test_an_audit_is_logged(caplog):
    with caplog.at_level(logging.INFO, logger="dpaudit"):
        result = dp.check(noisy, [1, 2], [1], claim=1.0, **FEW)
    assert caplog.messages == [f"noisy: {result.sentence}"]


def test_a_mechanism_that_ignores_its_data_is_wondered_at():
    question = "no event told x from y in these runs; does the mechanism use its data?"

    def ignores(rows, size, rng):
        return rng.laplace(size=size)

    options = {"jobs": 1, "bits": False}
    assert question in dp.check(ignores, [1, 2], [1], claim=1.0, runs=100_000, **options).notes
    few = dp.check(ignores, [1, 2], [1], claim=1.0, runs=4_000, **options)
    assert question not in few.notes  # which do not rule out a tenth of the claim
    assert question not in dp.check(noisy, [1, 2], [1], claim=3.0, runs=4_000, **options).notes


def test_names_of_files_are_no_datasets():
    result = dp.check(lambda rows, size, rng: len(rows) + rng.laplace(size=size), "a.csv", "bc.csv", claim=3.0, **FEW)
    assert result.notes[0].startswith("the datasets are the texts 'a.csv' and 'bc.csv', not the contents of files")


def test_an_audit_that_cannot_detect_twice_the_claim_is_inconclusive_unless_the_call_accepts_it():
    def rare(rows, size, rng):
        return rng.random(size) < 0.01

    options = {"claim": 1.0, "runs": 2_000, "jobs": 1, "seed": 1}
    result = dp.check(rare, [1, 2], [1], **options)
    assert result.verdict is dp.Verdict.INCONCLUSIVE
    assert not result.findings
    assert result.sentence.startswith("INCONCLUSIVE: no epsilon below ")
    accepted = float(re.search(r"resolution=([\d.]+)$", result.sentence)[1])
    assert result.resolution <= accepted
    assert dp.check(rare, [1, 2], [1], **options, resolution=accepted).verdict is dp.Verdict.NOT_REFUTED
    assert dp.check(rare, [1, 2], [1], **options | {"runs": 50_000}).verdict is dp.Verdict.NOT_REFUTED


class Noisy:
    """Says what it guarantees."""

    claim = dp.PureDP(1.0)
    claim_source = "the manual, page 3"
    adjacency = dp.Within("l1")

    def sample(self, answer, size, rng):
        return answer + rng.laplace(size=size)


class ByDistance(Noisy):
    def claim(self, distance):
        return dp.PureDP(2.0 * distance)


def plain(answer, size, rng):
    return answer + rng.laplace(size=size)


def test_what_a_mechanism_says_is_taken():
    result = dp.check(Noisy(), 0.0, 1.0, runs=200)
    assert (result.claim, result.claim_source) == (dp.PureDP(1.0), "the manual, page 3")
    assert result.pair.adjacency == str(dp.Within("l1"))
    assert dp.check(LaplaceMechanism(0.5), 0.0, 1.0, runs=200).claim_source == "the claim of LaplaceMechanism"
    assert dp.check(ByDistance(), 0.0, 3.0, distance=3, runs=200).claim == dp.PureDP(6.0)
    with pytest.raises(AdjacencyError, match="at distance 2"):
        dp.check(Noisy(), 0.0, 2.0, runs=200)


def test_what_the_caller_says_comes_first_and_a_search_takes_what_the_mechanism_says():
    result = dp.check(Noisy(), 0.0, 2.0, claim=dp.PureDP(3.0), adjacency=Local(), runs=200)
    assert (result.claim, result.claim_source) == (dp.PureDP(3.0), "")
    assert result.pair.adjacency == str(Local())
    assert dp.check(Noisy(), 0.0, 1.0, runs=200, claim_source="by ear").claim_source == "by ear"
    found = dp.find_worst_pair(Noisy(), Answers(), runs=400, search_runs=400, jobs=1).audit
    assert (found.claim, found.claim_source) == (dp.PureDP(1.0), "the manual, page 3")
    assert found.pair.adjacency == str(dp.Within("l1"))


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        ("1", "the attribute claim of ok: claim='1' is not a claim; it is text, so write claim=PureDP(1). Pass claim="),
        (-1.0, "the attribute claim of ok: epsilon=-1.0"),
        (dp.PureDP, "the attribute claim of ok: claim=PureDP is not a claim; it is a class, so write PureDP(…)"),
    ],
)
def test_what_is_not_a_claim_is_told_with_the_mechanism(claim, words):
    def ok(answer, size, rng):
        return answer + rng.laplace(size=size)

    ok.claim = claim
    with pytest.raises(ClaimError, match=re.escape(words)):
        stated(ok, None, None, "")


@pytest.mark.parametrize("claim", [None, True, "epsilon 1"])
def test_where_nobody_states_a_claim_there_is_none(claim):
    own = Noisy()
    type(own).claim, kept = claim, Noisy.claim
    try:
        for mechanism in (plain, own):
            with pytest.raises(ClaimError, match=r"no claim given|attribute claim of Noisy: .* is not a claim"):
                dp.check(mechanism, 0.0, 1.0, runs=200)
    finally:
        Noisy.claim = kept


def test_attributes_of_other_kinds_are_not_taken():
    class Graphs(Noisy):
        adjacency = "edges"
        claim_source = 3

    said = stated(Graphs(), None, None, "")
    assert (said.adjacency, said.source) == (None, "the claim of Graphs")
    with pytest.raises(OptionError, match="did you mean 'edge'"):
        stated(Graphs(), None, "edges", "")
