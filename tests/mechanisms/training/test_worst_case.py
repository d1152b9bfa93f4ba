"""The worst case, on which audits come near the claim, and natural data, on which they stay below it."""

from dataclasses import replace

import numpy as np
import pytest

from dpaudit import Verdict, check
from dpaudit.audit.errors import ClaimError, OptionError
from dpaudit.mechanisms.training.dp_sgd import DPSGD, WorstCaseTraining
from dpaudit.mechanisms.training.models import LogisticRegression, breast_cancer_records, zeroed
from dpaudit.mechanisms.training.observers import LastLoss, OwnGradient
from dpaudit.mechanisms.training.train import FullBatch

MISSED = 1e-3


@pytest.mark.parametrize("seen", ["ratio", "last"])
@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_audits_come_near_the_loss_and_do_not_pass_it(seen, rate):
    """A bound beyond the loss has probability 1e-3."""
    case = WorstCaseTraining(noise_multiplier=4.0, steps=8, rate=rate, clip=0.3, seen=seen, delta=1e-2)
    result = check(case.training, case.x, case.y, runs=40_000, alpha=MISSED, jobs=1)
    assert result.verdict is Verdict.NOT_REFUTED
    assert 0.65 * case.seen_epsilon < result.bound <= case.seen_epsilon


def test_less_is_seen_of_the_last_iterate_unless_batches_are_full():
    last, full = (WorstCaseTraining(noise_multiplier=1.0, steps=8, rate=rate, seen="last") for rate in (0.3, 1.0))
    assert 1.0 < last.seen_epsilon < replace(last, seen="ratio").seen_epsilon - 0.05
    assert full.seen_epsilon == replace(full, seen="sums").seen_epsilon


def test_one_step_shows_all_in_the_last_iterate():
    last = WorstCaseTraining(noise_multiplier=1.0, steps=1, rate=0.3, seen="last")
    assert last.seen_epsilon == last.training.claim.epsilon


def test_shapes_of_what_is_seen():
    rng = np.random.default_rng(0)
    for seen, shape in [("ratio", (5,)), ("sums", (5, 3)), ("last", (5,))]:
        case = WorstCaseTraining(noise_multiplier=1.0, steps=3, rate=0.5, seen=seen)
        assert case.training.sample(case.x, 5, rng).shape == case.training.sample(case.y, 5, rng).shape == shape


@pytest.mark.parametrize(("seen", "is_found"), [("own gradient", True), ("last loss", True)])
def test_natural_data_with_an_outlier_keep_the_claim_and_less_noise_does_not(seen, is_found):
    rows = breast_cancer_records()[:10]
    rows[0] = 1.0  # all features at the end of their range, and the class that does not fit
    target = tuple(rows[0].tolist())
    right = DPSGD(
        model=LogisticRegression(31),
        sampling=FullBatch(),
        noise_multiplier=4.0,
        steps=4,
        batch_size=10.0,
        observer=OwnGradient(target, is_total=True) if seen == "own gradient" else LastLoss(target),
        neighbours="replace_special",
    )
    x, y = rows, zeroed(rows, 0)
    assert check(right, x, y, runs=5000, alpha=MISSED, jobs=1).verdict is not Verdict.REFUTED
    quiet = replace(right, noise_multiplier=0.4)
    found = check(quiet, x, y, claim=right.claim, runs=5000, alpha=MISSED, jobs=1)
    assert (found.verdict is Verdict.REFUTED) == is_found


def test_errors():
    with pytest.raises(OptionError, match="seen='first' is unknown"):
        WorstCaseTraining(noise_multiplier=1.0, steps=1, seen="first")
    with pytest.raises(ClaimError, match="rate=0 is not allowed"):
        WorstCaseTraining(noise_multiplier=1.0, steps=1, rate=0)
