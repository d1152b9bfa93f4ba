"""Accountants: the certain limits of the privacy loss of a composition, and checks of what others say of it."""
