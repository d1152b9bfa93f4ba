"""The table of ``dpaudit plan``."""

import io

import pytest
from rich.console import Console

from dpaudit import ApproxDP, GaussianDP, PureDP
from dpaudit.audit.errors import OptionError
from dpaudit.reports.pages.terminal_tables import plan_table


def columns(table):
    return [list(column.cells) for column in table.columns]


def test_runs_and_excess_are_each_others_inverse():
    forth = columns(plan_table(PureDP(1.0), [0.05], [], power=0.9, alpha=0.05, q=0.18))
    runs = int(forth[1][0].replace(",", ""))
    back = columns(plan_table(PureDP(1.0), [], [runs], power=0.9, alpha=0.05, q=0.18))
    assert float(back[0][0]) == pytest.approx(0.05, rel=0.02)
    assert back[1] == forth[1]
    assert 0.05 < float(back[3][0]) < 0.1


@pytest.mark.parametrize("claim", [PureDP(0.0), ApproxDP(1.0, 0.9, "delta"), GaussianDP(1.0)], ids=str)
def test_a_claim_alone_gives_five_rows(claim):
    table = plan_table(claim, [], [], power=0.95, alpha=0.05, q=None)
    runs = [int(cell.replace(",", "")) for cell in columns(table)[1]]
    assert len(runs) == 5
    assert runs == sorted(runs)
    drawn = io.StringIO()
    Console(file=drawn, width=120).print(table)
    assert str(claim) in drawn.getvalue()
    event = "the best possible event" if claim.gaussian_mu is None else "Gaussian noise"
    assert event in drawn.getvalue()


def test_too_few_runs_are_refused():
    with pytest.raises(OptionError, match="runs=3"):
        plan_table(PureDP(1.0), [], [3], power=0.9, alpha=0.05, q=None)
