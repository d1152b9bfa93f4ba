"""A suite as an unsigned in-toto statement with the predicate of test results.

References
----------
in-toto Attestation Framework, Statement v1; predicate type Test Result v0.1.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from typing import Any, Final

from ...audit.errors import OptionError
from ...audit.records.json_codec import told_apart
from ...audit.records.suite import Entry, Suite, rows
from ...audit.results.statement_result import StatementResult
from ..plain_text import visible
from ..source_places import place_of_mechanism
from .results_files import HashedFile, ResultsFile, as_saved, file_of_each
from .standing import Standing, standing
from .strict_json import json_text, recorded

STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE: Final = "https://in-toto.io/attestation/test-result/v0.1"
_READING: Final = (
    "A passed test is a claim that was not refuted on one pair of datasets by one event, not a claim that is verified."
)


def attestation(
    suite: Suite,
    *,
    files: Sequence[ResultsFile] = (),
    artifacts: Iterable[HashedFile] = (),
    today: datetime.date | None = None,
) -> str:
    """Return the suite as an in-toto statement (JSON, unsigned); the same results give the same text.

    The subjects are the files of the results, the source files of the mechanisms as they were when the audits ran, and
    the given artifacts. Each audit is a test. It fails if its claim is refuted without an acceptance, if it is
    inconclusive, or if it ended with another verdict than the expected one. It passes with a warning if the claim is
    not refuted but low bits break it, the pair is doubtful, health checks were silenced, no loss was visible or the
    detectable excess is larger than the claim; if a refutation is accepted; and if a refuted or inconclusive audit was
    expected. The result of the suite is that of its worst test, and at best a warning if no audit tested a privacy
    claim. Each audit is also a configuration, with its settings and verdict as annotations.

    Parameters
    ----------
    suite : Suite
    files : sequence of ResultsFile
        The files of the results, in order; by default the file that `save` would write, named ``results.json``.
    artifacts : iterable of HashedFile
        Further subjects, such as the wheel that was installed when the audits ran. That the audits concern them is the
        caller's statement, and nothing checks it.
    today : date, optional
        Day on which acceptances are checked; by default the current day.

    Raises
    ------
    OptionError
        If the suite has no audit, or `files` have another number of entries.

    References
    ----------
    in-toto Attestation Framework: Statement v1, ResourceDescriptor v1, predicate Test Result v0.1.
    """
    if not suite.entries:
        raise OptionError("the results have no audit, so there is nothing to attest; run an audit first.")
    day = today or datetime.date.today()
    files = tuple(files) or (as_saved(suite),)
    homes, names = file_of_each(suite, files), [visible(name, 2_000) for name in told_apart(suite)]
    standings = [standing(entry, day) for entry in suite.entries]
    configuration = [
        {
            "name": name,
            "digest": {"sha256": home.sha256},
            "annotations": {"file": home.name, "standing": how, **recorded(entry, row)},
        }
        for entry, name, row, home, how in zip(suite.entries, names, rows(suite), homes, standings, strict=True)
    ]

    def tests(wanted: Standing) -> list[str]:
        return [name for name, how in zip(names, standings, strict=True) if how == wanted]

    failed, warned = tests("failed"), tests("warned")
    has_claims = any(not isinstance(entry.result, StatementResult) for entry in suite.entries)
    statement = {
        "_type": STATEMENT_TYPE,
        "subject": _subjects(files, suite.entries, artifacts),
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "result": "FAILED" if failed else "WARNED" if warned or not has_claims else "PASSED",
            "configuration": configuration,
            "passedTests": tests("passed"),
            "warnedTests": warned,
            "failedTests": failed,
        },
    }
    return json_text(statement)


def _subjects(
    files: Sequence[ResultsFile], entries: Sequence[Entry], artifacts: Iterable[HashedFile]
) -> list[dict[str, Any]]:
    """The subjects with different names: files of results, sources in their order, artifacts."""
    sources = [place for place in map(place_of_mechanism, entries) if place is not None]
    known = [
        *((file.name, file.sha256, {"role": "results of the audits", "reading": _READING}) for file in files),
        *(
            (place.file, place.sha256, {"role": "source of an audited mechanism", "root": place.root})
            for place in sources
        ),
        *((file.name, file.sha256, {"role": "artifact named by the caller"}) for file in artifacts),
    ]
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for name, digest, notes in known:
        if (name, digest) not in found:
            is_taken = any(name == each["name"] for each in found.values())
            shown = visible(f"{name} ({digest[:12]})" if is_taken else name)
            found[name, digest] = {"name": shown, "digest": {"sha256": digest}, "annotations": notes}
    return list(found.values())
