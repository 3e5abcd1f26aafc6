"""The clusters the scheduler can run on, behind one interface."""
