"""The identity of an object is the same in every process, and differs if any input of its draws differs."""

import copy
import functools
import itertools
import subprocess
import sys
import threading
from dataclasses import dataclass
from enum import Enum
from types import ModuleType

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from dpaudit.audit.sampling.object_identity import identity
from dpaudit.mechanisms import LaplaceMechanism


class Colour(Enum):
    RED = 1
    BLUE = 2


class Own:
    def __init__(self, scale):
        self.scale = scale

    def __call__(self, dataset, rng):
        return dataset + self.scale * rng.laplace()

    @functools.cached_property
    def computed(self):
        return np.ones(3)


@dataclass(frozen=True, slots=True)
class Slotted:
    scale: float


def closure(scale):
    return lambda dataset, rng: dataset + scale * rng.laplace()


def drawn(dataset, size, rng, *, scale=1.0):
    return dataset + rng.laplace(scale=scale, size=size)


def defined(source, **variables):
    """Define a function from its source, with the module variables that it names."""
    variables["__name__"] = "a_module_of_the_users_own"
    exec(source, variables)
    return variables["f"]


def graph(*edges):
    made = nx.Graph()
    made.add_edges_from(edges)
    return made


NAMES = "def f(d, rng): return d + helper(rng)"
VALUES = {
    "floats": [0.1, 0.2, np.nextafter(0.2, 1.0), -0.0, 0.0, float("nan")],
    "kinds": [1, 1.0, True, "1", b"1", None, np.float64(1.0), np.float32(1.0), (1,), [1], {1}, frozenset([1]), {1: 1}],
    "arrays": [
        np.arange(3), np.arange(3.0), np.arange(6).reshape(2, 3), np.arange(6), np.array([1, "a"], dtype=object),
    ],
    "digits within": [[np.array([0.1])], [np.array([np.nextafter(0.1, 1.0)])]],
    "long frames": [pd.DataFrame({"a": np.arange(999) == k}) for k in (500, 501)],
    "names of columns": [pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]})],
    "graphs": [graph((1, 2)), graph((1, 3)), graph((1, 2), (2, 3))],
    "masked arrays": [np.ma.MaskedArray([1, 2], mask=mask) for mask in ([0, 1], [1, 0])],
    "sparse matrices": [sparse.csr_matrix(np.eye(3)), sparse.csr_matrix(2 * np.eye(3))],
    "members": list(Colour),
    "partial": [functools.partial(drawn, scale=s) for s in (1.0, 2.0)],
    "attributes": [Own(1.0), Own(2.0), Slotted(1.0), Slotted(2.0), LaplaceMechanism(1.0), LaplaceMechanism(2.0)],
    "methods": [Own(1.0).__call__, Own(2.0).__call__],
    "closures": [closure(1.0), closure(2.0)],
    "defaults": [defined(f"def f(d, rng, s={s}): return d + s") for s in (1, 2)],
    "variables": [defined("def f(d, rng): return d + SCALE", SCALE=s) for s in (1, 2)],
    "variables of what is within": [
        defined("def f(d, rng): return [SCALE for _ in range(1)] + [(lambda: SCALE)()]", SCALE=s) for s in (1, 2)
    ],
    "helpers": [defined(NAMES, helper=defined(f"def f(rng): return {s}")) for s in (1, 2)],
    "helpers of helpers": [
        defined(NAMES, helper=defined("def f(rng): return g()", g=defined(f"def f(): return {s}"))) for s in (1, 2)
    ],
    "code": [defined("def f(d, rng): return d + 1"), defined("def f(d, rng): return d - 1")],
    "generators": [np.random.default_rng(1), np.random.default_rng(2)],
    "wrapped": [functools.lru_cache(closure(1.0)), functools.lru_cache(closure(2.0))],
    "nested": [{"a": [(1, 2.0)]}, {"a": [(1, 2.5)]}, {"b": [(1, 2.0)]}],
    "order": [["a", "b"], ["b", "a"], {"a": 1, "b": 2}, {"b": 2, "a": 1}],
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_what_differs_is_told_apart(name):
    for one, other in itertools.combinations(VALUES[name], 2):
        assert identity(one).hash != identity(other).hash, (one, other)
    for value in VALUES[name]:
        assert identity(value) == identity(value)
        assert (identity(value).opaque, identity(value).failed) == ((), ())


