"""``dpaudit plan``: runs of an audit and its detectable excess."""

from __future__ import annotations

from typing import Annotated

from .display import console
from .options import Alpha, Delta, Epsilon, Mu, Power, Rho, optional, whole


def plan(
    epsilon: Epsilon = None,
    delta: Delta = 0.0,
    mu: Mu = None,
    rho: Rho = None,
    resolution: Annotated[list[float] | None, optional("Excess to detect; can be given several times.")] = None,
    runs: Annotated[
        list[int] | None, whole("Runs on each dataset; can be given several times.", show_default=False)
    ] = None,
    canaries: Annotated[
        list[int] | None,
        whole("Canaries of one training run, in place of runs; can be given several times.", show_default=False),
    ] = None,
    power: Power = 0.95,
    alpha: Alpha = 0.05,
    q: Annotated[
        float | None, optional("Probability of the event on the less likely side; by default that of the best event.")
    ] = None,
) -> None:
    """Runs that detect an excess over a claim, and the excess that a number of runs detects.

    With `--canaries` the bound that an audit of one training run can reach, and the excess that it detects.

    Example: `dpaudit plan --epsilon 1 --resolution 0.02 --runs 1000000`
    """
    from ...audit.canaries.plan_canaries import plan_canaries
    from ...audit.errors import OptionError
    from ...reports.pages.plan_table import plan_table
    from .claim_options import claim_from_options

    claim = claim_from_options(epsilon, delta, mu, rho)
    if canaries:
        if resolution or runs or q is not None:
            raise OptionError("--canaries excludes --resolution, --runs and --q; plan one kind of audit at a time.")
        for number in canaries:
            console().print(str(plan_canaries(number, claim=claim, alpha=alpha, power=power)))
        return
    console().print(plan_table(claim, resolution or [], runs or [], power=power, alpha=alpha, q=q))
