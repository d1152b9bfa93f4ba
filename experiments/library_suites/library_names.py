"""The libraries that have suites, by name."""

from __future__ import annotations

import inspect
from typing import Any

from ...audit.errors import OptionError
from ..libraries.installed import is_installed, release_of
from .audited_library import Form, Library, NotCovered, PublicCallable
from .datasynthesizer_forms import datasynthesizer_form, datasynthesizer_public
from .diffprivlib_mechanism_forms import mechanism_form
from .diffprivlib_tool_forms import model_form, tool_form
from .multi_freq_forms import multi_freq_form, multi_freq_public
from .opendp_forms import opendp_form, opendp_public
from .pipeline_dp_forms import pipeline_dp_form, pipeline_dp_public
from .public_callables import public_callables
from .pure_ldp_forms import pure_ldp_form, pure_ldp_public
from .pydp_forms import pydp_form, pydp_public


def library_named(name: str) -> Library:
    """Return the suite's view of a library.

    Raises
    ------
    OptionError
        If the name is unknown or the library cannot be imported.
    """
    if name not in _LIBRARIES:
        raise OptionError(f"library={name!r} has no suite; use one of {', '.join(_LIBRARIES)}.", library=name)
    if not is_installed(name):
        raise OptionError(f"{name} cannot be imported here; pip install 'dpaudit[{name}]'.", library=name)
    return _LIBRARIES[name]


def _diffprivlib_public() -> tuple[PublicCallable, ...]:
    return public_callables("diffprivlib", ("mechanisms", "tools", "models"))


def _diffprivlib_form(public: PublicCallable) -> Form:
    function: Any = public.function
    match public.name.partition(".")[0]:
        case "mechanisms" if not hasattr(function, "randomise"):
            return NotCovered("it is a part of mechanisms, not a mechanism")
        case "mechanisms" if inspect.isabstract(function):
            return NotCovered("it is an abstract base class")
        case "mechanisms":
            return mechanism_form(public)
        case "tools":
            return tool_form(public)
        case _:
            return model_form(public)


def _release(name: str) -> Any:
    return lambda: release_of(name)


_LIBRARIES = {
    "diffprivlib": Library(
        name="diffprivlib",
        release=_release("diffprivlib"),
        public=_diffprivlib_public,
        form_of=_diffprivlib_form,
    ),
    "opendp": Library(name="opendp", release=_release("opendp"), public=opendp_public, form_of=opendp_form),
    "pydp": Library(name="pydp", release=_release("pydp"), public=pydp_public, form_of=pydp_form),
    "pure-ldp": Library(
        name="pure-ldp",
        release=_release("pure_ldp"),
        public=pure_ldp_public,
        form_of=pure_ldp_form,
    ),
    "multi-freq-ldpy": Library(
        name="multi-freq-ldpy",
        release=_release("multi_freq_ldpy"),
        public=multi_freq_public,
        form_of=multi_freq_form,
    ),
    "pipeline-dp": Library(
        name="pipeline-dp",
        release=_release("pipeline_dp"),
        public=pipeline_dp_public,
        form_of=pipeline_dp_form,
    ),
    "datasynthesizer": Library(
        name="datasynthesizer",
        release=_release("datasynthesizer"),
        public=datasynthesizer_public,
        form_of=datasynthesizer_form,
    ),
}
