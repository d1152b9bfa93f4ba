"""Program that answers requests by the code in its first argument; it runs the code in its second at start.

The code sees the request r, its number of runs n, and a few ways to write. Tests run this file but never import it.
"""

import json
import os
import random  # noqa: F401
import sys
import time  # noqa: F401

write, flush, raw = sys.stdout.write, sys.stdout.flush, sys.stdout.buffer.write


def header(shape, kind="float64"):
    raw(json.dumps({"format": kind, "shape": shape}).encode() + b"\n")


exec(sys.argv[2])
for line in sys.stdin:
    r = json.loads(line)
    n = r["runs"]
    exec(sys.argv[1])
    flush()
    sys.stdout.buffer.flush()
    sys.stderr.flush()
os._exit(0)  # immediately