def test_equal_contents_are_equal_however_they_are_shared():
    row = (1, 2.5)
    assert identity([row, row]) == identity([(number, 2.5) for number in (1, 1)])
    assert identity({"b", "a", "c"}) == identity({"c", "b", "a"})
    assert identity(closure(1.0)) == identity(closure(1.0))


def test_what_was_computed_from_the_rest_changes_nothing():
    own, made = Own(1.0), graph((1, 2))
    before = identity(own), identity(made)
    assert own.computed.sum() == 3
    assert len(made.nodes) == len(made.adj) == 2
    assert (identity(own), identity(made)) == before


def test_what_python_keeps_in_a_class_changes_nothing():
    """The first copy of an object adds `__slotnames__` to its class."""
    made = defined("class f:\n    scale = 2.0\n    def __call__(self, d, rng): return d + self.scale")()
    before = identity(made)
    copy.copy(made)
    assert "__slotnames__" in vars(type(made))
    assert identity(made) == before
    type(made).scale = 3.0
    assert identity(made) != before


def test_circles_end():
    ring = []
    ring.append(ring)
    assert identity(ring) != identity([])
    calls = {}
    exec("def f(): return g()\ndef g(): return f()", calls)
    assert identity(calls["f"]) != identity(calls["g"])


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


class Raising:
    def __reduce_ex__(self, protocol):
        raise OSError("no copies")


class Speechless:
    def __audit_identity__(self):
        raise KeyError("name")


class OtherSpeechless(Speechless):
    pass


@pytest.mark.parametrize(
    ("value", "opaque", "failed"),
    [
        (Raising(), (f"{__name__}.Raising",), ()), (Speechless(), (), (f"{__name__}.Speechless",)),
        ({"a": [Raising()]}, (f"{__name__}.Raising",), ()), (nested(100_000), (), ("builtins.list",)),
        ([threading.Lock()], ("_thread.lock",), ()),
    ],
    ids=range(5),
)  # fmt: skip
def test_what_cannot_be_looked_into_is_named_and_is_no_error(value, opaque, failed):
    seen = identity(value)
    assert (len(seen.hash), seen.opaque, seen.failed) == (32, opaque, failed)


def test_what_fails_has_its_type_all_the_same():
    assert identity(Speechless()).hash != identity(OtherSpeechless()).hash


def test_an_installed_package_is_known_by_its_version_unless_it_is_the_mechanisms_own(tmp_path, monkeypatch):
    monkeypatch.setattr("dpaudit.audit.sampling.object_identity._PLACES", (tmp_path,))
    kept = []
    for noise in ("laplace", "normal"):
        module = ModuleType("anybodys")
        module.__file__ = str(tmp_path / "anybodys.py")
        exec(f"def draw(x, rng): return x + rng.{noise}()", vars(module))
        monkeypatch.setitem(sys.modules, "anybodys", module)
        kept.append((identity(module.draw), identity(module.draw, "anybodys")))
    assert kept[0][0] == kept[1][0]
    assert kept[0][1] != kept[1][1]


def test_an_object_may_say_what_it_is():
    class Said:
        def __init__(self, word):
            self.word, self.lock = word, threading.Lock()

        def __audit_identity__(self):
            return self.word

    assert identity(Said("a")) == identity(Said("a")) != identity(Said("b"))
    assert identity(Said("a")).opaque == ()


CODE = """
import functools, numpy as np
from dpaudit.audit.sampling.object_identity import identity, provenance_of
class Own:
    def __init__(self): self.names, self.scale = {"a", "b", "c"}, 2.0
    def __call__(self, dataset, rng): return dataset + self.scale * rng.laplace() + len({"x", "y"})
def f(dataset, rng, k=frozenset({"u", "v", "w"})): return Own()(dataset, rng)
print([identity(each).hash for each in (Own(), f, functools.partial(f, k=1), {"a": np.arange(3)}, Own)])
def g(x, rng): return x in {"a", "b", "c"} and (1, "d")
print(provenance_of(g).fingerprint)
"""


def test_it_is_the_same_in_every_process():
    said = {
        subprocess.run(
            [sys.executable, "-c", CODE], env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(said) == 1
