"""Steps of torch and Opacus, correct and with the pitfalls of private training."""

import warnings

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make matrix ROWS=torch")

from dpaudit import GaussianDP, Verdict  # noqa: E402
from dpaudit.errors import DatasetError, OptionError  # noqa: E402
from dpaudit.training import check_step, torch_step  # noqa: E402

pytestmark = pytest.mark.torch
X = torch.randn((8, 4), generator=torch.Generator().manual_seed(1))
BATCH = (X, torch.arange(8) % 3)
FEW = {"claim": GaussianDP(1.0), "tolerance": 0.1}


def refuted(step, batch=BATCH, **options):
    return {*check_step(step, batch, **{**FEW, **options}).named(Verdict.REFUTED)}


def model(*extra):
    torch.manual_seed(0)
    layers = (torch.nn.Linear(4, 8), *extra, torch.nn.Tanh(), torch.nn.Linear(8, 3))
    return torch.nn.Sequential(*layers)


def example_gradients(made, batch):
    """The gradients of the examples by parameter, without a hook: a loop."""
    rows = []
    for x, y in zip(*batch, strict=True):
        loss = torch.nn.functional.cross_entropy(made(x[None]), y[None])
        rows.append(torch.autograd.grad(loss, list(made.parameters())))
    return [torch.stack(each) for each in zip(*rows, strict=True)] if rows else []


def private(batch, generator, *, clip=1.0, same=False, raw=False):
    """The noisy gradient of a small model, clipped over all parameters."""
    made = model()
    found = example_gradients(made, batch)
    totals = [torch.zeros_like(each) for each in made.parameters()]
    if found:
        norms = torch.sqrt(sum((each.flatten(1) ** 2).sum(dim=1) for each in found))
        factors = torch.where(torch.isfinite(norms), 1.0 / torch.clamp(norms / clip, min=1.0), 0.0)
        totals = [
            torch.einsum("i,i...->...", factors, torch.nan_to_num(each, nan=0.0, posinf=0.0, neginf=0.0))
            for each in found
        ]
    noisy, seed = {}, generator.initial_seed()
    for (name, _), total in zip(made.named_parameters(), totals, strict=True):
        if same:
            generator.manual_seed(seed)
        noisy[name] = total + torch.randn(total.shape, generator=generator)
    return {"noisy": noisy, "raw": totals[-1]} if raw else noisy


def test_a_correct_step_is_silent():
    assert check_step(private, BATCH, **FEW).verdict is Verdict.NOT_REFUTED


@pytest.mark.parametrize(
    ("wrong", "row"), [({"clip": 2.0}, "privacy"), ({"same": True}, "repeated-noise"), ({"raw": True}, "without-noise")]
)
def test_pitfalls_are_refuted(wrong, row):
    assert row in refuted(lambda batch, generator: private(batch, generator, **wrong))


def noisy_sgd(made):
    """An optimiser that averages before it clips, with noise in the parameters alone."""

    class NoisySGD(torch.optim.SGD):
        def step(self, closure=None):
            for each in self.param_groups[0]["params"]:
                each.grad.mul_(1.0 / max(float(each.grad.norm()), 1.0)).add_(torch.randn_like(each))
            return super().step(closure)

    return NoisySGD(made.parameters(), lr=1.0)


def test_a_model_its_optimiser_and_its_loss_leave_no_trace():
    made = model(torch.nn.BatchNorm1d(8))
    before = {name: each.clone() for name, each in made.state_dict().items()}
    state = torch.random.get_rng_state()
    optimiser = noisy_sgd(made)
    step = torch_step(made, optimiser, lambda batch: torch.nn.functional.cross_entropy(made(batch[0]), batch[1]))
    found = refuted(step, adjacency="replace")
    assert {"without-noise", "isolation"} <= found  # running statistics, and the statistics of the batch
    assert all(torch.equal(each, before[name]) for name, each in made.state_dict().items())
    assert torch.equal(torch.random.get_rng_state(), state)
    assert not optimiser.state
    assert all(each.grad is None for each in made.parameters())


