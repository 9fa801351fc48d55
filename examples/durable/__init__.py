"""A run that survives its process, with DBOS."""
