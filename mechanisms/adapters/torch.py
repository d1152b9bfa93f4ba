"""The random numbers of torch for replays, on the CPU.

Functions, methods and generators of torch draw what they do otherwise; a replay records the numbers as arrays of
numpy. What C++ code draws by itself, such as dropout, moves a generator without a record, and the replay says so. What
a device draws is not seen.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

import numpy as np

from ...audit.replay.distributions import INITIAL_WEIGHTS, Distribution, shape_of
from ...audit.replay.registered import Patch
from ...audit.replay.tape import Following, Noise, Tape, active_tape, drawn_from, spoil, tape_of_thread
from .library_calls import imported


def _numbers(value: Any) -> Any:
    """Return the numbers of a tensor as an array of doubles or whole numbers; everything else unchanged."""
    if not hasattr(value, "detach"):
        return value
    plain = value.detach().cpu()
    return (plain.double() if plain.is_floating_point() else plain).numpy()


def _normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, **_: Any) -> Distribution:
    mean, std = _numbers(mean), _numbers(std)
    return Distribution("normal", {"location": mean, "scale": std}, shape_of(size, mean, std))


def _size(size: tuple[Any, ...], options: dict[str, Any]) -> tuple[int, ...]:
    held = size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size or options["size"]
    return tuple(map(operator.index, held))


def _integers(*args: Any, **options: Any) -> Distribution:
    named = [options[name] for name in ("low", "high") if name in options]
    numbers = [each for each in args if isinstance(each, (int, float))] + named
    low, high = (0, numbers[0]) if len(numbers) == 1 else numbers[:2]
    size = options.get("size", args[-1] if args and not isinstance(args[-1], (int, float)) else ())
    return Distribution("integers", {"low": low, "high": high}, shape_of(size))


def _below(input: Any, low: Any = 0, high: Any = None, **_: Any) -> Distribution:
    low, high = (0, low) if high is None else (low, high)
    return Distribution("integers", {"low": low, "high": high}, tuple(input.shape))


def _coins(input: Any, p: Any = None, **_: Any) -> Distribution:
    return Distribution("binomial", {"n": 1, "p": _numbers(input if p is None else p)}, tuple(input.shape))


def _rows(input: Any, num_samples: int, replacement: bool = False, **_: Any) -> Distribution:
    odds = np.asarray(_numbers(input), dtype=np.float64)
    if replacement and odds.ndim == 1:
        return Distribution("discrete", {"probabilities": odds / odds.sum()}, (num_samples,))
    return Distribution("multinomial", {"weights": odds, "replacement": replacement}, (*odds.shape[:-1], num_samples))


FUNCTIONS: Final[dict[str, Callable[..., Distribution]]] = {
    "normal": _normal,
    "randn": lambda *size, **options: _normal(size=_size(size, options)),
    "randn_like": lambda input, **_: _normal(size=tuple(input.shape)),
    "rand": lambda *size, **options: Distribution("uniform", {"low": 0.0, "high": 1.0}, _size(size, options)),
    "rand_like": lambda input, **_: Distribution("uniform", {"low": 0.0, "high": 1.0}, tuple(input.shape)),
    "randint": _integers,
    "randint_like": _below,
    "randperm": lambda n, **_: Distribution("permutation", {"n": n}, (n,)),
    "bernoulli": _coins,
    "multinomial": _rows,
    "poisson": lambda input, **_: Distribution("poisson", {"rate": _numbers(input)}, tuple(input.shape)),
}
"""The distribution of each function of torch, from its arguments."""

METHODS: Final[dict[str, Callable[..., Distribution]]] = {
    "normal_": lambda self, mean=0.0, std=1.0, **_: _normal(mean, std, tuple(self.shape)),
    "uniform_": lambda self, low=0.0, high=1.0, **more: Distribution(
        "uniform", {"low": more.get("from", low), "high": more.get("to", high)}, tuple(self.shape)
    ),
    "exponential_": lambda self, lambd=1.0, **_: Distribution("exponential", {"scale": 1 / lambd}, tuple(self.shape)),
    "geometric_": lambda self, p, **_: Distribution("geometric", {"p": _numbers(p)}, tuple(self.shape)),
    "bernoulli_": lambda self, p=0.5, **_: _coins(self, p),
    "random_": lambda self, *ends, **more: _below(self, *ends, *more.values()),
    "cauchy_": lambda self, *args, **_: Distribution("cauchy", {"arguments": args}, tuple(self.shape)),
    "log_normal_": lambda self, *args, **_: Distribution("log-normal", {"arguments": args}, tuple(self.shape)),
}
"""That of each method that fills a tensor."""


def torch_patches() -> Iterator[Patch]:
    """Yield the patches of torch's functions, methods and generators."""
    torch = imported("torch", "torch")
    for name, distribution in FUNCTIONS.items():
        yield Patch(torch, name, _function(getattr(torch, name), name, distribution))
    for name, distribution in METHODS.items():
        yield Patch(torch.Tensor, name, _filling(getattr(torch.Tensor, name), name, distribution))
    for name in ("bernoulli", "multinomial"):
        yield Patch(torch.Tensor, name, _function(getattr(torch.Tensor, name), name, FUNCTIONS[name]))
    yield Patch(torch.distributions.Laplace, "rsample", _laplace(torch.distributions.Laplace.rsample))
    yield Patch(torch, "Generator", _recording_generator())
    yield Patch(torch, "manual_seed", _seeding(torch.manual_seed))


