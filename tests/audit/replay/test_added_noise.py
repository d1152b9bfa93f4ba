"""Noise added after it was drawn, draws for rows, and public values: what is followed, and what is never bounded."""

import hashlib
import os
import random

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats

from dpaudit import GaussianDP, noise_primitive, public, replay
from dpaudit.audit.replay.replay_result import FindingKind
from dpaudit.audit.results.verdict import ReplayVerdict

BOUNDED, EXCESS, UNDETERMINED = ReplayVerdict.BOUNDED, ReplayVerdict.EXCESS, ReplayVerdict.UNDETERMINED
X, Y = np.array([1.0, 0.0, 1.0, 1.0]), np.array([0.0, 0.0, 1.0, 1.0])
ROWS = np.random.default_rng(0).normal(size=(30, 4))
LESS, OTHER = np.delete(ROWS, 7, 0), np.where(np.arange(30)[:, None] == 7, 0.5, ROWS)
SCALE, STEPS = 4.0, 10


def run(mechanism, x=X, y=Y, claim=1.0, **options):
    return replay(mechanism, x, y, claim=claim, **options)


def clipped(rows):
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)


# Sums: the loss is that of the closed form, ‖move‖₂ / scale.

SUMS = {
    "noise behind": lambda s, n: s + n,
    "noise before": lambda s, n: n + s,
    "subtracted": lambda s, n: s - n,
    "negative sum": lambda s, n: n - s,
    "in place": lambda s, n: np.add(s, n, out=s),
    "in place of the noise": lambda s, n: np.add(s, n, out=n),
    "in single precision": lambda s, n: s.astype("f4") + n.astype("f4"),
    "in another array": lambda s, n: np.add(s, n, out=np.empty(4, "f4")),
    "in another shape": lambda s, n: s.reshape(2, 2) + n.reshape(2, 2),
    "Fortran order": lambda s, n: np.asfortranarray(s.reshape(2, 2)) + n.reshape(2, 2),
    "a frame": lambda s, n: n.reshape(2, 2) + pd.DataFrame(s.reshape(2, 2)),
    "a series": lambda s, n: n + pd.Series(s),
    "builtin sum": lambda s, n: sum([s, n]),
    "sliced": lambda s, n: [s[:2] + n[:2], s[2:] + n[2:]],
    "copied": lambda s, n: s + np.array(n),
}


@pytest.mark.parametrize("add", SUMS.values(), ids=SUMS)
def test_a_sum_has_the_loss_of_its_move(add):
    result = run(lambda d, rng: add(3.0 * d, rng.normal(scale=SCALE, size=4)), claim=GaussianDP(0.7500001))
    assert result.verdict is BOUNDED
    assert result.loss.mu == pytest.approx(0.75, rel=1e-6)
    result = run(lambda d, rng: add(3.0 * d, rng.normal(scale=SCALE, size=4)), claim=GaussianDP(0.749))
    assert result.verdict is EXCESS


@pytest.mark.parametrize("factor", [0.5, -3.0, np.array([1.0, 2.0, 4.0, 8.0])], ids=["half", "negative", "by number"])
def test_factors_count_as_scales(factor):
    result = run(lambda d, rng: d + rng.normal(size=4) * factor, claim=GaussianDP(9.0))
    assert result.loss.mu == pytest.approx(1.0 / abs(np.ravel(factor)[0]))
    result = run(lambda d, rng: d + rng.normal(size=4) * (1.0 + d.sum()), claim=GaussianDP(9.0))
    assert result.verdict is UNDETERMINED


def noise_with(use):
    return lambda d, rng: use(d, rng.normal(scale=SCALE, size=4))


KEPT = None


def keeps(d, rng):
    global KEPT
    KEPT = rng.normal(scale=SCALE, size=4) if KEPT is None else KEPT
    return d + KEPT


def steps(d, rng):
    return [d.sum() + rng.normal(scale=100.0, size=2) for _ in range(8)]


def beside_steps(decide):
    return lambda d, rng: (steps(d, rng), decide(d, rng))


def same_noise_in_every_run(n_steps):
    return lambda d, rng: [d.sum() + noise_of_a_step(100.0, t) for t in range(n_steps)]


@noise_primitive("normal", location=0.0, scale="scale", size=2)
def noise_of_a_step(scale, step):
    digest = np.frombuffer(hashlib.sha256(bytes([step])).digest()[:4], np.uint16)
    return scale * stats.norm.ppf((digest + 0.5) / 2**16)


