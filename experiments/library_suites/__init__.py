"""Suites of audits for every public callable of an installed library: what is audited, how, and what is left out."""
