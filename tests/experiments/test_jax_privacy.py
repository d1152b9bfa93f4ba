"""Canaries in one training run of JAX Privacy: what its scores are, sound and faulty."""

import functools

import numpy as np
import pytest
from scipy.stats import chi2, norm

from dpaudit.audit.errors import OptionError
from dpaudit.experiments.benchmarks.jax_privacy import jax_privacy_training

try:
    import jax_privacy
except ImportError as error:
    needs_jax_privacy = pytest.mark.skipif(True, reason=f"jax-privacy cannot be imported: {error}")
    jax_privacy = None
else:
    needs_jax_privacy = pytest.mark.skipif(False, reason="")

pytestmark = pytest.mark.filterwarnings("ignore:optax.global_norm is deprecated:DeprecationWarning")  # in the library

FAR = norm.isf(1e-7)
"""Standard errors beyond which a mean lies with probability 2e-7."""


@functools.cache
def trained(**options):
    given = {"canaries": 600, "rows": 100, "steps": 12, "sampling_rate": 0.25, "seed": 5, **options}
    return jax_privacy_training(**given)


def apart(run):
    return run.last_scores[run.included], run.last_scores[~run.included]


@pytest.mark.parametrize(
    ("name", "value"),
    [("canaries", 1), ("rows", 0), ("steps", 0), ("sampling_rate", 1.5), ("noise_multiplier", -1.0), ("fault", "no")],
)
def test_options_out_of_range_are_refused(name, value):
    with pytest.raises(OptionError, match=rf"{name}="):
        jax_privacy_training(**{name: value})


@needs_jax_privacy
def test_the_same_seed_gives_the_same_run():
    run, other = trained(), trained(seed=6)
    again = trained.__wrapped__()
    for name in ("included", "last_scores", "step_scores"):
        values = getattr(run, name)
        assert values.shape == (600,)
        assert np.array_equal(values, getattr(again, name))
        assert not np.array_equal(values, getattr(other, name))
    assert abs(run.included.sum() - 300) < FAR * np.sqrt(150)


@needs_jax_privacy
def test_without_noise_the_scores_count_batches_as_each_gradient_is_clipped():
    """A canary's gradient is ten times the clipping norm."""
    run = trained(noise_multiplier=0.0)
    inside, outside = apart(run)
    assert not outside.any()
    assert np.allclose(inside, inside.round(), atol=1e-4)
    assert abs(inside.mean() - 3) < FAR * np.sqrt(12 * 0.25 * 0.75 / len(inside))
    assert 0 <= inside.min() < inside.max() <= 12
    assert np.isnan(run.step_scores).all()


@needs_jax_privacy
def test_without_noise_a_clipped_mean_lets_a_gradient_through():
    sound, faulty = (trained(noise_multiplier=0.0, fault=fault) for fault in ("", "clipped mean"))
    clipped, unclipped = apart(sound)[0], apart(faulty)[0]
    assert np.allclose(unclipped, 10 * clipped, rtol=1e-3), "the mean of a batch is below the clipping norm"


@needs_jax_privacy
@pytest.mark.parametrize(("fault", "factor"), [("", 1.0), ("half the noise", 0.5)], ids=["sound", "half"])
def test_means_and_noise_are_as_predicted(fault, factor):
    inside, outside = apart(trained(noise_multiplier=2.0, fault=fault))
    noise = 12 * (2.0 * factor) ** 2
    error = np.sqrt((noise + 12 * 0.25 * 0.75) / len(inside) + noise / len(outside))
    assert abs(inside.mean() - outside.mean() - 12 * 0.25) < FAR * error
    low, high = chi2.ppf([1e-7, 1 - 1e-7], len(outside))
    assert low < np.sum(outside**2) / noise < high


@needs_jax_privacy
def test_step_scores_are_log_likelihood_ratios():
    """Where every batch has every row they are a line of the last scores; elsewhere their exponentials have mean 1."""
    whole = trained(sampling_rate=1.0, noise_multiplier=4.0)
    assert np.allclose(whole.step_scores, (2 * whole.last_scores - 12) / 32, atol=1e-4)
    run = trained(noise_multiplier=2.0)
    ratios = np.exp(run.step_scores[~run.included])
    variance = (1 + 0.25**2 * np.expm1(1 / 4)) ** 12 - 1
    assert abs(ratios.mean() - 1) < FAR * np.sqrt(variance / len(ratios))


@needs_jax_privacy
def test_the_claim_is_that_of_the_accountant():
    """Without subsampling it is that of Gaussian noise of scale 4/√12, in closed form."""
    claim, mu = trained(sampling_rate=1.0, noise_multiplier=4.0).claim(), np.sqrt(12) / 4
    epsilons, deltas = np.array(claim.epsilons), np.array(claim.deltas)
    exact = norm.cdf(mu / 2 - epsilons / mu) - np.exp(epsilons) * norm.cdf(-mu / 2 - epsilons / mu)
    seen = exact > 1e-6
    assert seen.sum() > 20
    assert (deltas[seen] >= exact[seen]).all()
    assert np.allclose(deltas[seen], exact[seen], rtol=0.02)
    subsampled = trained(noise_multiplier=4.0).claim()
    assert max(subsampled.deltas) < max(deltas)
