"""Formats for reviewers: SARIF and a privacy card. Each claims no more than the audits did."""
