"""Claims that mechanisms state themselves: taken where the caller gives none, and never where they do."""

import re

import pytest

from dpaudit import ApproxDP, PureDP, Within, check, find_worst_pair
from dpaudit.audit.datasets.adjacency import Local
from dpaudit.audit.datasets.domains import Answers
from dpaudit.audit.errors import AdjacencyError, ClaimError, OptionError
from dpaudit.audit.procedures.check import stated
from dpaudit.mechanisms import LaplaceMechanism


class Noisy:
    """Says what it guarantees."""

    claim = PureDP(1.0)
    claim_source = "the manual, page 3"
    adjacency = Within("l1")

    def sample(self, answer, size, rng):
        return answer + rng.laplace(size=size)


class ByDistance(Noisy):
    def claim(self, distance):
        return PureDP(2.0 * distance)


def plain(answer, size, rng):
    return answer + rng.laplace(size=size)


def test_what_a_mechanism_says_is_taken():
    result = check(Noisy(), 0.0, 1.0, runs=200)
    assert (result.claim, result.claim_source) == (PureDP(1.0), "the manual, page 3")
    assert result.pair.adjacency == str(Within("l1"))
    assert check(LaplaceMechanism(0.5), 0.0, 1.0, runs=200).claim_source == "the claim of LaplaceMechanism"
    assert check(ByDistance(), 0.0, 3.0, distance=3, runs=200).claim == PureDP(6.0)
    with pytest.raises(AdjacencyError, match="at distance 2"):
        check(Noisy(), 0.0, 2.0, runs=200)


def test_what_the_caller_says_comes_first():
    result = check(Noisy(), 0.0, 2.0, claim=PureDP(3.0), adjacency=Local(), runs=200)
    assert (result.claim, result.claim_source) == (PureDP(3.0), "")
    assert result.pair.adjacency == str(Local())
    assert check(Noisy(), 0.0, 1.0, runs=200, claim_source="by ear").claim_source == "by ear"


def test_a_search_takes_it_too():
    found = find_worst_pair(Noisy(), Answers(), runs=2_000, search_runs=2_000, jobs=1)
    assert (found.audit.claim, found.audit.claim_source) == (PureDP(1.0), "the manual, page 3")
    assert found.audit.pair.adjacency == str(Within("l1"))


@pytest.mark.parametrize(
    ("claim", "taken"), [(1.0, PureDP(1.0)), ((1, 1e-5), ApproxDP(1.0, 1e-5)), ([2.0, 0.0], PureDP(2.0))]
)
def test_numbers_are_claims_here_too(claim, taken):
    def ok(answer, size, rng):
        return answer + rng.laplace(size=size)

    ok.claim = claim
    said = stated(ok, None, None, "")
    assert (said.claim, said.source) == (taken, "the claim of ok")


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        ("1", "the attribute claim of ok: claim='1' is not a claim; it is text, so write claim=PureDP(1). Pass claim="),
        (-1.0, "the attribute claim of ok: epsilon=-1.0"),
        (PureDP, "the attribute claim of ok: claim=PureDP is not a claim; it is a class, so write PureDP(…)"),
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
                check(mechanism, 0.0, 1.0, runs=200)
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
