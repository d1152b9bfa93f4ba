"""Several files of results as one suite, so that audits of several machines or days are looked at together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..errors import OptionError, RecordError
from .json_codec import to_json
from .suite import Entry, Suite, Topic


def merge(suites: Sequence[Suite], names: Sequence[str]) -> Suite:
    """All entries in their order, with all topics; adjusted p-values are then those of the whole.

    A name that occurs in several files gets the name of its file in front, as in "june.json: noisy count". Where that
    gives a name that another file has, every name gets the number and the name of its file in front. So no name of one
    file is that of another; names that a file has twice it keeps. A single suite is returned as it is.

    Parameters
    ----------
    suites : sequence of Suite
    names : sequence of str
        Of their files, all different.

    Raises
    ------
    OptionError
        For no suite at all, or names that do not tell the suites apart.
    RecordError
        Where two files hold the very same result, which would count twice, or one id of an experiment stands for two
        statements.

    Examples
    --------
    >>> from dpaudit.audit.results.statement_result import Point, StatementResult
    >>> point = Point(estimate=1.0, lower=0.5, upper=1.5)
    >>> def suite(seed):
    ...     found = StatementResult(
    ...         statement="s", quantity="q", points=(point,), alpha=0.05, method="m", runs=100, seed=seed
    ...     )
    ...     return Suite(title="Slopes", entries=(Entry(name="slope", result=found),))
    >>> [entry.name for entry in merge([suite(1), suite(2)], ["june.json", "july.json"]).entries]
    ['june.json: slope', 'july.json: slope']
    """
    if not suites or len(names) != len(suites) or len(set(names)) < len(names):
        raise OptionError(
            f"{len(names)} names ({', '.join(names)}) do not tell {len(suites)} suites apart; give one suite or more, "
            "each once and with a name of its own.",
            names=tuple(names),
        )
    if len(suites) == 1:
        return suites[0]
    _refuse_same(suites, names)
    return Suite(
        title=f"{len(suites):,} files of results: {', '.join(names)}",
        entries=_named_apart(suites, names),
        topics=_topics(suites, names),
        environment={
            "merged": [
                {"file": name, "title": suite.title, "environment": suite.environment}
                for suite, name in zip(suites, names, strict=True)
            ]
        },
    )


def _refuse_same(suites: Sequence[Suite], names: Sequence[str]) -> None:
    """Raises if a file holds an entry that is one of a former file in everything, timings included."""
    known: dict[str, str] = {}
    for suite, name in zip(suites, names, strict=True):
        own = {to_json(Suite(title="", entries=(entry,))): entry.name for entry in suite.entries}
        for text, entry_name in own.items():
            if text in known:
                raise RecordError(
                    f"{entry_name!r} in {name} is the result in {known[text]} itself, and would count twice; give each "
                    "file once.",
                    name=entry_name,
                    files=(known[text], name),
                )
        known |= dict.fromkeys(own, name)


def _named_apart(suites: Sequence[Suite], names: Sequence[str]) -> tuple[Entry, ...]:
    """The entries of all suites, under names that no two suites share."""
    plain = [[entry.name for entry in suite.entries] for suite in suites]
    shared = _shared(plain)
    found = [
        [f"{name}: {own}" if own in shared else own for own in given] for given, name in zip(plain, names, strict=True)
    ]
    if _shared(found):  # a file has a name that begins like another file's
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
    """Names that occur in more than one group."""
    seen: set[str] = set()
    twice: set[str] = set()
    for group in map(set, names):
        twice |= seen & group
        seen |= group
    return twice


def _topics(suites: Sequence[Suite], names: Sequence[str]) -> tuple[Topic, ...]:
    """Each topic once."""
    known: dict[str, tuple[Topic, str]] = {}
    for suite, name in zip(suites, names, strict=True):
        for topic in suite.topics:
            first, where = known.setdefault(topic.id, (topic, name))
            if first != topic:
                raise RecordError(
                    f"experiment {topic.id!r} is about something else in {name} than in {where}; merge files whose "
                    "experiments are the same.",
                    topic=topic.id,
                    files=(where, name),
                )
    return tuple(topic for topic, _ in known.values())
