"""What all documents share: their experiments, and exact strengths and probabilities against closed forms."""

import math
from collections import defaultdict

import pytest

from dpaudit.experiments.documents import definition, laplace_composition
from dpaudit.experiments.statements.figures import EVENTS, SCALES
from dpaudit.experiments.suite.run_suite import all_experiments

CASES = {case.name: case for experiment in all_experiments() for case in experiment.cases}
EXACT = {
    "L1-second-branch": (0.5, 1e-9),  # half of all draws are elsewhere
    "L1-mixed": (0.5, 1e-9),
    "L2-two-removed": (2 * laplace_composition.EPSILON, 1e-9),
    "L2-exchanged": (2 * laplace_composition.EPSILON, 1e-9),
    "L3-group-4": (4 * laplace_composition.EPSILON, 1e-9),
    "L4-two-counts": (1.5 * laplace_composition.EPSILON, 1e-9),
    "L4-adaptive": (1 + laplace_composition.EPSILON, 1e-9),
    "L4-reuse": (math.inf, 1e-9),
    "L4-reuse-unseen": (laplace_composition.EPSILON, 1e-9),
    "L4-charged-once": (4 * laplace_composition.EPSILON, 1e-9),
    "L5-disjoint": (laplace_composition.EPSILON, 1e-9),
    "L5-overlapping": (2 * laplace_composition.EPSILON, 1e-9),
    "L5-replace": (2 * laplace_composition.EPSILON, 1e-9),
    "L6-part-0": (0.25, 1e-9),
    "L6-part-1": (1.0, 1e-9),
    "L6-part-2": (0.5, 1e-9),
    "G1-number-epsilon-0": (0.1, 0.01),
    "G1-number-epsilon-1": (1.0, 0.01),
    "G1-vector": (1.0, 0.01),
    "G1-local-number": (1.0, 0.01),
    "G1-local-vector": (1.0, 0.01),
    "G1-attained": (0.01, 0.01),
    "G2-at-10": (0.373, 0.01),
    "G3-one-for-epsilon-at-1.1": (3.9e-4, 0.01),
    "G3-newton": (2.1e-4, 0.01),
    "E2-one-up": (0.966, 6e-4),
    "E2-one-up-missing-2": (1.880, 6e-4),
    "E2-two": (0.727, 6e-4),
    "E2-two-missing-2": (1.735, 6e-4),
    "E2-two-opposite": (0.877, 6e-4),
    "E2-two-opposite-missing-2": (1.958, 6e-4),
    "E2-half-loss": (0.966, 6e-4),
    "E3-slope": (0.5, 6e-4),
    "E3-slope-missing-2": (1.0, 6e-4),
    "E5-prices-from-bids": (math.inf, 6e-4),
    "E7-exact": (1 / (1 + math.exp(4)), 6e-4),
    "E7-noisy-half": (math.exp(-3) / 2, 6e-4),
    "E8-value-released": (2.5, 6e-4),  # five times the epsilon of one noise
    "E9-general": (1.0, 6e-4),  # permute-and-flip is tight on two candidates
    "E10-gumbel": (0.0, 6e-4),
    "E10-exponential": (math.log(2 / (1 + math.exp(-2))), 6e-4),  # e⁻²/(1 + e⁻²) against e⁻²/2
    "M2-value-released": (2.0, 1e-9),
    "M2-no-query-noise": (math.inf, 1e-9),
    "M2-no-query-noise-one": (0.5, 1e-9),
    "M3-histogram": (1.0, 1e-9),
    "M3-histogram-half-noise": (2.0, 1e-9),
    "M3-subsets": (1.0, 1e-9),
    "M4-sensitivity-3": (1.0, 1e-9),
    "M4-squared-ratio": (2.0, 1e-9),
    "M4-per-row": (3.0, 1e-9),
    "M7-six-values": (1.0, 1e-9),
    "M7-truth-among-the-lies": (math.log(1 + 6 * math.e / 5), 1e-9),
    "M7-binary-odds": (1 + math.log(5), 1e-9),
    "M8-fold": (2.0, 1e-9),
    "M8-adaptive": (2.0, 1e-9),
    "M8-root": (2.0, 1e-9),
    "M9-two": (1.0, 1e-9),
    "M9-monotone": (1.0, 1e-9),
    "M9-monotone-replace": (2.0, 1e-9),
    "D2-histogram-half-noise": (2.0, 2e-3),
    "D3-edge-noise-for-nodes": (2.0, 2e-3),
    "D3-person-of-4": (1.0, 2e-3),
    "D3-person-of-8": (2.0, 2e-3),
    "D4-rare-leak-pure": (math.inf, 2e-3),
    "D4-rare-leak-delta": (1.0, 2e-3),
    "D5-gaussian": (0.01, 2e-3),
    "D5-loss-tail": (1.61e-4, 2e-3),
    "D6-exposed-nobody": ((1 - 1 / 2000) ** 20, 2e-3),
    "D7-laplace-8": (8 * definition.EPSILON, 2e-3),
    "D7-local-sensitivity-1": (definition.EPSILON, 2e-3),
    "D7-local-sensitivity-2": (4 * definition.EPSILON, 2e-3),
    "D7-tight-8": (1e-3 * math.expm1(8 * definition.EPSILON) / math.expm1(definition.EPSILON), 2e-3),
    "D8-distance-64": (64 * definition.EACH, 2e-3),
}


@pytest.mark.parametrize("name", EXACT)
def test_exact_numbers(name):
    exact, rel = EXACT[name]
    assert CASES[name].exact == pytest.approx(exact, rel=rel, abs=1e-12)


def test_documents_have_their_experiments_and_figures_their_cases():
    found = defaultdict(list)
    for experiment in all_experiments():
        found[experiment.document].append(experiment.id)
    numbers = {"exponential": ("E", 10), "analytic-gaussian": ("G", 3), "renyi": ("R", 3), "definition": ("D", 8)}
    numbers |= {"laplace-composition": ("L", 6), "named": ("M", 9)}
    expected = {document: [f"{letter}{k + 1}" for k in range(n)] for document, (letter, n) in numbers.items()}
    assert found == {"reference": ["reference"], **expected}
    assert {*EVENTS, *SCALES} <= set(CASES)
    assert all(case.note for name, case in CASES.items() if name.startswith("M"))