def one_step_decides(d, rng):
    """All noise is drawn on one line; that of the first call decides about the rest."""

    def noisy(value):
        return value + rng.normal(scale=10.0, size=value.shape)

    first, w = noisy(np.zeros(1))[0], np.zeros(4)
    for _ in range(STEPS):
        w = noisy(w + d)
    return w, d.sum() if first > 0.0 else 0.0


def choosing(other):
    def mechanism(d, rng):
        return (0, rng.laplace(d.sum(), 4.0)) if rng.integers(2) else (1, other(d, rng))

    return mechanism


def decides(d, n):
    return n + np.array([d.sum(), 0.0]), d.sum() if np.asarray(n)[1] > 0.0 else 0.0


def of_two_lines(d, rng, scale):
    return d.sum() + rng.laplace(scale=4.0) if rng.integers(2) else d.sum() + rng.laplace(scale=scale)


LARGE, HUNDRED = GaussianDP(9.0), np.eye(1, 100)[0]
NEVER_BOUNDED = {
    "noise that is used otherwise": (
        X, Y, LARGE, 1, [
            noise_with(lambda d, n: [d + n, 2.0 * d + n]),
            noise_with(lambda d, n: [d + n, n.tolist()]),
            noise_with(lambda d, n: (d + n) - np.asarray(n)),
            noise_with(lambda d, n: d + n if np.asarray(n)[0] < 2.0 else d),
            noise_with(lambda d, n: np.add(d, n, where=np.arange(4) > 0, out=d.copy())),
            noise_with(lambda d, n: d + n * np.array([1.0, 0.0, 1.0, 1.0])[::-1] * 0.0),
            keeps,  # of an earlier run
        ],
    ),
    "noise on real parts, which leaves imaginary ones as they are": (
        X, np.array([0.0, 1.0, 1.0, 1.0]), 1.0, 1, [lambda d, rng: np.fft.rfft(d) + rng.normal(scale=100.0, size=3)],
    ),
    "large whole numbers": (
        X, Y, 0.01, 1,
        [lambda d, rng: np.array([2**60 + int(d.sum())]) + stats.dlaplace.rvs(0.5, size=1, random_state=rng)],
    ),
    "a draw that decides beside steps": (
        X, Y, LARGE, 2, [
            beside_steps(lambda d, rng: d.sum() > rng.laplace(2.2, 0.5)),
            beside_steps(lambda d, rng: d.sum() > (2.2 + rng.laplace(scale=0.5, size=1))[0]),
            beside_steps(lambda d, rng: d.sum() > rng.normal(3.0, 0.5, size=70)[0]),
            beside_steps(lambda d, rng: rng.random(65)[0] < 0.1 * d.sum()),
            beside_steps(lambda d, rng: rng.random() < 0.1 * d.sum()),
            one_step_decides,  # which the others do not try
        ],
    ),
    "noise that is the same in every run": (X, Y, LARGE, 1, [same_noise_in_every_run(3), same_noise_in_every_run(8)]),
    "draws that depend on the rows, which are not batches": (
        X, Y, 0.1, 1, [
            lambda d, rng: rng.binomial(1, d),
            lambda d, rng: rng.binomial(1, 0.01 + 0.98 * d),
            lambda d, rng: rng.binomial(1, 0.01 + 0.98 * d[0], size=len(d)).sum(),
            lambda d, rng: rng.binomial(7 * d.astype(int), 0.5),
            lambda d, rng: rng.uniform(d - 1.0, d + 1.0),
            lambda d, rng: rng.integers(d.astype(int), d.astype(int) + 5),
        ],
    ),
    **{
        f"a row that no batch contains, {how}": (
            HUNDRED, y, GaussianDP(0.1), 1, [
                lambda d, rng: d[rng.integers(0, len(d))],
                lambda d, rng: rng.choice(d),
                lambda d, rng: d[rng.random(len(d)) < 0.003].sum() + rng.laplace(scale=1e-3, size=1),
                lambda d, rng: [d[rng.random(len(d)) < 0.003].sum() + rng.normal(scale=1e-3, size=1) for _ in range(8)],
            ],
        )
        for how, y in {"replaced": np.zeros(100), "removed": np.zeros(99)}.items()
    },
    "leaks where a choice leads": (
        X, Y, 1.0, 4, [
            choosing(lambda d, rng: d.sum() if rng.integers(4) == 3 else 0.0),
            choosing(lambda d, rng: bool(d.sum() + rng.laplace(scale=0.05) > 2.5)),
            choosing(lambda d, rng: bool(rng.random() < 0.5 + 0.1 * d.sum())),
            choosing(lambda d, rng: decides(d, rng.laplace(size=2))),
            choosing(lambda d, rng: (u := rng.normal(5.0), d.sum() if u > 5.0 else 0.0)),
            choosing(lambda d, rng: rng.laplace(d.sum(), 0.1)),  # more is lost
        ],
    ),
    "another scale where a choice leads": (X, Y, 0.25, 4, [lambda d, rng: of_two_lines(d, rng, 0.4)]),
}  # fmt: skip


