"""CSI volumes as a resource: how many of a driver a pod attaches, how many a node can (spec 01 §2.5, §5.7)."""

from __future__ import annotations

from vcscheduler.model.listers import Listers
from vcscheduler.model.resources import Resources
from vcscheduler.objects import CSINode, Pod

PREFIX = "attachable-volumes-csi-"
CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
DRIVER_PARAMETER = "csi.storage.k8s.io/csi-driver-name"
NO_LIMIT = 2147483647


class ClaimPending(Exception):
    """A claim of the pod does not exist yet; what it attaches cannot be told."""


def _dimension(driver: str) -> str:
    return PREFIX + driver.replace("/", "-")


def csi_volumes(pod: Pod, listers: Listers, ignored: frozenset[str]) -> dict[str, int]:
    """Volumes by dimension.

    Raises:
        ClaimPending: see there.
    """
    counts: dict[str, int] = {}
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            claim_name = volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            claim_name = f"{pod.name}-{volume.name}"
        else:
            continue
        claim = listers.claims.get(f"{pod.namespace}/{claim_name}")
        if claim is None:
            raise ClaimPending(claim_name)
        driver = ""
        pv = listers.volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
        if pv is not None:
            driver = pv.spec.csi.driver if pv.spec.csi is not None else ""
        else:
            class_name = claim.metadata.annotations.get(CLASS_ANNOTATION) or claim.spec.storage_class_name or ""
            storage_class = listers.storage_classes.get(class_name)
            if storage_class is not None:
                driver = storage_class.parameters.get(DRIVER_PARAMETER) or storage_class.provisioner
        if driver and driver not in ignored:
            name = _dimension(driver)
            counts[name] = counts.get(name, 0) + 1
    return counts


def csi_limits(csi_node: CSINode | None) -> Resources | None:
    """What a node can attach, by driver; None without a CSINode."""
    if csi_node is None:
        return None
    limits = Resources(scalars={})
    for driver in csi_node.spec.drivers:
        count = driver.allocatable.count if driver.allocatable is not None else None
        limits.set_scalar(_dimension(driver.name), float(NO_LIMIT if count is None else count))
    return limits
