"""Frozen audits: what no change of the code may change unawares."""
