"""Faulty twins of mechanisms that add noise."""