def torch_states(entropy: int) -> Iterator[Patch]:
    """Yield the default generator, seeded for a run."""
    torch = imported("torch", "torch")
    yield Patch(_Default(entropy), "state", torch.default_generator, lasts=True)


class _Default:
    """The default generator as an attribute: seeded when it is replaced by itself, and put back by its state."""

    def __init__(self, entropy: int) -> None:
        vars(self).update(state=imported("torch", "torch").get_rng_state(), entropy=entropy)

    def __setattr__(self, name: str, value: Any) -> None:
        generator = imported("torch", "torch").default_generator
        if value is generator:
            generator.manual_seed(vars(self)["entropy"] % 2**63)
        else:
            generator.set_state(value)


# Draws.


def _function(original: Callable[..., Any], name: str, distribution: Callable[..., Distribution]) -> Callable[..., Any]:
    def draw(*args: Any, generator: Any = None, out: Any = None, **options: Any) -> Any:
        tape = tape_of_thread()
        given = options if out is None else {**options, "out": out}
        if tape is None or _is_elsewhere(tape, options.get("device"), *args, *options.values()):
            return original(*args, generator=generator, **given) if _has_generator(name) else original(*args, **given)
        source = _source(generator)
        more = {"generator": generator} if _has_generator(name) else {}

        def make() -> Any:
            return drawn_from(source, lambda: original(*args, **more, **options))

        made = _called(tape, f"torch.{name}", lambda: distribution(*args, **options), make, _dtype(name, args, options))
        if out is not None:
            return out.copy_(made)
        return made.requires_grad_() if options.get("requires_grad") else made

    return draw


def _has_generator(name: str) -> bool:
    return not name.endswith("_like")


