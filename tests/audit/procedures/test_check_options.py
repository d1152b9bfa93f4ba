"""Options of an audit: claims and names as people write them, and claims that mechanisms state themselves."""

import inspect
import logging
import re
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import dpaudit as dp
from dpaudit.audit.claims.claim import claim_at
from dpaudit.audit.datasets.adjacency import Local
from dpaudit.audit.datasets.domains import Answers
from dpaudit.audit.errors import AdjacencyError, ClaimError, OptionError, UnknownOptionError
from dpaudit.audit.options import NAMED, OTHERS, Options
from dpaudit.audit.results.claim_pair_and_alpha import pair_of, stated
from dpaudit.audit.sampling.sampler import as_sampler
from dpaudit.audit.settings import explained
from dpaudit.mechanisms import LaplaceMechanism

FEW = {"runs": 400, "jobs": 1}


def noisy(rows, size, rng):
    return len(rows) + rng.laplace(size=size)


def test_the_first_screen_of_the_help_is_what_a_call_thinks_of():
    named = [name for name in inspect.signature(dp.check).parameters if name != "options"]
    assert named == ["mechanism", "x", "y", *NAMED]
    text = inspect.getdoc(dp.check) or ""
    documented = re.findall(r"^(\w+)(?:, \w+)* : ", text.partition("\nReturns\n")[0], re.MULTILINE)
    assert {*documented, "y"} == {*named}
    assert all(f"`{name}`" in text for name in OTHERS), "the rest are named, and explained in settings"
    assert {*explained()} == {*OTHERS, "profile", "runs", "search_runs"}


def untouched(dataset, size, rng):
    raise AssertionError("a run was drawn")


def search(**options):
    return dp.find_worst_pair(untouched, [], **options)


def audit(**options):
    return dp.check(untouched, [1], [2], **options)


@pytest.mark.parametrize("function", [audit, search])
def test_a_misspelt_option_is_an_error_that_names_the_option_meant(function):
    for wrong, meant in (("claims", "; did you mean 'claim'?"), ("Alpha", "; did you mean 'alpha'?"),
                         ("epsilon", "; write claim=1.0."), ("n_jobs", "; write jobs=4."), ("zzz", ".")):  # fmt: skip
        with pytest.raises(OptionError, match=rf"{wrong} is not an option of \w+") as caught:
            function(**{wrong: 1})
        assert f"{meant} The options are claim, adjacency" in str(caught.value)
        assert isinstance(caught.value, TypeError), "as for any other function"


def test_options_by_place_are_refused():
    with pytest.raises(UnknownOptionError, match=r"takes only mechanism, x, y by place; .* claim=PureDP"):
        dp.check(noisy, [1], [], dp.PureDP(1.0))
    with pytest.raises(UnknownOptionError, match=r"only count_x, runs_x, count_y, runs_y by place; .* as alpha=0.05"):
        dp.epsilon_lower(1, 2, 0, 2, 0.05)


REFUSED = [
    ("alpha", 1e-12, "alpha="), ("runs", 39, "is not a number of runs"), ("bins", 1, "is not a number of bins"),
    ("name", "a\nb", r"name='a\\nb' is not a name; use one line of text"), ("on_interim", print, "on_interim is for"),
    ("floating_point", np.array(["warn"]), 'is unknown; use "warn", "test" or "ignore"'),
]  # fmt: skip


@pytest.mark.parametrize(("option", "value", "message"), REFUSED)
def test_a_value_that_cannot_be_is_refused_before_the_first_run(option, value, message):
    """`tests/audit/test_options.py` gives all parameters of all functions such values."""
    with pytest.raises((OptionError, ClaimError), match=message):
        audit(**{"claim": 1.0, option: value})
    if option in ("floating_point", "on_interim"):
        with pytest.raises(OptionError, match=message):
            search(**{"claim": 1.0, "adjacency": "local", option: value})


FRAME = pd.DataFrame({"age": [1.0, 2.0, 3.0, 4.0]})


