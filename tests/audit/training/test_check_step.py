"""The pitfalls of private training, planted in steps of numpy, each beside a correct variant."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import chi2

import dpaudit
from dpaudit import ApproxDP, GaussianDP, PureDP, Replace, Verdict, ZeroConcentratedDP, ZeroOut
from dpaudit.audit.training.step_result import ROWS
from dpaudit.errors import DatasetError, InconclusiveError, MechanismError, OptionError, RefutedError
from dpaudit.training import check_step

GRADIENTS = np.random.default_rng(1).normal(size=(8, 30))
FEW = {"tolerance": 0.1, "claim": GaussianDP(1.0)}


def finite(gradients):
    """Gradients that are not finite become 0, as their example then shows nothing."""
    return np.where(np.isfinite(gradients).all(axis=1, keepdims=True), gradients, 0.0)


def clipped(gradients, clip=1.0, *, order=2):
    """Every gradient with a norm of at most `clip`; a norm that overflows counts as infinite."""
    norms = np.linalg.norm(gradients, axis=1, ord=order, keepdims=True)
    norms = np.where(np.isfinite(norms), norms, np.inf)
    return gradients / np.maximum(norms / clip, 1.0)


def total(gradients, clip=1.0, *, order=2):
    return clipped(finite(gradients), clip, order=order).sum(axis=0)


def clipped_sum(gradients):
    """The wrong order: the sum is clipped, not every gradient."""
    return clipped(finite(gradients).sum(axis=0, keepdims=True))[0]


def over_chunks(function, gradients, size=4):
    """The sum of a function of chunks of the batch."""
    chunks = [gradients[start : start + size] for start in range(0, len(gradients), size)]
    return sum(map(function, chunks), np.zeros(30))


def noise(gradients, rng, scale=1.0):
    return rng.normal(scale=scale, size=gradients.shape[1])


def plain(gradients, rng):
    return total(gradients) + noise(gradients, rng)


def good(gradients, rng):
    return plain(gradients, rng) / 8


def refuted(step, batch=GRADIENTS, **options):
    """The rows that are refuted, by name."""
    return {*check_step(step, batch, **{**FEW, **options}).named(Verdict.REFUTED)}


def is_silent(step, batch=GRADIENTS, **options):
    result = check_step(step, batch, **{**FEW, **options})
    assert result.verdict is Verdict.NOT_REFUTED, str(result)
    return True


# Faulty steps of more than a line, and correct ones.


def divided(gradients, rng):
    return plain(gradients, rng) / max(len(gradients), 1)


def clipped_by_tensor(gradients, rng, scale=1.0):
    parts = {"w": gradients[:, :10], "b": gradients[:, 10:]}
    return {name: total(part) + noise(part, rng, scale) for name, part in parts.items()}


def twice_the_clip(gradients, rng):
    return total(gradients, 2.0) + noise(gradients, rng)


def beside(name, value):
    """A step that releases a value of the gradients in addition."""
    return lambda gradients, rng: {"update": good(gradients, rng), name: value(finite(gradients))}


def constant_beside(gradients, rng):
    return {"update": good(gradients, rng), "learning_rate": 0.1, "step": 7}


def raw_momentum(gradients, rng):
    return {"update": plain(gradients, rng), "momentum": 0.9 * np.ones(30) + total(gradients)}


def noisy_momentum(gradients, rng):
    update = plain(gradients, rng)
    return {"update": update, "momentum": 0.9 * np.ones(30) + update}


def nan_passes(gradients, rng):
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    factors = np.where(norms > 1.0, 1.0 / norms, 1.0)  # NaN > 1 is false
    return (gradients * factors).sum(axis=0) + noise(gradients, rng)


def accumulated(gradients, rng):
    return over_chunks(total, gradients) + noise(gradients, rng)


def same_noise_in_chunks(gradients, rng):
    drawn = noise(gradients, rng)
    return over_chunks(lambda rows: total(rows) + drawn, gradients)


def normalised(gradients, rng):
    rows = finite(gradients)
    rows = rows / (1.0 + rows.std(axis=0)) if len(rows) else rows
    return clipped(rows).sum(axis=0) + noise(gradients, rng)


def experts(gradients, rng):
    """Examples beyond the capacity of their expert, four, are dropped."""
    rows, expert = finite(gradients), gradients[:, 0] > 0
    kept = [rows[expert == which][:4] for which in (False, True)]
    return clipped(np.concatenate(kept)).sum(axis=0) + noise(gradients, rng)


def contrastive(gradients, rng):
    rows = clipped(finite(gradients))
    others = rows.sum(axis=0) - rows
    return clipped(rows - 0.1 * others).sum(axis=0) + noise(gradients, rng)


def same_noise_for_all(gradients, rng):
    rows, drawn = clipped(finite(gradients)), rng.normal(size=15)
    return {"w": rows[:, :15].sum(axis=0) + drawn, "b": rows[:, 15:].sum(axis=0) + drawn}


def one_seed_for_every_step(gradients, rng):
    again = np.random.Generator(np.random.PCG64(rng.bit_generator.seed_seq.entropy))
    return good(gradients, again)


def unseeded(gradients):
    return good(gradients, np.random.default_rng())


def global_state(gradients):
    return total(gradients) + np.random.normal(size=30)  # noqa: NPY002


def copied_update(gradients, rng):
    update = good(gradients, rng)
    return {"update": update, "parameters": np.ones(30) - 0.5 * update}


def automatic_clipping(gradients, rng):
    rows = finite(gradients)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / (np.where(np.isfinite(norms), norms, np.inf) + 0.01)).sum(axis=0) + noise(gradients, rng)


def padded(gradients, rng):
    rows = np.zeros((32, 30))
    rows[: len(gradients)] = finite(gradients)
    return clipped(rows).sum(axis=0) + noise(gradients, rng)


def change_of_parameters(gradients, rng):
    old = np.ones(30, np.float32)
    return old - np.float32(0.1) * good(gradients, rng).astype(np.float32) - old


def clipped_at_the_median(gradients, rng):
    rows = finite(gradients)
    clip = float(np.median(np.linalg.norm(rows, axis=1))) if len(rows) else 1.0
    clip = clip if np.isfinite(clip) and clip > 0.0 else 1.0
    return clipped(rows, clip).sum(axis=0) + noise(gradients, rng, clip)


def noise_of_examples(gradients, rng):
    drawn = rng.normal(scale=1 / np.sqrt(8), size=gradients.shape)
    return total(gradients) + drawn.sum(axis=0)


def noise_twice(gradients, rng):
    drawn = rng.normal(size=15)
    return total(gradients) + np.concatenate([drawn, -drawn])


PLANTED = {
    "divided by the size of the batch": (divided, good, {"noise-scale"}),
    "divided before the noise": (
        lambda g, rng: total(g) / max(len(g), 1) + noise(g, rng, 1 / 8), good, {"privacy", "divisor", "isolation"}
    ),
    "clipped by tensor": (clipped_by_tensor, lambda g, rng: clipped_by_tensor(g, rng, np.sqrt(2)), {"privacy"}),
    "twice the clip": (twice_the_clip, good, {"privacy"}),
    "wrong norm": (lambda g, rng: total(g, order=np.inf) + noise(g, rng), good, {"privacy"}),
    "half the noise": (lambda g, rng: total(g) + noise(g, rng, 0.5), good, {"privacy"}),
    "noise unscaled alone": (
        lambda g, rng: clipped(1024.0 * finite(g)).sum(axis=0) + noise(g, rng) / 1024.0,
        lambda g, rng: (1024.0 * total(g) + 1024.0 * noise(g, rng)) / 1024.0,
        {"privacy"},
    ),
    "count": (beside("count", len), constant_beside, {"without-noise"}),
    "mean loss": (beside("loss", lambda rows: rows.sum()), constant_beside, {"without-noise"}),
    "largest norm": (beside("norm", lambda rows: np.linalg.norm(rows)), constant_beside, {"without-noise"}),
    "losses by example": (beside("losses", lambda rows: rows[:, 0]), constant_beside, {"without-noise"}),
    "running mean": (beside("mean", lambda rows: 0.1 * rows.sum(axis=0)), constant_beside, {"without-noise"}),
    "raw momentum": (raw_momentum, noisy_momentum, {"without-noise"}),
    "NaN passes a comparison": (nan_passes, good, {"not-finite"}),
    "NaN passes np.clip": (
        lambda g, rng: np.clip(g, -1, 1).sum(axis=0) / np.sqrt(30) + noise(g, rng), good, {"not-finite"}
    ),
    "NaN on the empty batch": (
        lambda g, rng: plain(g, rng) * (1.0 if len(g) else np.nan), good, {"empty-batch"}
    ),
    "error on the empty batch": (lambda g, rng: good(g, rng) + 0.0 * g[0], good, {"empty-batch"}),
    "clipped in chunks": (
        lambda g, rng: over_chunks(clipped_sum, g) + noise(g, rng), accumulated, {"isolation", "order"}
    ),
    "same noise in chunks": (same_noise_in_chunks, accumulated, {"noise-scale"}),
    "noise in each chunk": (
        lambda g, rng: over_chunks(lambda rows: plain(rows, rng), g), accumulated, {"noise-scale"}
    ),
    "noise in the last chunk": (
        lambda g, rng: [total(g[:4]), total(g[4:]) + noise(g, rng)], accumulated, {"without-noise"}
    ),
    "mean of chunks": (
        lambda g, rng: over_chunks(lambda rows: total(rows) / len(rows), g) + noise(g, rng, 0.25),
        accumulated,
        {"privacy", "isolation"},
    ),
    "batch normalisation": (normalised, good, {"isolation"}),
    "averaged before the clip": (lambda g, rng: clipped_sum(g / 8) + noise(g, rng), good, {"isolation"}),
    "experts with a capacity": (experts, good, {"isolation"}),
    "contrastive": (contrastive, good, {"isolation"}),
    "fixed seed": (lambda g, rng: good(g, np.random.default_rng(7)), unseeded, {"without-noise"}),
    "one number for all": (lambda g, rng: total(g) + rng.normal(), good, {"repeated-noise"}),
    "same noise for two tensors": (same_noise_for_all, copied_update, {"repeated-noise"}),
    "clipped at the median": (clipped_at_the_median, automatic_clipping, {"noise-scale"}),
    "without repetition": (lambda g, rng: plain(np.unique(finite(g), axis=0), rng), padded, {"isolation", "divisor"}),
    "noise of each example": (noise_of_examples, change_of_parameters, {"noise-scale"}),
    "noise and its negative": (noise_twice, good, {"repeated-noise"}),
    "one seed for every step": (one_seed_for_every_step, global_state, {"repeated-noise"}),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_pitfalls_are_refuted(name):
    step, _, expected = PLANTED[name]
    assert expected <= refuted(step), str(check_step(step, GRADIENTS, **FEW))


@pytest.mark.parametrize("step", dict.fromkeys(correct for _, correct, _ in PLANTED.values()))
def test_their_correct_variants_are_silent(step):
    assert is_silent(step)


def rounded_norm(gradients, rng):
    return (1.0 + 1e-7) * total(gradients) + noise(gradients, rng)


def in_float32(gradients, rng):
    """Its sum is in another order, too."""
    rows = clipped(finite(gradients)).astype(np.float32)
    return (rows[::-1].sum(axis=0) + noise(gradients, rng).astype(np.float32)) / np.float32(8)


@pytest.mark.parametrize("step", [rounded_norm, in_float32])
def test_rounding_is_no_leak(step):
    assert is_silent(step, derived=())
    assert is_silent(step, GRADIENTS.astype(np.float32))


def test_the_number_of_examples_kept_is_not_public():
    batch = (GRADIENTS, np.arange(8) == 7)

    def divided_by(divisor):
        def step(batch, rng):
            gradients, is_padding = batch
            return plain(gradients * ~is_padding[:, None], rng) / divisor(is_padding)

        return step

    assert refuted(divided_by(lambda is_padding: max(np.count_nonzero(~is_padding), 1)), batch) >= {"noise-scale"}
    assert is_silent(divided_by(lambda is_padding: 8), batch)


def test_adjacency_decides_how_far_an_example_moves_the_sum():
    """A replaced example moves it by twice the clipping norm, one that becomes zero by the norm."""
    assert refuted(good, sensitivity=0.12) == {"sensitivity"}
    assert is_silent(good, sensitivity=1 / 8)
    assert is_silent(good, adjacency="zero-out", sensitivity=1 / 8)
    assert refuted(good, adjacency="replace") == {"privacy"}
    assert is_silent(good, adjacency=Replace(), claim=GaussianDP(2.0))
    assert is_silent(divided, adjacency="replace", claim=GaussianDP(2.0))
    assert refuted(good, adjacency=ZeroOut(5.0)) == {"privacy"}  # an example of fives moves it, too
    with pytest.raises(OptionError, match="is not an example of this batch"):
        check_step(good, GRADIENTS, adjacency=ZeroOut((0.0, 1.0)), **FEW)


def test_microbatches_claimed_with_their_sensitivity():
    def pairs_clipped(gradients, rng):
        return over_chunks(clipped_sum, gradients, 2) + noise(gradients, rng, 2.0)

    assert refuted(pairs_clipped, adjacency="replace") == {"isolation", "order"}
    assert is_silent(pairs_clipped, adjacency="replace", ignore=["isolation", "order"])


# Claims.


def test_mu_is_compared_with_claims_of_any_family():
    for claim, weaker in (
        (ApproxDP(0.5, 1e-5), ApproxDP(5.0, 1e-5)),  # δ of μ = 1 is 1e-5 at ε = 4.3774
        (ZeroConcentratedDP(0.2), ZeroConcentratedDP(0.5)),
    ):
        assert refuted(good, claim=claim) == {"privacy"}
        assert is_silent(good, claim=weaker)
    assert check_step(good, GRADIENTS, claim=PureDP(9.0)).verdict is Verdict.INCONCLUSIVE


def test_the_interval_of_mu_contains_the_exact_one():
    exact = 1.0  # clipping norm 1 and σ = 1
    outside = 0
    for seed in range(20):
        result = check_step(good, GRADIENTS, tolerance=0.1, seed=seed, made_up=False)
        outside += not result.mu_lower <= exact <= result.mu_upper
        assert result.confidence_interval() == (result.mu_lower, result.mu_upper)
        assert result.mu_upper / result.mu_lower < 1.4
    assert outside <= 5  # binom.isf(1e-6, 20, 0.025), the level of the interval


def test_unequal_scales_are_counted_for_approximate_claims():
    """The bound from counts is below the exact ε of N(0, I) and N(0, 4 I) in 29 numbers, on the balls that are best."""
    result = check_step(divided, GRADIENTS, claim=ApproxDP(1.0, 1e-5), ignore=["empty-batch"], tolerance=0.1)
    row = result.rows[0]
    assert "isolation" not in {each.name for each in result.rows}  # outputs with other noise do not compare
    assert row.name == "noise-scale"
    assert row.verdict is Verdict.REFUTED
    needed = float(row.found.partition("epsilon >= ")[2].split()[0])
    points = np.linspace(0.0, 300.0, 300_001)
    tails = [(chi2.sf(points, 29), chi2.sf(points / 4, 29)), (chi2.cdf(points, 29), chi2.cdf(points / 4, 29))]
    with np.errstate(all="ignore"):
        best = max(np.nanmax(np.log((p - 1e-5) / q)) for one in tails for p, q in (one, one[::-1]))
    assert 1.0 < needed < best


def test_a_module_that_draws_when_it_is_imported_is_no_second_step(tmp_path, monkeypatch):
    (tmp_path / "drawing.py").write_text("import random\nNUMBER = random.random()\n")
    monkeypatch.syspath_prepend(tmp_path)

    def importing(gradients, rng):
        import drawing

        return plain(gradients, rng) + 0.0 * drawing.NUMBER

    assert check_step(importing, GRADIENTS, claim=GaussianDP(1.0)).verdict is Verdict.NOT_REFUTED


def scaled_by_size(gradients, rng):
    """Smooth sensitivity: noise of heavy tails, whose scale may depend on the data a little."""
    return (1.05 if len(gradients) % 2 else 1.0) * rng.standard_t(3, size=2)


def scaled_by_a_sign(gradients, rng):
    """Noise that is 2% wider on some batches, and the same on most neighbours."""
    is_wide = finite(gradients)[:, 0].sum() > 0.0
    return total(gradients) + (2.04 if is_wide else 2.0) * rng.standard_t(9, gradients.shape[1])


def divided_by_its_norm(gradients, rng):
    noisy = total(gradients) + 0.5 * noise(gradients, rng)
    return noisy / np.linalg.norm(noisy)


@pytest.mark.parametrize(
    ("step", "claim"),
    [
        (scaled_by_size, ApproxDP(6.0, 1e-6)),
        (divided_by_its_norm, GaussianDP(4.0)),
        (scaled_by_a_sign, GaussianDP(4.0)),
    ],
)
def test_other_noise_on_neighbours_refutes_no_claim_by_itself(step, claim):
    assert not check_step(step, GRADIENTS, **FEW | {"claim": claim}).is_refuted


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gradients_that_overflow_refute_a_step_that_does_not_clip(dtype):
    batch = np.full((2, 3), 0.5, dtype)
    assert refuted(lambda g, rng: finite(g).sum(axis=0) + noise(g, rng), batch) >= {"privacy"}


@pytest.mark.parametrize(
    "step",
    [
        lambda g, rng: total(g) + rng.uniform(-3.5, 3.5, 30),
        lambda g, rng: total(g) + np.append(np.full(29, 2.0), 2e-6) * noise(g, rng),
    ],
)
def test_noise_that_is_not_normal_with_one_scale_passes_no_check(step):
    assert check_step(step, GRADIENTS, claim=GaussianDP(0.5)).verdict is not Verdict.NOT_REFUTED


def test_a_tenth_less_noise_does_not_pass():
    assert "privacy" in refuted(lambda g, rng: total(g) + noise(g, rng, 0.9), tolerance=0.03)


def test_shared_noise_that_no_pair_of_numbers_shows_refutes_nothing_wrongly():
    """A sum of other numbers of the output repeats their noise, so that μ is smaller than for independent noise."""

    def with_sum(gradients, rng):
        update = plain(gradients, rng)
        return {"update": update, "total": update.sum()}

    aligned = np.ones((4, 30))
    result = check_step(with_sum, aligned, claim=GaussianDP(1.0), tolerance=0.1)
    assert result.mu_lower > 1.2  # √2, were the noise independent
    assert result.verdict is Verdict.NOT_REFUTED
    assert any("independent noise" in note for note in result.notes)


def test_a_step_that_a_failure_changes_is_inconclusive():
    failed = []

    def step(gradients, rng):
        if not len(gradients):
            failed.append(1)
            raise ValueError("empty")
        return good(gradients, rng) + len(failed)

    result = check_step(step, GRADIENTS, **FEW)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "restore it after each call" in result.sentence


# Noise that is not normal, and steps that cannot be compared.


def adam(gradients, rng):
    update = good(gradients, rng)
    return {"gradient": update, "parameters": -0.1 * update / (np.abs(update) + 1e-8)}


OLD = np.random.default_rng(3)


def dropout(gradients, rng):
    kept = clipped(finite(gradients)) * (rng.random(gradients.shape) < 0.5)
    return kept.sum(axis=0) + noise(gradients, rng)


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (lambda rows, rng: total(rows) + rng.laplace(size=30), "not normal with one scale"),
        (lambda rows, rng: total(rows) + noise(rows, rng) * np.repeat([1.0, 3.0], 15), "not normal with one scale"),
        (adam, "return the noisy gradient"),
        (lambda rows, rng: np.sign(good(rows, rng)), "before they are rounded"),
        (lambda rows, rng: np.clip(good(rows, rng), -0.1, 0.1), "return the noisy gradient"),
        (lambda rows, rng: good(rows[rng.permutation(len(rows))], rng), "draws depend on the batch"),
        (lambda rows, rng: total(rows) + OLD.normal(size=30), "take the generator as a second parameter"),
        (dropout, "draws depend on the batch (dropout"),
        (lambda rows, rng: noise(rows, rng), "does the step use its batch?"),
    ],
)
def test_what_cannot_be_tested_is_inconclusive(step, said):
    result = check_step(step, GRADIENTS)
    assert result.verdict is Verdict.INCONCLUSIVE, str(result)
    assert said in " ".join(str(result).split())
    with pytest.raises(InconclusiveError):
        result.raise_if_refuted()


def test_tensors_that_are_not_trained_are_noted():
    def lora(gradients, rng):
        return {"adapter": good(gradients, rng), "frozen": np.ones(9), "other": rng.normal(size=40)}

    result = check_step(lora, GRADIENTS, **FEW)
    assert result.verdict is Verdict.NOT_REFUTED
    assert any(note.startswith("no example moves frozen, which has no noise") for note in result.notes)
    assert any(note.startswith("no example moves other, which has noise") for note in result.notes)


def test_outputs_may_be_derived_or_fields_of_a_dataclass():
    assert is_silent(adam, derived="parameters"), "what is derived only has to get noise"

    @dataclass
    class Released:
        update: np.ndarray
        count: int

    assert refuted(lambda gradients, rng: Released(good(gradients, rng), len(gradients))) == {"without-noise"}
    assert is_silent(lambda gradients, rng: Released(good(gradients, rng), 8))


def test_given_examples_are_tried():
    """Canaries, where examples are not made up."""
    step, small = (lambda g, rng: g.sum(axis=0) + noise(g, rng)), 0.01 * GRADIENTS
    assert is_silent(step, small, made_up=False)
    assert "privacy" in refuted(step, small, made_up=False, examples=np.full((2, 30), 3.0))


# Arguments.


def changes_its_batch(gradients, rng):
    gradients *= 2.0
    return good(gradients, rng)


@pytest.mark.parametrize(
    ("step", "batch", "options", "error", "said"),
    [
        (good, 3.0, {}, DatasetError, "no leading axis"),
        (good, GRADIENTS[:0], {}, DatasetError, "at least one"),
        (good, (GRADIENTS, np.ones(3)), {}, DatasetError, "have 3 and 8 rows"),
        (good, GRADIENTS, {"adjacency": "local"}, OptionError, 'use "add-remove", "replace" or "zero-out"'),
        (good, GRADIENTS, {"tolerance": 0}, OptionError, "0 < tolerance < 1"),
        (good, GRADIENTS, {"ignore": "isolaton"}, OptionError, "is not a row of check_step"),
        (good, GRADIENTS, {"examples": np.ones((2, 4))}, OptionError, "another form"),
        (good, GRADIENTS, {"ignore": ROWS}, OptionError, "ignore fewer"),
        (good, GRADIENTS, {"derived": "weights"}, OptionError, "use it for dictionaries of tensors"),
        (adam, GRADIENTS, {"derived": "weights"}, OptionError, "use one of "),
        (lambda g, rng: None, GRADIENTS, {}, MechanismError, "without any numbers"),
        (lambda g, rng: "text", GRADIENTS, {}, MechanismError, "not made of numbers"),
        (lambda g, rng: {"g": np.ma.array(g)}, GRADIENTS, {}, MechanismError, "a masked array"),
        (lambda g, rng: g @ np.ones(4), GRADIENTS, {}, MechanismError, "fails on the batch: ValueError"),
        (lambda g, rng: noise(g, rng) * np.nan, GRADIENTS, {}, MechanismError, "finite parameters"),
        (changes_its_batch, GRADIENTS, {}, MechanismError, "changes its batch"),
        (lambda g, rng, more: g, GRADIENTS, {}, MechanismError, "use the parameters"),
        (lambda g, rng: good(g.reshape(8, 30), rng), GRADIENTS, {}, MechanismError, 'adjacency="replace"'),
    ],
)
def test_wrong_arguments_are_named(step, batch, options, error, said):
    with pytest.raises(error, match=said.replace("(", r"\(")):
        check_step(step, batch, **options)


# The result.


def test_a_result_shows_its_rows(tmp_path):
    result = check_step(twice_the_clip, GRADIENTS, **FEW)
    assert result.rows[1].place.endswith("in noise")
    assert len(result.table().splitlines()) == len(result.rows) == 10
    assert "twice_the_clip" in repr(result)
    assert "REFUTED" in result._repr_html_()
    flat = result.to_dict()
    assert (flat["verdict"], flat["privacy_verdict"], flat["isolation_verdict"]) == (
        "refuted",
        "refuted",
        "not refuted",
    )
    with pytest.raises(RefutedError):
        result.raise_if_refuted()
    dpaudit.save({"step": result}, tmp_path / "step.json")
    (check,) = dpaudit.load(tmp_path / "step.json").checks
    assert (check.kind, check.verdict, check.claim, check.alpha) == ("step", "REFUTED", "1-GDP", 0.05)
    assert check.lines[0] == result.sentence


def test_the_same_seed_gives_the_same_result():
    one, again, other = (check_step(good, GRADIENTS, **FEW, seed=seed) for seed in (1, 1, 2))
    assert one == again
    assert one.mu != other.mu
    assert one.sentence.startswith(f"NOT REFUTED  good: mu between {one.mu_lower:.4g} and ")
