"""Audits with fixed seeds, one for each kind of claim, of output and of call.

``python -m tests.gate.frozen_audits FOLDER`` writes into a folder what each of them found, as JSON; a
comparison of two folders shows what a change of the code changed. With ``--freeze`` it writes the figures that the test
compares.
"""

import dataclasses
import hashlib
import json
import math
import sys
import tempfile
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import dpaudit as dp
from dpaudit.audit.records.json_codec import to_json
from dpaudit.audit.records.suite import Checked, Entry, Suite

FROZEN = Path(__file__).with_name("frozen.json")
Found = Any
Audit = Callable[[], Found]


def laplace(x: float, size: int, rng: np.random.Generator) -> Any:
    return x + rng.laplace(size=size)


def gaussian(x: float, size: int, rng: np.random.Generator) -> Any:
    return x + rng.normal(size=size)


def geometric(x: int, size: int, rng: np.random.Generator) -> Any:
    p = 1 - math.exp(-1.0)
    return x + rng.geometric(p, size=size) - rng.geometric(p, size=size)


def response(x: int, size: int, rng: np.random.Generator) -> Any:
    return np.where(rng.random(size) < math.e / (1 + math.e), x, 1 - x)


def one_number(x: float, rng: np.random.Generator) -> float:
    return x + float(rng.laplace())


def rounded(x: float, size: int, rng: np.random.Generator) -> Any:
    return np.round(x + rng.laplace(size=size), 1)


def single_precision(x: float, size: int, rng: np.random.Generator) -> Any:
    return (x + rng.laplace(size=size)).astype(np.float32)


def vector(x: float, size: int, rng: np.random.Generator) -> Any:
    return x / 3 + rng.laplace(size=(size, 3))


def loud_vector(x: float, size: int, rng: np.random.Generator) -> Any:
    return x + rng.laplace(scale=1.5, size=(size, 10))


def atom(x: float, size: int, rng: np.random.Generator) -> Any:
    return np.where(rng.random(size) < 0.02 + 0.08 * x, 50.0, rng.normal(size=size))


def at_times_nan(x: float, size: int, rng: np.random.Generator) -> Any:
    return np.where(rng.random(size) < 0.1 + 0.2 * x, np.nan, rng.laplace(size=size))


def at_times_raises(x: float, rng: np.random.Generator) -> float:
    if rng.random() < 0.1 + 0.2 * x:
        raise ValueError("no answer")
    return float(rng.laplace())


def word(x: int, rng: np.random.Generator) -> str:
    return ("yes", "no", "perhaps")[int(rng.choice(3, p=(0.5, 0.3, 0.2) if x else (0.3, 0.5, 0.2)))]


def sentence(x: int, rng: np.random.Generator) -> str:
    return f"count: {x + float(rng.laplace()):.2f} rows"


def dictionary(x: float, rng: np.random.Generator) -> dict[str, float]:
    return {"men": x + float(rng.laplace()), "women": float(rng.laplace())}


def histogram(x: int, rng: np.random.Generator) -> dict[str, int]:
    return {name: 1 for name in "abcde" if rng.random() < (0.7 if x and name == "c" else 0.4)}


def pair(x: float, rng: np.random.Generator) -> tuple[str, float]:
    return ("odd" if rng.random() < 0.5 else "even"), x + float(rng.laplace())


def some_items(x: int, rng: np.random.Generator) -> list[int]:
    return [int(v) for v in rng.integers(0, 5, size=rng.poisson(1 + x))]


@dataclasses.dataclass(frozen=True)
class Report:
    mean: float
    count: int


def report(x: int, rng: np.random.Generator) -> Report:
    return Report(float(rng.normal()), x + int(rng.geometric(0.6) - rng.geometric(0.6)))


def amount(x: float, rng: np.random.Generator) -> Decimal:
    return Decimal(str(round(x + float(rng.laplace()), 2)))


def number_or_none(x: float, rng: np.random.Generator) -> float | None:
    return None if rng.random() < 0.2 + 0.1 * x else x + float(rng.laplace())


def some_bytes(x: int, rng: np.random.Generator) -> bytes:
    return bytes([int(rng.integers(0, 4)), x if rng.random() < 0.7 else 1 - x])


def truth(x: int, rng: np.random.Generator) -> bool:
    return bool(rng.random() < (0.7 if x else 0.3))


def frame(x: float, rng: np.random.Generator) -> Any:
    import pandas as pd

    return pd.DataFrame({"group": ["a", "b"], "count": [x + float(rng.laplace()), float(rng.laplace())]})


