"""Outputs, the scores computed from them, and the events and partitions defined by scores.

Public names: `Outputs`, `Raised`, `Score`, `Event`, `Intervals`, `Partition`.
"""
