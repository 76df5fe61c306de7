"""Benchmarks of moorage beside raw runtimes and other model servers: ratios, measured in turn in one run."""
