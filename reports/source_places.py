"""Where the source of a mechanism lies, as URIs: from the environment of a result, a replay, or the name of a test."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from ..audit.records.suite import Entry, ReplayRow

SOURCE_ROOT, INSTALLED = "SRCROOT", "SITEPACKAGES"
"""Roots of relative URIs: the working directory of the audit, and the folder of installed packages."""

_ROOTS: Final = {"working directory": SOURCE_ROOT, "installed packages": INSTALLED}
_ROW: Final = re.compile(r"(?P<file>.+):(?P<line>\d{1,9}) in (?P<function>.*)", re.DOTALL)
_TEST: Final = re.compile(r"(?:^|: )(?P<file>[^:\n]+\.py)::")
_DIGEST: Final = re.compile("[0-9a-f]{64}")
_LAST_LINE: Final = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePlace:
    """A line of a file.

    Attributes
    ----------
    file : str
        Path with forward slashes; relative unless a replay says otherwise.
    line : int, optional
    function : str
        Empty if unknown.
    root : str
        `SOURCE_ROOT` or `INSTALLED`; empty if unknown.
    sha256 : str
        Of the file when the audit ran; empty if unknown.
    """

    file: str
    line: int | None = None
    function: str = ""
    root: str = ""
    sha256: str = ""

    @property
    def uri(self) -> str:
        """The path as a URI reference."""
        return uri_of(self.file)


def uri_of(path: str) -> str:
    """Return a path as a URI reference, a relative one if the path is relative.

    Examples
    --------
    >>> uri_of("my lib/counts.py"), uri_of("C:\\\\code\\\\a.py"), uri_of("/code/a.py"), uri_of("a:b.py")
    ('my%20lib/counts.py', 'file:///C:/code/a.py', 'file:///code/a.py', 'a%3Ab.py')
    """
    drive = re.match(r"[A-Za-z]:(?=[/\\])", path)
    if drive or "\\" in path:
        path = path.replace("\\", "/")
    rest = quote(path[2:] if drive else path, safe="/", errors="surrogatepass")
    if drive:
        return f"file:///{drive[0]}{rest}"
    return f"file://{rest}" if rest.startswith("/") else rest


def place_of_mechanism(entry: Entry) -> SourcePlace | None:
    """Return the recorded place of a mechanism; None if there is none, or if it is not a path below its root."""
    found = entry.result.environment.get("source")
    if not isinstance(found, dict):
        return None
    file, line, digest = (found.get(name) for name in ("file", "line", "sha256"))
    root = _ROOTS.get(str(found.get("below")))
    if root is None or not _is_below(file) or not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        return None
    if isinstance(line, bool) or not isinstance(line, int) or not 1 <= line <= _LAST_LINE:
        return None
    return SourcePlace(file=str(file), line=line, root=root, sha256=digest)


def _is_below(file: Any) -> bool:
    """Whether a file names a path below a root, in a form that no system reads as another path."""
    if not isinstance(file, str) or not file or "\\" in file or ":" in file.partition("/")[0]:
        return False
    return not any(part in ("", ".", "..") for part in file.split("/"))


def place_of_test(entry: Entry) -> SourcePlace | None:
    """Return the file of the test that made an audit, from a name such as "tests/test_it.py::test_noisy"."""
    found = _TEST.search(entry.name)
    return SourcePlace(file=found["file"], root=SOURCE_ROOT) if found and _is_below(found["file"]) else None


def place_of_row(row: ReplayRow) -> SourcePlace | None:
    """Return the place of a call of a replay; None for code without a file, such as a prompt."""
    found = _ROW.fullmatch(row.place)
    if found is None or found["file"].startswith("<") or int(found["line"]) < 1:
        return None
    return SourcePlace(file=found["file"], line=int(found["line"]), function=found["function"])


def logical_name(entry: Entry) -> str:
    """Return the qualified name of the mechanism, such as "mylib.counts.noisy_count", or its name in the results."""
    code = entry.result.provenance
    if code is not None and ":" in code.where:
        return code.where.replace(":", ".")
    return str(getattr(entry.result, "mechanism", "") or entry.name)
