"""Recording versions of `rvs` of scipy.stats' distributions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from .laws import Law
from .numpy_primitives import GLOBAL_STATE
from .parameters import copied
from .registered import Patch
from .tape import OTHER_THREAD, active_tape


def _scipy_law(dist: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Law:
    held, loc, scale, size = dist._parse_args_rvs(*args, **kwargs)
    shape = np.broadcast_shapes(*(np.shape(each) for each in (*held, loc, scale)))
    if size is not None:
        shape = (int(size),) if np.ndim(size) == 0 else tuple(map(int, size))
    if dist.name in _SHIFTED:
        return Law(_SHIFTED[dist.name], {"location": loc, "scale": scale}, shape)
    if dist.name == "dlaplace":
        return Law("two-sided geometric", {"location": loc, "scale": 1.0 / np.asarray(held[0])}, shape)
    if dist.name == "uniform":
        return Law("uniform", {"low": loc, "high": np.add(loc, scale)}, shape)
    if dist.name in _AT_ZERO and not np.any(loc):
        name, parameters = _AT_ZERO[dist.name]
        return Law(name, dict(zip(parameters, (*held, scale), strict=False)), shape)
    values = {f"argument {i}": each for i, each in enumerate(held)}
    return Law(f"scipy.stats.{dist.name}", {**values, "loc": loc, "scale": scale}, shape)


_SHIFTED: Final = {"laplace": "laplace", "norm": "normal", "logistic": "logistic", "gumbel_r": "gumbel"}
_AT_ZERO: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "expon": ("exponential", ("scale",)),
    "randint": ("integers", ("low", "high")),
    "geom": ("geometric", ("p",)),
    "poisson": ("poisson", ("rate",)),
    "binom": ("binomial", ("n", "p")),
}


def scipy_patches() -> Iterator[Patch]:
    """Yield the patches of `rvs`, which draws from numpy."""
    from scipy import stats  # takes a second; asked for only where it is imported already

    continuous, discrete = stats.rv_continuous, stats.rv_discrete
    base = next(kind for kind in continuous.__mro__ if "rvs" in vars(kind))
    for kind in dict.fromkeys((base, *(each for each in (continuous, discrete) if "rvs" in vars(each)))):
        yield Patch(kind, "rvs", _rvs(kind))


def _rvs(kind: type) -> Callable[..., Any]:
    original = vars(kind)["rvs"]

    def rvs(self: Any, *args: Any, **kwargs: Any) -> Any:
        tape = active_tape()
        if tape is None or tape.is_foreign():
            if tape is not None:
                tape.note_unseen(OTHER_THREAD)
            return original(self, *args, **kwargs)
        stated = {name: value for name, value in kwargs.items() if name != "random_state"}
        given = kwargs.get("random_state")
        tape.note_seed(given)
        if given is None and self._random_state is GLOBAL_STATE:  # scipy holds what numpy had when it was imported
            kwargs["random_state"] = np.random.mtrand._rand
        held, named = copied(args), {**kwargs, **copied(stated)}  # the caller may change them later

        def draw() -> Any:
            source = self._random_state if named.get("random_state") is None else named["random_state"]
            is_stream = isinstance(source, (np.random.Generator, np.random.RandomState))
            drawn = functools.partial(original, self, *held, **named)
            return tape.drawn(source, drawn) if is_stream else drawn()

        return tape.call(
            f"scipy.stats.{self.name}.rvs",
            lambda: _scipy_law(self, held, stated),
            draw,
        )

    return rvs
