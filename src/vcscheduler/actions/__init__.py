"""The actions of a cycle, one module each."""
