"""Every case of every experiment: true versions are not refuted and false ones are. `make evidence` audits all of them.

With seed 0 and alpha 1e-7 each: the cases that must not be refuted, at most 300 of them, raise a false alarm with
probability 3e-5 together. False versions are audited with a few runs, and with more until all of theirs are done.
"""

import pytest

from dpaudit import Claim, Verdict
from dpaudit.experiments.cases.experiment import AuditCase
from dpaudit.experiments.suite.run_suite import all_experiments

NOT_REFUTED = Verdict.NOT_REFUTED
CASES = {case.name: case for experiment in all_experiments() for case in experiment.cases}
AUDITS = [case for case in CASES.values() if isinstance(case, AuditCase)]
TRUE_RUNS = 2_000  # of a true version's audit, at most: a false alarm does not wait for millions
QUICK = ("laplace", "E2-two-missing-2", "E3-slope", "E3-slope-missing-2", "D7-laplace-2")


def verdicts(case):
    """Verdict of the audit with few runs, then with more.

    A true version whose few runs cannot detect an excess as large as its claim counts as not refuted.
    """
    if not isinstance(case, AuditCase):
        sizes = [case.runs]
    elif case.expected is NOT_REFUTED:
        sizes = [min(case.runs, TRUE_RUNS)]
    else:
        sizes = [*(runs for runs in (4_000, 20_000, 100_000, 500_000) if runs < case.runs), case.runs]
    for runs in sizes:
        result = case.run(runs=runs, alpha=1e-7, seed=0, jobs=1, progress=None)
        is_small = case.expected is NOT_REFUTED and result.verdict is Verdict.INCONCLUSIVE and not result.findings
        yield NOT_REFUTED if is_small else result.verdict


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.evidence) for name in CASES]
)
def test_verdict_is_the_expected_one(name):
    assert CASES[name].expected in verdicts(CASES[name])


def test_false_alarms_stay_within_what_is_declared():
    assert sum(case.expected is NOT_REFUTED for case in CASES.values()) <= 300


def test_claim_is_kept_exactly_in_true_versions_alone():
    """By the exact strength on the pair, where a law gives one, which is so of most."""
    known = [case for case in AUDITS if case.exact is not None]
    assert len(known) >= 0.9 * len(AUDITS)
    for case in known:
        claim = case.claim if isinstance(case.claim, Claim) else case.claim(case.distance)
        exceeds = case.exact > claim.strength * (1 + 1e-9) + 1e-12
        assert exceeds == (case.expected is Verdict.REFUTED), case.name
