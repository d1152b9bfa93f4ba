"""Audits of one training run with canaries: scores and coins to a verdict."""
