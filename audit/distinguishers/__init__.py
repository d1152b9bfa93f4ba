"""Learning from pilot outputs which event distinguishes two datasets.

Public names: `Choice`, `choose_event`, `Family`, `PilotSplit`.
"""
