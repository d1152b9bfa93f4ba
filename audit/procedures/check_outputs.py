"""The audit of outputs drawn elsewhere.

Proof: docs/proofs/choices.md
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..claims.claim import Claim, ClaimAtDistance, claim_at
from ..clock import now
from ..errors import MechanismError, OptionError
from ..events.events import with_names
from ..events.features import noting_left_out
from ..events.named_parts import (
    Entries,
    Part,
    arrays_of,
    can_change,
    columns_of_block,
    is_one_memory,
    names_of,
    shown_names,
    side_by_side,
    unevaluated,
    without_labels,
)
from ..events.outputs import Outputs, as_outputs, merge
from ..events.plain_outputs import Form, HashCheck, form_of_block
from ..events.scores import Reading
from ..floating_point_errors import with_own_arithmetic
from ..health.findings import Finding, HealthCheck, checks_to_ignore
from ..health.run_independence import examine_order
from ..inference.event_test import check_test_alpha
from ..known_options import with_known_options
from ..options import LEAST_RUNS, FloatingPoint, checked_seed, is_single
from ..random_streams import Stream, seed_of_coins, sequence_of
from ..results.audit_result import AuditResult
from ..results.claim_pair_and_alpha import Pair, Settings
from ..sampling.object_identity import ELSEWHERE
from ..sampling.output_hashes import contents
from ..sampling.pilot_and_batch_sizes import pilot_runs
from ..sampling.sampler import OutputPart, check_choice, name_of_part, pick_from_block
from ..sampling.tasks import MainCounts
from .audit import Audit, PortfolioTest, longest_pilot


@with_known_options()
@with_own_arithmetic
def check_outputs(
    xs: Any,
    ys: Any,
    *,
    output: OutputPart | None = None,
    claim: Claim | ClaimAtDistance,
    distance: float = 1,
    alpha: float = 0.05,
    seed: int | None = 0,
    detect: float | None = None,
    power: float = 0.95,
    floating_point: FloatingPoint = "warn",
    name: str = "outputs",
    claim_source: str = "",
    ignore: str | Iterable[str] = (),
) -> AuditResult:
    """Audit a claim on outputs drawn elsewhere: `xs` on one dataset, `ys` on a neighbour.

    A mechanism that keeps its claim is refuted with probability at most `alpha`, if the outputs are independent runs.
    This is checked as far as their order and their repeats show; sorted outputs are assumed to have been sorted
    afterwards, and if outputs were copied, the audit is inconclusive.

    Parameters
    ----------
    xs, ys : array_like or sequence
        One output per run: shape (runs,), (runs, n_coords), a data frame or a dictionary of columns with one run in
        each row, or a sequence of outputs as `check` takes them. At least 40 each. A frame or dictionary with a single
        column, and a named column, are compared by their values if the names on both sides differ.
    output : str, int or callable, optional
        Part of the outputs to audit, as in `check`; a function is given all of `xs`, or of `ys`.
    claim : Claim, float, (float, float) or callable
        As in `check`.
    distance : float
        Distance between the two datasets, as in `check`.
    alpha : float
        Largest allowed probability of refuting a correct mechanism, in (0, 1).
    seed : int or None
        Random seed, which together with the outputs divides them into those that choose the event and those that are
        counted.
    detect, power : float
        Excess that the audit has to detect, and with which probability, as in `settings`.
    floating_point, name, claim_source, ignore : str
        As in `settings`; several health checks are silenced by an iterable.

    Returns
    -------
    AuditResult
        A `FixedSizeResult`, with the runs of the shorter side.

    Raises
    ------
    MechanismError
        For outputs of an unsupported type.
    ClaimError, OptionError
        For arguments outside their range, or fewer than 40 outputs on a side.

    See Also
    --------
    check : Audit of a mechanism that can be called.
    epsilon_lower : Bound from the counts of one event.

    Notes
    -----
    A random part of the outputs chooses the event S and its direction, and the rest tests Pr[M(x) ∈ S] ≤ B(Pr[M(y) ∈
    S]), where B is the boundary of the claim. The choice needs no correction, because it is independent of the rest.

    References
    ----------
    Ding, Wang, Wang, Zhang & Kifer (2018), Detecting violations of differential privacy. Proofs:
    docs/proofs/choices.md, docs/proofs/joint-test.md.

    Examples
    --------
    >>> import numpy as np
    >>> from dpaudit import PureDP, check_outputs
    >>> rng = np.random.default_rng(0)
    >>> result = check_outputs(rng.laplace(0, 1, 20_000), rng.laplace(1, 1, 20_000), claim=PureDP(0.5))
    >>> result.verdict.value, 0.8 < result.bound < 1.0  # the outputs are 1-DP
    ('refuted', True)
    """
    started = now()
    seed = checked_seed(seed)
    part = check_choice(output)
    if part is not None:
        xs, ys = (pick_from_block(values, part, name) for values in (xs, ys))
        name = name_of_part(name, part)
    form, given = _given(xs, ys, name)
    ignored = checks_to_ignore(ignore)
    runs = min(map(len, given))
    if runs < LEAST_RUNS:
        raise OptionError(f"{runs} outputs are too few; pass {LEAST_RUNS} or more on each side.", runs=runs)
    settings = Settings(
        claim=claim_at(claim, distance),
        claim_source=claim_source,
        pair=Pair(
            x=f"{len(given[0]):,} outputs",
            y=f"{len(given[1]):,} outputs",
            difference="not seen",
            adjacency="declared neighbours by the caller",
            distance=distance,
        ),
        alpha=check_test_alpha(alpha),
        detect=detect,
        power=power,
        name=name,
        provenance=ELSEWHERE,
        seed=seed,
        floating_point=floating_point,
    )
    settings.check_shares()
    audit = RecordedAudit(settings, given, form.names)
    with noting_left_out() as left_out:
        audit.run()
    result = audit.conclude(ignored, notes=(*_notes_on_shapes(*given), *left_out.values()))
    result.environment["seconds"] = round(now() - started, 3)
    return result


class RecordedAudit(Audit):
    """The audit of outputs drawn elsewhere: a random part of them is the pilot, and the rest is counted."""

    def __init__(self, settings: Settings, given: list[Outputs], names: tuple[str, ...]) -> None:
        super().__init__(settings, min(map(len, given)))
        self.given, self.names = given, names
        self.coin_seed = seed_of_coins(settings.seed, *map(contents, given))
        shuffled = []  # so that sorted outputs can be audited
        for stream, outputs in zip((Stream.SHUFFLE_X, Stream.SHUFFLE_Y), given, strict=True):
            rng = np.random.Generator(np.random.SFC64(sequence_of(self.coin_seed, stream)))
            shuffled.append([outputs[rng.permutation(len(outputs))]])
        self.shuffled = merge(*shuffled)

    def pilot(self) -> None:
        """Takes the pilot from the beginning of the shuffled outputs."""
        (x, y), size = self.shuffled, pilot_runs(self.runs)
        while self.portfolio is None:
            self.x, self.y = x[:size], y[:size]
            size = longest_pilot(self.runs, self.width)
            self.portfolio = self.choose(self.runs, size)
        self.blocks, self.pilot_runs = ([self.x], [self.y]), len(self.x)

    def step(self) -> bool:
        """Counts the rest."""
        assert self.portfolio is not None
        events, partitions = self.portfolio.events, self.portfolio.partitions
        counted = MainCounts.of(events, partitions, *(Reading(side[self.pilot_runs :]) for side in self.shuffled))
        self.test = PortfolioTest(self.settings, with_names(self.portfolio, self.names), counted, self.coin_seed)
        return False

    def examined(self, ignored: frozenset[HealthCheck]) -> tuple[Finding, ...]:
        return examine_order(self.given[0], self.given[1], ignored, self.names)


def _given(xs: Any, ys: Any, name: str) -> tuple[Form, list[Outputs]]:
    """Outputs drawn elsewhere, as arrays, with the form that all have."""
    both = [without_labels(values) for values in (xs, ys)]  # which say where the outputs were kept
    if form_of_block(both[0]) != form_of_block(both[1]):
        both = _comparable(both, name)
    sizes = [_size(values, name) for values in both]
    forms = [form_of_block(values) for values in both]
    form = forms[0].agreed(forms[1]) if forms[0] == forms[1] else Form()
    outputs = [as_outputs(values, size, name, form) for values, size in zip(both, sizes, strict=True)]
    hashes = HashCheck()
    for values, side in zip(both, outputs, strict=True):
        _refuse_overwritten(values, name)
        hashes.add(side, name)
    return form, outputs


def _refuse_overwritten(values: Any, name: str) -> None:
    """Refuse a list that holds one object again and again, which the last run has filled."""
    if not isinstance(values, (list, tuple)) or len(values) < 2 or not can_change(values[0]):
        return
    if all(is_one_memory(each, values[0]) for each in values):
        raise MechanismError(
            f"{name} hold the same {type(values[0]).__name__} {len(values):,} times, so each output is what the last "
            "run put there; keep a copy of each output, or tuples if the outputs really never vary.",
            mechanism=name,
        )


def _notes_on_shapes(x: Outputs, y: Outputs) -> tuple[str, ...]:
    """A note if outputs on x and on y are numbers of different shapes, which distinguish the datasets."""
    if x.dtype == object or y.dtype == object or x.shape[1:] == y.shape[1:]:
        return ()
    on_x, on_y = (f"vectors of {side.shape[1]}" if side.ndim == 2 else "single numbers" for side in (x, y))
    return (
        f"outputs are {on_x} on x and {on_y} on y, which by itself distinguishes x and y; unless one mechanism returns "
        "both, pass both sides in the same shape",
    )


def _comparable(both: list[Any], name: str) -> list[Any]:
    """Both sides without the names of columns, if these are single columns or only one side has names."""
    columns = [columns_of_block(values) for values in both]
    named = [each for each in columns if each]
    if len(named) == 2 and not (len(named[0]) == len(named[1]) == 1):
        told = " and ".join(f"({', '.join(shown_names(names_of(each)))})" for each in named)
        raise MechanismError(
            f"{name} have the columns {told}, so each output shows from which dataset it is; give both the same "
            "columns, such as by rename, or pass lists of dictionaries if the columns are outputs too.",
            mechanism=name,
        )
    return [values if not each else _values_of(each, name) for values, each in zip(both, columns, strict=True)]


def _values_of(columns: Entries, name: str) -> Any:
    """The rows of named columns without the names."""
    if len(columns) == 1:
        return Part("output", columns[0][1])
    arrays = arrays_of(columns, _size(dict(columns), name), name)
    return side_by_side([arrays[key] for key, _ in columns])


def _size(values: Any, name: str) -> int:
    """The number of runs."""
    if said := unevaluated(values):
        raise MechanismError(f"{name} are {said.replace('return', 'pass')}", mechanism=name)
    columns = columns_of_block(values) or [("", values.value if type(values) is Part else values)]
    if not hasattr(columns[0][1], "__len__") or is_single(columns[0][1]):
        raise MechanismError(
            f"{name} of type {type(values).__name__} are not runs; pass an array or a list with one output per run.",
            mechanism=name,
        )
    return len(columns[0][1])
