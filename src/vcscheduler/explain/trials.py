"""Trying out what would change a pod's fate: the pod with one thing different, asked of the session's own rules.

A variant is never placed; the rules about nodes only say where it could go. So what comes out is not a guess about
rules but their answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from vcscheduler.framework.session import Session
from vcscheduler.model.nodes import Node
from vcscheduler.model.resources import CPU, MEMORY, PODS, Resources
from vcscheduler.model.task import Task, TaskClasses
from vcscheduler.objects import Container, Pod, PodSpec, ResourceRequirements, Toleration
from vcscheduler.placement.rules import FloatArray, IntArray
from vcscheduler.placement.search import Purpose
from vcscheduler.workloads.admission import changed
from vcscheduler.workloads.usage import amounts, to_resource_list

_CORDONED = "node.kubernetes.io/unschedulable"
_BLOCKING = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class Relaxation:
    """A pod with one thing different. ``what``: the difference, as the end of a sentence that begins with the pod."""

    what: str
    pod: Pod


class Trials:
    """Tries pods on the nodes of one session, of which no action has run."""

    def __init__(self, ssn: Session) -> None:
        self._ssn = ssn
        self._classes = TaskClasses()
        self._tried = 0

    def task(self, pod: Pod) -> Task:
        """The pod as a task of its own, unknown to the session."""
        self._tried += 1
        known = changed(pod, metadata=changed(pod.metadata, uid=f"{pod.metadata.uid}#{self._tried}"))
        return Task(known, self._classes.of(known))

    def fitting(self, pod: Pod) -> IntArray:
        """Rows of the nodes that would take the pod, now or once others have left."""
        task = self.task(pod)
        rows = self._ssn.search.all_rows
        if self._ssn.pre_predicate(task) is not None:
            return rows[:0]
        codes = self._ssn.search.failure_codes(task, rows, Purpose.ALLOCATE)
        return rows[np.flatnonzero(codes == 0)]

    def shortages(self, pod: Pod, rows: IntArray) -> list[Resources]:
        """What each node lacks for the pod's request; pods are counted whole."""
        table, task = self._ssn.table, self.task(pod)
        names = table.dimensions.names
        lacking: list[dict[str, float]] = [{} for _ in range(len(rows))]
        for d, x in table.items(task.cls):
            free: FloatArray = table.idle[d, rows] + table.releasing[d, rows] - table.pipelined[d, rows]
            for i in np.flatnonzero(x - free >= 0.1).tolist():
                lacking[i][names[d]] = float(x - free[i])
        return [Resources(each.pop(CPU, 0.0), each.pop(MEMORY, 0.0), dict(each.items()) or None) for each in lacking]


def without_request(pod: Pod) -> Pod:
    """The same pod asking for nothing but a place."""
    spec = pod.spec
    return changed(
        pod,
        spec=changed(
            spec,
            containers=[_asking(each, {}) for each in spec.containers],
            init_containers=[_asking(each, {}) for each in spec.init_containers],
            resources=None,
            overhead={},
        ),
    )


def with_less(pod: Pod, less: Resources) -> Pod:
    """The same pod asking for that much less, taken from its containers in order."""
    left = {
        name: Fraction(less.get(name)) / (1 if name in (MEMORY, PODS) else 1000)
        for name in less.names()
        if less.get(name)
    }
    containers = []
    for container in pod.spec.containers:
        wanted = amounts(container.resources.requests)
        for name in wanted:
            taken = min(wanted[name], left.get(name, Fraction(0)))
            wanted[name] -= taken
            if name in left:
                left[name] -= taken
        containers.append(_asking(container, {name: v for name, v in wanted.items() if v}))
    return changed(pod, spec=changed(pod.spec, containers=containers))


def _asking(container: Container, wanted: dict[str, Fraction]) -> Container:
    return changed(container, resources=ResourceRequirements(requests=to_resource_list(wanted)))


def relaxations(pod: Pod, nodes: list[Node]) -> Iterator[Relaxation]:
    """The pod without each of its demands on nodes, one at a time."""
    spec = pod.spec

    def variant(what: str, **fields: object) -> Relaxation:
        return Relaxation(what, changed(pod, spec=changed(spec, **fields)))

    for key, value in spec.node_selector.items():
        rest = {k: v for k, v in spec.node_selector.items() if k != key}
        yield variant(f"did not select {key}={value}", node_selector=rest)
    affinity = spec.affinity
    if affinity is not None:
        node, near, apart = affinity.node_affinity, affinity.pod_affinity, affinity.pod_anti_affinity
        if node is not None and node.required is not None:
            relaxed = changed(affinity, node_affinity=changed(node, required=None))
            yield variant("had no required node affinity", affinity=relaxed)
        if near is not None and near.required:
            relaxed = changed(affinity, pod_affinity=changed(near, required=[]))
            yield variant("had no required pod affinity", affinity=relaxed)
        if apart is not None and apart.required:
            relaxed = changed(affinity, pod_anti_affinity=changed(apart, required=[]))
            yield variant("had no required pod anti-affinity", affinity=relaxed)
    for each in spec.topology_spread_constraints:
        others = [other for other in spec.topology_spread_constraints if other is not each]
        yield variant(f"were not to spread over {each.topology_key}", topology_spread_constraints=others)
    yield from _tolerating(pod, nodes)
    ports = sorted({port.host_port for container in spec.containers for port in container.ports if port.host_port})
    if ports:
        listed = ", ".join(map(str, ports))
        yield variant(f"did not ask for host port {listed}", containers=[_portless(each) for each in spec.containers])
    claims = [each for each in spec.volumes if each.persistent_volume_claim is not None or each.ephemeral is not None]
    if claims:
        rest_of = [each for each in spec.volumes if each not in claims]
        yield variant("had no volume claims", volumes=rest_of)
    if pod.metadata.labels:
        bare = changed(pod, metadata=changed(pod.metadata, labels={}))
        yield Relaxation("had no labels that other pods' anti-affinity looks at", bare)


def _portless(container: Container) -> Container:
    return changed(container, ports=[port for port in container.ports if not port.host_port])


def _tolerating(pod: Pod, nodes: list[Node]) -> Iterator[Relaxation]:
    spec: PodSpec = pod.spec
    taints: dict[tuple[str, str, str], Toleration] = {}
    cordoned = False
    for node in nodes:
        if node.object is None:
            continue
        cordoned = cordoned or node.object.spec.unschedulable
        for taint in node.object.spec.taints:
            if taint.effect in _BLOCKING and taint.key != _CORDONED:
                key = (taint.key, taint.value, taint.effect)
                taints[key] = Toleration(taint.key, "Equal", taint.value, taint.effect)
    for (name, value, effect), toleration in sorted(taints.items()):
        shown = f"{name}={value}:{effect}" if value else f"{name}:{effect}"
        tolerating = changed(spec, tolerations=[*spec.tolerations, toleration])
        yield Relaxation(f"tolerated the taint {shown}", changed(pod, spec=tolerating))
    if cordoned:
        toleration = Toleration(_CORDONED, "Exists", "", "NoSchedule")
        yield Relaxation(
            "could go to nodes that are cordoned",
            changed(pod, spec=changed(spec, tolerations=[*spec.tolerations, toleration])),
        )
