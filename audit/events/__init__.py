"""Outputs, the scores computed from them, and the events and partitions that scores define.

Public names: `Outputs`, `Raised`, `Score`, `Event`, `Intervals`, `Partition`.
"""