@pytest.mark.parametrize(
    ("mechanism", "x", "y", "claim", "seed"),
    [
        pytest.param(mechanism, x, y, claim, seed, id=f"{name}, {number}, seed {seed}")
        for name, (x, y, claim, n_seeds, mechanisms) in NEVER_BOUNDED.items()
        for number, mechanism in enumerate(mechanisms)
        for seed in range(n_seeds)
    ],
)
def test_what_is_never_bounded(mechanism, x, y, claim, seed):
    assert run(mechanism, x, y, claim, seed=seed).verdict is not BOUNDED


# Trainings.


def train(rows, rng, update, pick=lambda n, rng: slice(None), scale=SCALE):
    w, state = np.zeros(4), np.zeros(4)
    for _ in range(STEPS):
        noisy = clipped(rows[pick(len(rows), rng)] - w).sum(0) + rng.normal(scale=scale, size=4)
        w, state = update(w, state, noisy)
    return w


UPDATES = {
    "momentum": lambda w, v, g: (w - 0.1 * (0.9 * v + g), 0.9 * v + g),
    "adaptive": lambda w, v, g: (w - 0.1 * g / (np.sqrt(0.9 * v + g * g) + 1e-8), 0.9 * v + g * g),
    "clipped sum": lambda w, v, g: (w - 0.1 * g / max(1.0, np.linalg.norm(g)), v),
}


@pytest.mark.parametrize("update", UPDATES.values(), ids=UPDATES)
@pytest.mark.parametrize(("other", "sensitivity"), [(LESS, 1.0), (OTHER, 2.0)], ids=["removed", "replaced"])
def test_steps_are_compared_at_the_same_weights(update, other, sensitivity):
    most = sensitivity * np.sqrt(STEPS) / SCALE
    result = run(lambda d, rng: train(d, rng, update), ROWS, other, GaussianDP(most))
    assert result.verdict is BOUNDED
    assert 0.1 * most < result.loss.mu <= most * (1.0 + 1e-9)
    assert result.runs <= 5


def test_steps_with_too_little_noise_are_not_bounded():
    result = run(lambda d, rng: train(d, rng, UPDATES["momentum"], scale=0.1), ROWS, LESS, GaussianDP(1.0))
    assert result.verdict is not BOUNDED
    assert "its location moved by 1, with normal noise of scale 0.1" in str(result)


# Draws for rows.

BATCHES = {
    "Poisson": lambda n, rng: rng.random(n) < 0.3,
    "permutation": lambda n, rng: rng.permutation(n)[:9],
    "choice": lambda n, rng: rng.choice(n, 9, replace=False),
    "with replacement": lambda n, rng: rng.integers(0, n, 9),
    "binomial": lambda n, rng: rng.binomial(1, 0.3, n) > 0,
}


@pytest.mark.parametrize("pick", BATCHES.values(), ids=BATCHES)
@pytest.mark.parametrize("other", [LESS, OTHER], ids=["removed", "replaced"])
def test_batches_are_the_same_on_x_and_y(pick, other):
    def step(rows, rng):
        return clipped(rows[pick(len(rows), rng)]).sum(0) + rng.normal(scale=SCALE, size=4)

    result = run(step, ROWS, other, GaussianDP(18.0 / SCALE))
    assert result.verdict is BOUNDED
    assert "without amplification" in str(result.notes)


@pytest.mark.parametrize("seed", [0, 2])
@pytest.mark.parametrize(
    "is_in",
    [
        lambda n, rng: rng.random(n) < 0.1,
        lambda n, rng: rng.exponential(size=n) < -np.log(0.9),
        lambda n, rng: rng.poisson(-np.log(0.9), size=n) > 0,
        lambda n, rng: rng.geometric(0.1, size=n) == 1,
        lambda n, rng: rng.beta(1.0, 1.0, size=n) < 0.1,
    ],
    ids=["uniform", "exponential", "poisson", "geometric", "beta"],
)
def test_amplification_is_no_excess(is_in, seed):
    def subsampled(d, rng):
        return d[is_in(len(d), rng)].sum() + rng.laplace(size=1)

    claim = np.log1p(0.1 * np.expm1(1.0))
    assert run(subsampled, np.eye(1, 20)[0], np.zeros(20), claim=claim, seed=seed).verdict is not EXCESS


class Items:
    """A dataset whose items are random: reading them is not free."""

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, place):
        if place >= self.n:
            raise IndexError(place)
        return np.random.rand() + random.random()  # noqa: NPY002


