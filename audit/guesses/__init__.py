"""Guesses of which canaries are in: how good they can be, at most, if the claim holds. Integer counts and alpha only."""
