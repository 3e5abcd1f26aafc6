"""VolumeZone: a bound volume is used in its zone (spec 05 §4.7)."""

from __future__ import annotations

import numpy as np

from vcscheduler.model.listers import Listers
from vcscheduler.objects import PersistentVolume, Pod
from vcscheduler.placement.labels import NodeColumns
from vcscheduler.placement.rules import IntArray, Reason
from vcscheduler.plugins.predicates.claims import (
    ClaimProblem,
    claim_not_found,
    class_name,
    waits_for_consumer,
)

_BETA = "failure-domain.beta.kubernetes.io/"
_GA = "topology.kubernetes.io/"
_KEYS = (f"{_BETA}zone", f"{_BETA}region", f"{_GA}zone", f"{_GA}region")

Topology = tuple[str, frozenset[str]]


def volume_topologies(pod: Pod, listers: Listers) -> list[Topology]:
    """Label key and allowed values, for each that a bound volume of the pod carries.

    Raises:
        ClaimProblem: a claim or volume is missing, or will not be bound by scheduling.
    """
    found: list[Topology] = []
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is None:
            continue
        name = volume.persistent_volume_claim.claim_name
        if not name:
            raise ClaimProblem("PersistentVolumeClaim had no name")
        claim = listers.claims.get(f"{pod.namespace}/{name}")
        if claim is None:
            raise ClaimProblem(claim_not_found(name))
        bound_to = claim.spec.volume_name
        if not bound_to:
            wanted = class_name(claim)
            if not wanted:
                raise ClaimProblem("PersistentVolumeClaim had no pv name and storageClass name")
            if wanted not in listers.storage_classes:
                raise ClaimProblem(f'storageclass.storage.k8s.io "{wanted}" not found')
            if waits_for_consumer(claim, listers):
                continue
            raise ClaimProblem("PersistentVolume had no name")
        bound = listers.volumes.get(bound_to)
        if bound is None:
            raise ClaimProblem(f'persistentvolume "{bound_to}" not found')
        found += _topologies(bound)
    return found


def _topologies(volume: PersistentVolume) -> list[Topology]:
    labels = volume.metadata.labels
    return [(k, frozenset(labels[k].split("__"))) for k in _KEYS if k in labels]


def zone_codes(topologies: list[Topology], columns: NodeColumns, rows: IntArray) -> IntArray:
    """A node without any zone or region label takes every volume."""
    labelled = np.zeros(len(rows), dtype=np.bool_)
    for key in _KEYS:
        labelled |= columns.column(key).codes[rows] >= 0
    fits = np.ones(len(rows), dtype=np.bool_)
    for key, values in topologies:
        column = columns.column(key)
        ok = np.isin(column.codes[rows], [column.code_of[v] for v in values if v in column.code_of])
        if key.startswith(_BETA):
            now = columns.column(_GA + key[len(_BETA) :])
            known = np.isin(now.codes[rows], [now.code_of[v] for v in values if v in now.code_of])
            ok = np.where(column.codes[rows] >= 0, ok, known)
        fits &= ok
    return np.where(labelled & ~fits, int(Reason.VOLUME_ZONE), 0)
