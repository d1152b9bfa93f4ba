"""Datasets: their rows, what neighbours are, and the domains that a search draws pairs from."""

from .adjacency import AddRemove, Adjacency, Local, Replace, UserLevel, Within
from .domains import Answers, Domain, Graphs, Rows, Values
from .graph_adjacency import EdgeNeighbours, NodeNeighbours

__all__ = [
    "Adjacency",
    "AddRemove",
    "Replace",
    "Local",
    "UserLevel",
    "Within",
    "EdgeNeighbours",
    "NodeNeighbours",
    "Domain",
    "Answers",
    "Values",
    "Rows",
    "Graphs",
]
