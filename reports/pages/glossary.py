"""Definitions of the terms in results and reports."""

GLOSSARY = (
    ("adjacency", "the rule that says which datasets are neighbours, for example adding or removing one row; two "
     "neighbours differ in one unit of privacy."),
    ("alpha", "the largest probability of refuting a mechanism that satisfies its claim; 1 − alpha is the confidence "
     "of the bound."),
    ("canary", "an example of training data that a coin puts in or leaves out; an audit of a training run guesses the "
     "coins."),
    ("ceiling", "the lower bound that an audit of a training run would give if every guess had been right."),
    ("claim", "the guarantee under audit: for all neighbours x and y and every event, a function of the event's "
     "probability on y bounds its probability on x; for pure ε-DP the function multiplies by e^ε."),
    ("delta (δ)", "the additive term of (ε, δ)-DP: on x, every event has at most e^ε times its probability on y plus "
     "δ."),
    ("detectable excess", "the smallest amount above the claim at which this audit refutes the claim with the stated "
     "power; for canaries, if their scores reveal all that such a claim allows."),
    ("distance", "the number of adjacency steps from x to y; beyond 1, the claim for groups applies."),
    ("epsilon (ε)", "the strength of a claim of pure or approximate differential privacy, in nats: the logarithm of "
     "the largest likelihood ratio."),
    ("estimate", "the claim strength implied by the observed frequencies, with no allowance for sampling error."),
    ("event", "a set of outputs, chosen on pilot runs that are not counted; a sequential audit chooses it on earlier "
     "runs. “These events” in a verdict are two, one for each direction."),
    ("events in reserve", "events tested beside the main event on a twentieth of alpha each: the better direction "
     "alone, and one that a cautious choice passes over."),
    ("execution", "a run of a search, which counts those on all datasets together."),
    ("guess", "the dataset on which an output's event is likelier, in runs whose dataset is drawn by a coin; or "
     "whether a canary is in the training data."),
    ("hit", "a run whose output lies in the event."),
    ("likelihood ratio", "the probability of an output or event on one dataset, divided by that on the other."),
    ("low bits", "the last binary digits of a floating-point output, which can reveal the dataset although the rounded "
     "value does not."),
    ("lower bound", "the largest strength below which every claim is refuted at the stated confidence; the mechanism "
     "is no more private than this."),
    ("mechanism", "the code under audit; it draws an output from a dataset and randomness."),
    ("mu (μ), rho (ρ)", "the strength of a claim of Gaussian or zero-concentrated differential privacy."),
    ("p-value", "the largest probability, if the claim is true, of counts at least as extreme as the observed ones."),
    ("pilot", "the first runs, which choose the event and are not counted; after a search for the pair, they "
     "begin with the search's runs on it."),
    ("privacy profile", "the smallest δ for each ε."),
    ("run", "one output drawn from the mechanism on a dataset; 1,000 runs are 1,000 on each dataset."),
    ("trade-off curve", "the largest power of a test between x and y at each false-positive rate."),
    ("verdict", "refuted, not refuted or inconclusive; no audit can prove a claim."),
)  # fmt: skip
"""Terms and their definitions, in alphabetical order."""
