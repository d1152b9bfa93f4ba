"""Random small programs, as sources: loops, calls, closures, generators, objects, exceptions and draws."""

import random


class Writer:
    """Writes one program from a seed."""

    def __init__(self, seed):
        self.random, self.lines, self.draws, self.names = random.Random(seed), [], 0, ["a", "b", "c"]
        self.depth, self.loops, self.in_generator = 1, 0, False

    def line(self, text):
        self.lines.append("    " * self.depth + text)

    def draw(self):
        self.draws += 1
        pick = self.random.random()
        if pick < 0.6:
            return f"int(rng.integers({self.random.choice((2, 2, 3))}))"
        if pick < 0.8:
            return f"int(rng.random() < {self.random.choice((0.25, 0.5, 0.3, 0.9))})"
        return self.random.choice(("flip(1)", "noisy.step(1)", "counted()", "noisy.value", "next(source)", "twice(2)"))

    def number(self, depth=0):
        pick = self.random.random()
        if depth > 2 or pick < 0.3:
            return self.random.choice(
                (*self.names, *self.names, "0", "1", "2", "held[-1]", "noisy.n", "len(held)", "x")
            )
        if pick < 0.55:
            return self.draw()
        if pick < 0.85:
            sign = self.random.choice(("+", "*", "-", "^"))
            return f"({self.number(depth + 1)} {sign} {self.number(depth + 1)}) % 5"
        if pick < 0.9:
            return f"(lambda v: v + {self.draw()})({self.number(depth + 1)})"
        if pick < 0.95:
            return f"[{self.number(depth + 1)}, {self.number(depth + 1)}][{self.draw()} % 2]"
        return f"({self.number(depth + 1)} if {self.number(depth + 1)} else {self.number(depth + 1)})"

    def statement(self):
        pick, name = self.random.random(), self.random.choice(self.names)
        if pick < 0.3 or self.depth > 4:
            self.line(f"{name} = {self.number()}")
        elif pick < 0.38:
            self.line(f"{name} {self.random.choice(('+=', '-=', '^='))} {self.number()}")
        elif pick < 0.46:
            self.line(f"held.append({self.number()})")
        elif pick < 0.52:
            self.line(f"table[{self.number()}] = {self.number()}")
        elif pick < 0.57:
            self.line(f"{name} = table.get({self.number()}, {self.number()})")
        elif pick < 0.61:
            self.line(f"noisy.n = {self.number()}")
        elif pick < 0.65:
            self.line(f"other = held if {self.number()} else list(held)")
            self.line(f"other.append({self.number()})")
        elif pick < 0.75:
            self.line(f"if {self.number()}:")
            self.block()
            if self.random.random() < 0.5:
                self.line("else:")
                self.block()
        elif pick < 0.83 and self.loops < 2:
            self.loops += 1
            self.line(f"for {name} in {self.random.choice(('range(2)', '(0, 3)', 'list(held[:2])', 'range(3)'))}:")
            self.block(f"if {self.number()}:\n{'    ' * (self.depth + 2)}{self.random.choice(('break', 'continue'))}")
        elif pick < 0.89:
            self.line("try:")
            self.block(f"if {self.number()} % 2:\n{'    ' * (self.depth + 2)}raise ValueError({self.number()})")
            self.line("except ValueError as error:")
            self.block(f"{name} = error.args[0] + {self.number()}")
            if self.random.random() < 0.4:
                self.line("finally:")
                self.block()
        elif pick < 0.93 and self.loops < 2:
            self.loops += 1
            self.line(f"tries_{self.loops} = 0")
            self.line(f"while tries_{self.loops} < 3 and {self.number()}:")
            self.block(f"tries_{self.loops} += 1")
        elif pick < 0.96:
            self.line(f"del {name}")
            self.line(f"{name} = {self.number()}")
        else:
            self.line(f"if {self.number()} == 3:")
            self.line(f"    return {self.number()}")

    def block(self, last=None):
        self.depth += 1
        for _ in range(self.random.choice((1, 1, 2))):
            self.statement()
        if last:
            self.line(last)
        self.depth -= 1

    def program(self):
        for _ in range(self.random.choice((2, 3, 4))):
            self.statement()
        body = "\n".join(self.lines)
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


def source_of(seed):
    """Return the source of the program with this seed."""
    return Writer(seed).program()


def program_of(seed):
    """Return the program with this seed, and what puts its globals back."""
    space = {"__name__": f"generated_{seed}"}
    exec(compile(source_of(seed), f"<generated {seed}>", "exec"), space)

    def fresh(x, rng):
        space["KEPT"][0] = 0
        return space["program"](x, rng)

    return space["program"], fresh, lambda: space["KEPT"].__setitem__(0, 0)
