"""Samplers of PyTorch, Opacus and JAX Privacy, as their users pass them."""

import pytest

from dpaudit import Verdict
from dpaudit.errors import MechanismError
from dpaudit.training import check_batches

N, Q = 100, 0.1
SHUFFLED = {"batch_size": 8, "sampling": "shuffled"}


def refuted(result):
    return [row.name for row in result.rows if row.verdict is Verdict.REFUTED]


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
    assert check_batches(batches, N, **SHUFFLED).verdict is Verdict.NOT_REFUTED
    assert refuted(check_batches(batches, N, batch_size=8)) == ["inclusion", "size", "rounds"]
    without_last = data.BatchSampler(data.RandomSampler(range(N)), 8, drop_last=True)
    assert refuted(check_batches(without_last, N, **SHUFFLED)) == ["inclusion"]
    in_order = data.BatchSampler(data.SequentialSampler(range(N)), 8, drop_last=False)
    assert refuted(check_batches(in_order, N, **SHUFFLED)) == ["inclusion", "examples", "rounds"]
    loader = data.DataLoader(data.TensorDataset(torch.arange(N)), 8, shuffle=True)
    assert check_batches(loader, N, **SHUFFLED).verdict is Verdict.NOT_REFUTED
    masks = check_batches(lambda: torch.rand(10, N) < Q, N, q=Q)
    assert masks.verdict is Verdict.NOT_REFUTED
    with pytest.raises(MechanismError, match="wrap a sampler of single indices in BatchSampler"):
        check_batches(data.RandomSampler(range(N)), N, q=Q)
    with pytest.raises(MechanismError, match="a loader over a data set of them"):
        check_batches(data.DataLoader(data.TensorDataset(torch.arange(N), torch.arange(N)), 8), N, q=Q)


@pytest.mark.torch
def test_samplers_of_opacus(torch):
    opacus = pytest.importorskip("opacus", reason="Opacus is not installed: make matrix ROWS=torch")
    sampler = opacus.utils.uniform_sampler.UniformWithReplacementSampler(num_samples=N, sample_rate=Q)
    assert check_batches(sampler, N, q=Q).verdict is Verdict.NOT_REFUTED
    assert refuted(check_batches(sampler, N, q=0.09)) == ["inclusion"]
    examples = torch.utils.data.TensorDataset(torch.arange(N))
    loader = opacus.data_loader.DPDataLoader(examples, sample_rate=0.02)
    assert check_batches(loader, N, q=0.02).verdict is Verdict.NOT_REFUTED
    never_empty = opacus.data_loader.DPDataLoader(examples, sample_rate=0.02, rand_on_empty=True)
    assert "size" in refuted(check_batches(never_empty, N, q=0.02))


@pytest.mark.jax
def test_samplers_of_jax_privacy():
    selection = pytest.importorskip("jax_privacy.batch_selection", reason="no jax-privacy: make matrix ROWS=torch")

    def poisson(rate=Q, **options):
        return selection.CyclicPoissonSampling(sampling_prob=rate, iterations=10, **options)

    def padded(n, rng):
        return [selection.pad_to_multiple_of(batch, 8) for batch in poisson().batch_iterator(n, rng)]

    for sampler in (poisson().batch_iterator, padded):
        assert check_batches(sampler, N, q=Q).verdict is Verdict.NOT_REFUTED
    assert "size" in refuted(check_batches(poisson(truncated_batch_size=12).batch_iterator, N, q=Q))
    assert refuted(check_batches(poisson(2 * Q, cycle_length=2).batch_iterator, N, q=Q)) == ["rounds"]
    bins = selection.BallsInBinsSampling(iterations=10, cycle_length=10)
    assert refuted(check_batches(bins.batch_iterator, N, q=Q)) == ["rounds"]
    for replaces, sampling in ((False, "fixed"), (True, "with replacement")):
        fixed = selection.FixedBatchSampling(batch_size=10, iterations=10, replace=replaces)
        assert check_batches(fixed.batch_iterator, N, batch_size=10, sampling=sampling).verdict is Verdict.NOT_REFUTED
