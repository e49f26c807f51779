"""Times rows for `benchmarks.against`, with the onemodel of the checkout that is named.

Run by its path: `python -P benchmarks/serve_rows.py CHECKOUT`. It reads one JSON request a line,
{"row": NAME, "seconds": SECONDS}, and answers with {"figure": RATE} or {"error": TEXT}.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from pathlib import Path


def main() -> None:
    """Import onemodel from the checkout, the rows from here, and serve."""
    checkout = Path(sys.argv[1]).resolve()
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever a row prints is no answer
    sys.path.insert(0, str(checkout))
    import onemodel

    if checkout not in Path(onemodel.__file__).parents:
        raise SystemExit(f"onemodel comes from {onemodel.__file__}, not from {checkout}")
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from benchmarks.harness import reason
    from benchmarks.rows import rows

    starts = rows()
    started, measure = "", None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["row"] != started:
                started, measure = request["row"], None
                gc.collect()
                measure = starts[started]()
            if measure is None:
                raise RuntimeError("it could not start")
            answer = {"figure": measure(request["seconds"])}
        except Exception as error:
            answer = {"error": reason(error)}
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
