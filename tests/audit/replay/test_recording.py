"""What a replay records, where it is not recorded, and that every patch is undone."""

from __future__ import annotations

import os
import random
import secrets
import threading

import numpy as np
import pytest
from scipy import stats

from dpaudit import GaussianDP, ReplayResult, replay
from dpaudit.audit.errors import MechanismError
from dpaudit.audit.replay.replay_result import FindingKind, ReplayVerdict
from dpaudit.audit.replay.tape import active_tape

X, Y = [1.0, 5.0], [1.0]


def run(mechanism, x=X, y=Y, claim=1.0, **options) -> ReplayResult:
    return replay(mechanism, x, y, claim=claim, **options)


def test_without_families_the_patches_are_applied_once():
    layers = []

    def mechanism(rows, rng):
        layers.append(os.urandom)
        return rng.laplace(len(rows), 1.0)

    run(mechanism, primitives=[])
    assert len(layers) > 1
    assert len(set(layers)) == 1


def kinds(result):
    return [finding.kind for finding in result.findings]


@pytest.mark.parametrize(
    "draw",
    [lambda: int.from_bytes(os.urandom(4), "big"), lambda: secrets.token_bytes(4)[0], lambda: secrets.randbits(1)],
)
def test_unrecorded_randomness_is_noticed(draw):
    result = run(lambda rows, rng: rng.laplace(len(rows), 1.0) + draw())
    assert result.unrecorded
    assert result.verdict is ReplayVerdict.OPEN
    assert "unrecorded" in str(result)


def test_an_input_with_unrecorded_noise_is_no_excess():
    result = run(lambda rows, rng: rng.laplace(len(rows) + os.urandom(1)[0], 1.0))
    assert result.unrecorded
    assert "made other calls" in str(result)
    assert not result.has_excess


def test_state_kept_between_runs_is_noticed():
    seen = []

    def counted(rows, rng):
        seen.append(1)
        return rng.laplace(len(rows), 1.0) + len(seen)

    assert run(counted).unrecorded
    own = np.random.default_rng(1)
    assert run(lambda rows: own.laplace(len(rows), 1.0)).unrecorded


def test_other_threads_go_on_and_are_counted():
    drawn = []

    def threaded(rows, rng):
        other = threading.Thread(target=lambda: drawn.append(np.random.laplace()))  # noqa: NPY002
        other.start()
        other.join()
        return rng.laplace(len(rows), 1.0)

    result = run(threaded)
    assert result.unrecorded
    assert "another thread made 1 random call" in str(result)
    assert len(drawn) == result.runs


@pytest.mark.parametrize(
    "seeded",
    [
        lambda rows: np.random.default_rng(len(rows)).laplace(len(rows)),
        lambda rows: np.random.RandomState(len(rows)).laplace(len(rows)),
        lambda rows: (np.random.seed(len(rows)), np.random.laplace(len(rows)))[1],  # noqa: NPY002
        lambda rows: (random.seed(len(rows)), random.gauss(len(rows), 1))[1],
    ],
)
def test_seeds_from_the_data_are_named(seeded):
    result = run(seeded)
    assert kinds(result)[-1] is FindingKind.SEED_DIFFERS
    assert "seeded with 2 on x and 1 on y" in str(result)
    assert FindingKind.SEED_DIFFERS not in kinds(run(lambda rows: np.random.default_rng(3).laplace(len(rows))))


SOURCES = [np.random.laplace, np.random.default_rng, np.random.RandomState, random.gauss, random.Random.gauss]


def patches_are_undone():
    now = [np.random.laplace, np.random.default_rng, np.random.RandomState, random.gauss, random.Random.gauss]
    assert all(a is b for a, b in zip(now, SOURCES, strict=True))
    assert "getrandbits" not in vars(random.Random)
    assert "random" not in vars(random.Random)
    assert active_tape() is None
    return True


def test_patches_are_undone_whatever_happens():
    def interrupted(rows, rng):
        rng.laplace()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(interrupted)
    assert patches_are_undone()
    with pytest.raises(MechanismError, match="raises on both datasets: ZeroDivisionError"):
        run(lambda rows, rng: rng.laplace() / 0)
    assert patches_are_undone()
    state = np.random.get_state()[1].tolist(), random.getstate()  # noqa: NPY002
    run(lambda rows: np.random.laplace(len(rows)) + random.gauss(0, 1))  # noqa: NPY002
    assert (np.random.get_state()[1].tolist(), random.getstate()) == state  # noqa: NPY002
    assert patches_are_undone()


def test_nested_replays_are_refused():
    with pytest.raises(MechanismError, match="another replay is recording"):
        run(lambda rows, rng: str(run(lambda rows, rng: rng.laplace(len(rows)))))
    assert patches_are_undone()
    assert run(lambda rows, rng: rng.laplace(len(rows))).verdict is ReplayVerdict.BOUNDED


