"""Steps of jax, correct and with the pitfalls of keys."""

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


@jax.jit
def good(batch, key):
    found = totals(batch)
    keys = dict(zip(found, jax.random.split(key, len(found)), strict=True))
    return {name: each + jax.random.normal(keys[name], each.shape) for name, each in found.items()}


@jax.jit
def one_key(batch, key):
    return {name: each + jax.random.normal(key, each.shape) for name, each in totals(batch).items()}


@jax.jit
def fixed_key(batch, key):
    return good(batch, jax.random.key(0))


@jax.jit
def twice_the_clip(batch, key):
    found = totals(batch, 2.0)
    keys = dict(zip(found, jax.random.split(key, len(found)), strict=True))
    return {name: each + jax.random.normal(keys[name], each.shape) for name, each in found.items()}


def test_a_correct_step_is_silent():
    result = check_step(good, BATCH, claim=GaussianDP(1.0), tolerance=0.1)
    assert result.verdict is Verdict.NOT_REFUTED, str(result)


@pytest.mark.parametrize(
    ("step", "row"), [(one_key, "repeated-noise"), (fixed_key, "without-noise"), (twice_the_clip, "privacy")]
)
def test_pitfalls_are_refuted(step, row):
    result = check_step(step, BATCH, claim=GaussianDP(1.0), tolerance=0.1)
    assert row in {each.name for each in result.rows if each.verdict is Verdict.REFUTED}, str(result)
