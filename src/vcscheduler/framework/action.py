"""What an action is: one step of a cycle, run over a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from vcscheduler.framework.session import Session


class Action:
    """Base of all actions. An object lives as long as the scheduler, so what it keeps survives cycles."""

    name: ClassVar[str] = ""
    #: As for plugins: argument -> kind of value.
    known_arguments: ClassVar[dict[str, str]] = {}

    def execute(self, ssn: Session) -> None:
        raise NotImplementedError