def test_a_pair_that_differs_in_more_rows_is_doubted_unless_it_was_meant_so():
    sampler = as_sampler(untouched)
    for x, y, rows in (([1, 2, 3], [1], 2), ([1, 2, 3], [4, 5, 3], 2), (np.ones(5), np.zeros(5), 5),
                       (FRAME, FRAME[:1], 3)):  # fmt: skip
        doubt = f"x and y differ in {rows} rows, and no adjacency makes them neighbours"
        assert pair_of(sampler, x, y, None, Options()).doubt == doubt
        assert not pair_of(sampler, x, y, None, Options(distance=rows)).doubt
    for x, y, adjacency in (([1, 2], [1], None), ([2, 1], [1, 2, 3], None), ([1, 2], [2, 3], dp.Replace()),
                            (np.ones(5), np.zeros(5), dp.domains.Within("linf")), ("abc", "xyz", None)):  # fmt: skip
        assert not pair_of(sampler, x, y, adjacency, Options()).doubt


def test_a_doubt_is_said_and_stored_unless_the_mechanism_has_checked_the_pair(tmp_path, caplog):
    """The audit is logged."""
    with caplog.at_level(logging.INFO, logger="dpaudit"):
        result = dp.check(noisy, [1, 2, 3], [1], claim=1.0, **FEW)
    assert caplog.messages == [f"noisy: {result.sentence}"]
    doubt = "x and y differ in 2 rows, and no adjacency makes them neighbours"
    assert result.sentence.endswith(f"; {doubt}")
    assert any(remark.startswith(f"WARNING: {doubt}. A claim for one row says nothing") for remark in result.remarks)
    dp.save(result, tmp_path / "results.json")
    assert dp.load(tmp_path / "results.json").entries[0].result.pair.doubt == doubt

    class Checking:
        claim = 1.0
        sample = staticmethod(noisy)

        def check_pair(self, x, y, distance):
            pass

    assert not dp.check(Checking(), np.ones(5), np.zeros(5), **FEW).pair.doubt


def test_a_pair_on_which_no_event_differs_is_inconclusive():
    def ignores(rows, size, rng):
        return rng.laplace(size=size)

    options = {"jobs": 1, "floating_point": "ignore", "claim": 1.0}
    silent = dp.check(ignores, [1, 2], [1], runs=100_000, **options)
    assert silent.verdict is dp.Verdict.INCONCLUSIVE
    assert silent.pilot_runs == 25_000, "five times as many as of a pilot that promises a bound"
    assert "no event distinguishes x from y in these runs, so this pair cannot show a violation" in str(silent)
    accepted = dp.check(ignores, [1, 2], [1], runs=100_000, ignore="no-power", **options)
    assert (accepted.verdict, accepted.findings) == (dp.Verdict.NOT_REFUTED, ())
    few = dp.check(ignores, [1, 2], [1], runs=4_000, **options)
    assert few.findings == (), "these runs do not rule out a tenth of the claim"


@pytest.mark.parametrize("is_block", [True, False])
@pytest.mark.parametrize(("moves", "verdict"), [(1, dp.Verdict.INCONCLUSIVE), (0, dp.Verdict.REFUTED)])
def test_noise_that_follows_the_clock_is_not_refuted(monkeypatch, is_block, moves, verdict):
    seconds = [7]
    monkeypatch.setattr("dpaudit.audit.procedures.check.time.sleep", lambda _: seconds.append(seconds[-1] + moves))

    def of_this_second(rows, size, rng):
        return len(rows) + np.random.default_rng(seconds[-1]).laplace(size=size)

    mechanism = of_this_second if is_block else lambda rows, rng: float(of_this_second(rows, 1, rng)[0])
    result = dp.check(mechanism, [1, 1], [1], claim=4.0, runs=400, jobs=1, floating_point="ignore")
    assert result.verdict is verdict
    assert ("the noise follows the clock" in str(result)) == bool(moves)


