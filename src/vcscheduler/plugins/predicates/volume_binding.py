"""VolumeBinding: claims that are bound where the pod goes, or can be (spec 05 §4.9).

For every node at once: which volume each claim that waits for its first consumer would take there, and which would be
provisioned. Reserve assumes what was found for the chosen node; what has to be written for it is a :class:`VolumePlan`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from vcscheduler.model.listers import Listers
from vcscheduler.model.volume_plan import VolumePlan
from vcscheduler.objects import PersistentVolume, PersistentVolumeClaim, Pod
from vcscheduler.objects.quantity import parse_quantity
from vcscheduler.objects.selectors import (
    SelectorError,
    compile_label_selector,
    compile_node_selector,
)
from vcscheduler.placement.labels import NodeColumns
from vcscheduler.placement.rules import BoolArray, IntArray, Reason
from vcscheduler.plugins.predicates.assumptions import Assumptions
from vcscheduler.plugins.predicates.claims import (
    BIND_COMPLETED,
    ClaimProblem,
    claim_not_found,
    claim_uses,
    class_name,
    owned_by,
    volume_class_name,
    waits_for_consumer,
)

NO_PROVISIONER = "kubernetes.io/no-provisioner"


@dataclass(slots=True)
class PodClaims:
    """A pod's claims by what is to be done about them."""

    bound: list[PersistentVolumeClaim]
    delayed: list[PersistentVolumeClaim]


def pod_claims(pod: Pod, listers: Listers) -> PodClaims | None:
    """None for a pod without claims.

    Raises:
        ClaimProblem: a claim is missing, lost, going away or not the pod's own, or is bound without waiting.
    """
    claims = []
    for use in claim_uses(pod):
        claim = listers.claims.get(f"{pod.namespace}/{use.name}")
        # A special case for recorded cases: docs/differences.md, "Claims in recorded cases".
        if claim is None or not claim.status.phase:
            if use.ephemeral:
                raise ClaimProblem(
                    f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{use.name}"'
                )
            raise ClaimProblem(claim_not_found(use.name))
        if claim.status.phase == "Lost":
            raise ClaimProblem(
                f'persistentvolumeclaim "{claim.name}" bound to non-existent persistentvolume '
                f'"{claim.spec.volume_name}"'
            )
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimProblem(f'persistentvolumeclaim "{claim.name}" is being deleted')
        if use.ephemeral and not owned_by(claim, pod):
            raise ClaimProblem(f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)")
        claims.append(claim)
    if not claims:
        return None
    found = PodClaims([], [])
    immediate = False
    for claim in claims:
        if claim.spec.volume_name and BIND_COMPLETED in claim.metadata.annotations:
            found.bound.append(claim)
        elif not claim.spec.volume_name and waits_for_consumer(claim, listers):
            found.delayed.append(claim)
        else:
            immediate = True
    if immediate:
        raise ClaimProblem("pod has unbound immediate PersistentVolumeClaims")
    return found


@dataclass(slots=True)
class _Found:
    """Plans for rows: per matched claim the index of its volume by row (-1 = to be provisioned)."""

    rows: IntArray
    fits: BoolArray
    claims: list[PersistentVolumeClaim]
    volumes: list[list[PersistentVolume]]
    chosen: list[IntArray]
    selected: list[PersistentVolumeClaim]


