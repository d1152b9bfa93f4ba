"""Merging of results files from several machines or days into one suite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ..errors import OptionError, RecordError
from .json_codec import to_json
from .suite import Entry, Suite, Topic


def merge(suites: Sequence[Suite], names: Sequence[str]) -> Suite:
    """Merge suites into one with all entries and topics in order; adjusted p-values then cover all entries.

    A name that occurs in several files is prefixed with its file, as in "june.json: noisy count". If a prefixed name
    occurs in another file, every name is prefixed with the number and name of its file. Names repeated within a file
    are kept. A single suite is returned unchanged. No suite, or a name of two files, raises an `OptionError`; a result
    in two files, which would count twice, or two statements of one experiment id, a `RecordError`.
    """
    if not suites or len(names) != len(suites) or len(set(names)) < len(names):
        raise OptionError(
            f"{len(names)} names ({', '.join(names)}) do not identify {len(suites)} suites; pass at least one suite "
            "and a distinct name for each.",
            names=tuple(names),
        )
    if len(suites) == 1:
        return suites[0]
    _refuse_same(suites, names)
    return Suite(
        title=f"{len(suites):,} files of results: {', '.join(names)}",
        entries=_named_apart(suites, names),
        topics=_topics(suites, names),
        checks=tuple(
            replace(check, name=f"{name}: {check.name}")
            for suite, name in zip(suites, names, strict=True)
            for check in suite.checks
        ),
        environment={
            "merged": [
                {"file": name, "title": suite.title, "environment": suite.environment}
                for suite, name in zip(suites, names, strict=True)
            ]
        },
    )


def _refuse_same(suites: Sequence[Suite], names: Sequence[str]) -> None:
    """Raise if two files contain an identical entry, timings included."""
    known: dict[str, str] = {}
    for suite, name in zip(suites, names, strict=True):
        own = {to_json(Suite(title="", entries=(entry,))): entry.name for entry in suite.entries}
        for text, entry_name in own.items():
            if text in known:
                raise RecordError(
                    f"{entry_name!r} in {name} is the same result as in {known[text]} and would count twice; pass each "
                    "file once.",
                    name=entry_name,
                    files=(known[text], name),
                )
        known |= dict.fromkeys(own, name)


def _named_apart(suites: Sequence[Suite], names: Sequence[str]) -> tuple[Entry, ...]:
    plain = [[entry.name for entry in suite.entries] for suite in suites]
    shared = _shared(plain)
    found = [
        [f"{name}: {own}" if own in shared else own for own in given] for given, name in zip(plain, names, strict=True)
    ]
    if _shared(found):  # a name looks like a prefixed name of another file
        found = [
            [f"{number}, {name}: {own}" for own in given]
            for number, (given, name) in enumerate(zip(plain, names, strict=True), 1)
        ]
    return tuple(
        replace(entry, name=name)
        for suite, given in zip(suites, found, strict=True)
        for entry, name in zip(suite.entries, given, strict=True)
    )


def _shared(names: Sequence[Sequence[str]]) -> set[str]:
    times = Counter(name for group in names for name in set(group))
    return {name for name, n in times.items() if n > 1}


def _topics(suites: Sequence[Suite], names: Sequence[str]) -> tuple[Topic, ...]:
    known: dict[str, tuple[Topic, str]] = {}
    for suite, name in zip(suites, names, strict=True):
        for topic in suite.topics:
            first, where = known.setdefault(topic.id, (topic, name))
            if first != topic:
                raise RecordError(
                    f"experiment {topic.id!r} has different statements in {where} and {name}; merge files with the "
                    "same experiments.",
                    topic=topic.id,
                    files=(where, name),
                )
    return tuple(topic for topic, _ in known.values())
