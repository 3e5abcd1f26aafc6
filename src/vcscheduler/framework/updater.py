"""What a session tells the cluster when it closes: PodGroup and Queue status, pod conditions, events (spec 02 §11-12).

Only jobs that may have something to say are looked at: those that changed, those that this session touched, and those
that are not at rest (pending, or short of their gang), whose events are repeated every cycle.
"""

from __future__ import annotations

from vcscheduler.framework.session import Session
from vcscheduler.model.job import Job
from vcscheduler.model.queue import Queue
from vcscheduler.model.resources import CPU, MEMORY, PODS, Resources
from vcscheduler.model.status import ALLOCATED, FAILED, PENDING, PIPELINED, RUNNING, SUCCEEDED
from vcscheduler.objects import PodGroup
from vcscheduler.objects.quantity import format_binary, format_decimal, format_milli, milli_value
from vcscheduler.objects.scheduling import PodGroupCondition, PodGroupStatus

_WAITING = ("Unknown", "Pending", "Inqueue")


def update_jobs(ssn: Session) -> None:
    """Write the status of every job that has news; tell of every job that waits."""
    for job in ssn.unsettled_jobs():
        if job.id in ssn.jobs:
            _update_job(ssn, job)


def _update_job(ssn: Session, job: Job) -> None:
    pg = job.pod_group
    assert pg is not None
    counts = job.counts
    status = PodGroupStatus(
        phase=job.next_phase(ssn.uid),
        conditions=job.conditions,
        running=counts[RUNNING],
        succeeded=counts[SUCCEEDED],
        failed=counts[FAILED],
    )
    job.phase = status.phase
    changed = _differs(pg.status, status)
    if changed:
        written = PodGroup(metadata=pg.metadata, spec=pg.spec, status=status)
        if ssn.cache.update_pod_group(job, written) is not None:
            return
    waits = status.phase in _WAITING
    if changed and not waits:
        ssn.record_pod_group_event(job, "Normal", "Scheduled", "pod group is ready")
    if not ssn.cache.tells_of(job):
        return
    text = ""
    if waits:
        text = job.fit_text()
        message = f"{counts[PENDING]}/{len(job.tasks)} tasks in gang unschedulable: {text}"
        ssn.record_pod_group_event(job, "Warning", "Unschedulable", message)
    if counts[ALLOCATED] or counts[PENDING] or counts[PIPELINED]:
        _update_pods(ssn, job, text)


def _update_pods(ssn: Session, job: Job, text: str) -> None:
    for status in (ALLOCATED, PENDING, PIPELINED):
        if not job.counts[status]:
            continue
        for task in job.tasks_in(status):
            if task.gated:
                continue
            reason, message, nominated = job.scheduling_reason(task)
            if not message:
                text = text or job.fit_text()
                message = text
            pod = task.pod
            current = next((c for c in pod.status.conditions if c.type == "PodScheduled"), None)
            if (
                current is None
                or (current.status, current.reason, current.message) != ("False", reason, message)
                or (nominated and nominated != pod.status.nominated_node_name)
            ):
                ssn.cache.update_pod_condition(pod, reason, message, nominated)
                ssn.cache.record_event("Pod", task.namespace, task.name, "Warning", "FailedScheduling", message)


def _differs(old: PodGroupStatus, new: PodGroupStatus) -> bool:
    """Times and transition ids are no news."""
    if (old.phase, old.running, old.succeeded, old.failed) != (new.phase, new.running, new.succeeded, new.failed):
        return True
    if len(old.conditions) != len(new.conditions):
        return True
    return any(_words(a) != _words(b) for a, b in zip(old.conditions, new.conditions) if a is not b)


def _words(c: PodGroupCondition) -> tuple[str, str, str, str]:
    return (c.type, c.status, c.reason, c.message)


def update_queues(ssn: Session) -> None:
    """Write ``status.allocated`` of queues whose sum changed: own jobs, and everything below (spec 02 §12)."""
    if not ssn.touched and not ssn.cache.unsettled:
        return
    allocated = ssn.aggregates.allocated_with(ssn.touched.values())
    sums: dict[str, Resources] = {name: Resources() for name in ssn.queues}
    has_root = "root" in ssn.queues
    for name in ssn.queues:
        own = allocated.get(name)
        if own is None:
            continue
        for each in (name, *(ancestors(ssn.queues, name) if has_root else ())):
            sums[each].add(own)
    for name, total in sums.items():
        queue = ssn.queues[name]
        if queue.reported is not None and queue.reported.same(total):
            continue
        listed = resource_list(total)
        if _amounts(listed) == _amounts(queue.object.status.allocated) or (
            ssn.cache.update_queue_status(queue, listed) is None
        ):
            queue.reported = total


def ancestors(queues: dict[str, Queue], name: str) -> list[str]:
    """Parents up to and including root; a queue in root counts there twice, as upstream counts it. A missing parent or
    a cycle ends the chain."""
    chain: list[str] = []
    current = name
    while True:
        parent = queues[current].parent or "root"
        if parent not in queues or parent in chain:
            return chain
        chain.append(parent)
        if parent == "root":
            return chain
        current = parent


def _amounts(listed: dict[str, str] | dict[str, str | int | float]) -> dict[str, int]:
    return {name: milli_value(q) for name, q in listed.items()}


def resource_list(total: Resources) -> dict[str, str]:
    """A vector as a Kubernetes resource list; cpu and memory always, values cut to whole units (spec 01 §1.8)."""
    listed = {CPU: format_milli(int(total.cpu)), MEMORY: format_binary(int(total.memory))}
    for name, v in sorted(total.scalar_items()):
        listed[name] = format_decimal(int(v)) if name == PODS else format_milli(int(v))
    return listed
