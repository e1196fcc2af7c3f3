"""Benchmarks: `python -m benchmarks`. Whole processes, in turn with a peer: ratios hold on a busy machine."""
