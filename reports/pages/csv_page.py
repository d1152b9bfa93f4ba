"""A suite as CSV, a row for each entry: for spreadsheets, which must find numbers and text there and no formula."""

from __future__ import annotations

import io
import re
from csv import writer

from ...audit.records.suite import COLUMNS, Scalar, Suite, rows
from ..plain_text import visible

_LIMIT = 3_000
"""Characters of a cell, before escapes of up to ten each: from 32,768 on a spreadsheet breaks a cell in two."""

# At the start of a cell, behind space and quotes as well, and behind a semicolon: where that is the separator of lists,
# spreadsheets begin a new cell there.
_FORMULA = re.compile(r"""(?:^|(?<=;))(?=[\s"]*[=+\-@＝＋－＠])|^(?=[\t\r\n])""")


def csv(suite: Suite) -> str:
    """The suite as CSV (RFC 4180, with a header line): the columns of `audit.tabular.rows`.

    Numbers are written so that they are read back as they are, infinite ones as ``inf``; what is missing is an empty
    cell. Text is guarded against being taken for a formula (CSV injection), as OWASP advises: a cell that begins with
    ``=``, ``+``, ``-``, ``@``, one of their full-width forms, a tab or a line break gets an apostrophe in front, also
    where space comes first; so does what follows a semicolon. Characters that cannot be seen, line breaks among them,
    are written as escapes, and a text of more than 3,000 characters is cut in the middle.

    Write it to a file with ``newline=""``: lines end in CR LF.

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
