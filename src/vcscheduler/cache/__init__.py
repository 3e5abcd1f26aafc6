"""The scheduler cache: events in, model state kept current, committed decisions out."""
