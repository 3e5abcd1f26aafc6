"""Running the scheduler over an embedded cluster."""
