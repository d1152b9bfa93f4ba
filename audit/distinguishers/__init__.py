"""The choice of the event that distinguishes two datasets, among families of events.

Public names: `Choice`, `choose_event`.
"""
