"""Frequency oracles and heavy hitters of pure-ldp: the clients, whose reports must be private."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from ...audit.claims.claim import PureDP
from ...audit.datasets.domains import Values
from ...mechanisms.adapters import flat_report, from_ldp
from .audited_library import Form, NotCovered, PublicCallable, Target
from .known_defects import LOW_BITS, known_in
from .public_callables import public_callables, required_of

_D = 4
_VALUES = Values(tuple(range(1, _D + 1)))  # the default index_mapper subtracts 1
_WORDS = Values(("0000", "0011", "0101", "1111"))
_EPSILONS = (1.0, 3.0)
_NO_ZEROS = "RAPPORClient sets zeros to 1 and never ones to 0"
_TYPE = "the type of what HadamardMechClient returns"


@dataclass(frozen=True, slots=True)
class _Way:
    """One way to create a client and to read its reports.

    `read` receives the client and a value; by default reports are read as they are returned.
    """

    words: str
    make: Callable[[float], Any]
    read: Callable[[Any, Any], Any] | None = None
    domain: Values = _VALUES
    known: str = ""
    note: str = ""
    cost: int = 1


def pure_ldp_public() -> tuple[PublicCallable, ...]:
    """Return the public callables of pure-ldp without its simulations."""
    return public_callables("pure_ldp", ("frequency_oracles", "heavy_hitters", "core"))


def pure_ldp_form(public: PublicCallable) -> Form:
    """Return the targets of a client."""
    if not inspect.isclass(public.function):
        return NotCovered("it makes hash functions or clients, and sees no data")
    if public.short.endswith("Server"):
        return NotCovered("it estimates from reports, which are private already")
    if not hasattr(public.function, "privatise"):
        return NotCovered("it is a part of clients, not a client")
    if public.short in ("FreqOracleClient", "HeavyHitterClient"):
        return NotCovered("it is an abstract base class")
    if public.short == "ZeroOracleClient":
        return NotCovered("it returns 0 for every value and states no epsilon")
    ways = list(_ways(public.function, public.short))
    if not ways:
        unknown = sorted(required_of(public.function) - {"epsilon", "d"})
        return NotCovered(f"its parameters ({', '.join(unknown)}) fit no known form")
    return tuple(
        Target(
            callable=public.name,
            point=f"{way.words}{', ' if way.words else ''}epsilon={epsilon:g}",
            make=partial(_made, way, epsilon),
            domain=way.domain,
            known=known_in("pure-ldp", way.known),
            known_bits=known_in("pure-ldp", LOW_BITS if public.short == "HEClient" else ""),
            note=way.note,
            cost=way.cost,
        )
        for way in ways
        for epsilon in _EPSILONS
    )


def _made(way: _Way, epsilon: float) -> Any:
    client = way.make(epsilon)
    if getattr(client, "epsilon", None) is None:  # RAPPOR has f in place of epsilon
        rappor = client.convert_f_to_eps(client.f, len(client.hash_family[0]))
        return from_ldp(client, claim=PureDP(rappor), claim_source="convert_f_to_eps(f, k)", release=way.read)
    return from_ldp(client, release=way.read)


def _ways(client: Any, name: str) -> Iterator[_Way]:
    """Yield the ways to use a client; none if its parameters are unknown."""
    match name:
        case "LHClient":
            for words, options in (("binary", {"g": 2}), ("optimal", {"use_olh": True})):
                yield from _hashed(words, partial(_with, client, options))
        case "FastLHClient":
            yield from _hashed("16 hash functions", partial(_with, client, {"k": 16, "use_olh": True}))
        case "HadamardMechClient":
            make = partial(_with, client, {"t": 2})
            yield _Way("as returned", make, known=_TYPE)
            yield _Way("as the server reads it", make, _as_list)
            optimal = partial(_with, client, {"t": None, "use_optimal_t": True})
            yield _Way("optimal t, as the server reads it", optimal, _as_list)
        case "HadamardResponseClient":
            yield _Way("", lambda epsilon: client(epsilon, _D, list(range(_D))))
        case "CMSClient":
            yield _Way("two hash functions", lambda epsilon: client(epsilon, _hashes(2, 4), 4))
            if "is_hadamard" in inspect.signature(client).parameters:
                yield _Way("Hadamard", lambda epsilon: client(epsilon, _hashes(2, 4), 4, is_hadamard=True))
        case "PCSClient":
            yield _Way("two hash functions", lambda epsilon: client(epsilon, 2, 4, _signed_hashes(2, 4)))
        case "SketchResponseClient":
            for words, is_count in (("count-mean", False), ("count", True)):
                yield _Way(f"{words} sketch of DEClient", partial(_sketch, client, is_count))
        case "RAPPORClient":
            for k in (1, 2):
                yield _Way(f"{k} hash function{'s' * (k > 1)}", partial(_rappor, client, k), known=_NO_ZEROS)
        case "PEMClient" | "TreeHistClient" | "SFPClient":
            yield _Way("words of four bits", partial(_of_words, client, name), domain=_WORDS, cost=2)
        case _:
            if required_of(client) <= {"epsilon", "d"}:
                yield _Way("", lambda epsilon: client(epsilon, _D))
                if "use_oue" in inspect.signature(client).parameters:
                    yield _Way("optimised", lambda epsilon: client(epsilon, _D, use_oue=True))


def _with(client: Any, options: dict[str, Any], epsilon: float) -> Any:
    return client(epsilon=epsilon, d=_D, **options)


def _hashed(words: str, make: Callable[[float], Any]) -> Iterator[_Way]:
    """Yield a client of local hashing by the values that its report supports, and by hash and seed."""
    yield _Way(f"{words}, values that the report supports", make, _supported)
    yield _Way(f"{words}, hash and seed", make)


def _as_list(client: Any, value: Any) -> Any:
    """Return the parts of a report, whether it is a list or another iterable."""
    return flat_report(list(client.privatise(value)))


def _supported(client: Any, value: Any) -> tuple[bool, ...]:
    """Return for each value whether its hash is the reported one, as the server counts them."""
    reported, seed = client.privatise(value)
    hashed = import_module("xxhash").xxh32
    return tuple(hashed(str(index), seed=seed).intdigest() % client.g == reported for index in range(_D))


def _hashes(k: int, m: int, first: int = 0) -> list[Any]:
    generate = import_module("pure_ldp.core").generate_hash
    return [generate(m, first + seed) for seed in range(k)]


def _signed_hashes(k: int, m: int) -> list[Any]:
    return list(zip(_hashes(k, m), _hashes(k, 2, first=k), strict=True))


def _rappor(client: Any, k: int, epsilon: float) -> Any:
    """Return a client with f such that k hash functions have this epsilon: f = 2 / (exp(ε / 2k) + 1)."""
    f = 2.0 / (math.exp(epsilon / (2 * k)) + 1.0)
    return client(f, 8, [_hashes(k, 8, first=k * cohort) for cohort in range(2)], num_of_cohorts=2)


def _sketch(client: Any, is_count: bool, epsilon: float) -> Any:
    oracle = import_module("pure_ldp.frequency_oracles").DEClient(epsilon, 4)
    hashes = _signed_hashes(2, 4) if is_count else _hashes(2, 4)
    return client(epsilon, 4, hashes, fo_client=oracle, count_sketch=is_count)


def _of_words(client: Any, name: str, epsilon: float) -> Any:
    oracles = import_module("pure_ldp.frequency_oracles")
    sizes = {"max_string_length": 4, "fragment_length": 2}
    match name:
        case "PEMClient":
            return client(epsilon, 0, fo_client=oracles.DEClient(epsilon, 16), **sizes)
        case "TreeHistClient":
            return client(epsilon, fo_client=oracles.DEClient(epsilon, 16), **sizes)
        case _:
            return client(epsilon, fo_client=oracles.CMSClient(epsilon, _hashes(2, 4), 4), **sizes)
