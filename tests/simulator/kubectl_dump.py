"""A large dump as ``kubectl get nodes,pods,podgroups,queues -A -o json`` prints it: indented, with everything that
nobody reads here (managed fields are left out by kubectl; probes, environment, volumes, statuses are not)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_CREATED = "2026-03-01T08:00:00Z"
Plain = dict[str, Any]


def write_dump(file: Path, nodes: int, pods: int) -> int:
    """Write a dump of so many nodes and running pods, three to a job; returns its size in bytes."""
    items = [_queue(f"queue-{i}") for i in range(10)]
    items += [_node(i) for i in range(nodes)]
    for i in range(0, pods, 3):
        items.append(_pod_group(i // 3))
        items += [_pod(j, i // 3, j % nodes) for j in range(i, min(i + 3, pods))]
    listing = {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}
    file.write_text(json.dumps(listing, indent=1))
    return file.stat().st_size


def _meta(name: str, namespace: str = "", **more: Any) -> Plain:
    meta: Plain = {"name": name, "uid": f"uid-{namespace}-{name}", "resourceVersion": "123456", "generation": 1}
    if namespace:
        meta["namespace"] = namespace
    return {**meta, "creationTimestamp": _CREATED, **more}


def _queue(name: str) -> Plain:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": _meta(name),
        "spec": {"weight": 1, "reclaimable": True, "guarantee": {}, "parent": "root"},
        "status": {"state": "Open", "running": 1, "allocated": {"cpu": "1", "memory": "0"}, "reservation": {}},
    }


def _node(i: int) -> Plain:
    name = f"node-{i:05d}"
    amounts = {"cpu": "64", "memory": "263860924Ki", "pods": "110", "nvidia.com/gpu": "8", "ephemeral-storage": "1Ti"}
    conditions = [
        {
            "type": kind,
            "status": status,
            "reason": f"Kubelet{kind}",
            "message": f"kubelet says of {kind}: {status}",
            "lastHeartbeatTime": _CREATED,
            "lastTransitionTime": _CREATED,
        }
        for kind, status in (("MemoryPressure", "False"), ("DiskPressure", "False"), ("Ready", "True"))
    ]
    labels = {
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": f"zone-{i % 3}",
        "kubernetes.io/arch": "amd64",
    }
    images = [{"names": [f"registry.example/app-{k}@sha256:{k:064x}"], "sizeBytes": 50_000_000 + k} for k in range(5)]
    info = {"kubeletVersion": "v1.35.0", "osImage": "Linux", "architecture": "amd64", "kernelVersion": "6.1.0"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": _meta(name, labels=labels, annotations={"node.alpha.kubernetes.io/ttl": "0"}),
        "spec": {"podCIDR": f"10.{i // 256}.{i % 256}.0/24", "providerID": f"cloud://{name}"},
        "status": {
            "addresses": [{"type": "InternalIP", "address": f"10.0.{i // 256}.{i % 256}"}],
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": conditions,
            "images": images,
            "nodeInfo": info,
        },
    }


def _pod_group(i: int) -> Plain:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": _meta(f"job-{i}", f"team-{i % 10}"),
        "spec": {"minMember": 3, "queue": f"queue-{i % 10}", "minResources": {"cpu": "12", "memory": "24Gi"}},
        "status": {
            "phase": "Running",
            "running": 3,
            "conditions": [
                {
                    "type": "Scheduled",
                    "status": "True",
                    "reason": "tasks in gang are ready to be scheduled",
                    "transitionID": f"t-{i}",
                    "lastTransitionTime": _CREATED,
                }
            ],
        },
    }


def _pod(i: int, job: int, node: int) -> Plain:
    name, namespace = f"job-{job}-worker-{i}", f"team-{job % 10}"
    request = {"cpu": "4", "memory": "8Gi"}
    container = {
        "name": "main",
        "image": f"registry.example/app-{job % 5}:v1",
        "imagePullPolicy": "IfNotPresent",
        "command": ["python", "-m", "train"],
        "args": ["--epochs", "10", "--data", "/data/train"],
        "env": [{"name": f"SETTING_{k}", "value": f"value-{k}"} for k in range(4)],
        "resources": {"limits": request, "requests": request},
        "volumeMounts": [
            {"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": "token", "readOnly": True}
        ],
    }
    token = {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
    tolerations = [
        {"effect": "NoExecute", "key": f"node.kubernetes.io/{key}", "operator": "Exists", "tolerationSeconds": 300}
        for key in ("not-ready", "unreachable")
    ]
    conditions = [
        {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": _CREATED}
        for kind in ("Initialized", "Ready", "PodScheduled")
    ]
    owner = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": f"job-{job}",
        "uid": f"j-{job}",
        "controller": True,
    }
    annotations = {"scheduling.k8s.io/group-name": f"job-{job}", "volcano.sh/task-spec": "worker"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _meta(name, namespace, annotations=annotations, labels={"app": "train"}, ownerReferences=[owner]),
        "spec": {
            "containers": [container],
            "nodeName": f"node-{node:05d}",
            "priority": 0,
            "restartPolicy": "OnFailure",
            "schedulerName": "volcano",
            "serviceAccountName": "default",
            "tolerations": tolerations,
            "volumes": [token],
        },
        "status": {
            "phase": "Running",
            "conditions": conditions,
            "hostIP": "10.0.0.1",
            "podIP": "10.1.0.1",
            "qosClass": "Guaranteed",
            "startTime": _CREATED,
            "containerStatuses": [
                {
                    "name": "main",
                    "ready": True,
                    "restartCount": 0,
                    "started": True,
                    "image": "app",
                    "state": {"running": {"startedAt": _CREATED}},
                }
            ],
        },
    }
