"""Checks of the parts of private training: one step of it, and what a batch sampler draws.

Public names: `BatchesResult`, `BatchesRow`, `StepResult`, `StepRow`, `check_batches`, `check_step`, `torch_step`.
"""
