"""torch in replays: the same numbers as without a record, sums with noise, batches, generators."""

import numpy as np
import pytest

from dpaudit import GaussianDP, replay
from dpaudit.audit.results.verdict import ReplayVerdict

torch = pytest.importorskip("torch", reason="torch is not installed: make matrix ROWS=torch")

BOUNDED, EXCESS, UNDETERMINED = ReplayVerdict.BOUNDED, ReplayVerdict.EXCESS, ReplayVerdict.UNDETERMINED
X, Y = torch.tensor([1.0, 0.0, 1.0, 1.0]), torch.tensor([0.0, 0.0, 1.0, 1.0])
ROWS = torch.linspace(-2.0, 3.0, 80).reshape(20, 4)
LESS = torch.cat([ROWS[:7], ROWS[8:]])
OTHER = torch.where(torch.arange(20)[:, None] == 7, torch.tensor(-0.5), ROWS)
SCALE = 1.1


def run(mechanism, x=X, y=Y, claim=9.0, **options):
    return replay(mechanism, x, y, claim=GaussianDP(claim), **options)


def clipped(rows):
    return rows / rows.norm(dim=1, keepdim=True).clamp(min=1.0)


# Sums.

SUMS = {
    "behind": lambda s: s + SCALE * torch.randn(4),
    "before": lambda s: torch.randn(4) * SCALE + s,
    "subtracted": lambda s: s - torch.randn(4).mul_(SCALE),
    "alpha": lambda s: s.add(torch.randn(4), alpha=SCALE),
    "in place": lambda s: s.add_(torch.normal(0.0, SCALE, (4,))),
    "filled": lambda s: s + torch.zeros_like(s).normal_(0.0, SCALE),
    "like": lambda s: s + torch.randn_like(s) * SCALE,
    "view": lambda s: s.view(2, 2) + SCALE * torch.randn(4).view(2, 2),
    "cast": lambda s: s + SCALE * torch.randn(4, dtype=torch.float64).float(),
    "half": lambda s: s.half() + (SCALE * torch.randn(4)).half(),
    "sample": lambda s: torch.distributions.Normal(s, SCALE).sample(),
    "layers": lambda s: torch.cat([p + SCALE * torch.randn_like(p) for p in (s[:1], s[1:])]),
    "inference": torch.inference_mode()(lambda s: s + SCALE * torch.randn(4)),
}


@pytest.mark.parametrize("add", SUMS.values(), ids=SUMS)
def test_a_sum_has_the_loss_of_its_move(add):
    result = run(lambda d: [add(d.clone()) for _ in range(9)], claim=3.0 / SCALE * 1.001)
    assert result.verdict is BOUNDED
    assert result.loss.mu == pytest.approx(3.0 / SCALE, rel=1e-3)


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW"])
def test_optimisers_step_from_the_same_weights(kind):
    net = torch.nn.Linear(4, 1, bias=False)
    start = net.weight.detach().clone()

    def train(rows, scale=4.0):
        weight = torch.nn.Parameter(start.clone())
        options = {"momentum": 0.9} if kind == "SGD" else {}
        optimiser = getattr(torch.optim, kind)([weight], lr=0.1, **options)
        for _ in range(9):
            weight.grad = clipped(rows - weight.detach()).sum(0, keepdim=True)
            weight.grad.add_(torch.randn_like(weight.grad), alpha=scale)
            optimiser.step()
        return weight.detach()

    assert run(train, ROWS, LESS, 0.751).verdict is BOUNDED
    assert run(lambda rows: train(rows, 0.1), ROWS, LESS, 0.751).verdict is not BOUNDED


def noise_with(use):
    return lambda d: use(d, 4.0 * torch.randn(4))


@pytest.mark.parametrize(
    "mechanism",
    [
        noise_with(lambda d, n: [d + n, n.tolist()]),
        noise_with(lambda d, n: [d + n, 2.0 * d + n]),
        noise_with(lambda d, n: (d + n) - torch.tensor(n.tolist())),
        noise_with(lambda d, n: d + n if float(n[0]) < 2.0 else d),
        lambda d: torch.bernoulli(d),
        lambda d: torch.zeros(4).bernoulli_(0.01 + 0.98 * d),
    ],
    ids=["released", "twice", "taken off again", "decides", "certain answers", "randomised response"],
)
def test_other_uses_are_never_bounded(mechanism):
    assert run(mechanism).verdict is not BOUNDED


