"""Which tasks of other queues a queue may take back, resource by resource (spec 04 §7.5)."""

from __future__ import annotations

from vcscheduler.model.resources import Resources
from vcscheduler.model.task import Task
from vcscheduler.plugins.capacity.accounts import QueueAccount
from vcscheduler.plugins.capacity.limits import ROOT

GUARANTEED = "its queue would fall below its guarantee"
NOT_RELEVANT = "it uses nothing that the reclaimer asks for"
WITHIN_DESERVED = "its queue is within deserved in everything that it uses"
SHARED_ANCESTOR = "its queue and the reclaimer's share an ancestor and the reclaimer's deserves nothing of this"
ANCESTOR_WITHIN_DESERVED = "a queue above its own is within deserved in everything that it uses"


class Reclaim:
    """One search for victims: holdings are counted down as victims are taken.

    ``level``: how many levels of ancestors must exceed their deserved too (``ancestorReclaimLevel``).
    """

    def __init__(self, level: int = 0) -> None:
        self._level = level
        self._left: dict[str, Resources] = {}

    def left(self, account: QueueAccount) -> Resources:
        held = self._left.get(account.name)
        if held is None:
            held = self._left[account.name] = account.allocated.clone()
        return held

    def take(self, task: Task, *accounts: QueueAccount) -> None:
        for account in accounts:
            self.left(account).sub(task.resreq)

    def spares(self, task: Task, account: QueueAccount) -> str:
        """Why the task's own queue keeps it; empty if it may go. A task that uses nothing of what its queue deserves
        may always go, ``pods`` counting as used by all."""
        limits, held = account.limits, self.left(account)
        if not limits.guarantee.less_equal(held.clone().sub(task.resreq)):
            return GUARANTEED
        if task.resreq.common(limits.deserved) and not held.above_where_set(limits.deserved, task.resreq):
            return WITHIN_DESERVED
        return ""

    def judge(
        self, task: Task, account: QueueAccount, reclaimer: Task, reclaimer_account: QueueAccount
    ) -> tuple[str, list[QueueAccount]]:
        """Why the task is spared (empty: it is a victim), and the ancestors that were looked at."""
        if not task.resreq.common(reclaimer.resreq, ignore_pods=True):
            return NOT_RELEVANT, []
        reason = self.spares(task, account)
        if reason or not self._level:
            return reason, []
        if (
            not task.resreq.common(account.limits.deserved)
            and _near(account, self._level) & _near(reclaimer_account, self._level)
            and not reclaimer.resreq.common(reclaimer_account.limits.deserved)
        ):
            return SHARED_ANCESTOR, []
        looked_at = []
        for level in range(1, self._level + 1):
            a = account.ancestor(level)
            if a is None or a.name == ROOT or a is reclaimer_account.ancestor(level):
                continue
            deserved = a.limits.deserved
            if task.resreq.common(deserved) and not self.left(a).above_where_set(deserved, task.resreq):
                return ANCESTOR_WITHIN_DESERVED, []
            looked_at.append(a)
        return "", looked_at


def _near(account: QueueAccount, level: int) -> set[str]:
    """Names of the ``level`` nearest ancestors below root."""
    return {a.name for a in account.chain[1 : level + 1] if a.name != ROOT}


def any_ancestor_below_deserved(account: QueueAccount, request: Resources, level: int) -> bool:
    """Whether one of the ``level`` nearest ancestors below root stays within deserved in something that is asked
    for."""
    return any(
        a.allocated.clone().add(request).within_where_set(a.limits.deserved, request)
        for a in account.chain[1 : level + 1]
        if a.name != ROOT
    )
