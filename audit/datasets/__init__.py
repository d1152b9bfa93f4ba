"""Datasets: their rows, what neighbours are, and the domains that a search draws pairs from.

Public names: `AddRemove`, `Adjacency`, `Local`, `Replace`, `UserLevel`, `Within`, `EdgeNeighbours`, `NodeNeighbours`,
`Answers`, `Domain`, `Graphs`, `Rows`, `Values`.
"""
