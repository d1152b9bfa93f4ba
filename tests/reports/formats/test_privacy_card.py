"""The privacy card: it claims no more than the audits did, and its drafts have the registry's names."""

import datetime
import json
import re
from dataclasses import replace

import pytest

from dpaudit import ApproxDP, GaussianDP, PrivacyProfile, PureDP, RenyiDP, ZeroConcentratedDP
from dpaudit.audit.records.suite import Entry, Suite
from dpaudit.reports import privacy_card, privacy_card_markdown
from dpaudit.reports.formats.registry_draft import TO_COMPLETE, registry_draft
from dpaudit.reports.formats.results_files import ResultsFile

DAY = datetime.date(2027, 6, 30)

# Fields, enumerations and required fields of the deployments schema of the OpenDP Deployments Registry
# (github.com/opendp/deployments-registry-data, schemas/deployments-schema.yaml, July 2026), which allows no others.
TEXT = object()
FIELDS = {
    "url_slug": TEXT,
    "status": {"Converted", "Draft", "Pending", "Changes Required", "Approved"},
    "tier": {1, 2, 3},
    "deployment": {
        "dp_variant": {
            "variant_name": {"Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"},
            "data_domain": TEXT,
            "unprotected_quantities": TEXT,
        },
        "privacy_loss": {
            "privacy_unit": TEXT,
            "privacy_unit_details": TEXT,
            "privacy_parameters": {"epsilon": float, "delta": float, "rho": float},
            "privacy_parameters_details": TEXT,
        },
        "accounting": {"post_processing": TEXT, "composition": TEXT},
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": TEXT,
            "mechanisms": TEXT,
            "justification": TEXT,
        },
    },
}
REQUIRED = {"url_slug", "status", "tier", "deployment/basic"}


def check_fields(draft, fields, path=""):
    for name, value in draft.items():
        assert name in fields, f"{path}{name}"
        wanted = fields[name]
        if wanted is TEXT:
            assert isinstance(value, str)
            assert value
        elif wanted is float:
            assert isinstance(value, float)
        elif isinstance(wanted, dict):
            check_fields(value, wanted, f"{path}{name}/")
        else:
            assert value in wanted


def card(*entries, **options):
    return json.loads(privacy_card(Suite(title="t", entries=entries), today=DAY, **options))


def test_drafts_have_the_registrys_fields_and_name_those_to_complete(suite):
    drafts = [one["registry_draft"] for one in card(*suite.entries)["audits"] if "registry_draft" in one]
    assert len(drafts) == 6
    for draft in drafts:
        check_fields(draft["entry"], FIELDS)
        assert draft["to_complete"] == list(TO_COMPLETE)
        assert REQUIRED - {"status"} <= set(draft["to_complete"])


@pytest.mark.parametrize(
    ("claim", "variant", "parameters"),
    [
        (PureDP(1.5), "Pure DP", {"epsilon": 1.5}),
        (ApproxDP(1.0, 1e-5), "Approximate DP", {"epsilon": 1.0, "delta": 1e-5}),
        (ZeroConcentratedDP(0.2), "Zero-concentrated DP", {"rho": 0.2}),
        (RenyiDP(order=2.0, divergence=0.5), "Renyi DP", None),
        (GaussianDP(0.7), "Custom", None),
        (PrivacyProfile([0.5, 1], [1e-3, 1e-5]), "Custom", None),
        (PureDP(1.5).group(2), "Pure DP", {"epsilon": 1.5}),
    ],
)
def test_the_parameters_are_the_claimed_ones(claim, variant, parameters, audit):
    draft = registry_draft(Entry(name="a", result=audit(claim=claim, bound=0.0, requested_resolution=1.0)))[
        "deployment"
    ]
    assert draft["dp_variant"]["variant_name"] == variant
    assert draft["privacy_loss"].get("privacy_parameters") == parameters
    assert str(claim) in draft["privacy_loss"]["privacy_parameters_details"]


def test_refuted_claims_inconclusive_audits_and_statements_are_not_drafted(entries):
    for name in ("refuted", "sick", "no p", "leaky", "twin", "accepted", "slope", "steep"):
        assert registry_draft(entries[name]) is None


def test_a_draft_tells_the_warnings(entries):
    told = registry_draft(entries["low"])["deployment"]["privacy_loss"]["privacy_parameters_details"]
    assert "WARNING: the low bits break the claim" in told


