"""What an audit tests: the events that its pilot chose, and a net of plain events of every column.

Public names: `Choice`, `choose_event`, `Net`.
"""
