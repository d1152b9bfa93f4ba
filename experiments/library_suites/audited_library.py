"""A library as a suite sees it: its public callables, the template by which each becomes mechanisms, and the plan."""

from __future__ import annotations

import hashlib
import inspect
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal, TypeAlias

from ...audit.datasets.adjacency import Adjacency
from ...audit.errors import AuditError, OptionError
from ...audit.options import checked


@dataclass(frozen=True, slots=True)
class PublicCallable:
    """A public function or class of a library, with its dotted name below the package, as ``mechanisms.Laplace``."""

    name: str
    function: Any = field(repr=False, compare=False)

    @property
    def short(self) -> str:
        """The name without its module."""
        return self.name.rpartition(".")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """An audit of one public callable at one configuration of its parameter grid, described in a few words.

    `make` makes the mechanism. `domain` is searched, unless it is a tuple of pairs. Of several `adjacencies`, one is
    that of the claim, which is refuted only if it is refuted under each; None stands for the mechanism's own. The
    search has as many runs as the audit has runs, or `search_runs`. Cheaper targets, by `cost`, are audited
    first. `known` and `known_bits` name the defect of this release, or the limit that the library states, by which the
    target is refuted by values or by a leak. `note` says what the template assumes beyond what the library states.
    """

    callable: str
    point: str
    make: Callable[[], Any] = field(repr=False, compare=False)
    domain: Any = field(repr=False, compare=False)
    adjacencies: tuple[Adjacency | None, ...] = (None,)
    runs: int = 20_000
    search_runs: int | None = None
    guide: Literal["replay"] | None = None
    cost: int = 1
    known: str = ""
    known_bits: str = ""
    note: str = ""

    @property
    def name(self) -> str:
        """The callable and the configuration."""
        return f"{self.callable}: {self.point}"


def targets_of(
    public: PublicCallable, points: Iterable[tuple[str, Callable[[], Any], Any]], **shared: Any
) -> tuple[Target, ...]:
    """Return the targets of a callable at configurations (words, maker, domain), of equal words the last one."""
    found = (
        Target(callable=public.name, point=words, make=make, domain=domain, **shared) for words, make, domain in points
    )
    return tuple({target.name: target for target in found}.values())


@dataclass(frozen=True, slots=True)
class NotCovered:
    """Why a public callable is not audited."""

    reason: str


@dataclass(frozen=True, slots=True)
class SameAs:
    """A public callable that only calls another one, which is audited."""

    name: str


Form: TypeAlias = tuple[Target, ...] | NotCovered | SameAs
"""What becomes of a public callable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """A library with its public callables, and ``form_of``, their targets or why there are none."""

    name: str
    release: Callable[[], str]
    public: Callable[[], tuple[PublicCallable, ...]]
    form_of: Callable[[PublicCallable], Form]


# Public callables of a library, found by introspection of the installed version.


def public_callables(package: str, modules: Iterable[str]) -> tuple[PublicCallable, ...]:
    """Return the public functions and classes of some modules of a package, in alphabetical order.

    Names are those of ``__all__``, or without it all names that do not begin with an underscore and belong to the
    package. An object that several modules hold has the name of the first. A module that does not exist in this version
    has none.
    """
    found: dict[str, Any] = {}
    for module in modules:
        try:
            held = import_module(f"{package}.{module}")
        except ModuleNotFoundError as error:
            if error.name is None or not f"{package}.{module}".startswith(error.name):
                raise
            continue
        said = getattr(held, "__all__", None)
        for name in said or [name for name in vars(held) if not name.startswith("_")]:
            value = getattr(held, name)
            is_own = said is not None or _is_of(value, package, held.__name__)
            is_new = not any(value is one for one in found.values())
            if callable(value) and not inspect.ismodule(value) and is_own and is_new:
                found[f"{module}.{name}"] = value
    return tuple(PublicCallable(name, found[name]) for name in sorted(found))


def _is_of(value: Any, package: str, module: str) -> bool:
    """Return whether an object was made in a module, below it, or in a private or compiled part of its package."""
    home = str(getattr(value, "__module__", "") or "")
    is_private = home.partition(".")[0].lstrip("_") == package and "._" in home
    return home == package or home.startswith(module) or is_private or home.startswith("_")


def parameters_of(function: Any) -> dict[str, inspect.Parameter]:
    """Return the parameters of a function or class without ``*args`` and ``**kwargs``; none if it does not say them."""
    try:
        held = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {name: one for name, one in held.items() if one.kind not in variable}


def required_of(function: Any) -> set[str]:
    """Return the names of the parameters without a default."""
    return {name for name, one in parameters_of(function).items() if one.default is one.empty}


LOW_BITS = "floating-point leak of continuous noise"
_MOST_SEED = 2**32


@dataclass(frozen=True, slots=True)
class Excluded:
    """A public callable that is not audited by itself, and the reason."""

    callable: str
    reason: str
    same_as: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Targets of a suite in their order: each callable once before the second target of any, cheap ones first.

    `alpha` is the allowed probability that the suite refutes any claim that holds, and `share` the alpha of each audit.
    With bits, leaks have separate audits, with a share each. `excluded` are the callables without targets.
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
    """Return the plan of callables and targets that match `only`; refuses a pattern that matches nothing."""
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
        raise OptionError(f"targets have the same name: {', '.join(repeated)}; name each configuration differently.")
    audits = len(targets) * (1 + with_bits)
    share = checked("alpha", alpha) / max(audits, 1)
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
        return NotCovered(f"its template does not fit: {' '.join(str(error).split())}")
    return form if form != () else NotCovered("no configuration of its parameter grid can be made")


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
