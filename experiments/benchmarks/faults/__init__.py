"""Attacks on an audit, and audits that are killed and resumed."""
