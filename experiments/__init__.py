"""Built-in experiments, the command line, and the benchmarks."""
