"""Which datasets there are, and which of them are neighbours.

Domain             base of the domains that `find_worst_pair` searches
Answers            vectors of query answers
Values             single values
Rows               datasets of rows
Graphs             graphs
Queries            datasets with a public query, which a search chooses
Tables             tables with typed columns
CategoricalColumn  a column of labels
NumericColumn      a column of numbers
table_features     numbers that summarise a table, for synthetic data
Adjacency          base of the neighbour relations
AddRemove          one row more or fewer
Replace            one row replaced
ZeroOut            one row replaced by a null record
UserLevel          all rows of one user
Local              any two values
Within             query answers at a distance of at most 1
EdgeNeighbours     graphs that differ in one edge
NodeNeighbours     graphs that differ in one node
SameQuery          neighbours in a domain of queries
"""

from .audit.datasets.adjacency import (
    AddRemove,
    Adjacency,
    EdgeNeighbours,
    Local,
    NodeNeighbours,
    Replace,
    SameQuery,
    UserLevel,
    Within,
    ZeroOut,
)
from .audit.datasets.domains import Answers, Domain, Graphs, Rows, Values
from .audit.datasets.tables import CategoricalColumn, NumericColumn, Queries, Tables, table_features

__all__ = [
    "Domain",
    "Answers",
    "Values",
    "Rows",
    "Graphs",
    "Queries",
    "Tables",
    "CategoricalColumn",
    "NumericColumn",
    "table_features",
    "Adjacency",
    "AddRemove",
    "Replace",
    "ZeroOut",
    "UserLevel",
    "Local",
    "Within",
    "EdgeNeighbours",
    "NodeNeighbours",
    "SameQuery",
]
