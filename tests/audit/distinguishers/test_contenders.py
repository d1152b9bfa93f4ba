"""Contenders of a chosen event, and the choice among them by runs that are counted and not kept."""

import math
from dataclasses import replace

import numpy as np

from dpaudit import PureDP, check
from dpaudit.audit.distinguishers.choice import Choice
from dpaudit.audit.distinguishers.contenders import winner
from dpaudit.audit.distinguishers.event_choice import choose_event
from dpaudit.audit.events.events import Intervals, Outcomes, Scored
from dpaudit.audit.events.scores import Weighted
from dpaudit.audit.families.pilot_split import PilotSplit
from dpaudit.audit.procedures import pilot
from dpaudit.audit.procedures.pilot import Longer, longer_pilot
from dpaudit.audit.sampling.tasks import hits_of

WIDE, NARROW, CHANCE = (Outcomes((value,)) for value in (1, 2, 3))
FRESH = 1_000_000


def counted(event, p, q, likelier_on="x", **others):
    return Choice(event, likelier_on, round(FRESH * p), round(FRESH * q), FRESH, **others)


def best_of(choice, *others):
    return winner(choice, others, PureDP(0.1), 10_000_000, 1.28)


def test_fresh_runs_choose_the_event_with_the_larger_bound():
    wide, narrow = counted(WIDE, 0.3, 0.295), counted(NARROW, 0.01, 0.0091)
    for first, second in ((wide, narrow), (narrow, wide)):
        best = best_of(first, second)
        assert (best.event, best.opposite, best.bold) == (NARROW, None, None)
        assert (best.pilot_hits_x, best.pilot_hits_y, best.pilot_runs) == (10_000, 9_100, FRESH)


def test_fresh_runs_tell_the_direction():
    """A bold event that a few pilot runs showed may differ the other way."""
    wide, turned = counted(WIDE, 0.3, 0.295), counted(NARROW, 0.0091, 0.01)
    best = best_of(replace(wide, bold=turned))
    assert (best.event, best.likelier_on, best.bold) == (NARROW, "y", None)


def test_a_rare_chance_find_is_left_and_stays_in_reserve():
    wide, rare = counted(WIDE, 0.3, 0.28), counted(CHANCE, 4e-6, 2e-6)
    best = best_of(replace(wide, bold=rare))
    assert (best.event, best.bold) == (WIDE, rare)


def test_nothing_changes_where_fresh_runs_show_nothing():
    nothing = counted(WIDE, 0.3, 0.3, shows_nothing=True)
    assert best_of(nothing, counted(NARROW, 0.01, 0.01)) is nothing


def test_two_events_that_exclude_each_other_are_tested_together():
    low, high = Intervals(((-math.inf, -1.0),)), Intervals(((1.0, math.inf),))
    below, above = counted(low, 0.3, 0.27), counted(high, 0.27, 0.3, "y")
    best = best_of(below, above, counted(NARROW, 0.01, 0.0098))
    assert {best.event, best.opposite.event} == {low, high}
    assert best.likelier_on != best.opposite.likelier_on


def test_contenders_have_single_outcomes_and_events_of_all_sizes():
    rng = np.random.default_rng(0)
    x, y = (rng.choice(12, p=p, size=20_000) for p in (np.full(12, 1 / 12), np.r_[np.full(11, 1 / 12.1), 1.1 / 12.1]))
    choice = choose_event(PilotSplit.in_half(x, y), PureDP(0.1), 500_000, 0.1, with_contenders=True)
    events = [each.event for each in choice.contenders]
    assert len(set(events)) == len(events) > 8
    assert sum(isinstance(event, Outcomes) and len(event.values) == 1 for event in events) >= 8
    hits = [min(each.pilot_hits_x, each.pilot_runs - each.pilot_hits_x) for each in choice.contenders]
    assert min(hits) < 0.1 * 20_000 < 0.2 * 20_000 < max(hits)
    assert choose_event(PilotSplit.in_half(x, y), PureDP(0.1), 500_000, 0.1).contenders == ()


def test_a_score_that_events_share_is_read_once(monkeypatch):
    read, real, outputs = [], Weighted.values, np.arange(20.0).reshape(10, 2)
    monkeypatch.setattr(Weighted, "values", lambda score, outputs: read.append(score) or real(score, outputs))
    sums, other = Weighted((1.0, 1.0)), Weighted((1.0, 0.0))
    events = [Scored(score, Intervals(((low, math.inf),))) for score, low in ((other, 9.0), (sums, 5.0), (sums, 30.0))]
    hits = hits_of(events, outputs)
    assert (len(read), hits) == (2, [5, 9, 2])
    assert hits == [event.count(outputs) for event in events]


def tilted(dataset, size, rng):
    """Two coins, of which the first is heads a little more often on 1."""
    return (rng.random((size, 2)) < (0.5 + 0.01 * dataset, 0.5)).astype(np.int64)


def test_a_pilot_that_memory_limits_counts_further_runs(monkeypatch, tmp_path):
    monkeypatch.setattr(pilot, "_DEEP_NUMBERS", 2_000)  # a thousand runs
    options = {"claim": PureDP(0.05), "bits": False, "seed": 3, "runs": 40_000}
    audits = [check(tilted, 0, 1, jobs=jobs, store=store, **options) for jobs, store in ((1, tmp_path), (2, tmp_path))]
    audits.append(check(tilted, 0, 1, jobs=2, **options))
    assert audits[0] == audits[1] == audits[2]
    assert audits[0].pilot_runs in (40_000 // 8, 40_000 // 3)
    assert audits[0].counts.runs_x + audits[0].counts.runs_y == 2 * (40_000 - audits[0].pilot_runs)


def test_numbers_are_kept_and_vectors_counted():
    rough = Choice(WIDE, "x", 1_010, 1_000, 10_000)
    assert longer_pilot(rough, 8_000_000, 1) == Longer(1_000_000, False, 1_000_000)
    assert longer_pilot(rough, 8_000_000, 10) == Longer(400_000, False, 1_000_000)
    assert longer_pilot(replace(rough, pilot_hits_x=5_000), 8_000_000, 10) == Longer(0, False)


def test_very_many_runs_may_choose_with_a_fortieth():
    """Where the log ratio is known to 9%, so that an eighth of the runs would be too many."""
    known = Choice(WIDE, "x", 3_000, 2_000, 250_000)
    assert longer_pilot(known, 60_000_000, 1) == Longer(1_500_000, False, 1_500_000)
    assert longer_pilot(known, 60_000_000, 10) == Longer(400_000, False, 1_500_000)
    assert longer_pilot(known, 19_000_000, 1) == Longer(0, False), "less than twice the usual pilot"
    assert longer_pilot(Choice(WIDE, "x", 30_000, 20_000, 250_000), 60_000_000, 1) == Longer(0, False)
