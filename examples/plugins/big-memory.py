"""big-memory: keep the nodes with much memory for the pods that need it.

The per-node style: one function that refuses a node for a task, one that scores it. Nothing of the cluster has to be
known beyond the task and the node at hand, and Python without NumPy is enough.

    tiers:
    - plugins:
      - name: big-memory
        arguments: {nodeGi: 512, podGi: 64, weight: 1}

A node that has ``nodeGi`` or more takes only pods that ask for ``podGi`` or more. Pods that may go there go where they
leave the least memory unused, so that a whole node stays free for the next large one.
"""

from __future__ import annotations

from vcscheduler.config import Arguments
from vcscheduler.framework.plugin import Plugin
from vcscheduler.framework.session import Session
from vcscheduler.model.fit import FitFailure, Status
from vcscheduler.model.nodes import Node
from vcscheduler.model.status import Code
from vcscheduler.model.task import Task

GI = 2**30
REASON = "node(s) were kept for pods that need much memory"


class BigMemory(Plugin):
    name = "big-memory"

    def on_session_open(self, ssn: Session) -> None:
        self.node_bytes = self.arguments.get_int("nodeGi", 512) * GI
        self.pod_bytes = self.arguments.get_int("podGi", 64) * GI
        self.weight = self.arguments.get_int("weight", 1)
        ssn.add_predicate_fn(self.name, self.predicate)
        ssn.add_node_order_fn(self.name, self.node_order)

    def predicate(self, task: Task, node: Node) -> None:
        """Returns if the task may go to the node, raises if not."""
        if node.allocatable.memory >= self.node_bytes and task.resreq.memory < self.pod_bytes:
            # UNRESOLVABLE: no eviction would help, so preempt does not try this node.
            raise FitFailure(Status(Code.UNRESOLVABLE, REASON, self.name))

    def node_order(self, task: Task, node: Node) -> float:
        """0 to 100 for a large node, the more the fuller it would be; 0 for all others."""
        has = node.allocatable.memory
        if has < self.node_bytes:
            return 0.0
        left = node.idle.memory - task.resreq.memory
        return self.weight * 100.0 * (has - max(left, 0.0)) / has


def New(arguments: Arguments) -> BigMemory:
    return BigMemory(arguments)
