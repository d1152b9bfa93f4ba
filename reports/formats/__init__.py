"""Formats for reviewers: SARIF, an in-toto statement, and a privacy card. Each claims no more than the audits did."""
