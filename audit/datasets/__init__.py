"""Datasets: their rows, adjacency relations, and the domains from which a search draws pairs.

Public names: `AddRemove`, `Adjacency`, `Local`, `Replace`, `UserLevel`, `Within`, `ZeroOut`, `EdgeNeighbours`,
`NodeNeighbours`, `Answers`, `Domain`, `Graphs`, `Rows`, `Values`.
"""
