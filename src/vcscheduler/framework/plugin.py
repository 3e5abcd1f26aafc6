"""What a plugin is, and the values that it exchanges with a session.

    class Mine(Plugin):
        name = "mine"

        def on_session_open(self, ssn: Session) -> None:
            ssn.add_job_order_fn(self.name, lambda l, r: ...)

A plugin object lives for one session. It is built from the arguments of its entry in the configuration, registers
functions under its name when the session opens, and may write its last words when it closes (spec 02 §3, §5).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from vcscheduler.config import Arguments
from vcscheduler.model.job import Job
from vcscheduler.model.resources import Resources
from vcscheduler.model.task import Task, TaskClass
from vcscheduler.model.volume_plan import VolumePlan

if TYPE_CHECKING:
    from vcscheduler.framework.session import Session


class Plugin:
    """Base of all plugins. ``name`` is the name in the configuration, under which functions are registered."""

    name: ClassVar[str] = ""
    #: Known arguments and the kind of value each takes ("int", "float", "bool", "str", "any"); a name that ends with
    #: ``*`` stands for a prefix. For ``config check``; an empty mapping means that the plugin takes none.
    known_arguments: ClassVar[dict[str, str]] = {}

    def __init__(self, arguments: Arguments) -> None:
        self.arguments = arguments

    def on_session_open(self, ssn: Session) -> None:
        """Register functions. Called once, plugins in order of configuration."""

    def on_session_close(self, ssn: Session) -> None:
        """Called once before the job updater runs."""


@dataclass(slots=True)
class Event:
    """One task was allocated or pipelined (or an eviction undone), or the reverse. A handler that cannot go along
    sets ``error``; a statement then undoes the operation."""

    task: Task
    error: str = ""


@dataclass(slots=True)
class RunEvent:
    """Tasks of one class and queue were allocated (or taken back) at once, ``rows[i]`` for ``tasks[i]``.

    ``jobs``: each job with the number of its tasks, in the order of ``tasks``.
    """

    jobs: list[tuple[Job, int]]
    cls: TaskClass
    tasks: list[Task]
    rows: list[int]

    @property
    def queue(self) -> str:
        return self.jobs[0][0].queue


@dataclass(slots=True)
class EventHandler:
    """What a plugin wants to hear of. The ``*_run`` forms hear of a whole run at once; a handler without them is
    called once a task. They must come to the same result and cannot refuse."""

    allocate: Callable[[Event], None] | None = None
    deallocate: Callable[[Event], None] | None = None
    allocate_run: Callable[[RunEvent], None] | None = None
    deallocate_run: Callable[[RunEvent], None] | None = None


@dataclass(frozen=True, slots=True)
class QueueStanding:
    """What a plugin that divides the cluster makes of a queue, for reports and explanations.

    capability: the most that the queue may hold as the plugin works it out. ceiling: up to where tasks of the queue
    may still be allocated. share: what queues are ordered by. The vectors are the plugin's own, not to be changed.
    """

    allocated: Resources
    deserved: Resources
    capability: Resources
    ceiling: Resources
    share: float


class PreBinder(Protocol):
    """A plugin that must write something before a pod can be bound."""

    def needs(self, task: Task) -> bool: ...

    def plan(self, task: Task) -> VolumePlan | None:
        """What to write, as decided when the task was allocated in this session; None = nothing."""
