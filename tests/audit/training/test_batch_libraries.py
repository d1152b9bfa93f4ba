"""Samplers of PyTorch, Opacus and JAX Privacy, as their users pass them."""

import pytest

from dpaudit import Verdict
from dpaudit.errors import MechanismError
from dpaudit.training import check_batches

N, Q = 100, 0.1
SHUFFLED = {"batch_size": 8, "sampling": "shuffled"}


def refuted(sampler, **told):
    """The rows that are refuted, by name; none of a result without a verdict."""
    result = check_batches(sampler, N, **told)
    assert result.verdict is not Verdict.INCONCLUSIVE, str(result)
    return result.named(Verdict.REFUTED)


@pytest.fixture
def torch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: make matrix ROWS=torch")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        yield torch


@pytest.mark.torch
def test_samplers_of_pytorch(torch):
    data = torch.utils.data
    batches = data.BatchSampler(data.RandomSampler(range(N)), 8, drop_last=False)
    assert refuted(batches, **SHUFFLED) == []
    assert refuted(batches, batch_size=8) == ["inclusion", "size", "rounds"]
    without_last = data.BatchSampler(data.RandomSampler(range(N)), 8, drop_last=True)
    assert refuted(without_last, **SHUFFLED) == ["inclusion"]
    in_order = data.BatchSampler(data.SequentialSampler(range(N)), 8, drop_last=False)
    assert refuted(in_order, **SHUFFLED) == ["inclusion", "examples", "rounds"]
    loader = data.DataLoader(data.TensorDataset(torch.arange(N)), 8, shuffle=True)
    assert refuted(loader, **SHUFFLED) == []
    assert refuted(lambda: torch.rand(10, N) < Q, q=Q) == []
    with pytest.raises(MechanismError, match="wrap a sampler of single indices in BatchSampler"):
        check_batches(data.RandomSampler(range(N)), N, q=Q)
    with pytest.raises(MechanismError, match="a loader over a data set of them"):
        check_batches(data.DataLoader(data.TensorDataset(torch.arange(N), torch.arange(N)), 8), N, q=Q)


@pytest.mark.torch
def test_samplers_of_opacus(torch):
    opacus = pytest.importorskip("opacus", reason="Opacus is not installed: make matrix ROWS=torch")
    sampler = opacus.utils.uniform_sampler.UniformWithReplacementSampler(num_samples=N, sample_rate=Q)
    assert refuted(sampler, q=Q) == []
    assert refuted(sampler, q=0.09) == ["inclusion"]
    examples = torch.utils.data.TensorDataset(torch.arange(N))
    loader = opacus.data_loader.DPDataLoader(examples, sample_rate=0.02)
    assert refuted(loader, q=0.02) == []
    never_empty = opacus.data_loader.DPDataLoader(examples, sample_rate=0.02, rand_on_empty=True)
    assert "size" in refuted(never_empty, q=0.02)


@pytest.mark.jax
def test_samplers_of_jax_privacy():
    selection = pytest.importorskip("jax_privacy.batch_selection", reason="no jax-privacy: make matrix ROWS=torch")

    def poisson(rate=Q, **options):
        return selection.CyclicPoissonSampling(sampling_prob=rate, iterations=10, **options)

    def padded(n, rng):
        return [selection.pad_to_multiple_of(batch, 8) for batch in poisson().batch_iterator(n, rng)]

    for sampler in (poisson().batch_iterator, padded):
        assert refuted(sampler, q=Q) == []
    assert "size" in refuted(poisson(truncated_batch_size=12).batch_iterator, q=Q)
    assert refuted(poisson(2 * Q, cycle_length=2).batch_iterator, q=Q) == ["rounds"]
    bins = selection.BallsInBinsSampling(iterations=10, cycle_length=10)
    assert refuted(bins.batch_iterator, q=Q) == ["rounds"]
    for replaces, sampling in ((False, "fixed"), (True, "with replacement")):
        fixed = selection.FixedBatchSampling(batch_size=10, iterations=10, replace=replaces)
        assert refuted(fixed.batch_iterator, batch_size=10, sampling=sampling) == []
