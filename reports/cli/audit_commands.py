"""``dpaudit audit | replay | canaries``: a mechanism of the user on a pair of datasets or on the worst pair that a
search finds, the line of it that leaks, and one training run.

Verdicts are shown with options in place of names in Python, and with what to do next.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...audit.errors import Interrupted, OptionError
from ...audit.files import path_of
from ...audit.settings import explained
from .report_commands import earlier_title, on_terminal, print_lines, write_reports
from .shared_options import (
    CANARY_ADJACENCIES,
    CANARY_ANSWERS,
    CANARY_INCLUSION,
    CANARY_METHODS,
    FLOATING_POINT,
    HEALTH_CHECKS,
    PRIMITIVES,
    Alpha,
    Delta,
    Detect,
    Distance,
    Epsilon,
    Jobs,
    Mu,
    Out,
    Part,
    Power,
    Relation,
    Rho,
    Seed,
    X,
    Y,
    adjacency_from_option,
    check_choices,
    claim_from_options,
    completion,
    environment_of_command,
    in_options,
    one_mechanism,
    one_of,
    optional,
    say,
    streams_kept,
    whole,
)

if TYPE_CHECKING:
    from ...audit.records.suite import Suite
    from ...audit.results.audit_result import AuditResult
    from ...audit.results.canary_result import CanaryResult
    from ...audit.results.result import Result


def audit(
    path: Annotated[
        str | None,
        typer.Argument(metavar="[MODULE:OBJECT]", help="Mechanism, as package.module:object.", show_default=False),
    ] = None,
    program: Annotated[str | None, optional("Command to audit, such as './count {input.csv}'.")] = None,
    x: X = None,
    y: Y = None,
    search: Annotated[
        str | None,
        optional("Domain such as Rows(), or source of pairs, to search for the worst pair.", metavar="MODULE:OBJECT"),
    ] = None,
    search_runs: Annotated[
        int | None, whole("Maximum runs of the search; by default --runs.", show_default=False)
    ] = None,
    guide: Annotated[
        str | None,
        optional('"replay" ranks the pairs of a search by what the noise is given.', complete=("replay",)),
    ] = None,
    epsilon: Epsilon = None,
    delta: Delta = 0.0,
    mu: Mu = None,
    rho: Rho = None,
    adjacency: Relation = None,
    distance: Distance = 1,
    output: Part = None,
    runs: Annotated[
        int | None,
        whole("Runs per dataset; by default the number for --detect, or 1,000,000.", show_default=False),
    ] = None,
    alpha: Alpha = 0.05,
    detect: Detect = None,
    power: Power = 0.95,
    sequential: Annotated[bool, typer.Option(help="Stop as soon as the claim is refuted.")] = False,
    exact: Annotated[
        bool,
        typer.Option("--exact", help="Execute discrete code down every branch, for a certain verdict."),
    ] = False,
    seconds: Annotated[
        float | None, optional("Time limit of the audit, without the search; makes the audit sequential.")
    ] = None,
    bins: Annotated[int, whole(explained()["bins"])] = 0,
    floating_point: Annotated[str, one_of(explained()["floating_point"][:-1], FLOATING_POINT)] = "warn",
    seed: Seed = 0,
    jobs: Jobs = None,
    ignore: Annotated[list[str] | None, optional("Health check to silence.", complete=HEALTH_CHECKS)] = None,
    keep_datasets: Annotated[bool, typer.Option(help=explained()["keep_datasets"])] = False,
    name: Annotated[str | None, optional("Name of the audit in the results; by default MODULE:OBJECT.")] = None,
    chunk_seconds: Annotated[float | None, optional(explained()["chunk_seconds"])] = None,
    out: Out = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume the interrupted audit in --out; repeat its options.")
    ] = False,
) -> None:
    """Audit a mechanism on a pair of datasets, or on the worst pair that a search finds.

    The mechanism is a function f(dataset, size, rng) that draws `size` outputs, a function f(dataset, rng) or
    f(dataset) that draws one output, or an object with sample(dataset, size, rng). A mechanism with an attribute
    `claim` needs no options of the claim. Exit status: 0 if the claim is not refuted, 1 if it is refuted, 2 for invalid
    input or an error, 3 if the audit is inconclusive, 130 after Ctrl-C without a verdict.

    Example: `dpaudit audit mycode.counts:noisy_count --x '[1, 1, 1]' --y '[1, 1]' --epsilon 1 --adjacency add-remove`

    With --search mycode.counts:domain, the audit uses the worst of many pairs. With --program "Rscript count.R
    {input.csv}" --x x.csv --y y.csv the mechanism is a command that is run once for each run. A command without
    placeholders answers requests for many runs; docs/guides/program.md describes both.

    With --exact, exit status 0 says that the claim is verified on the pair, or on all pairs of --search.

    Ctrl-C stops the audit; the verdict of a sequential audit at that point is valid and is shown. With --out, all draws
    are kept, and the same command with --resume continues.
    """
    from ...audit.options import checked
    from ...audit.procedures.check import check
    from ...audit.search.find_worst_pair import find_worst_pair
    from ..plain_text import facts, require_for_html, spelled
    from .dataset_arguments import import_object, read_dataset
    from .interruption import STATUS, interruptible, store_for, telling_what_is_kept

    claim = claim_from_options(epsilon, delta, mu, rho, or_none=True)
    one_mechanism(path, program)
    check_choices(ignore or [], HEALTH_CHECKS, "--ignore")
    check_choices([floating_point], FLOATING_POINT, "--floating-point")
    folder = None if out is None else path_of(out)  # the audited code may change the working folder
    mechanism, label, readers = _mechanism(path, program)
    texts = ((x, "--x"), (y, "--y"))
    pair = [None if text is None else read_dataset(text, option, readers=readers) for text, option in texts]
    named = _named(x, y, epsilon, delta, mu, rho, adjacency, distance, output)
    label = label if name is None else name
    options = dict[str, Any](
        claim=claim, adjacency=adjacency_from_option(adjacency), distance=distance, output=output, runs=runs,
        alpha=alpha, seed=seed, detect=detect, power=power, sequential=sequential, seconds=seconds, bins=bins,
        floating_point=floating_point, jobs=jobs, ignore=ignore or (), keep_datasets=keep_datasets, name=name,
        chunk_seconds=chunk_seconds,
    )  # fmt: skip
    if search is not None and (x, y) != (None, None):
        raise OptionError("--x and --y name a pair, and --search finds one; use one of the two.")
    if search is None and None in (x, y):
        missing, given = ("--x", "--y") if x is None else ("--y", "--x")
        raise OptionError(
            "name a pair with --x and --y, or a domain to search with --search."
            if x is None and y is None
            else f"{missing} is missing; a pair needs it beside {given}."
        )
    if guide is not None and search is None:
        raise OptionError("--guide is for a search; name a domain with --search.")
    if exact:
        if resume or guide is not None or search_runs is not None:
            raise OptionError("--resume, --guide and --search-runs are for audits that sample; leave them out.")
        where = pair if search is None else [import_object(search)]
        raise typer.Exit(_exact_audit(mechanism, where, label, options, out))
    if resume and out is None:
        raise OptionError("--resume continues the audit in a folder; name the folder with --out.")
    if out is not None:
        require_for_html()
    way_on = "the same command with --resume continues" if out else "with --out, all draws are kept"
    if folder is not None and not resume:
        earlier_title(folder, _title(label))
    with ExitStack() as stack:
        store = None if folder is None else stack.enter_context(store_for(folder, "audit", is_resumed=resume))
        with interruptible(way_on), streams_kept():
            options |= {"store": store, "progress": True}
            if search is not None:
                options["guide"] = checked("guide", guide, or_none=True)
                found = find_worst_pair(mechanism, import_object(search), search_runs=search_runs, **options)
                result, shown = found.audit, str(found)
                if keep_datasets:  # else its rows are not printed
                    named |= {"x": _as_json(found.x), "y": _as_json(found.y)}
            else:
                try:
                    result = check(mechanism, *pair, **options)
                except Interrupted as stop:  # the verdict of a sequential audit is valid at any time
                    if stop.result is None:
                        raise
                    result = stop.result
                shown = str(result)
        known = {"counts"} if result.seen else set()  # which the verdict shows
        known |= {"event", "", "pair", "runs"} if search is not None else set()
        told = [f"  {fact:<7} {spelled(value)}" for fact, value in facts(result) if fact not in known]
        is_named = path is not None and None not in (named["x"], named["y"])
        line = in_shell(shown, result, _again("replay", str(path), named) if is_named else "")
        typer.echo("\n".join([line, *told]))  # before the report, which may not be written
        if result.bins is not None:
            typer.echo(f"  bins    {result.bins}")
        if out is not None and folder is not None:
            with telling_what_is_kept(store, "the same command and --resume"):
                print_lines(_saved(_suite(label, result), folder, out))
        if result.stopped == "request":
            say(f"interrupted after {result.runs:,} runs on each dataset; {way_on}")
            raise typer.Exit(STATUS)
        if store is not None:
            store.discard()
    if on_terminal():
        following = next_steps(result, is_searched=search is not None, out=out)
        typer.echo("\n".join(following))
    raise typer.Exit(_status(result))


def _exact_audit(mechanism: Any, where: list[Any], label: str, options: dict[str, Any], out: Path | None) -> int:
    """Audit a pair, or a domain, exactly; print the result, write its report and return the exit status."""
    from ...audit.procedures.check import check
    from ...audit.search.find_worst_pair import find_worst_pair
    from .interruption import STATUS

    folder, title, status = None if out is None else path_of(out), _title(label), 0
    if folder is not None:
        earlier_title(folder, title)
    with streams_kept():
        try:
            audit: Callable[..., Any] = check if len(where) == 2 else find_worst_pair
            result = audit(mechanism, *where, exact=True, progress=True, **options)
        except Interrupted as stop:
            if stop.result is None:
                raise
            result, status = stop.result, STATUS
    typer.echo("\n  ".join([result.headline, *map(in_options, result.details)]))
    _save_check(title, label, result, folder, out)
    return status or _status(result)


def replay(
    path: Annotated[str, typer.Argument(metavar="MODULE:OBJECT", help="Mechanism, as package.module:object.")],
    x: X = None,
    y: Y = None,
    epsilon: Epsilon = None,
    delta: Delta = 0.0,
    mu: Mu = None,
    rho: Rho = None,
    adjacency: Relation = None,
    distance: Distance = 1,
    output: Part = None,
    primitives: Annotated[
        list[str] | None, optional("Family of noise to record, repeatable; by default all.", complete=PRIMITIVES)
    ] = None,
    seed: Annotated[int, whole("Random seed, which fixes the path.")] = 0,
    out: Annotated[Path | None, optional("Folder for results.json and the report; by default none.")] = None,
) -> None:
    """Name the line that leaks: run a mechanism on x and on y with the same random values.

    The replay compares what each noise primitive is given on x and on y, in about 130 runs. It sees one pair and one
    path, and neither refutes nor proves a claim. The noise of other programs is not seen. Exit status: 0 if the loss is
    bounded on this path, 1 for an excess, 2 for invalid input or an error, 3 if the result is undetermined.

    Example: `dpaudit replay mycode.counts:noisy_count --x '[1, 1, 1]' --y '[1, 1]' --epsilon 1`
    """
    from ...audit.replay.replay import replay as replayed
    from .dataset_arguments import import_object, read_dataset

    claim = claim_from_options(epsilon, delta, mu, rho, or_none=True)
    check_choices(primitives or [], PRIMITIVES, "--primitives")
    if x is None or y is None:
        raise OptionError("a replay needs a pair of datasets; name it with --x and --y.")
    folder, title = None if out is None else path_of(out), f"Replay of {path}"
    if folder is not None:
        earlier_title(folder, title)
    pair = [read_dataset(x, "--x"), read_dataset(y, "--y")]
    with streams_kept():
        result = replayed(
            import_object(path), *pair, claim=claim, adjacency=adjacency_from_option(adjacency), distance=distance,
            output=output, primitives=primitives or None, seed=seed,
        )  # fmt: skip
    again = _again("audit", path, _named(x, y, epsilon, delta, mu, rho, adjacency, distance, output))
    told = [in_options(line) if line.startswith("open: ") else line for line in result.details]  # others quote code
    if result.next_step:
        told[-1:] = [*([f"next: {remedy}"] if (remedy := result.remedy) else []), f"confirm: {again}"]
    typer.echo("\n  ".join([result.headline, *told]))
    typer.echo(f"  runs    {result.runs}\n  seed    {result.seed}")
    if result.calls:
        typer.echo(f"  calls   {result.table().replace(chr(10), f'{chr(10)}          ')}")
    _save_check(title, path, result, folder, out)
    raise typer.Exit(_status(result))


def _suite(name: str, result: AuditResult | CanaryResult) -> Suite:
    """Return a suite of one audit, which records the command that made it."""
    from ...audit.records.suite import Entry, Suite

    result.environment["repeat"] = environment_of_command()["command"]
    return Suite(title=_title(name), entries=(Entry(name=name, result=result),))


def _save_check(title: str, name: str, result: Result, folder: Path | None, shown: Path | None) -> None:
    """Write an exact audit or a replay with its report, if a folder is given."""
    from ...audit.records.suite import Suite, side_check

    if folder is not None and shown is not None:
        print_lines(_saved(Suite(title=title, entries=(), checks=(side_check(name, result),)), folder, shown))


def _saved(suite: Suite, folder: Path, shown: Path) -> list[str]:
    """Write results and their report; return a line about each file, which names it as `shown`."""
    from ...audit.records.json_codec import save

    suite = replace(suite, environment=environment_of_command())
    target, kept = folder / "results.json", ""
    if target.exists():
        kept = next(f"results-{number}.json" for number in count(1) if not (folder / f"results-{number}.json").exists())
        target.rename(folder / kept)
    try:
        save(suite, target)
    except BaseException:
        if kept:
            (folder / kept).rename(target)
        raise
    told = f" (the earlier results of this name are now {kept})" if kept else ""
    return [f"results: {shown / 'results.json'}{told}", *write_reports(suite, folder, shown=shown)]


def _title(name: str) -> str:
    return f"Audit of {name}"


def _status(result: Result) -> int:
    from ..plain_text import alike

    return {"NOT_REFUTED": 0, "REFUTED": 1, "INCONCLUSIVE": 3}[alike(result.verdict.name).name]


def _mechanism(path: str | None, program: str | None) -> tuple[Any, str, dict[str, Any]]:
    """Return the named mechanism, its label, and what reads the datasets of a program that takes files."""
    from .dataset_arguments import import_object

    if program is None:
        return import_object(str(path)), str(path), {}
    from ...mechanisms.adapters import Program
    from ...mechanisms.adapters.data_files import READERS

    try:
        words = shlex.split(program)
    except ValueError as error:
        raise OptionError(
            f"--program {program!r} cannot be split into words ({error}); check its quotes.", program=program
        ) from error
    found = Program(words)
    return found, program, READERS if found.takes_files else {}


def canaries(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE", help="Scores and inclusion bits: .csv, .npy or .npz; a file for each training run."
        ),
    ],
    score: Annotated[str, typer.Option(help="Column of the scores, large where the canary seems to be in.")] = "score",
    included: Annotated[
        str, typer.Option(help="Column of whether the canary was in: 1 or 0, true or false.")
    ] = "included",
    epsilon: Epsilon = None,
    delta: Delta = 0.0,
    mu: Mu = None,
    rho: Rho = None,
    alpha: Alpha = 0.05,
    detect: Detect = None,
    probability: Annotated[float, typer.Option(help="Probability with which each bit included its canary.")] = 0.5,
    inclusion: Annotated[
        str | None,
        optional(
            "independent, or fixed for a random split into fixed numbers; by default independent, unless exactly half "
            "of the canaries are in.",
            complete=CANARY_INCLUSION,
        ),
    ] = None,
    adjacency: Annotated[
        str | None,
        optional("Neighbours of the claim: add-remove (default), replace or zero-out.", complete=CANARY_ADJACENCIES),
    ] = None,
    guess: Annotated[
        str | None,
        optional("What is guessed: both, in or out; by default both for probability 0.5.", complete=CANARY_ANSWERS),
    ] = None,
    method: Annotated[
        str,
        typer.Option(help="Tests: auto, betting, counts, steinke or f-dp.", autocompletion=completion(CANARY_METHODS)),
    ] = "auto",
    guesses: Annotated[
        list[int] | None,
        whole("Number of guesses, chosen without a look at the scores; repeatable.", show_default=False),
    ] = None,
    seed: Annotated[int, whole("Random seed of the order of equal scores.")] = 0,
    name: Annotated[str, typer.Option(help="Name of the training in the results.")] = "training run",
    out: Out = None,
) -> None:
    """Audit one training run, from the scores of canaries that inclusion bits put in or left out.

    Before training, an inclusion bit decides for each canary whether it is in the training data. Afterwards each canary
    gets a score from what the training releases. A .csv has a line of names; an .npz has arrays with these names; an
    .npy has shape (canaries, 2), score first. Several files are independent runs with new bits. Exit status: 0 if the
    claim is not refuted, 1 if it is refuted, 2 for invalid input or an error, 3 if so few canaries could not show an
    excess as large as the claim.

    Example: `dpaudit canaries scores.csv --epsilon 1 --delta 1e-5 --out report`
    """
    from ...audit.canaries.check_canaries import check_canaries
    from ..plain_text import facts, require_for_html, spelled
    from .dataset_arguments import read_scores

    claim = claim_from_options(epsilon, delta, mu, rho)
    given = ((inclusion, CANARY_INCLUSION, "--inclusion"), (adjacency, CANARY_ADJACENCIES, "--adjacency"))
    for value, known, option in (*given, (guess, CANARY_ANSWERS, "--guess"), (method, CANARY_METHODS, "--method")):
        check_choices([value], known, option)
    if out is not None:
        require_for_html()
        earlier_title(out, _title(name))
    scores, flags = read_scores(paths, score, included)
    options: dict[str, Any] = {"inclusion": inclusion, "adjacency": adjacency, "guess": guess, "method": method}
    result = check_canaries(
        scores, flags, claim=claim, alpha=alpha, detect=detect, probability=probability,
        guesses=guesses or None, seed=seed, name=name, **options,
    )  # fmt: skip
    told = [f"  {label:<8} {spelled(fact)}" for label, fact in facts(result)]
    typer.echo("\n".join([in_shell(str(result), result), *told]))  # before the report, which may not be written
    if out is not None:
        print_lines(_saved(_suite(name, result), out, out))
    if on_terminal():
        typer.echo("\n".join(next_steps_for_canaries(result, out=out)))
    raise typer.Exit(_status(result))


def in_shell(text: str, result: AuditResult | CanaryResult, replay: str = "") -> str:
    """Return a text that contains the printed result, with the verdict in the words of the shell.

    The command `replay`, if there is one, takes the place of the call in Python, on a line that can be pasted.
    """
    from ...audit.printing import verdict_text

    details = [in_options(detail) for detail in result.details]
    if replay and details and (call := _CALL.search(details[-1])):
        before = details.pop()[: call.start()].removeprefix("next: ")
        details += [f"next: {before}"] if before else []
        return text.replace(str(result), f"{verdict_text(result.headline, details)}\n  next: {replay}", 1)
    return text.replace(str(result), verdict_text(result.headline, details), 1)


_CALL = re.compile(r"(; )?\breplay\(")  # in the last of the details


def _named(*values: Any) -> dict[str, Any]:
    """Return the options that an audit and a replay have in common, in this order; None for those not given."""
    names = ("x", "y", "epsilon", "delta", "mu", "rho", "adjacency", "distance", "output")
    usual = {"delta": 0.0, "distance": 1}
    return {name: None if value == usual.get(name) else value for name, value in zip(names, values, strict=True)}


def _again(command: str, path: str, options: Mapping[str, Any]) -> str:
    """Return a command line with the options of another one, quoted for the shell."""
    words = ["dpaudit", command, path]
    for name, value in options.items():
        if value is not None:
            words += [f"--{name}", str(value).removesuffix(".0") if isinstance(value, float) else str(value)]
    return shlex.join(words)


def _as_json(dataset: Any) -> str | None:
    """Return a dataset as the option --x takes it; None if JSON would make another one of it, or a long line."""
    try:
        text = json.dumps(dataset)
    except (TypeError, ValueError, RecursionError):
        return None
    return text if json.loads(text) == dataset and len(text) <= _LONGEST else None


_LONGEST = 400  # characters of a dataset in a command that is shown: a few lines


def next_steps(result: AuditResult, *, is_searched: bool, out: object) -> list[str]:
    """Return one or two lines on what to do after a verdict."""
    from ...audit.results.verdict import Verdict

    report = "--out DIR writes a report" if out is None else f"{out}/report.html shows the event"
    start = "also:" if result.next_step else "next:"
    if result.verdict is Verdict.REFUTED:
        return [
            f"{start} --seed {result.seed + 1} repeats the audit on new runs; {report}",
            "      in pytest, --dp-audit-scripts=DIR writes a script that shows the violation with numpy alone",
        ]
    if result.findings:
        return ["next: follow the remedy of each failed health check, and audit again"]
    more = "a larger --seconds allows more runs" if result.stopped == "time" else "more --runs"
    steps = [f"{start} {more} to detect smaller excesses; `dpaudit plan` says how many an excess takes"]
    if result.verdict is Verdict.NOT_REFUTED and is_searched:
        steps.append("      more --search-runs try more pairs")
    elif result.verdict is Verdict.NOT_REFUTED:
        steps.append("      --search MODULE:OBJECT in place of --x and --y looks for the worst pair of neighbours")
    return steps


def next_steps_for_canaries(result: CanaryResult, *, out: object) -> list[str]:
    """Return one or two lines on what to do after the audit of a training run."""
    from ...audit.results.verdict import Verdict

    report = "--out DIR writes a report" if out is None else f"{out}/report.html shows scores and guesses"
    if result.verdict is Verdict.REFUTED:
        return [f"also: {report}"]
    more = "more canaries, or files of several runs with new bits, raise the bound (`dpaudit plan --canaries`)"
    start = "also:" if result.verdict is Verdict.INCONCLUSIVE else "next:"
    return [f"{start} {more}", f"      scores that see more of the training raise the bound; {report}"]
