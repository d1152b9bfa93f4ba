"""Steps of jax, correct and with the pitfalls of keys."""

from functools import partial

import pytest

jax = pytest.importorskip("jax", reason="jax is not installed: make matrix ROWS=torch")

from jax import numpy as jnp  # noqa: E402

from dpaudit import GaussianDP, Verdict  # noqa: E402
from dpaudit.training import check_step  # noqa: E402

pytestmark = pytest.mark.jax
BATCH = {"x": jax.random.normal(jax.random.key(2), (6, 5)), "y": jnp.arange(6) % 3}
PARAMETERS = {"w": jax.random.normal(jax.random.key(0), (5, 3)), "b": jnp.zeros(3)}


def loss(parameters, x, y):
    return -jax.nn.log_softmax(x @ parameters["w"] + parameters["b"])[y]


def totals(batch, clip=1.0):
    found = jax.vmap(jax.grad(loss), (None, 0, 0))(PARAMETERS, batch["x"], batch["y"])
    norms = jnp.sqrt((found["w"] ** 2).sum(axis=(1, 2)) + (found["b"] ** 2).sum(axis=1))
    factors = jnp.where(jnp.isfinite(norms), 1.0 / jnp.maximum(norms / clip, 1.0), 0.0)
    return {
        name: jnp.einsum("i,i...->...", factors, jnp.where(jnp.isfinite(each), each, 0.0))
        for name, each in found.items()
    }


@partial(jax.jit, static_argnames="clip")
def noisy(batch, key, clip=1.0):
    found = totals(batch, clip)
    keys = dict(zip(found, jax.random.split(key, len(found)), strict=True))
    return {name: each + jax.random.normal(keys[name], each.shape) for name, each in found.items()}


@jax.jit
def one_key(batch, key):
    return {name: each + jax.random.normal(key, each.shape) for name, each in totals(batch).items()}


FAULTY = {
    "repeated-noise": one_key,
    "without-noise": lambda batch, key: noisy(batch, jax.random.key(0)),
    "privacy": lambda batch, key: noisy(batch, key, clip=2.0),
}


def test_a_correct_step_is_silent():
    result = check_step(noisy, BATCH, claim=GaussianDP(1.0), tolerance=0.1)
    assert result.verdict is Verdict.NOT_REFUTED, str(result)


@pytest.mark.parametrize("row", FAULTY)
def test_pitfalls_are_refuted(row):
    result = check_step(FAULTY[row], BATCH, claim=GaussianDP(1.0), tolerance=0.1)
    assert row in result.named(Verdict.REFUTED), str(result)
