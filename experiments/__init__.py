"""What is audited out of the box, the command line, and the benchmarks."""
