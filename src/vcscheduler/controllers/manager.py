"""ControllerManager: runs the controllers over a cluster, in a thread of their own (docs/controllers.md).

What happens in the cluster is queued by whoever tells it; `turn` takes it in, decides by the pure functions beside this
file and carries the decisions out. While this process does not lead it only keeps its picture of the cluster up to
date; when it begins to lead it looks at everything once.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from vcscheduler.cluster.interface import ClusterError, ErrorReason, EventSink
from vcscheduler.cluster.object_store import Create, Delete, ObjectStore, Outcome, Write
from vcscheduler.config import DurationError
from vcscheduler.controllers import groups, job_plugins, queues
from vcscheduler.controllers.job_events import COMMAND_ISSUED, POD_PENDING, Request, choose, is_pointless
from vcscheduler.controllers.job_phases import SYNC, TERMINATE
from vcscheduler.controllers.job_reconcile import JobView, Order, Stages, expires_at, reconcile
from vcscheduler.controllers.mirror import Change, Mirror
from vcscheduler.controllers.triggers import everything, work_of
from vcscheduler.controllers.work import Attempt, CommandWork, JobWork, PodWork, QueueWork, WorkloadWork, WorkQueue
from vcscheduler.objects import Command, KubernetesObject, Pod, Queue, VolcanoJob, controller_of
from vcscheduler.objects.errors import InvalidField

log = logging.getLogger(__name__)

MAX_REFUSALS: Final = 15
"""So often may the cluster refuse what a job needs before the job is terminated (spec 07 §8.5)."""
_OWNER_PATIENCE: Final = 2.0
"""Seconds that a pod waits for the workload that owns it to be seen."""
_OWNER_LOOK: Final = 0.1
_LEADERSHIP_LOOK: Final = 0.5
_PAUSE_AFTER_ERROR: Final = 1.0
_LATER: Final = (ErrorReason.CONFLICT, ErrorReason.TIMEOUT, ErrorReason.UNAVAILABLE)
"""Failures that say nothing about what was written."""


class _Unfinished(Exception):
    """A stage in which writes failed; what follows it was not begun."""

    def __init__(self, errors: list[ClusterError]) -> None:
        super().__init__(str(errors[0]))
        self.refused = [error for error in errors if error.reason not in _LATER]


class ControllerManager(EventSink):
    """
    Args:
        store: where to write; its cluster tells this object of changes (`add_listener`).
        clock: what time it is.
        scheduler_names: ours; pods of other schedulers get no PodGroup.
        leads: whether this process may act now.
    """

    def __init__(
        self,
        store: ObjectStore,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        scheduler_names: tuple[str, ...] = ("volcano",),
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        self._store = store
        self._clock = clock
        self._leads = leads
        self._leading = False
        self._mirror = Mirror(scheduler_names)
        self._work = WorkQueue()
        self._inbox: deque[Change] = deque()
        self._pods_since: dict[str, datetime] = {}
        self._awake = threading.Condition()
        self._stopped = False
        self._thread: threading.Thread | None = None

    # --- any thread ---------------------------------------------------------------------------------------------------

    def added(self, obj: KubernetesObject, /) -> None:
        self._tell((None, obj))

    def updated(self, old: KubernetesObject, new: KubernetesObject, /) -> None:
        self._tell((old, new))

    def deleted(self, obj: KubernetesObject, /) -> None:
        self._tell((obj, None))

    def refused(self, obj: KubernetesObject, error: ClusterError, /) -> None:
        """Of no interest: only the scheduler's own writes are told of in this way."""

    def _tell(self, change: Change) -> None:
        with self._awake:
            self._inbox.append(change)
            self._awake.notify()

    def start(self) -> None:
        assert self._thread is None, "controllers are started once"
        self._thread = threading.Thread(target=self._run, name="controllers", daemon=True)
        self._thread.start()

    def stop(self, timeout: float | None = None) -> None:
        """What is being written is finished, for so many seconds at most; nothing is begun after that."""
        with self._awake:
            self._stopped = True
            self._awake.notify()
        if self._thread is not None:
            self._thread.join(timeout)

    def _run(self) -> None:
        while not self._stopped:
            pause: float | None
            try:
                pause = self._pause(self.turn())
            except Exception:
                log.exception("controllers failed; they look at everything again")
                self._leading = False
                pause = _PAUSE_AFTER_ERROR
            with self._awake:
                if not self._inbox and not self._stopped:
                    self._awake.wait(pause)

    def _pause(self, due: datetime | None) -> float | None:
        if not self._leading:
            return _LEADERSHIP_LOOK
        return None if due is None else max(0.0, (due - self._clock()).total_seconds())

    # --- the controllers' thread --------------------------------------------------------------------------------------

    def turn(self) -> datetime | None:
        """Do all that can be done now. Returns when there is more to do, None if not before something happens."""
        leads = self._leads()
        if leads != self._leading:
            self._work.clear()
            self._take_in()
            self._work.clear()
            self._leading = leads
            if leads:
                for item in everything(self._mirror):
                    self._work.add(item)
        while True:
            self._take_in()
            due = self._work.wake(self._clock())
            if not self._leading:
                return None
            if not self._work:
                return due
            if self._stopped or not self._leads():
                return due
            self._group_pods(self._work.take_pods())
            if self._work:
                self._process(self._work.take())

    def _take_in(self) -> None:
        while self._inbox:
            self._note(self._mirror.take(self._inbox.popleft()))

    def _note(self, change: Change | None) -> None:
        if change is not None and self._leading:
            for item in work_of(*change, self._mirror):
                self._work.add(item)

    def _process(self, attempt: Attempt) -> None:
        item = attempt.item
        try:
            match item:
                case JobWork():
                    self._job(item)
                case QueueWork():
                    self._queue(item)
                case CommandWork(command=key):
                    self._command(key)
                case WorkloadWork(kind=kind, key=key):
                    self._workload(kind, key)
                case PodWork():
                    raise AssertionError("pods are taken together")
        except _Unfinished as unfinished:
            log.warning("%s: %s", item, unfinished)
            self._again(attempt, bool(unfinished.refused), str(unfinished))
        except (InvalidField, DurationError) as wrong:
            log.warning("%s: %s", item, wrong)
            self._again(attempt, True, str(wrong))

    def _again(self, attempt: Attempt, refused: bool, error: str) -> None:
        item = attempt.item
        if not isinstance(item, JobWork) or attempt.refusals + refused <= MAX_REFUSALS:
            self._work.again(attempt, self._clock(), refused)
            return
        self._say(item.request.job, "Warning", "JobTerminated", f"given up after {attempt.refusals} tries: {error}")
        self._work.add(JobWork(Request(item.request.job, COMMAND_ISSUED, TERMINATE)))

    # --- Volcano Jobs -------------------------------------------------------------------------------------------------

    def _job(self, work: JobWork) -> None:
        request = work.request
        view = self._mirror.view(request.job)
        if view is None:
            return
        if self._expire(view):
            return
        order = work.order
        if order is None:
            order = self._decide(view, request)
        elif request.version < view.job.status.version or is_pointless(request, view):
            return
        if not view.stored.status.state.phase:
            self._tell_of_plugins(view.job)
        stages = reconcile(view, order, self._mirror.admission, self._clock())
        if stages and order.action != SYNC:
            self._say(request.job, "Normal", "ExecuteAction", f"{order.action}: {order.cause}")
        self._carry_out(stages)

    def _decide(self, view: JobView, request: Request) -> Order:
        choice = choose(view.job, request)
        if not choice.delay:
            return choice.order
        since = self._clock()
        pod = view.pods.get(request.pod)
        if request.event == POD_PENDING and pod is not None and pod.metadata.creation_timestamp is not None:
            since = pod.metadata.creation_timestamp
        self._work.add_at(JobWork(request, choice.order), since + timedelta(seconds=choice.delay))
        return Order()

    def _expire(self, view: JobView) -> bool:
        """Delete a finished job whose time is over; see to it that it will be."""
        end = expires_at(view.stored)
        if end is None:
            return False
        due = datetime.fromtimestamp(end, UTC)
        if due > self._clock():
            self._work.add_at(JobWork(Request(view.job.key)), due)
            return False
        self._carry_out([(Delete(view.stored, foreground=True),)])
        return True

    def _tell_of_plugins(self, job: VolcanoJob) -> None:
        missing = job_plugins.unplayed(job)
        if missing:
            self._say(job.key, "Warning", "PluginNotSupported", f"these job plugins do nothing here: {missing}")

    def _say(self, job: str, type: str, reason: str, message: str) -> None:
        namespace, _, name = job.rpartition("/")
        self._store.record_event(VolcanoJob.kind, namespace, name, type, reason, message)

    # --- PodGroups of other pods --------------------------------------------------------------------------------------

    def _group_pods(self, attempts: list[Attempt]) -> None:
        made: dict[str, Create] = {}
        notes: list[tuple[Attempt, str, Write]] = []
        for attempt in attempts:
            assert isinstance(attempt.item, PodWork)
            pod = self._mirror.ungrouped.get(attempt.item.pod)
            if pod is None:
                self._pods_since.pop(attempt.item.pod, None)
                continue
            owner = self._owner_of(pod)
            if owner is None and self._must_wait(pod):
                continue
            self._pods_since.pop(pod.key, None)
            key = groups.group_key(pod)
            for (write,) in groups.reconcile_pod(pod, owner, self._mirror.pod_group(key)):
                if isinstance(write, Create):
                    made.setdefault(key, write)
                else:
                    notes.append((attempt, key, write))
        failed = self._failures(dict(zip(made, self._write(made.values()))))
        ready = [note for note in notes if note[1] not in failed]
        outcomes = self._write(note[2] for note in ready)
        broken = [(note[0], failed[note[1]]) for note in notes if note[1] in failed]
        broken += [(note[0], each) for note, each in zip(ready, outcomes) if isinstance(each, ClusterError)]
        for attempt, error in broken:
            log.warning("%s: %s", attempt.item, error)
            self._work.again(attempt, self._clock(), error.reason not in _LATER)

    @staticmethod
    def _failures(outcomes: dict[str, Outcome | None]) -> dict[str, ClusterError]:
        return {key: outcome for key, outcome in outcomes.items() if isinstance(outcome, ClusterError)}

    def _owner_of(self, pod: Pod) -> KubernetesObject | None:
        owner = controller_of(pod.metadata)
        return self._mirror.workload(pod.namespace, owner) if owner is not None else None

    def _must_wait(self, pod: Pod) -> bool:
        if not groups.awaits_owner(pod):
            return False
        now = self._clock()
        since = self._pods_since.setdefault(pod.key, now)
        if now >= since + timedelta(seconds=_OWNER_PATIENCE):
            return False
        self._work.add_at(PodWork(pod.key), now + timedelta(seconds=_OWNER_LOOK))
        return True

    def _workload(self, kind: type[KubernetesObject], key: str) -> None:
        workload = self._mirror.find(kind, key)
        if workload is not None:
            group = self._mirror.pod_group(groups.group_key_of(workload))
            self._carry_out(groups.reconcile_workload(workload, group))

    # --- queues and Commands ------------------------------------------------------------------------------------------

    def _queue(self, work: QueueWork) -> None:
        queue = self._mirror.queue(work.queue)
        if queue is None:
            return
        if work.by_parent and work.action == queues.CLOSE:
            self._carry_out(queues.mark_closed_by_parent(queue))
            queue = self._mirror.queue(work.queue) or queue
        try:
            decision = queues.reconcile(queue, work.action, self._mirror.is_used(queue.name), self._mirror.queues())
        except queues.QueueRefused as refused:
            log.warning("%s", refused)
            self._store.record_event(Queue.kind, "", queue.name, "Warning", work.action, str(refused))
            return
        self._carry_out(decision.stages)
        for name, action in decision.children:
            self._work.add(QueueWork(name, action, by_parent=True))

    def _command(self, key: str) -> None:
        """A Command is deleted before it is obeyed, so that it is obeyed at most once."""
        command = self._mirror.find(Command, key)
        if not isinstance(command, Command):
            return
        (outcome,) = self._write([Delete(command)])
        if outcome is None:
            return
        if isinstance(outcome, ClusterError):
            raise _Unfinished([outcome])
        target = command.target
        if target is None:
            return
        if (target.api_version, target.kind) == (Queue.api_version, Queue.kind):
            if command.action in queues.ACTIONS:
                self._work.add(QueueWork(target.name, command.action))
            return
        view = self._mirror.view(f"{command.namespace}/{target.name}")
        if view is None or target.kind != VolcanoJob.kind or target.uid not in ("", view.job.metadata.uid):
            log.warning("Command %s: there is no %s %s to obey it", key, target.kind, target.name)
            return
        self._work.add(JobWork(Request(view.job.key, COMMAND_ISSUED, command.action)))

    # --- writing ------------------------------------------------------------------------------------------------------

    def _carry_out(self, stages: Stages) -> None:
        """
        Raises:
            _Unfinished: a write failed; the stages after its own were not begun.
        """
        for stage in stages:
            errors = [outcome for outcome in self._write(stage) if isinstance(outcome, ClusterError)]
            if errors:
                raise _Unfinished(errors)

    def _write(self, writes: Iterable[Write]) -> list[Outcome | None]:
        """Outcomes; None where there was nothing to do any more."""
        given = list(writes)
        if not given:
            return []
        found: list[Outcome | None] = []
        for write, outcome in zip(given, self._store.write(given)):
            if isinstance(outcome, ClusterError):
                found.append(None if _is_done_anyway(write, outcome) else outcome)
                continue
            found.append(outcome)
            # The event will tell nothing new, so what it calls for is done now.
            deleted = isinstance(write, Delete)
            self._note(self._mirror.deleted(outcome, self._clock()) if deleted else self._mirror.stored(outcome))
        return found


def _is_done_anyway(write: Write, error: ClusterError) -> bool:
    """What is to be made is there already, or what is to be changed is gone: the event that tells so is on its way."""
    if isinstance(write, Create):
        return error.reason is ErrorReason.ALREADY_EXISTS
    return error.reason is ErrorReason.NOT_FOUND