def _dtype(name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    torch = imported("torch", "torch")
    like = next((each for each in (*args, *options.values()) if _is_tensor(each)), None)
    if options.get("dtype") is not None:
        return options["dtype"]
    if name in ("randint", "randperm", "multinomial"):
        return torch.int64
    return torch.get_default_dtype() if like is None else like.dtype


def _filling(original: Callable[..., Any], name: str, distribution: Callable[..., Distribution]) -> Callable[..., Any]:
    def fill(self: Any, *args: Any, generator: Any = None, **options: Any) -> Any:
        tape = tape_of_thread()
        if tape is None or _is_elsewhere(tape, None, self):
            return original(self, *args, generator=generator, **options)
        source = _source(generator)
        if name == "random_" and not args and not options:
            return _seed_drawn(tape, source, lambda: original(self, generator=generator))

        def make() -> Any:
            return drawn_from(source, lambda: original(self.detach().clone(), *args, generator=generator, **options))

        is_start = sys._getframe(1).f_globals.get("__name__") == "torch.nn.init"
        start = Distribution(INITIAL_WEIGHTS, {"drawn by": name}, tuple(self.shape))
        stated = (lambda: start) if is_start else lambda: distribution(self, *args, **options)
        made = _called(tape, f"Tensor.{name}", stated, make, self.dtype)
        following = getattr(made, "following", None)
        with imported("torch", "torch").no_grad():
            self.copy_(_plain(made))
        return self if following is None or self.requires_grad else _as_noise(self.detach(), following)

    return fill


def _laplace(original: Callable[..., Any]) -> Callable[..., Any]:
    def rsample(self: Any, sample_shape: Any = ()) -> Any:
        tape = tape_of_thread()
        if tape is None or _is_elsewhere(tape, None, self.loc):
            return original(self, sample_shape)
        held = {"location": _numbers(self.loc), "scale": _numbers(self.scale)}
        stated = Distribution("laplace", held, tuple(self._extended_shape(sample_shape)))
        make = lambda: drawn_from(_source(None), lambda: original(self, sample_shape))  # noqa: E731
        return _called(tape, "torch.distributions.Laplace", lambda: stated, make, self.loc.dtype)

    return rsample


def _called(
    tape: Tape, primitive: str, distribution: Callable[[], Distribution], draw: Callable[[], Any], dtype: Any
) -> Any:
    """Return what the tape records or puts back as a tensor; where it only passes, what is drawn."""
    if tape.passes():
        return draw()
    torch = imported("torch", "torch")
    found = tape.call(primitive, distribution, lambda: _array(_plain(draw())).copy())
    following = found.following if isinstance(found, Noise) else None
    made = torch.from_numpy(np.array(found, copy=True)).to(dtype)
    return made if following is None else _as_noise(made, following)


def _seed_drawn(tape: Tape, source: Any, draw: Callable[[], Any]) -> Any:
    """Return whole numbers from the full range, which seed generators: what those draw is recorded."""
    made = tape.drawn(source, draw)
    for each in np.ravel(_numbers(made))[:1].tolist() if made.element_size() == 8 else ():  # fewer bits repeat
        tape.streams.note_drawn_seed(each)
    return made


def _array(value: Any) -> Any:
    """Return a tensor as an array of its own type, or of single precision if numpy lacks that."""
    plain = value.detach()
    return (plain.float() if plain.dtype.itemsize < 4 and plain.is_floating_point() else plain).numpy()


def _is_tensor(value: Any) -> bool:
    return isinstance(value, imported("torch", "torch").Tensor)


def _is_elsewhere(tape: Tape, device: Any, *args: Any) -> bool:
    """Whether a draw is on another device, which is noted."""
    torch = imported("torch", "torch")
    devices = [each.device for each in args if isinstance(each, torch.Tensor)]
    devices += [torch.device(device)] if device is not None else [] if devices else [torch.get_default_device()]
    if any(each.type != "cpu" for each in devices):
        tape.note_outside("a device other than the CPU draws")
    elif torch._C._functorch.peek_interpreter_stack() is not None:
        tape.note_outside("torch.func draws inside a transformation")
    else:
        return False
    return True


def _source(generator: Any) -> Any:
    return imported("torch", "torch").default_generator if generator is None else generator


# Generators.


@cache
def _recording_generator() -> Any:
    torch = imported("torch", "torch")

    base: Any = torch.Generator

    class StandsFor(type(base)):  # type: ignore[misc]
        """Makes the recording class accept every generator of torch."""

        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, base)

    class Generator(base, metaclass=StandsFor):  # type: ignore[misc]
        """torch's generator, whose seeds are recorded."""

        def manual_seed(self, seed: int) -> Any:
            made = super().manual_seed(seed)
            _note_seed(made, seed)
            return made

        def seed(self) -> int:
            found: int = super().seed()
            _note_seed(self, None)
            return found

    return Generator


def _seeding(original: Callable[..., Any]) -> Callable[..., Any]:
    def manual_seed(seed: Any) -> Any:
        made = original(seed)
        _note_seed(made, seed)
        return made

    return manual_seed


def _note_seed(generator: Any, seed: int | None) -> None:
    tape = active_tape()
    if tape is not None:
        tape.note_seed(seed)
        if seed is None or tape.streams.was_read(seed):
            tape.note_made(generator, is_fresh=True)


# Noise that is added after it was drawn.