def low_digits(x: float, size: int, rng: np.random.Generator) -> Any:
    return x / 1024 + np.round(rng.laplace(size=size) * 1024) / 512


def constant(x: float, size: int, rng: np.random.Generator) -> Any:
    return np.zeros(size)


def private_mean(rows: list[float], size: int, rng: np.random.Generator) -> Any:
    return np.clip((np.sum(rows) + rng.laplace(size=size)) / max(len(rows), 1), 0.0, 1.0)


def private_sum(rows: list[float], size: int, rng: np.random.Generator) -> Any:
    return sum(rows) + rng.laplace(scale=1 / 1.2, size=size)


def one_sum(rows: list[float], rng: np.random.Generator) -> float:
    return float(sum(rows) + rng.laplace())


def noisy_maximum(rows: list[float], rng: np.random.Generator) -> int:
    return int(np.argmax(np.asarray(rows) + rng.laplace(scale=2.0, size=len(rows))))


def selection(rows: Any, size: int, rng: np.random.Generator) -> Any:
    return np.argmax(np.asarray(rows) / 2 + rng.gumbel(size=(size, len(rows))), axis=1)


def total(rows: list[float]) -> float:
    return float(sum(rows))


def check(mechanism: Any, claim: dp.claims.Claim | float = 1.0, x: Any = 1, y: Any = 0, **options: Any) -> Audit:
    options = {"runs": 4_000, "seed": 3, "jobs": 1} | options
    return partial(dp.check, mechanism, x, y, claim=claim, **options)


def outputs(mechanism: Any, number: int, **options: Any) -> Audit:
    def run() -> Found:
        rng = np.random.default_rng(5)
        drawn = [[mechanism(side, rng) for _ in range(number)] for side in (1, 0)]
        return dp.check_outputs(*drawn, seed=3, **options)

    return run


def stored() -> Found:
    """An audit that is repeated from its store."""
    with tempfile.TemporaryDirectory() as folder:
        found = [dp.check(laplace, 1, 0, claim=0.8, runs=4_000, seed=3, jobs=1, store=folder) for _ in range(2)]
    return found[1]


def canaries(scale: float, **options: Any) -> Audit:
    rng = np.random.default_rng(8)
    included = rng.random(400) < 0.5
    scores = included + rng.normal(scale=scale, size=400)
    return partial(dp.check_canaries, scores, included, claim=dp.PureDP(1.0), inclusion="independent", **options)


_SEARCH = {"runs": 3_000, "seed": 3, "jobs": 1}
_ROWS = dp.Rows((0.0, 1.0), most=4)
_PROFILE = dp.PrivacyProfile((0.0, 0.5, 1.0), (0.4, 0.2, 0.05))

