"""How large an excess over a claim the tests find, and how many runs they need for it.

Public names: `Alternative`, `power_of_test`, `detectable_excess`, `runs_needed`, `sequential_excess`, `guess_excess`.
"""
