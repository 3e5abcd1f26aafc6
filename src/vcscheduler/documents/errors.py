"""The one error of reading documents: where, and what is wrong, in one line a person can act on."""


class DocumentError(ValueError):
    """A text that cannot be read as YAML or JSON. `line` and `column` count from 1."""

    def __init__(self, source: str, line: int, column: int, message: str) -> None:
        super().__init__(f"{source}:{line}:{column}: {message}")
        self.source = source
        self.line = line
        self.column = column
        self.message = message
