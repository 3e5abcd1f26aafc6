"""The command line: one module a command. Whatever is heavy is imported when a command runs."""
