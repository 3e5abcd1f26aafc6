"""Nodes that have the pod's images already (spec 05 §5.9)."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from vcscheduler.model.nodes import NodeTable
from vcscheduler.model.task import Task
from vcscheduler.placement.images import ImageTable
from vcscheduler.placement.rules import FloatArray, IntArray, KernelScores, NodeScorer
from vcscheduler.plugins.nodeorder.arithmetic import divide

_MEBI = 1024 * 1024
_LEAST = 23 * _MEBI
_MOST_PER_CONTAINER = 1000 * _MEBI
_KEPT = "nodeorder.images"


def normalised_name(image: str) -> str:
    return image if ":" in image[image.rfind("/") + 1 :] else f"{image}:latest"


class ImageLocality(NodeScorer):
    """Node order part. Scores depend on node objects only; ``store`` keeps them from session to session."""

    def __init__(self, table: NodeTable, images: ImageTable, weight: int, store: dict[str, object]) -> None:
        self._table = table
        self._images = images
        self._weight = weight
        version = (images.version, table.epoch, len(table.ready_rows), len(table.ready), weight)
        kept = store.get(_KEPT)
        if not isinstance(kept, _Kept) or kept.version != version or kept.table is not table:
            kept = store[_KEPT] = _Kept(table, version)
        self._kept = kept

    def scores(self, task: Task, rows: IntArray) -> FloatArray:
        return self._of(task)[rows].astype(np.float64)

    def kernel(self, task: Task) -> KernelScores | None:
        found = self._of(task)
        return KernelScores(node_constant=None if found is self._kept.nothing else found)

    def kernel_of_class(self, task: Task) -> bool:
        return True

    def kin(self, task: Task) -> Hashable:
        return None

    def kin_of_class(self, task: Task) -> bool:
        return True

    def _of(self, task: Task) -> IntArray:
        """The class's weighted scores on all rows."""
        spec = task.cls.pod.spec
        asked = task.cls.derived.get("images")
        if asked is None:
            names = [c.image for c in (*spec.init_containers, *spec.containers)]
            names += [v.image.reference for v in spec.volumes if v.image is not None]
            asked = (tuple(map(normalised_name, names)), len(spec.init_containers) + len(spec.containers))
            task.cls.derived["images"] = asked
        found = self._kept.scores.get(asked)
        if found is None:
            found = self._kept.scores[asked] = self._compute(*asked)  # type: ignore[misc]
        return found

    def _compute(self, names: tuple[str, ...], containers: int) -> IntArray:
        table = self._table
        total = len(table.ready_rows)
        sums = np.zeros(len(table.ready), dtype=np.int64)
        for name in names:
            for node_name, (size, nodes) in self._images.nodes_with(name).items():
                node = table.by_name.get(node_name)
                if node is not None:
                    sums[node.row] += int(float(size) * (float(nodes) / float(total)))
        if not sums.any():
            return self._kept.nothing
        most = _MOST_PER_CONTAINER * containers
        clamped = np.where(sums < _LEAST, _LEAST, np.minimum(sums, most))
        return divide(100 * (clamped - _LEAST), most - _LEAST) * self._weight


class _Kept:
    def __init__(self, table: NodeTable, version: tuple[int, ...]) -> None:
        self.table = table
        self.version = version
        self.scores: dict[object, IntArray] = {}
        self.nothing = np.zeros(len(table.ready), dtype=np.int64)
