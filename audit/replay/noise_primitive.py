"""What code says of itself to a replay: that a function draws noise, or that a value does not depend on the data."""

from __future__ import annotations

import functools
import inspect
import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast

import numpy as np

from ..errors import OptionError
from ..printing import did_you_mean, shorten
from .distributions import PARAMETERS, Distribution, shape_of
from .tape import Declared, active_tape, tape_of_thread

P = ParamSpec("P")
R = TypeVar("R")
_OTHER_NAMES = {"gaussian": "normal", "gauss": "normal", "discrete laplace": "two-sided geometric"}
_GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)


def noise_primitive(
    distribution: str | Callable[..., Distribution],
    *,
    sensitivity: str | float | None = None,
    epsilon: str | float | None = None,
    size: str | int | None = None,
    **parameters: str | float,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Declare that a function draws noise: while `replay` records, a call of it is one call of a noise primitive.

    What the function draws inside is not recorded. An exact audit takes a call as one draw from a discrete
    distribution, and refuses a continuous one. Outside of both the function is called unchanged.

    Parameters
    ----------
    distribution : str or callable
        The distribution of the returned value: a name of those of `Distribution`, or a function of the same arguments
        that returns one: ``lambda value, eps: Distribution("laplace", {"location": value, "scale": 1 / eps})``.
    sensitivity, epsilon : str or float, optional
        What the function states about itself: the largest move of its location between neighbours, and the loss that
        it promises for it. The name of an argument, or a number; an argument that is None states nothing.
    size : str or int, optional
        Number or shape of independent draws in the returned value; by default as the parameters broadcast.
    **parameters
        Each parameter of the distribution: the name of an argument of the function, or a number. Arguments that are
        named nowhere must be the same on x and y, but for generators; else the loss is unknown.

    Returns
    -------
    callable
        Decorator of the function.

    Raises
    ------
    OptionError
        If the distribution is unknown, or its parameters are not those given.

    See Also
    --------
    replay : The replay that records the calls.
    noise.Distribution : The distributions, which a function of the arguments returns.

    Notes
    -----
    The returned value is assumed to have the stated distribution, with independent draws, and no other argument may
    depend on the data. A stated `sensitivity` is compared with the move of the location between x and y, a stated
    `epsilon` with the loss.

    References
    ----------
    Dwork, McSherry, Nissim & Smith (2006), Calibrating noise to sensitivity in private data analysis. Proof:
    docs/proofs/replay.md.

    Examples
    --------
    >>> import numpy as np
    >>> from dpaudit import noise_primitive, replay
    >>> @noise_primitive("laplace", location="answer", scale="b")
    ... def add_noise(answer, b):
    ...     return answer + np.random.default_rng().laplace(scale=b)
    >>> replay(lambda rows: add_noise(sum(rows), 2.0), [1.0, 3.0], [1.0]).calls[0].worst_loss
    1.5
    """
    _check(distribution, parameters)

    def decorate(function: Callable[P, R], *more: object, **named: object) -> Callable[P, R]:
        if more or named or not callable(function):
            raise OptionError(
                "noise_primitive needs a distribution: write @noise_primitive(distribution, …) above the function."
            )
        signature = inspect.signature(function)
        promises = sensitivity, epsilon
        sources = [each for each in (*promises, size, *parameters.values()) if isinstance(each, str)]
        for source in sources:
            if source not in signature.parameters:
                meant = f"{function.__name__}{did_you_mean(source, signature.parameters, otherwise='.')}"
                known = f"Use one of {', '.join(signature.parameters)}, or a number."
                raise OptionError(f"{source!r} is not an argument of {meant} {known}", name=source)

        def recorded(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()

            def given(source: Any) -> Any:
                value = bound.arguments[source] if isinstance(source, str) else source
                return np.array(value) if isinstance(value, list) else value

            def stated() -> Distribution:
                if not isinstance(distribution, str):
                    return _checked(distribution(*args, **kwargs), function.__qualname__)
                held = {name: given(source) for name, source in parameters.items()}
                rest = {name: each for name, each in bound.arguments.items() if name not in sources}
                beside = {name: each for name, each in rest.items() if not isinstance(each, _GENERATORS)}
                of_one = () if distribution == "discrete" else held.values()
                return Distribution(distribution, held, shape_of(given(size), *of_one), beside=beside)

            def declared() -> Declared | None:
                if sensitivity is None and epsilon is None:
                    return None
                furthest, promised = (None if (each := given(source)) is None else float(each) for source in promises)
                return Declared(furthest, promised)

            return function.__qualname__, stated, lambda: function(*args, **kwargs), declared

        held = _Held(function, recorded)

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            tape = active_tape()
            return cast(R, held.function(*args, **kwargs) if tape is None else tape.call(*held.recorded(args, kwargs)))

        return call

    return decorate


def public(value: R, name: str) -> R:
    """State that a value does not depend on the data, and return it.

    `replay` compares the value on both datasets; one that differs is an excess at this line. Outside of a replay the
    function does nothing.

    Parameters
    ----------
    value : Any
        Any value that is copied and compared as outputs are: a number, an array, a text, a list of names.
    name : str
        Its name in the result.

    Returns
    -------
    Any
        The value.

    Raises
    ------
    OptionError
        If the name is not a text.

    See Also
    --------
    replay : The replay that compares the value.

    Notes
    -----
    Divisors, names of columns, classes and numbers of batches are often taken from the data. A value may depend on what
    was drawn before, which is the same on both datasets: a noisy sum is public, and a replay takes it as released.

    References
    ----------
    Cebere, Erb, Desfontaines, Bellet & Fitzsimons (2026), Privacy in theory, bugs in practice: grey-box auditing of
    differential privacy libraries (equality of values in two recorded runs). Proof: docs/proofs/replay.md.

    Examples
    --------
    >>> from dpaudit import public, replay
    >>> def noisy_mean(rows, rng):
    ...     n = public(len(rows), "number of rows")
    ...     return (sum(rows) + rng.laplace(scale=1.0)) / n
    >>> replay(noisy_mean, [0.5, 1.0], [0.5], claim=1.0).has_excess
    True
    """
    if not isinstance(name, str):
        raise OptionError(f"name={shorten(name)} is not a text; write public(value, 'name of the value').", name=name)
    tape = tape_of_thread()
    if tape is not None:
        tape.note_public(name, value)
    return value


class _Held(NamedTuple):
    """A primitive, and what a tape is told of a call."""

    function: Callable[..., Any]
    recorded: Callable[..., tuple[Any, ...]]

    def exact_state(self) -> list[Any]:
        """Return nothing: it does not change during an exact audit."""
        return []


def _checked(distribution: Any, name: str) -> Distribution:
    """Return what a function gave as the distribution of a primitive, if it is one and has its parameters."""
    if not isinstance(distribution, Distribution):
        raise OptionError(
            f"the distribution of {name} is {shorten(distribution)}, not a Distribution; let its function return "
            "dpaudit.noise.Distribution(name, parameters)."
        )
    if distribution.is_known:
        _check_parameters(distribution.name, distribution.parameters, f" of {name}")
        if not distribution.shape and distribution.name != "discrete":  # as the parameters broadcast
            return replace(distribution, shape=shape_of(None, *distribution.parameters.values()))
    return distribution


def _check(distribution: Any, parameters: dict[str, Any]) -> None:
    if callable(distribution):
        if parameters:
            told = "a distribution that is a function states its own parameters; leave them out."
            raise OptionError(f"{', '.join(parameters)}: {told}", distribution=distribution)
        return
    if not isinstance(distribution, str) or distribution not in PARAMETERS:
        name = shorten(distribution).strip("'")
        other = _OTHER_NAMES.get(name.casefold())
        hint = f"; its name here is {other!r}." if other else did_you_mean(name, PARAMETERS, otherwise=".")
        known = f"Use one of {', '.join(PARAMETERS)}, or a function that returns a Distribution."
        told = f"distribution={shorten(distribution)} is not a known distribution{hint} {known}"
        raise OptionError(told, distribution=distribution)
    _check_parameters(distribution, parameters)


def _check_parameters(distribution: str, given: Iterable[str], of: str = "") -> None:
    if set(given) != set(PARAMETERS[distribution]):
        known = f"has the parameters {', '.join(PARAMETERS[distribution])}, not {', '.join(given) or 'none'}"
        told = f"the distribution {distribution!r}{of} {known}; give these, each as a number or an argument's name."
        raise OptionError(told, distribution=distribution)
