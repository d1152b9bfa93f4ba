"""The known name that was probably meant by a mistyped name."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str], *, before: str = "; ") -> str:
    """Return a question that names the closest of the known names, or an empty string if none is close.

    Case is ignored.

    Examples
    --------
    >>> did_you_mean("Replce", ["add-remove", "replace"])
    "; did you mean 'replace'?"
    >>> did_you_mean("near", ["add-remove", "replace"])
    ''
    """
    from difflib import get_close_matches

    by_lower = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), by_lower, n=1)
    return f"{before}did you mean {by_lower[near[0]]!r}?" if near else ""
