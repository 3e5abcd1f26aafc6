"""What is written to pods: bindings, evictions, conditions (spec 07 §3.3, §3.6, §4.3)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import ClassVar, Final, Protocol, cast

import msgspec

from vcscheduler.cluster.interface import ClusterError
from vcscheduler.cluster.live.access import Document, ObjectAccess
from vcscheduler.cluster.live.connection import Connection
from vcscheduler.cluster.live.decoding import Decoder
from vcscheduler.cluster.live.failures import ApiFailure
from vcscheduler.cluster.live.queue import Lane, Write
from vcscheduler.cluster.live.resources import PODS
from vcscheduler.cluster.pod_conditions import eviction_conditions, with_condition
from vcscheduler.objects import Condition, Pod

_DECODER: Final = Decoder(Pod)


class PodDesk(Protocol):
    """What writes to pods need of the cluster they belong to."""

    access: ObjectAccess

    def known_pod(self, key: str) -> Pod | None:
        """The pod as last seen by the watch."""

    def pod_bound(self, pod: Pod, node_name: str) -> None: ...

    def pod_refused(self, pod: Pod, error: ClusterError, stored: Pod | None, known: bool) -> None:
        """A write to the pod failed for good. `stored`: the pod as read afterwards; `known`: whether it was."""

    def condition_failed(self, pod: Pod, failure: ApiFailure) -> None: ...


async def read_pod(access: ObjectAccess, namespace: str, name: str) -> Pod | None:
    """
    Raises:
        ApiFailure: it could not be read.
    """
    return await access.read(PODS, _DECODER, namespace, name)


class PodWrite(Write):
    """A write to one pod, told from later pods of the same name by its uid."""

    __slots__ = ("desk", "pod")

    def __init__(self, desk: PodDesk, pod: Pod) -> None:
        super().__init__(f"pods/{pod.key}")
        self.desk = desk
        self.pod = pod

    async def stored(self) -> Pod | None:
        """This pod as stored now; None if it is gone, even if another one bears its name."""
        pod = await read_pod(self.desk.access, self.pod.namespace, self.pod.name)
        return pod if pod is not None and pod.metadata.uid == self.pod.metadata.uid else None

    def gone(self) -> ApiFailure:
        return ApiFailure(404, "NotFound", f'pods "{self.pod.key}" not found')


class DecisiveWrite(PodWrite):
    """A write whose failure the scheduler must hear of, with what the pod looks like now."""

    __slots__ = ()
    lane: ClassVar[Lane] = Lane.URGENT

    async def failed(self, failure: ApiFailure, connection: Connection) -> None:
        try:
            stored, known = await self.stored(), True
        except ApiFailure:
            stored, known = None, False
        self.desk.pod_refused(self.pod, failure.as_cluster_error(), stored, known)

    @abstractmethod
    async def send(self, connection: Connection) -> None: ...

    def replaces(self, waiting: Write) -> bool:
        # Why the pod could not be placed is of no interest any more.
        return isinstance(waiting, SetCondition)


class Bind(DecisiveWrite):
    """POST of a Binding. Posting it twice is harmless, the second is answered with a conflict; but only reading tells
    whether that conflict is with our own first attempt."""

    __slots__ = ("annotations", "node_name")

    def __init__(self, desk: PodDesk, pod: Pod, node_name: str, annotations: Mapping[str, str]) -> None:
        super().__init__(desk, pod)
        self.node_name = node_name
        self.annotations = annotations

    async def send(self, connection: Connection) -> None:
        if self.uncertain and await self._is_done():
            return
        metadata = self.pod.metadata
        about: Document = {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid}
        if self.annotations:
            about["annotations"] = dict(self.annotations)
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": about,
            "target": {"apiVersion": "v1", "kind": "Node", "name": self.node_name},
        }
        try:
            await connection.call("POST", PODS.path_of(self.pod, "binding"), msgspec.json.encode(body))
        except ApiFailure as failure:
            if failure.status != 409:
                raise
            if not await self._is_done():
                raise _contended(failure) from failure

    async def _is_done(self) -> bool:
        """Whether the pod is on its node.

        Raises:
            ApiFailure: it never will be, or it could not be read.
        """
        pod = await self.stored()
        if pod is None:
            raise self.gone()
        taken = pod.spec.node_name
        if taken == self.node_name:
            return True
        if taken:
            raise ApiFailure(409, "Conflict", f"pod {pod.key} is already assigned to node {taken}")
        if pod.metadata.deletion_timestamp is not None:
            raise ApiFailure(409, "Conflict", f"pod {pod.key} is being deleted")
        self.uncertain = False
        return False

    def succeeded(self) -> None:
        self.desk.pod_bound(self.pod, self.node_name)


class Evict(DecisiveWrite):
    """Conditions that say why, then the deletion, which names the pod's uid.

    Unlike the reference, which after a failed deletion finds its conditions in place and stops (Quirk, spec 07 §3.6),
    the deletion is tried until it is done.
    """

    __slots__ = ("by_eviction", "now", "reason", "told")

    def __init__(self, desk: PodDesk, pod: Pod, reason: str, now: datetime, by_eviction: bool) -> None:
        super().__init__(desk, pod)
        self.reason = reason
        self.now = now
        self.by_eviction = by_eviction
        self.told = False

    async def send(self, connection: Connection) -> None:
        try:
            if self.uncertain and await self._is_leaving():
                return
            if not self.told:
                await _patch_conditions(self.desk, self.pod, self._conditions)
                self.told = True
            await self._delete(connection)
        except ApiFailure as failure:
            if failure.status == 404:
                return  # It is gone, which is all that was wanted.
            if failure.status != 409:
                raise
            if not await self._is_leaving():
                raise _contended(failure) from failure

    async def _is_leaving(self) -> bool:
        pod = await self.stored()
        return pod is None or pod.metadata.deletion_timestamp is not None

    def _conditions(self, pod: Pod) -> tuple[list[Condition], str]:
        return eviction_conditions(pod, self.reason, self.now), ""

    async def _delete(self, connection: Connection) -> None:
        options: Document = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": self.pod.metadata.uid},
        }
        if not self.by_eviction:
            await connection.call("DELETE", PODS.path_of(self.pod), msgspec.json.encode(options))
            return
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": self.pod.name, "namespace": self.pod.namespace},
            "deleteOptions": options,
        }
        await connection.call("POST", PODS.path_of(self.pod, "eviction"), msgspec.json.encode(eviction))


class SetCondition(PodWrite):
    """One condition, and the nominated node unless that is empty. Only the latest of a pod is worth sending."""

    __slots__ = ("clock", "condition", "nominated")

    def __init__(self, desk: PodDesk, pod: Pod, condition: Condition, nominated: str, clock: Callable[[], datetime]):
        super().__init__(desk, pod)
        self.condition = condition
        self.nominated = nominated
        self.clock = clock

    def replaces(self, waiting: Write) -> bool:
        return isinstance(waiting, SetCondition) and waiting.condition.type == self.condition.type

    async def send(self, connection: Connection) -> None:
        # Nothing to settle after a lost answer: setting it again is the same.
        await _patch_conditions(self.desk, self.pod, self._conditions)

    def _conditions(self, pod: Pod) -> tuple[list[Condition], str]:
        return with_condition(pod.status.conditions, self.condition, self.clock()), self.nominated

    async def failed(self, failure: ApiFailure, connection: Connection) -> None:
        self.desk.condition_failed(self.pod, failure)


def _contended(failure: ApiFailure) -> ApiFailure:
    """A conflict with somebody else's write at the same moment: worth another attempt."""
    return ApiFailure(503, failure.reason, failure.message)


