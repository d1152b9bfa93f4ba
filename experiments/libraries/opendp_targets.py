"""Measurements of OpenDP: noise on integers and floats, selections and responses, with claims in epsilon and in rho."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ...audit.datasets.domains import Rows
from ...mechanisms.adapters import from_opendp
from .target import Subject

_RUNS = 20_000


def opendp_subjects() -> list[Subject]:
    """Return measurements of scale 1 by default, with epsilon 1 for Laplace noise and rho 1/2 for Gaussian noise."""
    kinds = (("laplace", int), ("laplace", float), ("geometric", int), ("gaussian", int), ("gaussian", float))
    norms = (("laplace", "l1_distance"), ("gaussian", "l2_distance"))
    pair, rows = ([0.0, 1.0, 1.0], [1.0, 0.0, 0.0]), Rows(low=0.0, high=1.0)
    return [
        *(
            _subject(f"{noise}, {kind.__name__}", _number(f"make_{noise}", kind), (kind(0), kind(1)))
            for noise, kind in kinds
        ),
        *(
            _subject(
                f"{noise}, vectors of {kind.__name__}",
                _vector(f"make_{noise}", metric, kind),
                ([kind(0)] * 3, [kind(1), kind(0), kind(0)]),
            )
            for noise, metric in norms
            for kind in (int, float)
        ),
        _subject("laplace, int, vector form", _number("make_laplace", int, draws="vectors"), (0, 1)),
        _subject("gaussian, (epsilon, delta) by make_fix_delta", _fixed_delta, (0.0, 1.0)),
        _subject("gaussian, privacy profile", _profile, (0.0, 1.0)),
        _subject("canonical noise, float", _canonical, (0.0, 1.0)),
        _subject("noisy max, float", _noisy_max("max_divergence", float), pair),
        _subject("noisy max, int", _noisy_max("max_divergence", int), ([0, 1, 1], [1, 0, 0])),
        _subject("noisy max, float, rho", _noisy_max("zero_concentrated_divergence", float), pair),
        _subject("noisy top 2, float", _noisy_top, pair),
        _subject("randomised response, bool", _response("make_randomized_response_bool", prob=0.75), (True, False)),
        _subject(
            "randomised response, 3 words",
            _response("make_randomized_response", categories=["a", "b", "c"], prob=0.5),
            ("a", "b"),
        ),
        Subject(name="count of rows, laplace", make=_of_rows("then_count"), domain=rows, runs=_RUNS),
        Subject(name="sum of bounded rows, laplace, float", make=_of_rows("then_sum"), domain=rows, runs=_RUNS),
        _subject("laplace threshold, float, a key appears", _threshold, ({"a": 4.0, "b": 1.0}, {"a": 4.0})),
    ]


def _subject(name: str, make: Callable[[], Any], pair: tuple[Any, Any]) -> Subject:
    return Subject(name=name, make=make, pair=pair, runs=_RUNS)


def _dp() -> Any:
    library = import_module("opendp.prelude")
    library.enable_features("contrib", "honest-but-curious")
    return library


def _atom(kind: type) -> Any:
    return _dp().atom_domain(T=float, nan=False) if kind is float else _dp().atom_domain(T=kind)


def _space(metric: str, kind: type) -> tuple[Any, Any]:
    """Return the domain and the metric of numbers, or of vectors for a metric other than the absolute distance."""
    atom = _atom(kind)
    return atom if metric == "absolute_distance" else _dp().vector_domain(atom), getattr(_dp(), metric)(T=kind)


def _number(constructor: str, kind: type, **options: Any) -> Callable[[], Any]:
    return _vector(constructor, "absolute_distance", kind, **options)


def _vector(constructor: str, metric: str, kind: type, **options: Any) -> Callable[[], Any]:
    return lambda: from_opendp(getattr(_dp().m, constructor)(*_space(metric, kind), scale=1.0), **options)


def _response(constructor: str, **options: Any) -> Callable[[], Any]:
    return lambda: from_opendp(getattr(_dp().m, constructor)(**options))


def _gaussian() -> Any:
    return _dp().m.make_gaussian(*_space("absolute_distance", float), scale=1.0)


def _profile() -> Any:
    return from_opendp(_dp().c.make_zCDP_to_approxDP(_gaussian()))


def _fixed_delta() -> Any:
    return from_opendp(_dp().c.make_fix_delta(_dp().c.make_zCDP_to_approxDP(_gaussian()), 0.01))


def _canonical() -> Any:
    space = _space("absolute_distance", float)
    return from_opendp(_dp().m.make_canonical_noise(*space, d_in=1.0, d_out=(1.0, 0.01)))


def _noisy_max(measure: str, kind: type) -> Callable[[], Any]:
    def make() -> Any:
        return from_opendp(_dp().m.make_noisy_max(*_space("linf_distance", kind), getattr(_dp(), measure)(), scale=1.0))

    return make


def _noisy_top() -> Any:
    space = _space("linf_distance", float)
    return from_opendp(_dp().m.make_noisy_top_k(*space, _dp().max_divergence(), k=2, scale=1.0))


def _of_rows(query: str) -> Callable[[], Any]:
    def make() -> Any:
        space = _dp().vector_domain(_dp().atom_domain(bounds=(0.0, 1.0))), _dp().symmetric_distance()
        return from_opendp(space >> getattr(_dp().t, query)() >> _dp().m.then_laplace(scale=1.0))

    return make


def _threshold() -> Any:
    """Return noisy counts of type float; with integers a new key is released with more than delta (see `defects`)."""
    space = (
        _dp().map_domain(_dp().atom_domain(T=str), _atom(float)),
        _dp().l01inf_distance(_dp().absolute_distance(T=float)),
    )
    return from_opendp(_dp().m.make_laplace_threshold(*space, scale=1.0, threshold=3.0), d_in=(1, 1.0, 1.0))
