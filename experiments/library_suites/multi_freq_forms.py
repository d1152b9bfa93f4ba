"""Clients of multi-freq-ldpy by their signatures: oracles, longitudinal protocols, solutions for many attributes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

from ...audit.datasets.domains import Values
from ...mechanisms.adapters import flat_report, from_ldp
from .audited_library import Form, NotCovered, PublicCallable, Target
from .known_defects import LOW_BITS, known_in
from .public_callables import parameters_of, public_callables

_MODULES = (
    *(f"pure_frequency_oracles.{name}" for name in ("ADP", "GRR", "HE", "LH", "SS", "UE", "Variance_PURE")),
    *(
        f"long_freq_est.{name}"
        for name in ("L_ADP", "L_GRR", "L_LH", "L_OSUE", "L_OUE", "L_SOUE", "L_SUE", "Variance_LONG_PURE", "dBitFlipPM")
    ),
    *(f"mdim_freq_est.{name}" for name in ("RSpFD_solution", "SMP_solution", "SPL_solution", "Variance_RSpFD")),
    *(f"long_mdim_freq_est.{name}" for name in ("L_SMP_Solution", "L_SPL_Solution")),
    "estimators.Histogram_estimator",
)
_ONE = "multi_freq_ldpy.pure_frequency_oracles.LH", "multi_freq_ldpy.long_freq_est.L_LH"
_K, _SIZES = 4, (3, 2)  # values of one attribute, and of each of two
_K_SUBSETS, _SIZES_SUBSETS = 10, (10, 10)  # for which subset selection reports several values
_CLAIMS: dict[frozenset[str], tuple[dict[str, float], ...]] = {
    frozenset({"epsilon"}): ({"epsilon": 1.0}, {"epsilon": 2.5}),
    frozenset({"eps_perm", "eps_1"}): ({"eps_perm": 2.0, "eps_1": 1.0}, {"eps_perm": 4.0, "eps_1": 1.0}),
    frozenset({"eps_perm"}): ({"eps_perm": 1.0}, {"eps_perm": 2.5}),
}
_INPUTS = {"input_data", "input_tuple"}
_FIRST = "SS_Client puts the true value first if it keeps it"
_AMPLIFIED = "RS+FD amplifies epsilon beyond what tuples that differ in all attributes allow"
_ONE_REPORT = "The claim is eps_1, of one report; a call has no memory of earlier ones."


def multi_freq_public() -> tuple[PublicCallable, ...]:
    """Return the public callables of multi-freq-ldpy."""
    return public_callables("multi_freq_ldpy", _MODULES)


def multi_freq_form(public: PublicCallable) -> Form:
    """Return the targets of a client, by its parameters."""
    if "_Aggregator_" in public.short:
        return NotCovered("it estimates from reports, which are private already")
    if not public.short.endswith("_Client"):
        return NotCovered("it is a formula or a step of an estimate, and sees no data")
    known = set(parameters_of(_python_of(public.function)))
    inputs = known & _INPUTS
    rest = known - inputs - {"optimal"} - _claims_of(known)
    shape = next((each for each in _shapes(public.short) if set(each) == rest), None)
    claims = _CLAIMS.get(frozenset(_claims_of(known)))
    if len(inputs) != 1 or shape is None or claims is None:
        return NotCovered(f"its parameters ({', '.join(sorted(known - inputs))}) fit no known form")
    return tuple(_targets(public, shape, claims, "optimal" in known))


def _shapes(name: str) -> tuple[dict[str, Any], ...]:
    """Return the parameters of domains, which are larger for subset selection."""
    is_subset = "SS" in name.split("_")
    k, sizes = (_K_SUBSETS, _SIZES_SUBSETS) if is_subset else (_K, _SIZES)
    many = {"lst_k": list(sizes), "d": len(sizes)}
    return {"k": k}, {"k": k, "b": k, "d_bits": 2}, many, {**many, "lst_b": list(sizes), "d_bits": 2}


def _domain(shape: dict[str, Any]) -> Values:
    if "k" in shape:
        return Values(tuple(range(shape["k"])))
    first, second = (range(min(size, 3)) for size in shape["lst_k"])
    return Values(tuple((a, b) for a in first for b in second))


def _python_of(function: Any) -> Any:
    """Return the Python function that numba compiles, which has a signature."""
    return inspect.unwrap(getattr(function, "py_func", function))


def _claims_of(known: set[str]) -> set[str]:
    return known & {"epsilon", "eps_perm", "eps_1"}


def _targets(
    public: PublicCallable, shape: dict[str, Any], claims: tuple[dict[str, float], ...], has_optimal: bool
) -> Iterator[Target]:
    for claim in claims:
        for optimal in (True, False) if has_optimal else (None,):
            options = {**shape, **claim, **({} if optimal is None else {"optimal": optimal})}
            words = ", ".join(f"{name}={value:g}" for name, value in claim.items())
            words += "" if optimal is None else f", {'optimal' if optimal else 'not optimal'}"
            for reading, read in _readings(public.short, options):
                yield Target(
                    callable=public.name,
                    point=words + reading,
                    make=partial(_made, public.function, options, read),
                    domain=_domain(shape),
                    known=known_in("multi-freq-ldpy", _known(public.short)),
                    known_bits=known_in("multi-freq-ldpy", LOW_BITS if public.short == "HE_Client" else ""),
                    note=_ONE_REPORT if "eps_1" in claim else "",
                    cost=2 if "lst_k" in shape else 1,
                )


def _known(name: str) -> str:
    if name.startswith("RSpFD_"):
        return _AMPLIFIED
    return _FIRST if name in ("SS_Client", "SMP_SS_Client", "SPL_SS_Client") else ""


def _made(function: Any, options: dict[str, Any], read: Callable[[Any], Any] | None) -> Any:
    if read is None:
        return from_ldp(partial(function, **options))
    return from_ldp(partial(function, **options), release=lambda client, value: read(client(value)))


def _readings(name: str, options: dict[str, Any]) -> Iterator[tuple[str, Callable[[Any], Any] | None]]:
    """Yield ways to read a report: as it is, or for local hashing also by the values that it supports."""
    if "LH" not in name.split("_"):
        yield "", None
        return
    yield ", values that the report supports", partial(_supported, name, options)
    yield ", hash and seed", None


def _supported(name: str, options: dict[str, Any], report: Any) -> Any:
    """Return for each value whether its hash is the reported one, as the aggregator counts a report alone."""
    if name.startswith("SMP_"):
        attribute, reported = report
        return (attribute, *_counted(options, options["lst_k"][attribute], 1.0, reported))
    if name.startswith("SPL_"):
        parts = zip(options["lst_k"], report, strict=True)
        return flat_report([_counted(options, k, 1.0 / options["d"], reported) for k, reported in parts])
    return _counted(options, options["k"], 1.0, report)


def _counted(options: dict[str, Any], k: int, share: float, report: Any) -> tuple[bool, ...]:
    module = import_module(_ONE["eps_1" in options])
    aggregate = module.L_LH_Aggregator_MI if "eps_1" in options else module.LH_Aggregator_MI
    budgets = {each: share * options[each] for each in _claims_of(set(options))}
    more = {"optimal": options["optimal"]} if "optimal" in options else {}
    return tuple(bool(one > 0) for one in aggregate([report], k, **budgets, **more))
