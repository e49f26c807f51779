"""The draws of a ``SampleRng`` inside of compiled functions: its methods, its order, its bits.

Source: docs/specification.md, section "Random numbers". A generator is the address of its state.
What is a Python float or int there is a float64 or int64 here, so that the same function makes
the same types of both; ``next_u64`` gives a uint64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.core.registry import cpu_target
from numba.extending import intrinsic, models, overload_method, register_model

__all__ = ["GENERATOR", "METHODS", "memory_of", "size_of"]

#: What a generator can be asked for in a compiled function.
METHODS = ("next_u64", "next_single", "next_double", "next_int", "next_normal")

INCREMENT = np.uint64(0x9E3779B97F4A7C15)
FIRST_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
SECOND_FACTOR = np.uint64(0x94D049BB133111EB)
LOW_HALF = np.uint64(0xFFFFFFFF)
ZERO, HALF = np.uint64(0), np.uint64(32)
S11, S27, S30, S31, S40 = (np.uint64(shift) for shift in (11, 27, 30, 31, 40))


class Generator(types.CPointer):
    """The type of ``rng`` in a compiled function."""

    def __init__(self) -> None:
        super().__init__(types.uint64)
        self.name = "onemodel.SampleRng"


register_model(Generator)(models.PointerModel)
GENERATOR = Generator()


@intrinsic
def read_state(_context: Any, rng: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.load(arguments[0])

    return types.uint64(rng), generate


@intrinsic
def write_state(_context: Any, rng: Any, state: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        builder.store(arguments[1], arguments[0])
        return context.get_dummy_value()

    return types.void(rng, types.uint64), generate


@overload_method(Generator, "next_u64")
def next_u64(rng: Any) -> Any:
    def draw(rng: Any) -> Any:
        z = read_state(rng) + INCREMENT
        write_state(rng, z)
        z = (z ^ (z >> S30)) * FIRST_FACTOR
        z = (z ^ (z >> S27)) * SECOND_FACTOR
        return z ^ (z >> S31)

    return draw


@overload_method(Generator, "next_single")
def next_single(rng: Any) -> Any:
    def draw(rng: Any) -> Any:
        return np.float64(rng.next_u64() >> S40) * (1.0 / 16777216.0)

    return draw


@overload_method(Generator, "next_double")
def next_double(rng: Any) -> Any:
    def draw(rng: Any) -> Any:
        return np.float64(rng.next_u64() >> S11) * (1.0 / 9007199254740992.0)

    return draw


@overload_method(Generator, "next_int")
def next_int(rng: Any, n: Any) -> Any:
    if not isinstance(n, types.Integer):
        return None

    def draw(rng: Any, n: Any) -> Any:
        bound = np.uint64(n)
        word = rng.next_u64()
        low = word * bound
        if low < bound:
            threshold = (ZERO - bound) % bound
            while low < threshold:
                word = rng.next_u64()
                low = word * bound
        # bits 64..127 of word * bound, from 32-bit halves
        word_low, word_high = word & LOW_HALF, word >> HALF
        bound_low, bound_high = bound & LOW_HALF, bound >> HALF
        middle = word_high * bound_low + ((word_low * bound_low) >> HALF)
        other = word_low * bound_high + (middle & LOW_HALF)
        return np.int64(word_high * bound_high + (middle >> HALF) + (other >> HALF))

    return draw


@overload_method(Generator, "next_normal")
def next_normal(rng: Any) -> Any:
    def draw(rng: Any) -> Any:
        total = np.float32(0.0)
        for _ in range(12):
            total = total + np.float32(rng.next_single())
        return np.float64(total - np.float32(6.0))

    return draw


def memory_of(drawn: Any) -> tuple[Any, Any]:
    """Return functions that read a tuple of numbers from its address, and write it there."""

    @intrinsic
    def read(_context: Any, place: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            pointer = context.get_value_type(drawn).as_pointer()
            return builder.load(builder.bitcast(arguments[0], pointer))

        return drawn(place), generate

    @intrinsic
    def write(_context: Any, place: Any, values: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            pointer = context.get_value_type(drawn).as_pointer()
            builder.store(arguments[1], builder.bitcast(arguments[0], pointer))
            return context.get_dummy_value()

        return types.void(place, drawn), generate

    return read, write


def size_of(drawn: Any) -> int:
    """Return how many bytes a tuple of numbers takes."""
    context = cpu_target.target_context
    size: int = context.get_abi_sizeof(context.get_value_type(drawn))
    return size
