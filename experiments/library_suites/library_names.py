"""The libraries that have suites, by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from ...audit.errors import OptionError
from ..libraries.target import is_installed, release_of
from .audited_library import Form, Library, NotCovered, PublicCallable, public_callables
from .diffprivlib_forms import mechanism_form, model_form, tool_form
from .opendp_forms import opendp_form, opendp_public
from .pipeline_dp_forms import pipeline_dp_form, pipeline_dp_public
from .pydp_forms import pydp_form, pydp_public


def library_named(name: str) -> Library:
    """Return the suite's view of a library.

    Raises
    ------
    OptionError
        If the name is unknown or the library cannot be imported.
    """
    if name not in LIBRARIES:
        raise OptionError(f"library={name!r} has no suite; use one of {', '.join(LIBRARIES)}.", library=name)
    if not is_installed(name):
        raise OptionError(f"{name} cannot be imported here; pip install 'dpaudit[{name}]'.", library=name)
    return LIBRARIES[name]


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


def _library(name: str, public: Callable[[], tuple[PublicCallable, ...]], form_of: Callable[..., Form]) -> Library:
    return Library(name=name, release=partial(release_of, name), public=public, form_of=form_of)


LIBRARIES = {
    library.name: library
    for library in (
        _library("diffprivlib", _diffprivlib_public, _diffprivlib_form),
        _library("opendp", opendp_public, opendp_form),
        _library("pydp", pydp_public, pydp_form),
        _library("pipeline-dp", pipeline_dp_public, pipeline_dp_form),
    )
}
