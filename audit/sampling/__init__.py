"""Draw runs of a mechanism in seeded blocks: in this process, in worker processes or on a cluster.

Public names: `count_events`, `count_pairs`, `draw_block`, `draw_pilot`, `Sampler`, `as_sampler`, `Memory`, `Plan`,
`Provenance`.
"""
