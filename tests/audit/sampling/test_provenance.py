"""Provenance: location, package version, and a fingerprint that changes only with the code."""

import functools
import importlib.metadata
import importlib.util
import sys

import numpy as np
import pytest

import dpaudit
from dpaudit import PureDP, Within, check, check_outputs
from dpaudit.audit.datasets.adjacency import Adjacency
from dpaudit.audit.errors import OptionError
from dpaudit.audit.sampling.object_identity import ELSEWHERE, Provenance, package_of, provenance_of
from dpaudit.mechanisms import LaplaceMechanism

SOURCE = "__version__ = '2.5'\n\n\ndef noisy(x, size, rng):\n    return x + rng.laplace(size=size)\n"


def noisy(x, size, rng):
    return x + rng.laplace(size=size)


class Noisy:
    def sample(self, x, size, rng):
        return x + rng.laplace(size=size)


@pytest.fixture
def module(tmp_path):
    """Create a module from source text."""
    made = []

    def make(text):
        made.append(tmp_path / f"dpaudit_made_{len(made)}" / "lib_of_noise.py")
        made[-1].parent.mkdir()
        made[-1].write_text(text)
        spec = importlib.util.spec_from_file_location("lib_of_noise", made[-1])
        found = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found)
        return found

    return make


def test_place_of_functions_partials_methods_and_objects():
    assert provenance_of(noisy).where.endswith("test_provenance:noisy")
    assert provenance_of(functools.partial(functools.partial(noisy), rng=None)) == provenance_of(noisy)
    assert provenance_of(Noisy().sample) == provenance_of(Noisy())
    assert provenance_of(Noisy()).where.endswith("test_provenance:Noisy")
    assert provenance_of(np.random.default_rng(0).laplace).package == f"numpy {np.__version__}"
    assert provenance_of(LaplaceMechanism(epsilon=1.0)).package.startswith("dpaudit ")


def test_the_fingerprint_is_that_of_the_code_that_was_loaded(module, tmp_path):
    first, same, other = module(SOURCE), module(SOURCE), module(SOURCE.replace("size=size", "scale=2.0, size=size"))
    prints = [provenance_of(each.noisy).fingerprint for each in (first, same, other)]
    assert prints[0] == prints[1] != prints[2]
    assert all(len(one) == 16 for one in prints)
    assert provenance_of(noisy).fingerprint != provenance_of(Noisy()).fingerprint
    (tmp_path / "dpaudit_made_0" / "lib_of_noise.py").write_text(SOURCE.replace("size=size", "size=size, scale=0.1"))
    assert provenance_of(first.noisy).fingerprint == prints[0]  # the file has changed, the loaded code has not
    commented = module("# a comment\n" + SOURCE)
    assert provenance_of(commented.noisy).fingerprint == prints[0]


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


def test_what_has_no_code_to_see_has_no_fingerprint():
    assert provenance_of(len).fingerprint == provenance_of(np.random.default_rng(0).laplace).fingerprint == ""
    assert provenance_of(eval("lambda x, size, rng: x")).fingerprint != ""


def test_words_leave_out_what_is_not_known():
    assert str(Provenance(where="a:b")) == "a:b"
    assert str(Provenance(where="a:b", package="a 1", fingerprint="00ff")) == "a:b, a 1, fingerprint 00ff"


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


def test_every_relation_of_the_library_says_what_it_protects():
    assert all(kind.unit for kind in Adjacency.__subclasses__() if kind.__module__.startswith("dpaudit"))


def test_a_module_whose_version_cannot_be_looked_up(module, monkeypatch):
    found = module("def __getattr__(name):\n    raise LookupError(name)\n")
    monkeypatch.setitem(sys.modules, "dpaudit_test_of_lazy_versions", found)
    assert package_of("dpaudit_test_of_lazy_versions") == ""


def test_a_source_tree_that_is_not_installed(monkeypatch):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    assert dpaudit.__version__ == "not installed"