@pytest.mark.parametrize(
    "draw",
    [
        lambda at: np.random.laplace(at, 2.0),  # noqa: NPY002
        lambda at: np.random.default_rng().laplace(at, 2.0),
        lambda at: np.random.default_rng(5).laplace(at, 2.0),
        lambda at: np.random.Generator(np.random.PCG64(3)).laplace(at, 2.0),
        lambda at: np.random.RandomState(4).laplace(at, 2.0),
        lambda at: stats.laplace.rvs(at, 2.0),
        lambda at: stats.laplace(at, 2.0).rvs(random_state=3),
        lambda at: stats.laplace(at, 2.0).rvs(size=(1,))[0],
        lambda at: random.Random(3).gauss(at, 2.0),
        lambda at: random.normalvariate(at, 2.0),
        lambda at: secrets.SystemRandom().gauss(at, 2.0),
    ],
)
def test_every_source_is_recorded(draw):
    result = run(lambda rows: draw(len(rows)))
    assert not result.unrecorded
    assert result.calls[0].moved == 1.0
    assert result.calls[0].place.function == "<lambda>"
    assert max(result.loss.epsilon, result.loss.mu) == 0.5


def test_generators_of_libraries_are_recorded():
    from sklearn.utils import check_random_state

    result = run(lambda rows: check_random_state(None).laplace(len(rows), 2.0))
    assert (result.unrecorded, result.loss.worst) == (False, 0.5)
    assert isinstance(np.random.default_rng(), np.random.Generator)

    def typed(rows, rng):
        assert isinstance(rng, np.random.Generator)
        assert isinstance(np.random.RandomState(), np.random.RandomState)
        assert isinstance(OWN, np.random.Generator)
        return check_random_state(np.random.RandomState(rng.bit_generator)).laplace(len(rows), 2.0)

    assert run(typed).verdict is ReplayVerdict.BOUNDED


OWN = np.random.default_rng(1)


def test_in_place_draws_choices_and_orders_are_put_back():
    def draws(rows, rng):
        out = np.empty(3)
        rng.standard_exponential(out=out)
        order = list(rows)
        rng.shuffle(order)
        mixed = rng.permutation(np.arange(8.0))
        random.shuffle(order)
        held = rng.choice(["a", "b", "c"], size=2), random.choice("abc"), random.choices("abc", [1, 2, 3], k=2)
        return out.tolist(), order, mixed.tolist(), [str(each) for each in held], random.sample(range(99), 3)

    result = run(draws, [1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
    assert not result.unrecorded
    assert {1.0, 2.0} < set(result.output_on_x[1])
    assert [4.0 if row == 3.0 else row for row in result.output_on_x[1]] == result.output_on_y[1]
    for part in (0, 2, 3, 4):
        assert result.output_on_x[part] == result.output_on_y[part]
    assert result.verdict is ReplayVerdict.OPEN


def test_a_generator_from_before_says_what_to_do_and_nothing_of_the_data():
    own = np.random.default_rng(3)
    result = replay(lambda rows: sum(rows) + own.laplace(), [1.0], [1.0], claim=1.0)
    (reason,) = result.open_reasons  # the outputs differ by the noise: that says nothing of the data
    assert "made before the replay; make it inside the mechanism, or take it as the parameter rng" in reason


def test_words_of_results():
    def slow_sum(rows, rng):
        return sum(rows) * rng.laplace() + rng.laplace() ** 2

    (row, _) = replay(slow_sum, [1.0, 2.0], [1.0], claim=1.0).tabulated().rows
    assert (row.moved, row.loss) == ("", "")  # noise that was handed nothing: 0 would look like a bound

    def as_text(rows, rng):
        return f"{rng.laplace(sum(rows)):.2f}"

    (finding,) = replay(as_text, [1.0], [3.0], claim=1.0).findings  # one call: its sum is not said again
    assert "worst-case loss 2" in finding.message

    def handed(rows, rng):
        return rng.laplace(len(rows))

    result = replay(handed, [1.0] * 3, [1.0], claim=1.0, adjacency="add-remove", distance=2)
    assert "OPEN: loss at most 2 in 1 call, claimed 1-DP at distance 2; not shown to be within the claim" in str(result)

    def of_its_own_scale(rows, rng):
        return rng.laplace(sum(rows), max(rows))

    assert replay(of_its_own_scale, [1.0, 3.0], [1.0], claim=1.0).table().endswith("moved 3; loss infinite")

    def normal(rows, rng):
        return rng.normal(sum(rows))

    assert "mu >= 2, claimed 1-GDP" in str(replay(normal, [1.0], [3.0], claim=GaussianDP(1.0)))


def test_the_outcome_that_changes_most_is_named():
    def one_of_ten(rows, rng):
        odds = np.ones(10)
        odds[7] += len(rows)
        return int(rng.choice(10, p=odds / odds.sum()))

    found = str(replay(one_of_ten, [1.0] * 3, [1.0] * 2, claim=0.1))
    assert "outcome 7 has probability 0.3077 on x and 0.25 on y; worst-case loss 0.207639" in found


def test_a_comprehension_has_the_name_of_its_function():
    def counts(rows, rng):
        return [*[rng.laplace(len(rows), 9.0) for _ in "a"], *(rng.laplace(len(rows), 9.0) for _ in "a")]

    calls = replay(counts, [1.0, 2.0], [1.0], claim=1.0).calls
    assert [call.place.function for call in calls] == ["counts", "counts"]


def test_other_primitives_at_other_lines_are_one_finding():
    def sampled(rows, rng):
        chosen = [row for row in rows if rng.random() < 0.5]
        return rng.laplace(sum(chosen))

    assert kinds(replay(sampled, [1.0, 2.0], [1.0], claim=0.6)) == [FindingKind.CALLS_DIFFER]
