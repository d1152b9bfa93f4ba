"""The identity of an object, and the provenance and place of its code, which are the same in every process."""

import functools
import hashlib
import importlib.metadata
import importlib.util
import itertools
import statistics
import subprocess
import sys
import threading
from dataclasses import dataclass
from enum import Enum
from types import ModuleType, SimpleNamespace

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from dpaudit import PureDP, check, check_outputs, replay
from dpaudit.audit.distribution_checks.check_noise import check_noise
from dpaudit.audit.distribution_checks.noise_distributions import LaplaceNoise
from dpaudit.audit.errors import OptionError
from dpaudit.audit.sampling.object_identity import ELSEWHERE, identity, provenance_of, source_of
from dpaudit.audit.sampling.sampler import mechanism_name
from dpaudit.domains import Within
from dpaudit.mechanisms import LaplaceMechanism
from dpaudit.mechanisms.adapters import Program


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


class Tags(set):
    """Pickled in an order that the process decides."""


class Derived(property):
    """No pickle has its function."""


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
    "derived sets": [Tags("ab"), Tags("ac"), set("ab")],
    "derived properties": [Derived(lambda self: 1), Derived(lambda self: 2)],
    "graphs": [graph((1, 2)), graph((1, 3)), graph((1, 2), (2, 3))],
    "arrays of pandas": [pd.array([1, None], dtype="Int64"), pd.array([2, None], dtype="Int64")],
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


def test_equal_contents_are_equal_however_they_are_shared_or_used():
    row = (1, 2.5)
    assert identity([row, row]) == identity([(number, 2.5) for number in (1, 1)])
    assert identity({"b", "a", "c"}) == identity({"c", "b", "a"})
    assert identity(closure(1.0)) == identity(closure(1.0))
    own, made = Own(1.0), graph((1, 2))
    before = identity(own), identity(made)
    assert own.computed.sum() == 3
    assert len(made.nodes) == len(made.adj) == 2
    assert (identity(own), identity(made)) == before, "what was computed from the rest"


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
class Tags(set): pass
def f(dataset, rng, k=frozenset({"u", "v", "w"})): return Own()(dataset, rng)
print([identity(each).hash for each in (Own(), f, functools.partial(f, k=1), {"a": np.arange(3)}, Own, Tags("abc"))])
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


SOURCE = """import numpy as np

def noisy(rows, size, rng):
    return len(rows) + rng.laplace(size=size)

class Noisy:
    claim = None

    def sample(self, rows, size, rng):
        return noisy(rows, size, rng)
"""


def noisy(x, size, rng):
    return x + rng.laplace(size=size)


