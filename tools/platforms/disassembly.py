"""What arm64's compiler made of the loops: vectors, and no product fused with a sum."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

__all__ = ["faults"]

#: A fused operation rounds once where the specification rounds twice.
FUSED = re.compile(r"\t(fn?m(?:add|sub)|fml[as]l?2?|bfml\w+|fcmla)\t")
#: On four floats at once, as the loops of _simd do.
VECTORS = {
    "products": re.compile(r"\tfmul\tv\d+\.4s"),
    "differences": re.compile(r"\tfsub\tv\d+\.4s"),
    "bytes to floats": re.compile(r"\t[us]cvtf\tv\d+\.4s"),
}


def faults(objdump: str, package: Path) -> list[str]:
    """Return what is wrong with the extensions of a package built for arm64.

    Args:
        objdump: the command that disassembles for arm64.
        package: the folder that holds it.
    """
    found = []
    for path in sorted((package / "onemodel").rglob("*.so")):
        command = [objdump, "--disassemble", "--no-show-raw-insn", str(path)]
        code = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        fused = FUSED.search(code)
        if fused is not None:
            line = code[code.rfind("\n", 0, fused.start()) + 1 : code.find("\n", fused.start())]
            found.append(f"{path.name} has a fused operation: {' '.join(line.split())}")
        if path.name.startswith("dispatch."):
            found += [
                f"{path.name} has no vectors of {name}"
                for name, pattern in VECTORS.items()
                if not pattern.search(code)
            ]
    return found or ([] if code else ["there is no extension"])
