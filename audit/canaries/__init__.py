"""Audits of one training run with canaries: scores and inclusion bits to a verdict."""
