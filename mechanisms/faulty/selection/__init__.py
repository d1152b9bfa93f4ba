"""Faulty twins of mechanisms that select."""
