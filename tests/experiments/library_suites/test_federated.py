"""Rounds of Flower and filters of NVIDIA FLARE in one process: what one client moves, and the noise beside it.

`make matrix ROWS="flwr nvflare"` runs them. The page of findings is run with the releases that it describes.
"""

import importlib.util
import logging
import math
import warnings
from pathlib import Path

import numpy as np
import pytest

from dpaudit import GaussianDP, ZeroOut
from dpaudit.audit.events.outputs import Raised
from dpaudit.experiments.libraries.subjects import is_installed, release_of
from dpaudit.experiments.library_suites.audited_library import NotCovered, plan_of
from dpaudit.experiments.library_suites.federated_forms import Round
from dpaudit.experiments.library_suites.library_names import library_named
from dpaudit.experiments.library_suites.run_plan import run_target

ROOT = Path(__file__).resolve().parents[3]
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of click, which Flower imports
    needs = {
        name: pytest.mark.skipif(not is_installed(name), reason=f"{name} is not installed: make matrix ROWS={name}")
        for name in ("flwr", "nvflare")
    }
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
SCALAR, FIXED = "a tensor without dimensions", "DifferentialPrivacyServerSideFixedClipping"
STRATEGIES = {
    *(f"{side}.strategy.DifferentialPrivacy{where}Side{how}Clipping"
      for side in ("server", "serverapp") for where in ("Client", "Server") for how in ("Fixed", "Adaptive")),
    "server.strategy.DPFedAvgFixed", "server.strategy.DPFedAvgAdaptive",
}  # fmt: skip
MOVED = {
    "noise_multiplier=1, 4 clients": 2 / 4,
    "noise_multiplier=2, clipping norm 3, 2 clients": 2 * 3 / 2,
    "weights 97, 1, 1, 1": 2 * 0.97,
    "2 of 4 clients reply": 2 / 2,
    "a median of 3": 2 * 0.9,
    "all clients are clipped": 2 / 4,
    SCALAR: 40 / 4,
}
"""What the update of one client moves; two clipping norms over the number of clients is what is claimed."""
ZEROED = ", or no change"
MOVED |= {f"{point}{ZEROED}": moved / 2 for point, moved in MOVED.items()}


def outputs(target, size=1):
    """The same noise on both sides of the pair."""
    mechanism, ((x, y),) = target.make(), target.domain
    return [np.array(mechanism.sample(each, size, np.random.default_rng(0)), dtype=object) for each in (x, y)]


def targets(name):
    plan = plan_of(library_named(name))
    assert all(each.reason for each in plan.excluded)
    return plan.targets


