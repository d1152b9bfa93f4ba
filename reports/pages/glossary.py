"""The words of a report, for readers who meet them there first."""

GLOSSARY = (
    ("adjacency", "which datasets are neighbours: those that differ by one row added, say. The unit of privacy is what "
     "two neighbours differ in."),
    ("alpha", "the largest probability with which a mechanism that keeps its claim is refuted; 1 − alpha is the "
     "confidence of the bound."),
    ("claim", "what a mechanism is said to guarantee: whatever the neighbours x and y and the event, its probability "
     "on x is at most a function of its probability on y; for epsilon the latter times e^epsilon."),
    ("delta", "probability that the guarantee of (epsilon, delta) leaves open."),
    ("detectable excess", "how far above its claim a mechanism would have to be for this audit to refute the claim, "
     "with the power stated."),
    ("distance", "how many steps of the adjacency lead from x to y; beyond 1 the claim is that for groups."),
    ("epsilon", "the strength of a claim of pure or approximate differential privacy, in nats: the logarithm of the "
     "largest likelihood ratio."),
    ("estimate", "the strength that the observed frequencies would need, without any allowance for chance."),
    ("event", "a set of outputs, chosen on runs that are then not counted, or in a sequential audit on earlier ones."),
    ("hit", "a run whose output lies in the event."),
    ("likelihood ratio", "probability of an output, or of an event, on one dataset over that on the other."),
    ("lower bound", "the mechanism is no more private than this: all smaller strengths are refuted at once."),
    ("mechanism", "the code that is audited: from a dataset and randomness it draws an output."),
    ("mu, rho", "the strength of a claim of Gaussian, or of zero-concentrated, differential privacy."),
    ("p-value", "the largest probability, under the claim, of counts that speak as strongly against it."),
    ("pilot", "the first runs, on which the event is chosen; they are not counted."),
    ("privacy profile", "the smallest delta for each epsilon."),
    ("run", "one execution of the mechanism on x and one on y."),
    ("trade-off curve", "the largest power of a test between x and y, for each of its false-positive rates."),
    ("verdict", "refuted, not refuted or inconclusive; no audit can show that a claim holds."),
)  # fmt: skip
"""Terms with their meanings, in alphabetical order."""