def test_names_of_files_are_no_datasets():
    result = dp.check(noisy, "a.csv", "bc.csv", claim=3.0, **FEW)
    assert result.notes[0].startswith("the datasets are the texts 'a.csv' and 'bc.csv', not the contents of files")


def test_numbers_are_claims_in_a_call_and_as_the_attribute_of_a_mechanism():
    def ok(answer, size, rng):
        return answer + rng.laplace(size=size)

    for given, claim in (
        (1, dp.PureDP(1.0)), (0.5, dp.PureDP(0.5)), (np.float32(0.5), dp.PureDP(0.5)), (Decimal("0.5"), dp.PureDP(0.5)),
        ((1, 1e-5), dp.ApproxDP(1.0, 1e-5)), ([1.0, 0], dp.PureDP(1.0)),
    ):  # fmt: skip
        assert claim_at(given, 1.0) == claim
        ok.claim = given
        said = stated(ok, None, None, "")
        assert (said.claim, said.source) == (claim, "the claim of ok")


class Noisy:
    """Says what it guarantees."""

    claim = dp.PureDP(1.0)
    claim_source = "the manual, page 3"
    adjacency = dp.domains.Within("l1")

    def sample(self, answer, size, rng):
        return answer + rng.laplace(size=size)


class ByDistance(Noisy):
    def claim(self, distance):
        return dp.PureDP(2.0 * distance)


def test_what_a_mechanism_says_is_taken_by_an_audit_and_a_search():
    found = dp.find_worst_pair(Noisy(), Answers(), runs=400, search_runs=400, jobs=1).audit
    for result in (dp.check(Noisy(), 0.0, 1.0, runs=200), found):
        assert (result.claim, result.claim_source) == (dp.PureDP(1.0), "the manual, page 3")
        assert result.pair.adjacency == str(dp.domains.Within("l1"))
    assert dp.check(LaplaceMechanism(0.5), 0.0, 1.0, runs=200).claim_source == "the claim of LaplaceMechanism"
    assert dp.check(ByDistance(), 0.0, 3.0, distance=3, runs=200).claim == dp.PureDP(6.0)
    with pytest.raises(AdjacencyError, match="at distance 2"):
        dp.check(Noisy(), 0.0, 2.0, runs=200)


def test_what_the_caller_says_comes_first():
    result = dp.check(Noisy(), 0.0, 2.0, claim=dp.PureDP(3.0), adjacency=Local(), runs=200)
    assert (result.claim, result.claim_source) == (dp.PureDP(3.0), "")
    assert result.pair.adjacency == str(Local())
    assert dp.check(Noisy(), 0.0, 1.0, runs=200, claim_source="by ear").claim_source == "by ear"


def test_what_is_not_a_claim_is_told_with_the_mechanism():
    class Own(Noisy):
        pass

    for claim, words in (
        ("1", "attribute claim of Own: claim='1' is not a claim; it is text, so write claim=PureDP(1). Pass claim="),
        (-1.0, "attribute claim of Own: epsilon=-1.0"), (None, "attribute claim of Own: "),
    ):  # fmt: skip
        Own.claim = claim
        with pytest.raises(ClaimError, match=re.escape(words)):
            dp.check(Own(), 0.0, 1.0, runs=200)
    with pytest.raises(ClaimError, match="no claim given"):
        dp.check(lambda answer, size, rng: rng.laplace(size=size), 0.0, 1.0, runs=200)


CHECKS = [name for name in dp.__all__ if name.startswith(("check_", "find_", "plan_", "epsilon_", "count_", "replay"))]


@pytest.mark.parametrize("name", CHECKS)
def test_every_public_check_refuses_what_is_no_option(name):
    function = getattr(dp, name)
    required = [each for each in inspect.signature(function).parameters.values() if each.default is each.empty]
    by_place = [[1]] * sum(each.kind is each.POSITIONAL_OR_KEYWORD for each in required)
    with pytest.raises(UnknownOptionError, match=f"zzz is not an option of {name}. The options are"):
        function(*by_place, zzz=1)
