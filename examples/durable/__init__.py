"""A run that survives its process, under DBOS."""
