"""`python -m askback.cli`, the same as `askback`."""

from askback.cli import main

main()
