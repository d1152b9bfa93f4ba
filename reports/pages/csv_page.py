"""A suite as CSV for spreadsheets: a row for each entry, with numbers and text but no formulas."""

from __future__ import annotations

import io
import re
from csv import writer

from ...audit.records.suite import COLUMNS, Scalar, Suite, rows
from ..plain_text import visible

_LIMIT = 3_000
"""Characters of a cell before escapes of up to ten each; spreadsheets split cells from 32,768 characters on."""

# A formula may start a cell, also after spaces and quotes, or follow a semicolon: spreadsheets whose list separator is
# the semicolon start a new cell there.
_FORMULA = re.compile(r"""(?:^|(?<=;))(?=[\s"]*[=+\-@＝＋－＠])|^(?=[\t\r\n])""")


def csv(suite: Suite) -> str:
    """Return the suite as CSV (RFC 4180, with a header line) with the columns of `audit.records.suite.rows`.

    Numbers are read back exactly, infinite ones as ``inf``; missing values are empty cells. An apostrophe guards text
    against being read as a formula (CSV injection), as OWASP advises: it precedes ``=``, ``+``, ``-``, ``@``, their
    full-width forms, tabs and line breaks at the start of a cell, also after spaces, and after a semicolon. Invisible
    characters, including line breaks, are written as escapes, and text beyond 3,000 characters is cut in the middle.

    Lines end in CR LF, so write the text to a file with ``newline=""``.

    References
    ----------
    OWASP, CSV injection. RFC 4180, Common format and MIME type for comma-separated values (CSV) files.

    Examples
    --------
    >>> csv(Suite(title="Nothing", entries=())).startswith("name,experiment,kind,")
    True
    """
    text = io.StringIO(newline="")
    lines = writer(text, lineterminator="\r\n")
    lines.writerow(COLUMNS)
    lines.writerows([_cell(value) for value in row.values()] for row in rows(suite))
    return text.getvalue()


def _cell(value: Scalar) -> Scalar:
    return visible(_FORMULA.sub("'", value), _LIMIT) if isinstance(value, str) else value
