"""Record and replay: what each noise primitive was given on x, and on y with the values of x put back.

Public names: `replay`, `ReplayResult`, `ReplayedCall`, `Finding`, `FindingKind`, `Place`,
`Distribution`, `noise_primitive`.
"""
