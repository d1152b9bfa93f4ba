"""Learning from pilot outputs which event tells two datasets apart.

Public names: `Choice`, `choose_event`, `Family`.
"""