def test_dropout_is_named():
    made = model(torch.nn.Dropout(0.5))
    step = torch_step(made, noisy_sgd(made), lambda batch: made(batch[0]).square().sum())
    result = check_step(step, BATCH, adjacency="replace", ignore="not-finite", **FEW)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "function of the batch" in str(result) or "dropout" in str(result)


def test_half_precision_is_said():
    def halved(batch, generator):
        return {name: each.to(torch.bfloat16) for name, each in private(batch, generator).items()}

    result = check_step(halved, BATCH, **FEW)
    assert result.verdict is not Verdict.REFUTED
    assert any("half precision" in note for note in result.notes)


def test_wrong_arguments_are_named():
    made = model()
    with pytest.raises(OptionError, match='use "gradients" or "parameters"'):
        torch_step(made, noisy_sgd(made), lambda batch: None, output="loss")
    with pytest.raises(DatasetError, match="move it to the CPU"):
        torch_step(model().to("meta"), None, lambda batch: None)
    with pytest.raises(DatasetError, match="move model and batch to the CPU"):
        check_step(private, torch.zeros((2, 3), device="meta"))


# Opacus.


def opacus_step(*, optimiser="SGD", poisson=True, noise=1.0, extra=()):
    opacus = pytest.importorskip("opacus", reason="Opacus is not installed: make matrix ROWS=torch")
    made = model(*extra)
    inner = getattr(torch.optim, optimiser)(made.parameters(), lr=0.1)
    data = torch.utils.data.TensorDataset(X.repeat(8, 1), BATCH[1].repeat(8))
    loader = torch.utils.data.DataLoader(data, batch_size=8)
    with warnings.catch_warnings(action="ignore"):
        engine = opacus.PrivacyEngine()
        made, outer, *_ = engine.make_private(
            module=made, optimizer=inner, data_loader=loader, noise_multiplier=noise, max_grad_norm=1.0,
            poisson_sampling=poisson,
        )  # fmt: skip
    criterion = torch.nn.CrossEntropyLoss()
    return torch_step(made, outer, lambda batch: criterion(made(batch[0]), batch[1])), engine, made, outer


@pytest.mark.parametrize("poisson", [True, False])
@pytest.mark.parametrize("optimiser", ["SGD", "Adam"])
def test_the_step_of_opacus_is_refuted_by_nan_alone(optimiser, poisson):
    step, engine, made, _ = opacus_step(optimiser=optimiser, poisson=poisson)
    before = [each.clone() for each in made.parameters()]
    result = check_step(step, BATCH, **FEW)
    assert [row.name for row in result.rows if row.verdict is not Verdict.NOT_REFUTED] == ["not-finite"]
    assert all(map(torch.equal, made.parameters(), before))
    assert len(engine.accountant) == 0
    assert check_step(step, BATCH, ignore="not-finite", **FEW).verdict is Verdict.NOT_REFUTED


def test_the_noise_of_opacus_is_controlled():
    assert "privacy" in refuted(opacus_step(noise=0.5)[0])
    step, _, _, outer = opacus_step()
    outer.generator = torch.Generator().manual_seed(3)
    state = outer.generator.get_state()
    assert check_step(step, BATCH, ignore="not-finite", **FEW).verdict is Verdict.NOT_REFUTED
    assert torch.equal(outer.generator.get_state(), state)


def test_a_failure_of_opacus_half_way_leaves_no_trace():
    """Opacus keeps the activations of a forward pass whose backward pass did not follow."""

    class Fails(torch.nn.Module):
        def forward(self, x):
            if not len(x):
                raise ValueError("empty")
            return x

    step, *_ = opacus_step(extra=(Fails(),))
    result = check_step(step, BATCH, ignore="not-finite", **FEW)
    assert result.named(Verdict.REFUTED) == ["empty-batch"]
