"""What is wrong with a configuration, as values: one finding a mistake, and the error that carries them."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing wrong in a configuration.

    `line` and `column` count from 1; both are 0 when the configuration did not come from a text. `field` is
    the path of the place (`tiers[0].plugins[1].enableJobOrder`), empty for the file as a whole.
    """

    level: Literal["error", "warning"]
    source: str
    line: int
    column: int
    field: str
    message: str

    def __str__(self) -> str:
        where = f"{self.source}:{self.line}:{self.column}" if self.line else self.source
        return f"{where}: {self.field}: {self.message}" if self.field else f"{where}: {self.message}"


class ConfigurationError(ValueError):
    """A configuration that cannot be used. `findings` holds every reason; the text lists them, one a line."""

    def __init__(self, *findings: Finding) -> None:
        super().__init__("\n".join(str(finding) for finding in findings))
        self.findings = findings


def suggestion(name: str | None) -> str:
    """The tail of a message that names what was probably meant."""
    return f"; did you mean {name!r}?" if name is not None else ""
