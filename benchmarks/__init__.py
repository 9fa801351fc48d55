"""Measurements, side by side with the peers. Run one with `python -m benchmarks.NAME`."""