_KEEPS: Final = frozenset({
    "view", "reshape", "view_as", "reshape_as", "flatten", "contiguous", "clone", "detach", "to", "float", "double",
    "half", "bfloat16", "cpu",
})  # fmt: skip
_ASKS: Final = frozenset({"size", "dim", "numel", "is_floating_point", "__len__", "__repr__", "__format__"})
_PROPERTIES: Final = frozenset({"shape", "dtype", "device", "requires_grad", "ndim", "is_sparse", "layout", "is_leaf"})
_FACTORS: Final = frozenset({"mul", "div", "neg", "multiply", "divide", "true_divide"})
_SUMS: Final = {"add": 1.0, "sub": -1.0, "subtract": -1.0, "rsub": -1.0}


def _plain(value: Any) -> Any:
    return value.as_subclass(imported("torch", "torch").Tensor) if hasattr(value, "as_subclass") else value


def _as_noise(values: Any, following: Following) -> Any:
    made = _plain(values).as_subclass(_noise_class())
    made.following = following
    return made


@cache
def _noise_class() -> Any:
    torch = imported("torch", "torch")

    class NoiseTensor(torch.Tensor):  # type: ignore[name-defined, misc]
        """A tensor of noise that was drawn and is not added yet, as `audit.replay.tape.Noise`."""

        following: Following | None = None

        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            with torch._C.DisableTorchFunctionSubclass():
                return _operation(func, args, kwargs or {})

    return NoiseTensor


def _operation(func: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Carry out an operation on noise; it stays noise under factors and in other shapes, and ends as a sum."""
    name = getattr(func, "__name__", "")
    if name in _ASKS or (name == "__get__" and getattr(func.__self__, "__name__", "") in _PROPERTIES):
        return func(*args, **options)
    noise = [each for each in (*args, *options.values()) if getattr(each, "following", None) is not None]
    plain, word = tuple(map(_plain, args)), name.strip("_")
    if len(noise) == 1 and any(each is noise[0] for each in args[:2]):
        place = 0 if args[0] is noise[0] else 1
        if word in _SUMS and not set(options) - {"alpha"}:
            return _summed(
                func, word, noise[0], place, plain, options, in_place=name.endswith("_") and name == f"{word}_"
            )
        if word in _FACTORS and not options and not (word.startswith(("div", "true")) and place == 1):
            factor = -1.0 if word == "neg" else np.asarray(_numbers(plain[1 - place]), dtype=np.float64)
            factor = 1.0 / factor if "div" in word else factor
            made, following = func(*plain), noise[0].following.times(factor)
            if tuple(made.shape) == tuple(plain[place].shape) and (place == 0 or not name.endswith("_")):
                if name.endswith("_"):
                    noise[0].following = following
                    return noise[0]
                return _as_noise(made, following)
        elif word in _KEEPS and place == 0 and np.ndim(noise[0].following.factor) == 0:
            made = func(*plain, **options)
            if made.numel() == plain[0].numel() and made.device.type == "cpu":
                return _as_noise(made, noise[0].following)
    for each in (*args, *options.values()):
        for one in each if isinstance(each, (list, tuple)) else (each,):
            spoil(one)
    held = [[_plain(one) for one in each] if isinstance(each, (list, tuple)) else each for each in plain]
    return func(*held, **{key: _plain(each) for key, each in options.items()})


def _summed(
    func: Any, word: str, noise: Any, place: int, plain: tuple[Any, ...], options: dict[str, Any], *, in_place: bool
) -> Any:
    """Return the sum of something and noise, as the tape has it."""
    torch, alpha = imported("torch", "torch"), float(options.get("alpha", 1.0))
    signs = [1.0, _SUMS[word] * alpha]
    if word == "rsub":
        signs = [-alpha, 1.0]
    location = np.array(_numbers(plain[1 - place]), dtype=np.float64) * signs[1 - place]
    drawn, precision = _array(plain[place]) * signs[place], torch.finfo(plain[place].dtype).eps
    made = func(*plain, **options)
    numbers = _array(made)
    found = noise.following.times(signs[place]).sum(location, drawn, numbers, precision)
    if in_place and place == 0:
        noise.following = None
    if found is numbers:
        return made
    tensor = torch.from_numpy(np.array(found)).to(made.dtype)
    if in_place:
        with torch.no_grad():
            made.copy_(tensor)
        return made
    return tensor
