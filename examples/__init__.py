"""Small programs that show one thing each. Run one with `python -m examples.NAME`."""