class Noisy:
    def sample(self, x, size, rng):
        return x + rng.laplace(size=size)


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Create a module from source text in a folder below the working directory."""
    monkeypatch.chdir(tmp_path)

    def make(text=SOURCE, folder="my lib"):
        path = tmp_path / folder / "counts_of_rows.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        spec = importlib.util.spec_from_file_location("counts_of_rows", path)
        found = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "counts_of_rows", found)
        spec.loader.exec_module(found)
        return found

    return make


def test_place_of_functions_partials_methods_and_objects():
    assert provenance_of(noisy).where.endswith("test_object_identity:noisy")
    assert provenance_of(functools.partial(functools.partial(noisy), rng=None)) == provenance_of(noisy)
    assert provenance_of(Noisy().sample) == provenance_of(Noisy())
    assert provenance_of(Noisy()).where.endswith("test_object_identity:Noisy")
    assert provenance_of(np.random.default_rng(0).laplace).package == f"numpy {np.__version__}"
    assert provenance_of(LaplaceMechanism(epsilon=1.0)).package.startswith("dpaudit ")


def test_the_fingerprint_is_that_of_the_code_that_was_loaded(module, tmp_path):
    changed, commented = SOURCE.replace("size=size", "scale=2.0, size=size"), "# a comment\n" + SOURCE
    first, same, other, last = (
        module(text, f"{place}") for place, text in enumerate((SOURCE, SOURCE, changed, commented))
    )
    (tmp_path / "0" / "counts_of_rows.py").write_text(changed)  # the file has changed, the loaded code has not
    prints = [provenance_of(each.noisy).fingerprint for each in (first, same, other, last)]
    assert prints[0] == prints[1] == prints[3] != prints[2]
    assert all(len(one) == 16 for one in prints)
    assert provenance_of(noisy).fingerprint != provenance_of(Noisy()).fingerprint


def test_a_decorated_function_is_what_runs():
    @functools.wraps(noisy)
    def wrapper(x, size, rng):
        return 0 * noisy(x, size, rng)

    found = provenance_of(wrapper)
    assert "wrapper" in found.where
    assert found.fingerprint != provenance_of(noisy).fingerprint
    noisy_alias = wrapper
    noisy_alias.__wrapped__ = noisy_alias
    assert provenance_of(noisy_alias) == found


def test_results_say_which_code_and_where_the_claim_is_from():
    result = check(
        Noisy(), 1.0, 0.0, claim=PureDP(1.0), adjacency=Within("l1"), runs=200, claim_source="docs of lib 1.2"
    )
    assert result.provenance == provenance_of(Noisy())
    assert result.claim_source == "docs of lib 1.2"
    assert result.pair.unit == "one step of the answers"
    rng = np.random.default_rng(1)
    given = check_outputs(rng.random(100), rng.random(100), claim=PureDP(1.0))
    assert given.provenance == ELSEWHERE
    assert given.claim_source == given.pair.unit == ""
    with pytest.raises(OptionError, match="claim_source=3 is not a text"):
        check(Noisy(), 1.0, 0.0, claim=PureDP(1.0), runs=200, claim_source=3)


def test_functions_and_objects_have_file_line_and_hash(module, tmp_path):
    counts = module()
    digest = hashlib.sha256(SOURCE.encode()).hexdigest()
    wanted = {"file": "my lib/counts_of_rows.py", "line": 3, "sha256": digest, "below": "working directory"}
    assert source_of(counts.noisy) == source_of(functools.partial(counts.noisy, size=3)) == {"source": wanted}
    assert source_of(counts.Noisy()) == source_of(counts.Noisy().sample) == {"source": {**wanted, "line": 9}}
    installed = source_of(module(folder="site-packages/lib").noisy)["source"]
    assert (installed["file"], installed["below"]) == ("lib/counts_of_rows.py", "installed packages")
    typed = {}
    exec(compile("def typed(rows, rng):\n    return 0\n", "<stdin>", "exec"), typed)
    (tmp_path / "my lib" / "counts_of_rows.py").unlink()
    nowhere = (typed["typed"], len, statistics.fmean, np.random.default_rng, Program(["true"]), object(), counts.noisy)
    assert [source_of(mechanism) for mechanism in nowhere] == [{}] * len(nowhere)


def test_results_record_it_outside_what_is_compared(module, tmp_path, monkeypatch):
    counts, options = module(), {"claim": PureDP(1.0), "runs": 400, "jobs": 1}
    here = check(counts.noisy, [1, 1], [1], **options)
    assert here.environment["source"]["line"] == 3
    noise = check_noise(counts.noisy, np.ones(2), noise=LaplaceNoise(scale=1.0), answer=len, runs=400, jobs=1)
    assert noise.environment["source"] == here.environment["source"]
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    elsewhere = check(counts.noisy, [1, 1], [1], **options)
    assert "source" not in elsewhere.environment
    assert elsewhere == here


def test_code_of_a_notebook_is_named_by_its_cell(monkeypatch):
    """As IPython names it; the file of a kernel is another one in every session."""
    file, held = "/tmp/ipykernel_17/42.py", {}
    exec(compile("noisy = lambda rows, rng: rng.laplace(len(rows), 0.5)", file, "exec"), held)
    assert mechanism_name(held["noisy"]) == "lambda at 42.py:1"
    shell = SimpleNamespace(compile=SimpleNamespace(_filename_map={file: 3}))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert mechanism_name(held["noisy"]) == "lambda at In[3]:1"
    assert "\n  In[3]:1 in <lambda>: Generator.laplace" in str(replay(held["noisy"], [1], [], claim=1.0))
