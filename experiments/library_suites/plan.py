"""The plan of a suite: its targets in the order of their audits, each with a share of alpha that is fixed beforehand.

An audit that is not reached spends nothing, so the family-wise error holds wherever the suite ends.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from collections import Counter
from dataclasses import dataclass

from ...audit.errors import AuditError, OptionError
from ...audit.inference.multiplicity import split_budget
from .audited_library import Library, NotCovered, PublicCallable, SameAs, Target

_MOST_SEED = 2**32


@dataclass(frozen=True, slots=True)
class Excluded:
    """A public callable without targets of its own, and why."""

    callable: str
    reason: str
    same_as: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Targets of a suite in their order: each callable once before the second target of any, cheap ones first.

    `alpha` is the allowed probability that the suite refutes any claim that holds, and `share` the alpha of each audit.
    With bits, low bits have audits of their own, with a share each. `excluded` are the callables without targets.
    """

    library: str
    release: str
    targets: tuple[Target, ...]
    excluded: tuple[Excluded, ...]
    alpha: float
    share: float
    with_bits: bool

    @property
    def callables(self) -> tuple[str, ...]:
        """All public callables of the plan, those that are not audited included, in alphabetical order."""
        return tuple(sorted({target.callable for target in self.targets} | {each.callable for each in self.excluded}))

    @property
    def audits(self) -> int:
        """Number of audits that have a share."""
        return len(self.targets) * (1 + self.with_bits)


def plan_of(library: Library, *, alpha: float = 1e-4, only: str | None = None, with_bits: bool = True) -> Plan:
    """Return the plan for the installed version of a library, of callables and targets whose names match `only`.

    Raises
    ------
    OptionError
        If `only` is not a regular expression, or matches nothing.
    """
    try:
        wanted = re.compile(only or "")
    except re.error as error:
        raise OptionError(f"only={only!r} is not a regular expression ({error}).", only=only) from error
    targets: list[Target] = []
    excluded: list[Excluded] = []
    for public in library.public():
        form = _form_of(library, public)
        if isinstance(form, tuple):
            targets += [target for target in form if wanted.search(target.name)]
        elif wanted.search(public.name):
            same_as = form.name if isinstance(form, SameAs) else ""
            excluded.append(
                Excluded(public.name, f"calls {same_as}" if isinstance(form, SameAs) else form.reason, same_as)
            )
    if not targets and not excluded:
        raise OptionError(f"only={only!r} matches no callable of {library.name}; see dpaudit suite --list.", only=only)
    repeated = [name for name, count in Counter(target.name for target in targets).items() if count > 1]
    if repeated:
        raise OptionError(f"targets have the same name: {', '.join(repeated)}; name each point differently.")
    audits = len(targets) * (1 + with_bits)
    share = split_budget(alpha, [str(place) for place in range(audits)]).shares[0][1] if audits else alpha
    return Plan(
        library=library.name,
        release=library.release(),
        targets=_in_order(targets),
        excluded=tuple(sorted(excluded, key=lambda each: each.callable)),
        alpha=alpha,
        share=share,
        with_bits=with_bits,
    )


def _form_of(library: Library, public: PublicCallable) -> tuple[Target, ...] | NotCovered | SameAs:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the library, on parameters that it refuses
            form = library.form_of(public)
    except AuditError as error:
        return NotCovered(f"its form does not fit: {' '.join(str(error).split())}")
    return form if form != () else NotCovered("no point of its parameter grid can be made")


def _in_order(targets: list[Target]) -> tuple[Target, ...]:
    """Return the first target of each callable, then the second of each, and so on; cheap ones first in each round."""
    seen: Counter[str] = Counter()
    rounds = {}
    for target in targets:
        rounds[target.name] = seen[target.callable]
        seen[target.callable] += 1
    return tuple(sorted(targets, key=lambda each: (rounds[each.name], each.cost)))


def seed_of_target(seed: int, name: str, purpose: str = "audit") -> int:
    """Return the random seed of an audit, which depends on the suite's seed, the target's name and the purpose."""
    digest = hashlib.sha256(f"{seed}/{purpose}/{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % _MOST_SEED
