"""Checks of a whole distribution: the law of the noise, its growth with sensitivity, independence.

Public names: `ExponentialNoise`, `GaussianNoise`, `GeometricNoise`, `GumbelNoise`, `LaplaceNoise`, `NoiseLaw`,
`check_noise`, `check_slope`, `check_independence`.
"""