def frame(*values):
    return pd.DataFrame({"a": list(values)})


DATASETS = {
    "no rows": (np.array([1.0]), np.array([])),
    "no rows of two": (np.ones((1, 2)), np.ones((0, 2))),
    "a number": (np.array(1.0), np.array(0.0)),
    "sparse": (sparse.csr_matrix(np.eye(3)), sparse.csr_matrix(np.eye(3)[:2])),
    "graph": (nx.path_graph(["a", "b"]), nx.path_graph(["a"])),
    "users": ({"a": {"age": 1}, "b": {"age": 2}}, {"a": {"age": 1}, "b": {"age": 3}}),
    "missing": (frame(1, pd.NA, 2), frame(1, pd.NA)),
    "ragged": ([[1], [2, 3]], [[1]]),
    "random items": (Items(3), Items(2)),
}


@pytest.mark.parametrize(("x", "y"), DATASETS.values(), ids=DATASETS)
def test_datasets_of_any_kind_are_replayed_and_left_alone(x, y):
    before = np.random.get_state()[1].tolist(), np.random.get_state()[2], random.getstate()  # noqa: NPY002
    result = run(lambda d, rng: (d.shape[0] if getattr(d, "shape", ()) else 1.0) + rng.laplace(size=1), x, y)
    assert result.verdict is BOUNDED
    assert before == (np.random.get_state()[1].tolist(), np.random.get_state()[2], random.getstate())  # noqa: NPY002


# Public values.


def parts(d, rng):
    rng.random(len(d))
    return public(d.sum() + rng.laplace(scale=9.0, size=1), "noisy sum")


@pytest.mark.parametrize(
    ("mechanism", "y"),
    [
        (lambda d, rng: public(d.sum() + rng.laplace(), "noisy sum"), Y),
        (lambda d, rng: public(d.sum() + rng.laplace(scale=4.0, size=4)[:], "noisy sums"), Y),
        (lambda d, rng: (public(os.urandom(4), "name"), d.sum() + rng.laplace(size=1))[1], Y),
        (parts, X[:2]),
    ],
    ids=["a number", "spoiled noise", "unrecorded", "other paths"],
)
def test_noise_in_a_public_value_is_no_excess(mechanism, y):
    assert run(mechanism, X, y).verdict is not EXCESS


def test_a_public_value_of_the_data_is_an_excess():
    result = run(lambda d, rng: d.sum() + rng.laplace(scale=9.0) / public(len(d), "rows"), X, X[:3])
    assert result.verdict is EXCESS
    assert FindingKind.PUBLIC_DIFFERS in {found.kind for found in result.findings}


def test_a_choice_of_what_is_measured_is_bounded():
    assert all(run(lambda d, rng: of_two_lines(d, rng, 4.0), claim=0.25, seed=n).verdict is BOUNDED for n in range(4))
    other = choosing(lambda d, rng: [rng.laplace(d.sum(), 4.0), np.zeros(2), d + rng.laplace(scale=4.0, size=4)])
    assert run(other, claim=0.5).verdict is BOUNDED
    assert run(other, claim=0.49).verdict is not BOUNDED


def test_small_noise_may_be_equal_by_chance():
    def mechanism(d, rng):
        w = np.zeros(1)
        for _ in range(STEPS):
            w = w + d.sum() + stats.dlaplace.rvs(1.0, size=1, random_state=rng)
        return w, [np.zeros(0) + rng.normal(size=0) for _ in range(STEPS)]

    result = run(mechanism, claim=10.0)
    assert result.verdict is BOUNDED, result


@pytest.mark.parametrize("shape", [(3, 1), (1, 3), (6,)], ids=str)
def test_factors_of_noise_in_another_shape_count_number_by_number(shape):
    size = int(np.prod(shape))

    def mechanism(d, rng):
        return np.outer(np.ones(size // 3), d[:3]) + rng.normal(size=shape).reshape(-1, 3) * np.array([2.0, 1.0, 1.0])

    assert run(mechanism, claim=GaussianDP(9.0)).loss.mu == pytest.approx(0.5 * np.sqrt(size // 3))


def test_samples_of_another_size_are_not_matched():
    def bootstrapped(rows, rng):
        return rows[rng.integers(0, len(rows), size=len(rows))].sum(axis=0) + rng.normal(size=4)

    assert run(bootstrapped, ROWS, LESS).findings[0].kind is FindingKind.CALLS_DIFFER
    result = run(lambda rows, rng: (rng.integers(0, 30, size=len(rows))[0], rng.laplace(len(rows))), LESS, ROWS)
    assert result.verdict is BOUNDED, result
