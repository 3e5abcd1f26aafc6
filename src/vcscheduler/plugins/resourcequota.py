"""resourcequota: keep PodGroups waiting whose minimum a quota of their namespace could not admit (spec 04 §9).

Quantities are compared exactly and names literally: ``cpu`` and ``requests.cpu`` are different things. What was
admitted in earlier sessions and has no pods yet is not counted. Scopes of quotas are not looked at.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from vcscheduler.framework.plugin import Plugin
from vcscheduler.model.job import Job
from vcscheduler.model.status import Vote
from vcscheduler.objects.quantity import QuantityLike, format_decimal, parse_quantity

if TYPE_CHECKING:
    from vcscheduler.framework.session import Session

Amounts = dict[str, Fraction]


class ResourceQuotaPlugin(Plugin):
    name = "resourcequota"

    def on_session_open(self, ssn: Session) -> None:
        self.ssn = ssn
        self._pending: dict[str, Amounts] = {}
        self._quotas: dict[str, list[tuple[Amounts, Amounts]]] | None = None
        ssn.add_job_enqueueable_fn(self.name, self.job_enqueueable)
        ssn.add_job_enqueued_fn(self.name, self.job_enqueued)

    def quotas(self, namespace: str) -> list[tuple[Amounts, Amounts]]:
        """(hard, used) of each quota of the namespace, by name."""
        if self._quotas is None:
            self._quotas = {}
            for _, quota in sorted(self.ssn.listers.quotas.items()):
                of_namespace = self._quotas.setdefault(quota.metadata.namespace, [])
                of_namespace.append((_amounts(quota.status.hard), _amounts(quota.status.used)))
        return self._quotas.get(namespace, [])

    def job_enqueueable(self, job: Job) -> Vote:
        minimum = _minimum(job)
        if minimum is None:
            return Vote.PERMIT
        pending = self._pending.get(job.namespace, {})
        for hard, used in self.quotas(job.namespace):
            taken = {n: used.get(n, Fraction()) + pending.get(n, Fraction()) for n in minimum if n in hard}
            over = [n for n in taken if taken[n] + minimum[n] > hard[n]]
            if over:
                self.ssn.record_pod_group_event(
                    job,
                    "Normal",
                    "Unschedulable",
                    f"resource quota insufficient, requested: {_text(minimum, over)}, "
                    f"used: {_text(taken, over)}, limited: {_text(hard, over)}",
                )
                return Vote.REJECT
        return Vote.PERMIT

    def job_enqueued(self, job: Job) -> None:
        pending = self._pending.setdefault(job.namespace, {})
        for n, amount in (_minimum(job) or {}).items():
            pending[n] = pending.get(n, Fraction()) + amount


def _minimum(job: Job) -> Amounts | None:
    listed = None if job.pod_group is None else job.pod_group.spec.min_resources
    return None if listed is None else _amounts(listed)


def _amounts(listed: dict[str, QuantityLike]) -> Amounts:
    return {n: parse_quantity(q) for n, q in listed.items()}


def _text(amounts: Amounts, names: list[str]) -> str:
    return ", ".join(f"{n} {format_decimal(amounts[n])}" for n in sorted(names))
