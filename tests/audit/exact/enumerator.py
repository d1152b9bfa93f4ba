"""A slow enumerator: every path of coins, with fractions; it merges nothing and knows nothing of frames."""

from fractions import Fraction


class Coins:
    """Draws as prescribed; the first other draw ends the run."""

    class More(BaseException):
        def __init__(self, outcomes):
            self.outcomes = outcomes

    def __init__(self, prefix):
        self.prefix, self.place, self.more = prefix, 0, None

    def draw(self, outcomes):
        if len(outcomes) == 1 and self.more is None:
            return outcomes[0][0]
        if self.more is None and self.place == len(self.prefix):
            self.more = Coins.More(outcomes)
        if self.more is not None:  # a `finally` may draw again while the first one ends the run
            raise self.more
        self.place += 1
        return outcomes[self.prefix[self.place - 1]][0]

    def integers(self, low, high=None):
        low, high = (0, low) if high is None else (low, high)
        return self.draw([(each, Fraction(1, high - low)) for each in range(low, high)])

    def random(self):
        return Number(self)


class Number:
    """A uniform number that is compared once, with a double."""

    def __init__(self, coins):
        self.coins = coins

    def __lt__(self, p):
        below = min(max(-(-Fraction(p) * 2**53 // 1), 0), 2**53)  # the k with k / 2**53 < p
        share = Fraction(int(below), 2**53)
        return self.coins.draw([each for each in ((True, share), (False, 1 - share)) if each[1]])


def frozen(value):
    """Return a hashable output; lists count as tuples."""
    return tuple(map(frozen, value)) if isinstance(value, (list, tuple)) else value


def enumerate_paths(program, dataset, least=0.0, most=100_000):
    """Return {outcome: probability} and the probability of the paths that were cut, by fractions."""
    found, cut, waiting, n = {}, Fraction(0), [((), Fraction(1))], 0
    while waiting:
        prefix, p = waiting.pop()
        n += 1
        if n > most:
            raise OverflowError("too many paths")
        coins = Coins(prefix)
        try:
            outcome = frozen(program(dataset, coins))
        except Coins.More:
            pass
        except Exception as error:
            outcome = ("raises", type(error).__qualname__)
        if coins.more is not None:  # also where the program has caught it
            for number, (_, share) in enumerate(coins.more.outcomes):
                if p * share > least:
                    waiting.append(((*prefix, number), p * share))
                else:
                    cut += p * share
            continue
        found[outcome] = found.get(outcome, 0) + p
    return found, cut


def compare(program, found, truth, cut):
    """Assert that every probability lies in the table's interval."""
    seen = {}
    for outcome, p in found.probabilities.items():
        key = ("raises", outcome.exception) if hasattr(outcome, "exception") else outcome
        seen[key] = seen.get(key, 0) + p
    slack = Fraction(found.error)
    for outcome in seen.keys() | truth.keys():
        low, p = seen.get(outcome, 0), truth.get(outcome, 0)
        assert low <= p + cut + slack, (program, outcome, float(low), float(p))
        assert p <= low + Fraction(found.remainder) + slack, (program, outcome, float(low), float(p), found.remainder)
