"""Claims: boundaries in the plane of two probabilities that no event may cross.

Public names: `Claim`, `ApproxDP`, `GaussianDP`, `PureDP`, `RenyiDP`, `ZeroConcentratedDP`, `NFoldComposition`,
`ProbabilityPreservation`, `PrivacyProfile`, `TradeOffCurve`.
"""
