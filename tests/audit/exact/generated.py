"""Random small programs, as sources: loops, calls, closures, generators, objects, exceptions and draws."""

import random
import re
import textwrap

GRAMMAR = {
    "statement": [
        *["<name> = <number>"] * 3,
        "<name> <sign>= <number>",
        "held.append(<number>)",
        "table[<number>] = <number>",
        "<name> = table.get(<number>, <number>)",
        "noisy.n = <number>",
        "other = held if <number> else list(held)\nother.append(<number>)",
        "del <name>\n<name> = <number>",
        "if <number> == 3:\n    return <number>",
        # with blocks
        "if <number>:\n<block>",
        "if <number>:\n<block>\nelse:\n<block>",
        "for <name> in <items>:\n<block>\n    if <number>:\n        <end>",
        "tries_<level> = 0\nwhile tries_<level> < 3 and <number>:\n<block>\n    tries_<level> += 1",
        "try:\n<block>\n    if <number> % 2:\n        raise ValueError(<number>)\n"
        "except ValueError as error:\n    <name> = error.args[0] + <number>",
        "try:\n<block>\n    if <number> % 2:\n        raise ValueError(<number>)\n"
        "except ValueError as error:\n    <name> = error.args[0] + <number>\nfinally:\n<block>",
    ],
    "number": [
        *["<name>"] * 4, "0", "1", "2", "held[-1]", "noisy.n", "len(held)", "x", *["<draw>"] * 10,
        # of numbers
        *["(<number> <operator> <number>) % 5"] * 6,
        "(lambda v: v + <draw>)(<number>)",
        "[<number>, <number>][<draw> % 2]",
        "(<number> if <number> else <number>)",
    ],
    "draw": [
        *["int(rng.integers(2))"] * 4, *["int(rng.integers(3))"] * 2,
        *(f"int(rng.random() < {p})" for p in (0.25, 0.5, 0.3, 0.9)),
        "flip(1)", "noisy.step(1)", "counted()", "noisy.value", "next(source)", "twice(2)",
    ],
    "name": ["a", "b", "c"],
    "sign": ["+", "-", "^"],
    "operator": ["+", "*", "-", "^"],
    "items": ["range(2)", "(0, 3)", "list(held[:2])", "range(3)"],
    "end": ["break", "continue"],
}  # fmt: skip
"""What each symbol may stand for; at the greatest depth only what contains no further symbol of its kind."""


def written(numbers, symbol, depth=0):
    """Return what a symbol stands for in one program."""
    if symbol == "block":
        lines = [written(numbers, "statement", depth) for _ in range(numbers.choice((1, 1, 2)))]
        return textwrap.indent("\n".join(lines), "    ")
    if symbol == "level":
        return str(depth)
    ways = GRAMMAR[symbol]
    if depth > 2:
        ways = [each for each in ways if f"<{symbol}>" not in each and "<block>" not in each]
    deeper = depth + (symbol in ("statement", "number"))
    return re.sub(r"<(\w+)>", lambda found: written(numbers, found[1], deeper), numbers.choice(ways))


def source_of(seed):
    """Return the source of the program with this seed."""
    numbers = random.Random(seed)
    lines = [written(numbers, "statement") for _ in range(numbers.choice((3, 4, 5)))]
    body = textwrap.indent("\n".join(lines), "    ")
    return f"""
KEPT = [0]

class Noisy:
    def __init__(self, rng):
        self.n, self.rng = 0, rng

    def step(self, by):
        self.n += int(self.rng.integers(2)) * by
        return self.n

    @property
    def value(self):
        return self.n + int(self.rng.integers(2))

def program(x, rng):
    a, b, c, held, table, noisy = 0, 1, 2, [0], {{}}, Noisy(rng)

    def flip(v):
        return v - int(rng.integers(2))

    def twice(v):
        first = int(rng.integers(2))
        return first * v + int(rng.random() < 0.5)

    def counted():
        nonlocal c
        c = (c + int(rng.integers(2))) % 4
        KEPT[0] = (KEPT[0] + c) % 3
        return c + KEPT[0]

    def draws():
        total = 0
        while True:
            total = (total + int(rng.integers(2))) % 3
            yield total

    {"source = draws()" if "next(source)" in body else "pass"}
{body}
    return a, b, c, tuple(held), tuple(sorted(table.items())), noisy.n, KEPT[0]
"""


def program_of(seed):
    """Return the program with this seed, and what puts its globals back."""
    space = {"__name__": f"generated_{seed}"}
    exec(compile(source_of(seed), f"<generated {seed}>", "exec"), space)

    def fresh(x, rng):
        space["KEPT"][0] = 0
        return space["program"](x, rng)

    return space["program"], fresh, lambda: space["KEPT"].__setitem__(0, 0)
