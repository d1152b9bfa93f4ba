"""The libraries that have suites, by name."""

from __future__ import annotations

from functools import partial

from ...audit.errors import OptionError
from ..libraries.subjects import is_installed, release_of
from .audited_library import Library
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


LIBRARIES = {
    name: Library(name=name, release=partial(release_of, name), public=public, form_of=form_of)
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