# Batches, and generators.


def loader(rows):
    data, w = torch.utils.data.TensorDataset(rows), torch.zeros(4)
    for _ in range(3):
        for (batch,) in torch.utils.data.DataLoader(data, batch_size=5, shuffle=True):
            w = w - 0.1 * (clipped(batch - w).sum(0) + 4.0 * torch.randn(4))
    return w


def poisson(rows):
    batch = rows[torch.rand(len(rows)) < 0.5]
    return clipped(batch).sum(0) + 4.0 * torch.randn(4)


@pytest.mark.parametrize(
    ("mechanism", "other"), [(loader, OTHER), (poisson, OTHER), (poisson, LESS)], ids=["epochs", "Poisson", "removed"]
)
def test_batches_are_the_same_on_x_and_y(mechanism, other):
    assert run(mechanism, ROWS, other).verdict is BOUNDED


def short_seed(d):
    seed = int(torch.empty((), dtype=torch.uint8).random_())
    return d + 4.0 * torch.randn(4, generator=torch.Generator().manual_seed(seed))


def same_state(d):
    state = torch.get_rng_state()
    first = d + 4.0 * torch.randn(4)
    torch.set_rng_state(state)
    return first, d + 4.0 * torch.randn(4)


def seeded(d):
    torch.random.manual_seed(3)
    return d + 4.0 * torch.randn(4)


@pytest.mark.parametrize("mechanism", [short_seed, same_state, seeded])
def test_noise_that_repeats_is_never_bounded(mechanism):
    assert run(mechanism).verdict is not BOUNDED


def test_everything_is_as_before_afterwards():
    names = ("normal", "randn", "rand", "randperm", "bernoulli", "Generator", "manual_seed")
    before, state = [getattr(torch, name) for name in names], torch.get_rng_state()
    generator = torch.default_generator
    seen = []

    def asks(d):
        seen.append(isinstance(generator, torch.Generator))
        torch.manual_seed(3)
        return d + torch.randn(4)

    run(asks)
    assert all(seen)
    assert [getattr(torch, name) for name in names] == before
    assert "normal_" not in vars(torch.Tensor)
    assert torch.equal(state, torch.get_rng_state())


DATASETS = {
    "no rows": (X[:1], X[:0]),
    "a number": (X[0], Y[0]),
    "bfloat16": (X.bfloat16(), X[:3].bfloat16()),
    "with gradients": (X.clone().requires_grad_(), X[:3].clone().requires_grad_()),
}


@pytest.mark.parametrize(("x", "y"), DATASETS.values(), ids=DATASETS)
def test_datasets_of_any_kind_are_replayed(x, y):
    assert run(lambda d: d.detach().sum().float() + torch.randn(1), x, y).verdict is BOUNDED


CALLS = {
    "bernoulli(p=)": lambda: torch.bernoulli(X, p=0.3),
    "Tensor.bernoulli(p)": lambda: X.bernoulli(0.3),
    "bernoulli(input=)": lambda: torch.bernoulli(input=X),
    "multinomial(input=)": lambda: torch.multinomial(input=X, num_samples=2),
    "poisson(input=)": lambda: torch.poisson(input=X),
    "rand_like(input=)": lambda: torch.rand_like(input=X),
    "randint_like(high=)": lambda: torch.randint_like(X, high=5),
    "randint(low, high=)": lambda: torch.randint(1, high=5, size=[3]),
    "randn(numpy)": lambda: torch.randn(np.int64(3)),
    "randn(list)": lambda: torch.randn([2, 3], dtype=torch.float64),
    "normal(std=)": lambda: torch.normal(mean=0.0, std=X + 1.0),
    "random_(from=)": lambda: torch.zeros(3).random_(**{"to": 5, "from": 2}),
    "vmap": lambda: torch.func.vmap(lambda v: v + torch.randn(()), randomness="different")(X),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_calls_of_every_form_are_recorded_or_left_alone(call):
    result = run(lambda d: call())
    assert "raises" not in str(result)
    assert result.output_on_x.shape == call().shape
