"""Writes the CustomResourceDefinitions in ``deploy/crds`` from the structs that the scheduler reads and writes.

Structure and types come from `vcscheduler.objects`; what the structs do not say (bounds, defaults, enumerations, names,
columns) stands in the tables below. They are compatible with Volcano's own definitions (spec 07 §7): every object that
those accept is accepted here and keeps the fields that matter.

    python deploy/generate_crds.py            write the files
    python deploy/generate_crds.py --check    fail if they are not up to date
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

import msgspec.inspect as mi
import yaml

from vcscheduler.objects import (
    Command,
    HyperNode,
    KubernetesObject,
    LabelSelector,
    NodeShard,
    Numatopology,
    ObjectMeta,
    PersistentVolumeClaimSpec,
    PodGroup,
    PodTemplateSpec,
    Queue,
    VolcanoJob,
)

FOLDER = Path(__file__).parent / "crds"
Schema = dict[str, object]

NUMBER = r"(\d+(\.\d*)?|\.\d+)"
QUANTITY: Schema = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "pattern": rf"^[+-]?{NUMBER}([KMGTPE]i|[numkMGTPE]|[eE][+-]?{NUMBER})?$",
    "x-kubernetes-int-or-string": True,
}
ANYTHING: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SUBDOMAIN: Schema = {"maxLength": 253, "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"}
NAME: Schema = {"maxLength": 253}
COUNT: Schema = {"minimum": 0}
ANY_SIZE: Schema = {"format": None}
"""Not bound to 32 bits, as integers are otherwise."""
TOPOLOGY: dict[str, Schema] = {
    "networkTopology.mode": {"enum": ["hard", "soft"], "default": "hard"},
    "networkTopology.highestTierAllowed": COUNT | ANY_SIZE,
    "networkTopology.highestTierName": NAME,
}
EVENTS = ["*", "PodPending", "PodRunning", "PodFailed", "PodEvicted", "Unknown", "TaskCompleted", "OutOfSync"]
EVENTS += ["CommandIssued", "JobUpdated", "TaskFailed"]
JOB_PHASES = ["Pending", "Aborting", "Aborted", "Running", "Restarting", "Completing", "Completed", "Terminating"]
JOB_PHASES += ["Terminated", "Failed"]


def under(prefix: str, rules: dict[str, Schema]) -> dict[str, Schema]:
    return {f"{prefix}.{path}": rule for path, rule in rules.items()}


POLICY: dict[str, Schema] = {"policies[].event": {"enum": EVENTS}, "policies[].events[]": {"enum": EVENTS}}


@dataclass
class Definition:
    kind: type[KubernetesObject]
    plural: str
    short: list[str] = field(default_factory=list)
    status: bool = False
    """Whether status is a subresource."""
    columns: list[tuple[str, str, str]] = field(default_factory=list)
    """(name, path, type); a name that ends in ``+`` is shown by ``-o wide`` only."""
    rules: dict[str, Schema] = field(default_factory=dict)
    required: dict[str, list[str]] = field(default_factory=dict)
    unread: dict[str, Schema] = field(default_factory=dict)
    """Fields that others write and the scheduler has no struct for, by the path of what holds them."""


AGE = ("AGE", ".metadata.creationTimestamp", "date")
RUNNING = ("RUNNINGS", ".status.running", "integer")
QUEUE = ("QUEUE+", ".spec.queue", "string")

DEFINITIONS = [
    Definition(
        PodGroup,
        "podgroups",
        ["pg", "podgroup-v1beta1"],
        columns=[
            ("STATUS", ".status.phase", "string"),
            ("minMember", ".spec.minMember", "integer"),
            RUNNING,
            AGE,
            QUEUE,
        ],
        rules={
            "spec.minMember": COUNT,
            "spec.queue": {**SUBDOMAIN, "default": "default"},
            "spec.priorityClassName": NAME,
            **under("spec", TOPOLOGY),
            **under("spec.subGroupPolicy[]", TOPOLOGY),
            "spec.subGroupPolicy[].name": NAME,
            "spec.subGroupPolicy[].subGroupSize": {"minimum": 1, "default": 1},
            "spec.subGroupPolicy[].minSubGroups": {"minimum": 0, "default": 0},
            "spec.subGroupPolicy[].matchLabelKeys": {"x-kubernetes-list-type": "atomic"},
            "status.phase": {"enum": ["Pending", "Running", "Unknown", "Inqueue", "Completed"]},
            "status.running": COUNT,
            "status.succeeded": COUNT,
            "status.failed": COUNT,
        },
    ),
    Definition(
        Queue,
        "queues",
        ["q", "queue-v1beta1"],
        status=True,
        columns=[("PARENT", ".spec.parent", "string")],
        rules={
            "spec.weight": {"minimum": 1, "maximum": 65535, "default": 1},
            "spec.priority": COUNT,
            "spec.parent": SUBDOMAIN,
            "spec.type": NAME,
            "spec.dequeueStrategy": {"enum": ["fifo", "traverse"], "default": "traverse"},
            "status.state": {"enum": ["Open", "Closed", "Closing", "Unknown"]},
            **{f"status.{name}": COUNT for name in ("unknown", "pending", "running", "inqueue", "completed")},
        },
    ),
    Definition(
        VolcanoJob,
        "jobs",
        ["vcjob", "vj"],
        status=True,
        columns=[
            ("STATUS", ".status.state.phase", "string"),
            ("minAvailable", ".status.minAvailable", "integer"),
            RUNNING,
            AGE,
            QUEUE,
        ],
        rules={
            "spec.schedulerName": {"maxLength": 63},
            "spec.minAvailable": COUNT,
            "spec.queue": {**SUBDOMAIN, "default": "default"},
            "spec.maxRetry": {"minimum": 0, "default": 3},
            "spec.minSuccess": {"minimum": 1},
            "spec.priorityClassName": SUBDOMAIN,
            "spec.ttlSecondsAfterFinished": COUNT,
            "spec.volumes[].mountPath": {"minLength": 1, "pattern": "^[^:]+$"},
            "spec.volumes[].volumeClaimName": NAME,
            **under("spec", TOPOLOGY),
            **under("spec", POLICY),
            "spec.tasks": {"minItems": 1},
            "spec.tasks[].name": {"maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"},
            "spec.tasks[].replicas": COUNT,
            "spec.tasks[].minAvailable": COUNT,
            "spec.tasks[].maxRetry": COUNT,
            "spec.tasks[].topologyPolicy": {"enum": ["none", "best-effort", "restricted", "single-numa-node"]},
            **under("spec.tasks[]", POLICY),
            "spec.tasks[].partitionPolicy.totalPartitions": {"minimum": 1},
            "spec.tasks[].partitionPolicy.partitionSize": {"minimum": 1},
            "spec.tasks[].partitionPolicy.minPartitions": {"minimum": 0, "default": 0},
            **under("spec.tasks[].partitionPolicy", TOPOLOGY),
            "status.state.phase": {"enum": JOB_PHASES},
            **{
                f"status.{name}": COUNT
                for name in (
                    *("minAvailable", "pending", "running", "succeeded", "failed"),
                    *("terminating", "unknown", "version", "retryCount"),
                )
            },
        },
        required={
            "spec.volumes[]": ["mountPath"],
            "spec.tasks[].partitionPolicy": ["partitionSize", "totalPartitions"],
            "status.conditions[]": ["status"],
        },
    ),
    Definition(Command, "commands", required={"target": ["apiVersion", "kind", "name", "uid"]}),
    Definition(
        HyperNode,
        "hypernodes",
        ["hn"],
        status=True,
        columns=[
            ("Tier", ".spec.tier", "string"),
            ("TierName", ".spec.tierName", "string"),
            ("NodeCount", ".status.nodeCount", "integer"),
            ("Age", ".metadata.creationTimestamp", "date"),
        ],
        rules={
            "spec.tier": COUNT | ANY_SIZE,
            "spec.tierName": NAME,
            "spec.members": {"minItems": 1},
            "spec.members[].type": {"enum": ["Node", "HyperNode"]},
            "spec.members[].selector": {
                "x-kubernetes-validations": [
                    {
                        "rule": " + ".join(
                            f"(has(self.{name}) ? 1 : 0)" for name in ("exactMatch", "regexMatch", "labelMatch")
                        )
                        + " == 1",
                        "message": "exactly one of exactMatch, regexMatch and labelMatch is needed",
                    }
                ]
            },
            "spec.members[].selector.exactMatch.name": {**SUBDOMAIN, "minLength": 1},
            "spec.members[].selector.regexMatch.pattern": {"minLength": 1},
            "status.nodeCount": {"minimum": 0, "format": "int64"},
        },
        unread={"status": {"conditions": {"type": "array", "items": ANYTHING}}},
        required={
            "spec": ["tier"],
            "spec.members[]": ["type"],
            "spec.members[].selector.exactMatch": ["name"],
            "spec.members[].selector.regexMatch": ["pattern"],
        },
    ),
    Definition(
        Numatopology,
        "numatopologies",
        ["numatopo"],
        rules={
            "spec.numares{}.capacity": ANY_SIZE,
            **{f"spec.cpuDetail{{}}.{name}": COUNT | ANY_SIZE for name in ("numa", "socket", "core")},
        },
    ),
    Definition(
        NodeShard,
        "nodeshards",
        ["nsh"],
        status=True,
        columns=[AGE],
        required={"": ["spec"], "spec": ["nodesDesired"]},
    ),
]


class Writer:
    """The schema of one definition. Rules that fit no field are mistakes."""

    def __init__(self, definition: Definition) -> None:
        self._definition = definition
        self._unused = set(definition.rules) | set(definition.required)

    def manifest(self) -> Schema:
        definition = self._definition
        group, _, version = definition.kind.api_version.partition("/")
        name = definition.kind.kind
        served: Schema = {
            "name": version,
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": self._root()},
        }
        if definition.status:
            served["subresources"] = {"status": {}}
        if definition.columns:
            served["additionalPrinterColumns"] = [
                {"name": title.rstrip("+"), "jsonPath": path, "type": kind}
                | ({"priority": 1} if title.endswith("+") else {})
                for title, path, kind in definition.columns
            ]
        names: Schema = {
            "kind": name,
            "listKind": f"{name}List",
            "plural": definition.plural,
            "singular": name.lower(),
        }
        if definition.short:
            names["shortNames"] = definition.short
        if self._unused:
            raise SystemExit(f"{name}: no such fields: {', '.join(sorted(self._unused))}")
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": f"{definition.plural}.{group}",
                "annotations": {"helm.sh/resource-policy": "keep"},
            },
            "spec": {
                "group": group,
                "names": names,
                "scope": "Namespaced" if definition.kind.namespaced else "Cluster",
                "versions": [served],
            },
        }

    def _root(self) -> Schema:
        kind = mi.type_info(self._definition.kind)
        assert isinstance(kind, mi.StructType)
        schema = self._struct(kind, "")
        properties = schema["properties"]
        assert isinstance(properties, dict)
        return schema | {
            "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, **properties},
        }

    def _schema(self, info: mi.Type, path: str) -> Schema:
        schema = self._bare(info, path)
        if path in self._definition.rules:
            self._unused.discard(path)
            schema = {k: v for k, v in (schema | self._definition.rules[path]).items() if v is not None}
        return schema

    def _bare(self, info: mi.Type, path: str) -> Schema:
        match info:
            case mi.Metadata(type=inner) | mi.UnionType(types=(inner, mi.NoneType())):
                return self._bare(inner, path)
            case mi.UnionType():
                return dict(QUANTITY)
            case mi.StrType():
                return {"type": "string"}
            case mi.BoolType():
                return {"type": "boolean"}
            case mi.IntType():
                return {"type": "integer", "format": "int32"}
            case mi.DateTimeType():
                return {"type": "string", "format": "date-time"}
            case mi.ListType(item_type=item):
                return {"type": "array", "items": self._schema(item, f"{path}[]")}
            case mi.DictType(value_type=value):
                return {"type": "object", "additionalProperties": self._schema(value, f"{path}{{}}")}
            case mi.StructType(cls=cls):
                if cls is ObjectMeta:
                    return {"type": "object"}
                if cls in (PodTemplateSpec, PersistentVolumeClaimSpec):
                    # Kubernetes' own, checked when pods and claims are made of them.
                    return dict(ANYTHING)
                return self._struct(info, path)
        raise SystemExit(f"{self._definition.kind.kind} {path}: no schema for {info}")

    def _struct(self, info: mi.StructType, path: str) -> Schema:
        prefix = f"{path}." if path else ""
        properties = {each.encode_name: self._schema(each.type, prefix + each.encode_name) for each in info.fields}
        schema: Schema = {"type": "object", "properties": properties | self._definition.unread.get(path, {})}
        if path in self._definition.required:
            self._unused.discard(path)
            schema["required"] = self._definition.required[path]
        if info.cls is LabelSelector:
            schema["x-kubernetes-map-type"] = "atomic"
        return schema


class Dumper(yaml.SafeDumper):
    """Without anchors for parts that occur twice."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def main() -> None:
    check = sys.argv[1:] == ["--check"]
    stale = []
    for definition in DEFINITIONS:
        manifest = Writer(definition).manifest()
        group = definition.kind.api_version.partition("/")[0]
        target = FOLDER / f"{group}_{definition.plural}.yaml"
        text = "# Written by deploy/generate_crds.py\n"
        text += yaml.dump(manifest, Dumper=Dumper, sort_keys=False, width=120)
        if check:
            if not target.exists() or target.read_text() != text:
                stale.append(target.name)
        else:
            target.write_text(text)
    if stale:
        raise SystemExit(f"not up to date, run deploy/generate_crds.py: {', '.join(stale)}")


if __name__ == "__main__":
    main()
