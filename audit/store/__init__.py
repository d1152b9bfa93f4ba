"""The file from which a stopped audit is resumed."""

from .sqlite_store import Store

__all__ = [
    "Store",
]
