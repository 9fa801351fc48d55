"""A suspended run in a file, which people answer in their own time, each in another process."""
