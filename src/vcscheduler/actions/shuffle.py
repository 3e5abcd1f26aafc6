"""shuffle: evicts running tasks that a plugin wants elsewhere (spec 03 §7).

Nothing is asked but the plugins' VictimTasks, nothing is put in the victims' place, and nothing can be undone.
"""

from __future__ import annotations

from vcscheduler.framework.action import Action
from vcscheduler.framework.session import Session
from vcscheduler.model.status import RUNNING


class Shuffle(Action):
    name = "shuffle"

    def execute(self, ssn: Session) -> None:
        if not ssn.names_victims:
            return
        running = [t for job in ssn.jobs.values() if job.counts[RUNNING] for t in job.tasks_in(RUNNING)]
        running.sort(key=lambda t: t.key)
        for task in sorted(ssn.victim_tasks(running), key=lambda t: t.key):
            ssn.evict(task, self.name)
