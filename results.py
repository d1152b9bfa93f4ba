"""What the audits return: every class of results, their verdicts, and a suite of results.

Result             base of all results: verdict, sentence, `raise_if_refuted`
AuditResult        an audited claim on one pair of datasets
FixedSizeResult    the same with a fixed number of runs
SequentialResult   the same where the audit could stop early
InterimAnalysis    an interim analysis of a sequential audit
Pair               the two datasets, summarised
BinCounts          runs in each cell of the outputs, with ratios, profile and curve
WorstPair          the pair that `find_worst_pair` found, and its audit
EquivalenceResult  limits of the distance of two versions
Equivalence        its verdicts
StatementResult    a statement about numbers, with their intervals
Point              one of these numbers
CanaryResult       an audited training run
CanaryPlan         what so many canaries can show
CanaryGuesses      correct guesses by number of guesses
attack_limits      what an audited pair means for an attacker: true positives, advantage, correct guesses, μ
AttackLimit        one of these measures, with what was shown and what the claim allows
SensitivityResult  the largest change of a query that was found
ReplayResult       the lines that a replay examined
ReplayVerdict      its verdicts
FindingKind        what a line can do wrong
HealthCheck        the health checks by name
Suite              several results under a title, as `save` writes and `load` reads them
Entry              a result in a suite, with its name and expectation
draw_block         the outputs of one block of an audit, drawn again
"""

from .audit.canaries.plan_canaries import CanaryPlan
from .audit.guesses.canary_guesses import CanaryGuesses
from .audit.health.findings import HealthCheck
from .audit.records.suite import Entry, Suite
from .audit.replay.replay_result import FindingKind, ReplayResult
from .audit.results.attack_limits import AttackLimit, attack_limits
from .audit.results.audit_result import AuditResult, FixedSizeResult, InterimAnalysis, SequentialResult
from .audit.results.bin_result import BinCounts
from .audit.results.canary_result import CanaryResult
from .audit.results.claim_pair_and_alpha import Pair
from .audit.results.equivalence_result import EquivalenceResult
from .audit.results.result import Result
from .audit.results.statement_result import Point, StatementResult
from .audit.results.verdict import Equivalence, ReplayVerdict
from .audit.results.worst_pair import WorstPair
from .audit.sampling.draw import draw_block
from .audit.sensitivity.sensitivity_result import SensitivityResult

__all__ = [
    "Result",
    "AuditResult",
    "FixedSizeResult",
    "SequentialResult",
    "InterimAnalysis",
    "Pair",
    "BinCounts",
    "WorstPair",
    "EquivalenceResult",
    "Equivalence",
    "StatementResult",
    "Point",
    "CanaryResult",
    "CanaryPlan",
    "CanaryGuesses",
    "attack_limits",
    "AttackLimit",
    "SensitivityResult",
    "ReplayResult",
    "ReplayVerdict",
    "FindingKind",
    "HealthCheck",
    "Suite",
    "Entry",
    "draw_block",
]