def test_the_card_states_claim_unit_and_what_was_not_examined(entries):
    (one,) = card(entries["held"])["audits"]
    assert (one["claim"], one["unit_of_privacy"], one["adjacency"]) == ("1-DP", "one row", "add/remove one row")
    assert one["claim_source"] == "not stated"
    assert one["accounting"] == "not examined"
    assert "every other pair of neighbours" in one["not_examined"]
    assert one["implementation"]["fingerprint"] == "00ff00ff00ff00ff"
    assert one["implementation"]["source"] == "not recorded"


def test_what_was_not_examined_follows_the_audit(entries, audit):
    def not_examined(**changes):
        return card(Entry(name="a", result=audit(**changes)))["audits"][0]["not_examined"]

    assert "the low bits of floating-point outputs" in not_examined(bits=False)
    assert "the low bits of floating-point outputs" not in not_examined(bits=True)
    assert "every pair of neighbours other than the one that the search chose" in not_examined(searched=10)
    assert "losses of records that are not canaries" in card(entries["training"])["audits"][0]["not_examined"]
    assert "every privacy claim of the mechanism" in card(entries["slope"])["audits"][0]["not_examined"]


def test_a_failed_health_check_leaves_no_bound(entries):
    text = privacy_card(Suite(title="t", entries=(entries["sick"],)), today=DAY)
    assert "a failed health check leaves no bound" in text
    assert "9.0" not in text
    assert "lower bound ε" not in text


def headings(*entries):
    return {row["heading"]: row["examined"] for row in card(*entries)["nist_sp_800_226"]}


def test_headings_say_not_examined_where_nothing_was(entries):
    nothing = headings()
    assert len(nothing) == 18
    assert set(nothing.values()) == {"not examined"}
    told = headings(entries["held"], entries["low"])
    never = {
        "Comparing Differential Privacy Guarantees", "Mixing Differential Privacy With Other Data Releases",
        "Utility and Accuracy", "Bias", "Analytics Queries", "Machine Learning", "Synthetic Data", "Unstructured Data",
        "Query Models", "Trust Models", "Data Security and Access Control", "Data Collection Exposure",
    }  # fmt: skip
    assert {heading for heading, text in told.items() if text == "not examined"} == never
    assert told["Mechanism Implementation Challenges"].startswith("low bits of floating-point outputs in 2 audits")
    assert told["The Unit of Privacy"].startswith("neighbours of the tested pairs: one row; not whether")
    assert "cannot" not in told["Machine Learning"]


def test_headings_of_trainings_and_statements(entries):
    told = headings(entries["training"])
    assert told["Machine Learning"] == "guesses of canaries in 1 audit"
    assert told["Basic Mechanisms and Common Elements"] == told["Mechanism Implementation Challenges"] == "not examined"
    told = headings(entries["slope"])
    examined = {heading for heading, text in told.items() if text != "not examined"}
    assert examined == {"Auditing and Empirical Measures of Privacy"}
    assert "not privacy claims" in told["Auditing and Empirical Measures of Privacy"]


@pytest.mark.parametrize("name", ["refuted", "held", "no p", "sick", "low", "doubt", "training", "slope"])
def test_no_word_of_the_card_verifies_a_claim(name, entries):
    for text in (
        privacy_card(Suite(title="t", entries=(entries[name],)), today=DAY),
        privacy_card_markdown(Suite(title="t", entries=(entries[name],)), today=DAY),
    ):
        said = text.replace("never verify", "").lower()
        for word in ("verified", "verify", "certif", "guaranteed", "compliant", "is private", "proves"):
            assert word not in said


def test_markdown_has_every_audit_and_names_are_literal(suite):
    files = [ResultsFile(name="a|b.json", sha256="a" * 64, entries=len(suite.entries))]
    text = privacy_card_markdown(suite, files=files, today=DAY)
    assert text.startswith("# Privacy card: All &lt;sorts>\n")
    assert text.count("\n### ") == len(suite.entries)
    assert "a\\|b.json, SHA-256 `" in text
    assert "- **Accepted:** accepted until 2027-06-30: known \\| old (status: accepted)" in text
    assert "source: my lib/counts.py:12, SHA-256 " in text
    hostile = replace(suite.entries[1], name="<script>|[x](http://a.example) @me")
    shown = privacy_card_markdown(Suite(title="t", entries=(hostile,)), today=DAY)
    assert "<script" not in shown
    assert re.search(r"(?<!\\)\]\(", shown) is None  # every bracket before a parenthesis is escaped
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.replace("\\|", "").count("|") for line in lines}) == 2  # the tables have 4 and 3 columns


def test_the_same_results_give_the_same_bytes(suite):
    assert privacy_card(suite, today=DAY) == privacy_card(suite, today=DAY)
    assert privacy_card_markdown(suite, today=DAY) == privacy_card_markdown(suite, today=DAY)
