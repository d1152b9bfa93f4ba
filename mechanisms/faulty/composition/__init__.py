"""Faulty twins of composed mechanisms, and faults of whole outputs."""
