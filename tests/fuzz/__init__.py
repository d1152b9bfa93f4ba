"""Fuzzing: inputs in which something was changed, and a folder that is watched."""