class VolumeState:
    """One pod's claims, pre-filtered, and the plans that filtering finds."""

    def __init__(self, claims: PodClaims, columns: NodeColumns, listers: Listers, assumptions: Assumptions) -> None:
        self._claims = claims
        self._columns = columns
        self._listers = listers
        self._assumptions = assumptions
        self._found: list[_Found] = []
        self._reserved: VolumePlan | None = None

    # --- filter -----------------------------------------------------------------------------------------------

    def codes(self, rows: IntArray) -> IntArray:
        """
        Raises:
            ClaimProblem: the class of a claim to provision does not exist.
        """
        codes = self._bound(rows)
        if self._claims.delayed:
            codes |= self._delayed(rows, codes == 0)
        return codes

    def _allowed(self, volume: PersistentVolume) -> BoolArray | None:
        """Rows that the volume can be used on; None = all."""
        affinity = volume.spec.node_affinity
        if affinity is None or affinity.required is None:
            return None
        return self._columns.matching_query(compile_node_selector(affinity.required))

    def _bound(self, rows: IntArray) -> IntArray:
        codes = np.zeros(len(rows), dtype=np.int64)
        for claim in self._claims.bound:
            volume = self._listers.volumes.get(claim.spec.volume_name)
            if volume is None:
                codes[codes == 0] = Reason.VOLUME_LOST
                break
            allowed = self._allowed(volume)
            if allowed is not None:
                codes[(codes == 0) & ~allowed[rows]] = Reason.VOLUME_NODE
        return codes

    def _delayed(self, rows: IntArray, bound_fit: BoolArray) -> IntArray:
        codes = np.zeros(len(rows), dtype=np.int64)
        selected, waiting = [], []
        for claim in self._claims.delayed:
            name = self._assumptions.selected_node(claim)
            if name is None:
                waiting.append(claim)
                continue
            selected.append(claim)
            node = self._columns.table.by_name.get(name)
            there = rows == node.row if node is not None else np.zeros(len(rows), dtype=np.bool_)
            codes[~there] = Reason.VOLUME_BIND
        waiting.sort(key=_requested)
        going = codes == 0
        found = _Found(rows, going, waiting, [], [], selected)
        used: dict[str, BoolArray] = {}
        for claim in waiting:
            volumes = self._volumes_for(claim)
            found.volumes.append(volumes)
            found.chosen.append(self._choose(claim, volumes, rows, used))
        for claim in selected:
            self._provision(claim, rows, codes, codes == 0)
        for claim, chosen in zip(waiting, found.chosen):
            self._provision(claim, rows, codes, (codes == 0) & (chosen < 0))
        found.fits = (codes == 0) & bound_fit
        self._found.append(found)
        return codes

    def _volumes_for(self, claim: PersistentVolumeClaim) -> list[PersistentVolume]:
        """Volumes that the claim may take, the one that it takes first in front; nodes apart."""
        size, wanted = _requested(claim), class_name(claim)
        try:
            selector = None if claim.spec.selector is None else compile_label_selector(claim.spec.selector)
        except SelectorError as error:
            raise ClaimProblem(f"claim {claim.key}: {error}") from None
        mode = claim.spec.volume_mode or "Filesystem"
        free = []
        for _, volume in sorted(self._listers.volumes.items()):
            if volume_class_name(volume) != wanted or volume.metadata.deletion_timestamp is not None:
                continue
            if _capacity(volume) < size or (volume.spec.volume_mode or "Filesystem") != mode:
                continue
            if self._assumptions.holder(volume) is not None:
                if self._assumptions.holds(volume, claim):
                    return [volume]
                continue
            if volume.status.phase != "Available" or not set(claim.spec.access_modes) <= set(volume.spec.access_modes):
                continue
            if selector is None or selector.matches(volume.metadata.labels):
                free.append(volume)
        free.sort(key=_capacity)
        return free

    def _choose(
        self,
        claim: PersistentVolumeClaim,
        volumes: list[PersistentVolume],
        rows: IntArray,
        used: dict[str, BoolArray],
    ) -> IntArray:
        """Per row the first volume that can be used there and that no earlier claim took there."""
        chosen = np.full(len(rows), -1, dtype=np.int64)
        for i, volume in enumerate(volumes):
            open_ = chosen < 0
            if not open_.any():
                break
            allowed = self._allowed(volume)
            if allowed is not None:
                open_ &= allowed[rows]
            taken = used.setdefault(volume.name, np.zeros(len(rows), dtype=np.bool_))
            open_ &= ~taken
            chosen[open_] = i
            taken |= open_
        return chosen

    def _provision(self, claim: PersistentVolumeClaim, rows: IntArray, codes: IntArray, where: BoolArray) -> None:
        """Mark the rows among ``where`` on which the claim cannot be provisioned."""
        if not where.any():
            return
        name = class_name(claim)
        kind = self._listers.storage_classes.get(name)
        if kind is None:
            raise ClaimProblem(f'failed to find storage class "{name}"')
        if not kind.provisioner or kind.provisioner == NO_PROVISIONER:
            codes[where] = Reason.VOLUME_BIND
            return
        columns = self._columns
        if kind.allowed_topologies:
            allowed = np.zeros(columns.capacity, dtype=np.bool_)
            for term in kind.allowed_topologies:
                mask = np.ones(columns.capacity, dtype=np.bool_)
                for r in term.match_label_expressions:
                    column = columns.column(r.key)
                    wanted = [column.code_of[v] for v in r.values if v in column.code_of]
                    mask &= np.isin(column.codes, wanted)
                allowed |= mask
            codes[where & ~allowed[rows]] = Reason.VOLUME_BIND
            where = where & allowed[rows]
        driver = self._listers.csi_drivers.get(kind.provisioner)
        if driver is not None and driver.spec.storage_capacity:
            codes[where & ~self._roomy(name, _requested(claim))[rows]] = Reason.VOLUME_SPACE

    def _roomy(self, storage_class: str, size: Fraction) -> BoolArray:
        """Rows for which some storage capacity of the class is large enough."""
        found = np.zeros(self._columns.capacity, dtype=np.bool_)
        for capacity in self._listers.storage_capacities.values():
            limit = capacity.maximum_volume_size if capacity.maximum_volume_size is not None else capacity.capacity
            if capacity.storage_class_name != storage_class or limit is None or parse_quantity(limit) < size:
                continue
            requirements = compile_label_selector(capacity.node_topology).requirements
            if requirements is not None:
                found |= self._columns.matching_labels(requirements)
        return found

    # --- reserve ----------------------------------------------------------------------------------------------

    def plan(self, node: str, row: int) -> VolumePlan | None:
        """What was found for a row when it was filtered; None if it was not, or did not fit."""
        for found in reversed(self._found):
            at = np.flatnonzero(found.rows == row)
            if not len(at):
                continue
            i = int(at[0])
            if not found.fits[i]:
                return None
            bindings, provisions = [], [c.key for c in found.selected]
            for claim, volumes, chosen in zip(found.claims, found.volumes, found.chosen):
                if chosen[i] >= 0:
                    bindings.append((volumes[int(chosen[i])].name, claim.key))
                else:
                    provisions.append(claim.key)
            timeout = self._assumptions.bind_timeout_seconds
            return VolumePlan(node, tuple(bindings), tuple(provisions), timeout, self.unreserve)
        return None

    @property
    def reserved(self) -> VolumePlan | None:
        return self._reserved

    def reserve(self, node: str, row: int) -> None:
        """Assume the plan for a node; without one there is nothing to assume."""
        plan = self.plan(node, row)
        self._reserved = plan
        if plan is None:
            return
        for volume, key in plan.bindings:
            self._assumptions.bind(self._listers.volumes[volume], self._listers.claims[key])
        for key in plan.provisions:
            self._assumptions.select_node(self._listers.claims[key], node)

    def unreserve(self) -> None:
        plan = self._reserved
        if plan is not None:
            self._assumptions.forget([v for v, _ in plan.bindings], list(plan.provisions))
            self._reserved = None


def _requested(claim: PersistentVolumeClaim) -> Fraction:
    return parse_quantity(claim.spec.resources.requests.get("storage", 0))


def _capacity(volume: PersistentVolume) -> Fraction:
    return parse_quantity(volume.spec.capacity.get("storage", 0))
