"""Families of candidate events, from half-lines to sets of outcomes, with their counts in pilot outputs.

Public names: `Family`, `PilotSplit`.
"""
