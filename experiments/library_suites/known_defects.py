"""Defects that docs/findings.md describes, for the releases in which they were found.

A refutation of another release is not marked, so that a defect that was repaired and returned is new.
"""

from __future__ import annotations

from ..libraries.installed import release_of

_RELEASES = {
    "diffprivlib": "diffprivlib 0.6.6",
    "opendp": "opendp 0.16.0",
    "pydp": "python-dp 1.1.5",
    "pipeline-dp": "pipeline-dp 0.3.1",
}
_PAGE = "docs/findings.md"
LOW_BITS = "low bits of continuous noise"


def known_in(library: str, words: str) -> str:
    """Return the words with their page if the installed release is the one in which the defect was found.

    Empty words, of no defect, stay empty.
    """
    return f"{words} ({_PAGE})" if words and release_of(library) == _RELEASES[library] else ""
