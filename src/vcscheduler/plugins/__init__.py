"""The built-in plugins, one module (or package) each."""
