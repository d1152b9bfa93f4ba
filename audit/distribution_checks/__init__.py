"""Checks of whole distributions: the law of noise, the slope of log-probabilities in utility, independence.

Public names: `ExponentialNoise`, `GaussianNoise`, `GeometricNoise`, `GumbelNoise`, `LaplaceNoise`, `NoiseLaw`,
`check_noise`, `check_slope`, `check_independence`.
"""
