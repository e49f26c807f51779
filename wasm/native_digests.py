"""Write what the browser test expects: the digests of browser/cases.py, made natively.

    python wasm/native_digests.py > expected.json

Runs in the Python that has the native onemodel installed.
"""

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "browser"))

import cases

print(asyncio.run(cases.report_as_json()))
