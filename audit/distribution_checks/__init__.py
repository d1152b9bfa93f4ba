"""Checks of whole distributions: the distribution of noise, the slope of log-probabilities in utility, independence.

Public names: `ExponentialNoise`, `GaussianNoise`, `GeometricNoise`, `GumbelNoise`, `LaplaceNoise`, `NoiseDistribution`,
`check_noise`, `check_slope`, `check_independence`.
"""
