"""A mechanism of which a part of each output is audited."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ..events.named_parts import shown
from .picking import OutputPart, check_choice, pick_from_block, pick_from_run
from .provenance import Provenance, provenance_of
from .sampler import Call, Sampler, as_sampler, mechanism_name


def picked(mechanism: Any, output: OutputPart | None) -> Sampler:
    """Return the sampler of a mechanism whose outputs are a part of its outputs; all of them for None.

    What is computed from an output keeps every claim that the whole output keeps.

    Parameters
    ----------
    mechanism : callable, object or Sampler
        As in `check`.
    output : str, int, callable or None
        A column, key, field or attribute, or a path of these joined by dots; a place; or a function, which is given
        one output, or the whole block of a block sampler.

    Raises
    ------
    OptionError
        If `output` is none of these.
    MechanismError
        When runs are drawn, if an output has no such part.

    Examples
    --------
    >>> import numpy as np
    >>> def stats(rows, rng):
    ...     return {"mean": sum(rows) / len(rows), "count": len(rows)}
    >>> picked(stats, "count").draw([1.5, 2.5], 2, np.random.default_rng(1))
    array([2, 2])
    """
    sampler, choice = as_sampler(mechanism), check_choice(output)
    if choice is None:
        return sampler
    call = _Picked(sampler.call, choice, sampler.is_block, sampler.name)
    return replace(sampler, call=call, is_picked=True, name=name_of_part(sampler.name, choice))


def name_of_part(name: str, choice: OutputPart) -> str:
    """Return what a result calls this part of the outputs of a mechanism with this name."""
    if callable(choice):
        return f"{name}, output by {shown(mechanism_name(choice))}"
    return f'{name}, output "{shown(choice)}"' if isinstance(choice, str) else f"{name}, output {choice}"


def provenance_of_part(sampler: Sampler) -> Provenance:
    """Return the provenance of a sampler's mechanism; its fingerprint covers the part that is picked."""
    found = provenance_of(sampler.function)
    if not isinstance(sampler.call, _Picked):
        return found
    choice = sampler.call.choice
    own = str(provenance_of(choice)) if callable(choice) else repr(choice)
    return replace(found, fingerprint=hashlib.sha256(f"{found.fingerprint} {own}".encode()).hexdigest()[:16])


@dataclass(frozen=True, slots=True)
class _Picked:
    """Calls a mechanism and returns a part of its output, or of its block."""

    call: Call
    choice: OutputPart
    is_block: bool
    name: str

    @property
    def function(self) -> Callable[..., Any]:
        """The mechanism with what is picked, by which the two are identified and sent to workers; never called."""
        return functools.partial(self.call.function, self.choice)

    @property
    def size_name(self) -> str | None:
        return self.call.size_name

    @property
    def rng_name(self) -> str | None:
        return self.call.rng_name

    def __call__(self, dataset: Any, *rest: Any) -> Any:
        drawn = self.call(dataset, *rest)
        return (pick_from_block if self.is_block else pick_from_run)(drawn, self.choice, self.name)
