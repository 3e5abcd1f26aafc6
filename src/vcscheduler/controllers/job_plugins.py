"""What the job plugins `env` and `svc` add to a Volcano Job (spec 07 §8.4). The others need secrets or rewrite commands
and are not played; `unplayed` names them, so that a job's owner is told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from vcscheduler.cluster.object_store import Create
from vcscheduler.objects import ConfigMap, ObjectMeta, Pod, Service, TaskSpec, VolcanoJob
from vcscheduler.objects.core import ServiceSpec
from vcscheduler.workloads.admission import changed
from vcscheduler.workloads.identity import owned_by
from vcscheduler.workloads.keys import JOB_NAME, JOB_NAMESPACE

_PLAYED: Final = ("env", "svc")
HOSTS_PATH: Final = "/etc/volcano"


@dataclass(frozen=True, slots=True)
class Additions:
    """What plugins add to one pod: see `Origin`. `volumes`: as in a manifest."""

    env: Mapping[str, str]
    mounts: Mapping[str, str]
    volumes: tuple[Mapping[str, object], ...]


def unplayed(job: VolcanoJob) -> list[str]:
    return [name for name in job.spec.plugins if name not in _PLAYED]


def played(job: VolcanoJob) -> list[str]:
    return [name for name in job.spec.plugins if name in _PLAYED]


def helpers(job: VolcanoJob, plugin: str) -> list[Create]:
    """Objects that a plugin makes beside the job's pods: `svc` a headless Service and the lists of hosts."""
    if plugin != "svc":
        return []
    labels = {JOB_NAME: job.name, JOB_NAMESPACE: job.namespace}
    owners = [owned_by(job)]
    service = Service(
        ObjectMeta(name=job.name, namespace=job.namespace, owner_references=owners), ServiceSpec(selector=labels)
    )
    hosts = ConfigMap(
        ObjectMeta(name=_config_name(job), namespace=job.namespace, owner_references=owners),
        data={f"{task.name}.host": "\n".join(_hosts(job, task)) for task in job.spec.tasks},
    )
    headless = {"clusterIP": "None", "publishNotReadyAddresses": True}
    return [Create(service, more={"spec": headless}), Create(hosts)]


def named_on_network(job: VolcanoJob, pod: Pod) -> Pod:
    """The pod with the host name under which the others find it."""
    if "svc" not in job.spec.plugins:
        return pod
    spec = pod.spec
    named = changed(spec, hostname=spec.hostname or pod.name, subdomain=spec.subdomain or job.name)
    return changed(pod, spec=named)


def additions(job: VolcanoJob, index: str) -> Additions:
    env: dict[str, str] = {}
    plugins = job.spec.plugins
    if "env" in plugins:
        env.update(VK_TASK_INDEX=index, VC_TASK_INDEX=index)
    if "svc" not in plugins:
        return Additions(env, {}, ())
    for task in job.spec.tasks:
        name = task.name.upper().replace("-", "_")
        env[f"VC_{name}_HOSTS"] = ",".join(_hosts(job, task))
        env[f"VC_{name}_NUM"] = str(task.replicas)
    volume = {"name": _config_name(job), "configMap": {"name": _config_name(job)}}
    return Additions(env, {_config_name(job): HOSTS_PATH}, (volume,))


def _config_name(job: VolcanoJob) -> str:
    return f"{job.name}-svc"


def _hosts(job: VolcanoJob, task: TaskSpec) -> list[str]:
    template = task.template.spec
    domain = template.subdomain or job.name
    return [f"{template.hostname or f'{job.name}-{task.name}-{index}'}.{domain}" for index in range(task.replicas)]
