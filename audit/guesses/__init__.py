"""Guesses of which canaries are in, and how good they can be if the claim holds. Integer counts and alpha only."""
