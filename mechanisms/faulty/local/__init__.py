"""Faulty twins of mechanisms of the local model."""
