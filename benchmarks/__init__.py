"""Benchmarks of onemodel: see README.md, run with `python -m benchmarks`."""
