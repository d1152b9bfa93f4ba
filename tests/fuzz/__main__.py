"""Measures fuzzed inputs: ``python -m tests.fuzz --examples 100000 --out docs/benchmarks``."""

import sys

from .fuzz_page import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
