"""Checks of a whole distribution: the law of the noise, its growth with sensitivity, independence."""

from .noise_laws import ExponentialNoise, GaussianNoise, GeometricNoise, GumbelNoise, LaplaceNoise, NoiseLaw

__all__ = [
    "NoiseLaw",
    "LaplaceNoise",
    "GaussianNoise",
    "GeometricNoise",
    "GumbelNoise",
    "ExponentialNoise",
]