async def _patch_conditions(desk: PodDesk, pod: Pod, wanted: Callable[[Pod], tuple[list[Condition], str]]) -> None:
    """Write the conditions that differ from those the pod is known to have.

    Raises:
        ApiFailure: as for any patch; NotFound also where the pod is another one of the same name.
    """
    seen = desk.known_pod(pod.key)
    current = seen if seen is not None and seen.metadata.uid == pod.metadata.uid else pod
    conditions, nominated = wanted(current)
    news = [each for each in conditions if each not in current.status.conditions]
    status: Document = {}
    if news:
        status["conditions"] = [_plain(each) for each in news]
    if nominated and nominated != current.status.nominated_node_name:
        status["nominatedNodeName"] = nominated
    if not status:
        return

    def replace(document: Document) -> None:
        stored = cast(Document, document.setdefault("status", {}))
        _merge_conditions(stored, [_plain(each) for each in news])
        if "nominatedNodeName" in status:
            stored["nominatedNodeName"] = status["nominatedNodeName"]

    patch: Document = {"metadata": {"uid": pod.metadata.uid}, "status": status}
    try:
        await desk.access.patch(PODS, pod.namespace, pod.name, "status", patch, replace)
    except ApiFailure as failure:
        # That is how the server says that the name belongs to another pod now.
        if failure.status == 422 and "metadata.uid" in failure.message:
            raise ApiFailure(404, "NotFound", f'pods "{pod.key}" not found') from failure
        raise


def _merge_conditions(status: Document, conditions: list[Document]) -> None:
    """Put conditions into a pod's plain status, each in place of the one of its type."""
    stored = status.get("conditions")
    listed = [each for each in stored if isinstance(each, dict)] if isinstance(stored, list) else []
    for condition in conditions:
        for index, each in enumerate(listed):
            if each.get("type") == condition["type"]:
                listed[index] = condition
                break
        else:
            listed.append(condition)
    status["conditions"] = listed


def _plain(condition: Condition) -> Document:
    plain = {"type": condition.type, "status": condition.status, "reason": condition.reason}
    plain["message"] = condition.message
    if condition.last_transition_time is not None:
        plain["lastTransitionTime"] = condition.last_transition_time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return cast(Document, plain)