def test_a_round_is_drawn_from_its_seed_and_leaves_the_old_generator_and_the_logs_as_they_were():
    said = []

    def release(update):
        said.append(logging.root.isEnabledFor(logging.ERROR))
        return update + np.random.normal()  # noqa: NPY002

    drawn = Round(release=release, claim=GaussianDP(1.0), claim_source="")
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first, second, other = (drawn.sample(1.0, 3, np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert first == second != other
    assert len(set(first)) == 3
    assert not any(said)
    assert logging.root.isEnabledFor(logging.ERROR)
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@needs["flwr"]
class TestFlower:
    def test_all_strategies_with_noise_the_mods_and_the_accountant_are_planned(self):
        planned = {target.callable for target in targets("flwr")}
        assert planned == STRATEGIES | {"client.mod.LocalDpMod", "clientapp.mod.LocalDpMod", "serverapp.RdpAccountant"}

    @pytest.mark.parametrize("callable", sorted(STRATEGIES))
    def test_one_client_moves_the_model_as_far_as_computed_by_hand(self, callable):
        for target in targets("flwr"):
            if target.callable != callable or target.point not in MOVED:
                continue
            is_zeroed = target.point.endswith(ZEROED)
            x, y = outputs(target, 20)
            moved = np.abs((x - y)[0])[: 2 + (target.point == SCALAR)].astype(float)
            if callable.startswith("server.strategy.DPFedAvg") and target.point == SCALAR:
                assert np.linalg.norm(moved) < 2 / 4, "it is clipped with the others"
            elif callable.startswith("server.strategy.DPFedAvg") and target.point.startswith("a median of 3"):
                assert np.abs(x - y).max() > (1 if is_zeroed else 2) / 3, "noise is added before the median"
            else:
                is_equal = "DPFedAvg" in callable and target.point.startswith("weights")
                # A clipped update on one side only changes the next norm, and so the noise.
                precision = 1e-3 if "Adaptive" in callable else 1e-9
                expected = (1 if is_zeroed else 2) / 4 if is_equal else MOVED[target.point]
                assert moved.max() == pytest.approx(expected, rel=precision), target.name

    def test_no_change_is_a_null_record_and_claims_half(self):
        """As the accountant counts; the noise and the count of adaptive clipping are for a client that leaves."""
        held = {target.name: target for target in targets("flwr")}
        zeroed = {name: target for name, target in held.items() if name.endswith(ZEROED)}
        assert {t.callable for t in zeroed.values()} == {name for name in STRATEGIES if "Adaptive" not in name}
        for name, target in zeroed.items():
            made, ((x, y),) = target.make(), target.domain
            assert made.claim == GaussianDP(held[name.removesuffix(ZEROED)].make().claim.mu / 2)
            assert made.adjacency.distance(x, y) == 1 < made.adjacency.distance(x, [(2.0, 0.0)])
        accounted = [target.make() for target in held.values() if target.callable == "serverapp.RdpAccountant"]
        assert {type(made.adjacency) for made in accounted} == {ZeroOut}

    def test_an_update_with_nan_shows_and_one_of_zeros_fails_the_round(self):
        for target in targets("flwr"):
            if target.point == "an update with NaN":
                x, y = outputs(target)
                assert [any(map(math.isnan, each[0])) for each in (x, y)] == [False, True], target.name
            elif target.point == "an update of zeros":
                x, y = outputs(target)
                assert list(y) == [Raised("ZeroDivisionError")], target.name
                assert all(map(math.isfinite, x[0]))

    def test_what_a_local_mod_sends_of_a_tensor_without_dimensions(self):
        sent = {t.callable: outputs(t, 5) for t in targets("flwr") if t.point == SCALAR and "LocalDpMod" in t.callable}
        assert set(sent["clientapp.mod.LocalDpMod"][0][:, 2]) == {40.0}, "neither clipped nor noised"
        assert len(set(sent["client.mod.LocalDpMod"][0][:, 2])) == 5, "noised, but not clipped"
        assert abs(np.mean(sent["client.mod.LocalDpMod"][0][:, 2]) - 40) < 10

    @pytest.mark.parametrize(
        ("callable", "is_next"),
        [
            ("serverapp.strategy.DifferentialPrivacyServerSideAdaptiveClipping", True),
            ("server.strategy.DifferentialPrivacyClientSideAdaptiveClipping", True),
            ("server.strategy.DPFedAvgAdaptive", False),
        ],
    )
    def test_noise_of_adaptive_clipping_is_for_the_next_norm(self, callable, is_next):
        (target,) = (t for t in targets("flwr") if t.name == f"{callable}: all clients are clipped")
        found, _ = outputs(target, 300)
        second, norm = found[:, 1].astype(float), found[:, 2].astype(float)
        noise = (second - 1 / 4) / (norm if is_next else 1.0)
        scale = (1 - (2 * 2.0) ** -2) ** -0.5 / 4  # of Andrew et al. (2021): 1/z² is split with the count
        assert noise.std() == pytest.approx(scale, rel=0.13)  # three standard deviations of 300
        assert (np.median(norm) < 1.0) == is_next, "the norm shrinks where all updates are clipped"

    def test_a_suite_refutes_weights_and_not_equal_clients(self):
        held = {t.point: t for t in targets("flwr") if t.callable == "server.strategy." + FIXED}
        wrong, right = (
            run_target(held[point], alpha=1e-4, seed=0, seconds=600, with_bits=False)
            for point in ("weights 97, 1, 1, 1", "noise_multiplier=1, 4 clients")
        )
        assert wrong.is_refuted_by_values
        assert "2/z for one that is replaced" in str(held["weights 97, 1, 1, 1"].make().claim_source)
        assert not right.is_refuted_by_values
        assert not right.failure


@needs["nvflare"]
class TestFlare:
    def test_the_filter_with_a_budget_is_planned_and_the_others_have_a_reason(self):
        library = library_named("nvflare")
        forms = {each.short: library.form_of(each) for each in library.public()}
        assert isinstance(forms.pop("SVTPrivacy"), tuple)
        assert {"PercentilePrivacy", "ExcludeVars", "AddNoiseToMinMax", "StatisticsPrivacyFilter"} <= forms.keys()
        assert {type(form) for form in forms.values()} == {NotCovered}

    def test_what_passes_the_filter(self):
        held = {target.point: target for target in targets("nvflare")}
        assert {target.make().claim.epsilon for target in held.values()} == {2.0}
        x, y = outputs(held[SCALAR], 20)
        assert (set(x[:, 2]), set(y[:, 2])) == ({40.0}, {0.0})
        x, y = outputs(held["an update with NaN"], 60)
        assert not y[:, 0].any(), "a number that is NaN is never chosen"
        assert x[:, 0].any()


@needs["flwr"]
@needs["nvflare"]
def test_the_page_of_findings_prints_what_it_says(tmp_path, monkeypatch):
    page, recipe = (ROOT / "docs" / folder / "federated.md" for folder in ("findings", "how-to"))
    found = [release_of(name) for name in ("flwr", "nvflare")]
    if found != ["flwr 1.42.0", "nvflare 2.9.0"]:
        pytest.skip(f"the page describes flwr 1.42.0 and nvflare 2.9.0, here are {' and '.join(found)}")
    spec = importlib.util.spec_from_file_location("pages", ROOT / "tests" / "test_docs_pages.py")
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)
    monkeypatch.chdir(tmp_path)
    module = next(match[0] for match in pages.FILE.finditer(recipe.read_text("utf-8")) if "flower_round" in match[2])
    for expected, printed in pages.run_page(module + "\n" + page.read_text("utf-8"), tmp_path):
        assert printed == expected