AUDITS: dict[str, Audit] = {
    "pure claim kept": check(laplace),
    "pure claim broken": check(laplace, 0.7),
    "pure claim of 0": check(laplace, 0.0),
    "approximate claim": check(gaussian, dp.ApproxDP(1.0, 0.1)),
    "Gaussian claim kept": check(gaussian, dp.GaussianDP(1.0)),
    "Gaussian claim broken": check(gaussian, dp.GaussianDP(0.8)),
    "concentrated claim": check(gaussian, dp.ZeroConcentratedDP(0.3)),
    "Rényi claim": check(gaussian, dp.RenyiDP(2.0, 0.5), runs=20_000),
    "group of two": check(laplace, x=2, distance=2),
    "claim by distance": check(laplace, lambda distance: dp.PureDP(0.9 * distance), x=2, distance=2),
    "profile": check(laplace, _PROFILE),
    "approximate claim of a vector": check(loud_vector, dp.ApproxDP(3.0, 1e-3)),
    "small alpha": check(laplace, 0.7, alpha=1e-5),
    "large audit": check(laplace, runs=200_000),
    "smallest audit": check(laplace, runs=200, detect=9.0),
    "by resolution": check(laplace, runs=None, detect=0.3),
    "cells besides": check(laplace, bins=8, runs=20_000),
    "with a name": check(laplace, name="noisy count", claim_source="its docstring", keep_datasets=True),
    "bits left out": check(laplace, floating_point="ignore"),
    "two workers": check(laplace, 0.7, runs=300_000, jobs=2),
    "sequential kept": check(laplace, sequential=True, runs=20_000),
    "sequential broken": check(laplace, 0.7, sequential=True, runs=50_000),
    "sequential words": check(word, 0.3, sequential=True, runs=6_000),
    "sequential vector": check(loud_vector, 3.0, sequential=True, runs=2_000),
    "integers": check(geometric),
    "bits of an answer": check(response),
    "one run a call": check(one_number),
    "rounded numbers": check(rounded),
    "single precision": check(single_precision),
    "vector of three": check(vector),
    "vector of ten": check(loud_vector, 5.0),
    "rare value": check(atom, 1.0),
    "missing numbers": check(at_times_nan, 0.5),
    "exceptions": check(at_times_raises, 0.5),
    "words": check(word, 0.6),
    "texts with numbers": check(sentence),
    "dictionary": check(dictionary),
    "dictionary with optional keys": check(histogram),
    "tuple": check(pair),
    "lists of any length": check(some_items, 0.3),
    "dataclass": check(report, 1.2),
    "decimals": check(amount),
    "number or None": check(number_or_none),
    "bytes": check(some_bytes, 0.5),
    "truth values": check(truth, 0.8),
    "frames": check(frame, runs=500),
    "low digits": check(low_digits, 1.0),
    "constant": check(constant),
    "dilution": check(private_mean, x=[1.0, 0.0], y=[1.0], adjacency=dp.AddRemove(), runs=20_000),
    "recorded numbers": outputs(one_number, 2_000, claim=dp.PureDP(1.0)),
    "recorded dictionaries": outputs(dictionary, 1_000, claim=dp.PureDP(0.5)),
    "store": stored,
    "worst pair": partial(dp.find_worst_pair, private_sum, _ROWS, claim=1.0, adjacency=dp.AddRemove(), **_SEARCH),
    "worst pair of answers": partial(
        dp.find_worst_pair, noisy_maximum, dp.Answers(3), claim=1.0, adjacency=dp.domains.Within("linf", 1.0), **_SEARCH
    ),
    "canaries kept": canaries(2.0),
    "canaries broken": canaries(0.3),
    "same distribution": partial(dp.check_equivalence, laplace, rounded, 0.0, runs=4_000, seed=3, jobs=1),
    "equivalence": partial(dp.check_equivalence, laplace, laplace, 0.0, margin=0.2, runs=20_000, seed=3, jobs=1),
    "noise": partial(
        dp.check_noise, laplace, 1.0, noise=dp.noise.LaplaceNoise(1.0), answer=1.0, runs=20_000, seed=3, jobs=1
    ),
    "slope": partial(
        dp.noise.check_slope, selection, [0.0, 1.0, 2.0], [0.0, 1.0, 2.0], epsilon=1.0, runs=20_000, jobs=1
    ),
    "independence": partial(dp.noise.check_independence, vector, 1.0, runs=20_000, seed=3, jobs=1),
    "sensitivity": partial(dp.check_sensitivity, total, _ROWS, adjacency=dp.AddRemove(), bound=1.0, evaluations=2_000),
    "replay": partial(dp.replay, one_sum, [1.0, 1.0], [1.0], claim=1.0, adjacency=dp.AddRemove()),
}


def json_of(found: Found) -> str:
    """Return everything that a call found, as JSON without the version and the place of the code."""
    if isinstance(found, dp.results.WorstPair):
        return json_of(found.audit) + str(found) + "\n"
    if not isinstance(found, Checked):
        return str(found) + "\n"
    body = json.loads(to_json(Suite(title="", entries=(Entry(name="", result=found),))))
    body.pop("environment")
    for place in _objects(body):
        place.pop("provenance", None)
    return json.dumps(body, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from _objects(part)


class Figures(NamedTuple):
    """What is the same on every machine."""

    verdict: str
    bound: str
    pvalue: str
    counts: str
    event: str


def figures(found: Found) -> Figures:
    """Return the figures of a result, numbers with six digits; a text is empty where a result has none of its kind."""
    of = found.audit if isinstance(found, dp.results.WorstPair) else found
    bound, pvalue = getattr(of, "bound", None), getattr(of, "pvalue", None)
    return Figures(
        of.verdict.name if hasattr(of, "verdict") else "",
        f"{bound:.6g}" if isinstance(bound, float) else "",
        f"{pvalue:.6g}" if isinstance(pvalue, float) else "",
        str(getattr(of, "counts", "")),
        str(getattr(of, "event", "")),
    )


def main(arguments: list[str]) -> None:
    found = {name: run() for name, run in AUDITS.items()}
    if arguments == ["--freeze"]:
        text = json.dumps({name: figures(result)._asdict() for name, result in found.items()}, indent=1)
        FROZEN.write_text(text + "\n", encoding="utf-8")
        return
    (folder,) = map(Path, arguments)
    folder.mkdir(parents=True, exist_ok=True)
    for name, result in found.items():
        text = json_of(result)
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
        print(hashlib.sha256(text.encode()).hexdigest()[:12], name)


if __name__ == "__main__":
    main(sys.argv[1:])
