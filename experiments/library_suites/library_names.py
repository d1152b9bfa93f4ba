"""The libraries that have suites, by name, with the releases whose defects docs/findings.md describes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from ...audit.errors import OptionError
from ..libraries.subjects import is_installed, release_of
from .audited_library import Form, Library, PublicCallable
from .diffprivlib_forms import diffprivlib_form, diffprivlib_public
from .federated_forms import flwr_form, flwr_public, nvflare_form, nvflare_public
from .opendp_forms import opendp_form, opendp_public
from .pipeline_dp_forms import pipeline_dp_form, pipeline_dp_public
from .pydp_forms import pydp_form, pydp_public
from .sql_forms import QRLEW, SMARTNOISE, sql_form, sql_public


def library_named(name: str) -> Library:
    """Return the suite's view of a library; raise an `OptionError` if it is unknown or cannot be imported."""
    if name not in LIBRARIES:
        raise OptionError(f"library={name!r} has no suite; use one of {', '.join(LIBRARIES)}.", library=name)
    if not is_installed(name):
        raise OptionError(f"{name} cannot be imported here; pip install 'dpaudit[{name}]'.", library=name)
    return LIBRARIES[name]


_DESCRIBED = {
    "diffprivlib 0.6.6", "opendp 0.16.0", "python-dp 1.1.5", "pipeline-dp 0.3.1", "flwr 1.42.0", "nvflare 2.9.0",
    "smartnoise-sql 1.0.10", "pyqrlew 0.9.27",
}  # fmt: skip


def _form_in_release(library: str, form_of: Callable[[PublicCallable], Form], public: PublicCallable) -> Form:
    """Return the form, whose targets name known defects with their page only if the release with them is installed.

    A defect that was repaired and returned is therefore new.
    """
    form, is_described = form_of(public), release_of(library) in _DESCRIBED
    if not isinstance(form, tuple):
        return form

    def page(words: str) -> str:
        return f"{words} (docs/findings.md)" if words and is_described else ""

    return tuple(replace(target, known=page(target.known), known_bits=page(target.known_bits)) for target in form)


LIBRARIES = {
    name: Library(
        name=name,
        release=partial(release_of, name),
        public=public,
        form_of=partial(_form_in_release, name, form_of),
    )
    for name, public, form_of in (
        ("diffprivlib", diffprivlib_public, diffprivlib_form),
        ("opendp", opendp_public, opendp_form),
        ("pydp", pydp_public, pydp_form),
        ("pipeline-dp", pipeline_dp_public, pipeline_dp_form),
        ("flwr", flwr_public, flwr_form),
        ("nvflare", nvflare_public, nvflare_form),
        (SMARTNOISE.name, partial(sql_public, SMARTNOISE), partial(sql_form, SMARTNOISE)),
        (QRLEW.name, partial(sql_public, QRLEW), partial(sql_form, QRLEW)),
    )
}
