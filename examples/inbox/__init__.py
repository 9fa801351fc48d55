"""A run that waits in a file for people, who answer in their own time, each in another process."""
