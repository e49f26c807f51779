"""The platforms on which the canonical batches are made: machines, compilers, processors.

A foreign machine is a Debian root whose Python runs under qemu-user, with extensions from a cross
compiler. Of this machine's own kind there are other compilers and flags, and emulated processors.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass

__all__ = ["CI", "FOREIGN", "NATIVE", "PLATFORMS", "Platform"]


@dataclass(frozen=True)
class Platform:
    """How one row of the table is made.

    Args:
        name: on the command line and in the table.
        compiler: the command; flags that setup.py does not give come in ``flags``.
        packages: Debian's, without which it cannot be made.
        debian: Debian's name of the architecture; "" for this machine's own.
        suites: the Debian releases whose root is tried, one after another.
        emulator: the command of qemu-user; "" where this machine's processor runs it.
        cpu: as qemu names it; "" for its default.
        triplet: the root's library folder.
        machine: as ``platform.machine()`` there gives it.
        bits: of a pointer.
        must_differ: the control: bits must not be the canonical ones.
    """

    name: str
    compiler: str
    packages: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    debian: str = ""
    suites: tuple[str, ...] = ()
    emulator: str = ""
    cpu: str = ""
    triplet: str = ""
    machine: str = platform.machine()
    bits: int = 64
    must_differ: bool = False


def foreign(
    name: str,
    machine: str,
    triplet: str,
    *,
    suites: tuple[str, ...] = ("trixie",),
    cpu: str = "",
    bits: int = 64,
    compiler: str = "",
    emulator: str = "",
) -> Platform:
    """Return a machine of another architecture, with the packages that its tools come in."""
    prefix = compiler or triplet
    emulator = emulator or machine
    tools = (f"gcc-{prefix.replace('_', '-')}", f"libc6-dev-{name}-cross")
    return Platform(
        name, f"{prefix}-gcc", ("qemu-user", "debootstrap", *tools), (), name, suites,
        f"qemu-{emulator}", cpu, triplet, machine, bits,
    )  # fmt: skip


# arm64: cortex-a72 has no pointer authentication, whose emulation takes five times the time.
FOREIGN = {
    each.name: each
    for each in (
        foreign("arm64", "aarch64", "aarch64-linux-gnu", cpu="cortex-a72"),
        # the stable release's updates for s390x are not on every mirror
        foreign("s390x", "s390x", "s390x-linux-gnu", suites=("forky", "trixie")),
        foreign("riscv64", "riscv64", "riscv64-linux-gnu"),
        foreign("armhf", "armv7l", "arm-linux-gnueabihf", bits=32, emulator="arm"),
        foreign("i386", "i686", "i386-linux-gnu", bits=32, compiler="i686-linux-gnu",
                emulator="i386"),
    )
}  # fmt: skip
if platform.machine() == "x86_64":
    # a Python newer than this machine's, with the libraries of its own release
    FOREIGN["python3.14"] = Platform(
        "python3.14", "x86_64-linux-gnu-gcc", ("debootstrap", "gcc"), (), "amd64", ("forky",),
        triplet="x86_64-linux-gnu",
    )  # fmt: skip


def native(name: str, compiler: str, *flags: str, **fields: object) -> Platform:
    """Return this machine with another compiler, other flags or an emulated processor."""
    tools = ("clang",) if compiler == "clang" else ("gcc",)
    return Platform(name, compiler, tools, flags, **fields)  # type: ignore[arg-type]


NATIVE = {
    each.name: each
    for each in (
        native("gcc", "gcc"),
        native("gcc-O0", "gcc", "-O0"),
        native("gcc-O2", "gcc", "-O2"),
        native("gcc-lto", "gcc", "-flto"),
        native("gcc-native", "gcc", "-march=native"),
        native("clang", "clang"),
        native("clang-native", "clang", "-march=native"),
        native("control", "gcc", "-ffp-contract=fast", "-march=native", must_differ=True),
    )
}
if platform.machine() == "x86_64":
    for cpu in ("Westmere", "Haswell-noTSX", "max"):
        NATIVE[f"cpu-{cpu}"] = Platform(
            f"cpu-{cpu}", "gcc", ("gcc", "qemu-user"), emulator="qemu-x86_64", cpu=cpu
        )

PLATFORMS = {**NATIVE, **FOREIGN}

#: What every change is tried on: another byte order, and the proof that a difference is noticed.
#: From an empty cache each foreign machine takes three minutes.
CI = ("control", "s390x")
