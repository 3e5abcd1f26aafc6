"""Reasons: why a job waits, why a task may be evicted, as values for people and programs."""
