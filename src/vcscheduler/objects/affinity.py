# ruff: noqa: RUF012 - msgspec gives every instance its own copy of an empty list or dict default.
"""Node selectors, (anti-)affinity terms and topology spread constraints of a pod."""

from __future__ import annotations

from msgspec import field

from vcscheduler.objects.meta import ApiStruct, LabelSelector


class NodeSelectorRequirement(ApiStruct):
    key: str = ""
    operator: str = ""
    values: list[str] = []


class NodeSelectorTerm(ApiStruct):
    """All requirements must hold; a term without any matches nothing."""

    match_expressions: list[NodeSelectorRequirement] = []
    match_fields: list[NodeSelectorRequirement] = []


class NodeSelector(ApiStruct):
    """Any term may match; without terms no node matches."""

    node_selector_terms: list[NodeSelectorTerm] = []


class PreferredSchedulingTerm(ApiStruct):
    weight: int = 0
    preference: NodeSelectorTerm = field(default_factory=NodeSelectorTerm)


class NodeAffinity(ApiStruct):
    required: NodeSelector | None = field(name="requiredDuringSchedulingIgnoredDuringExecution", default=None)
    preferred: list[PreferredSchedulingTerm] = field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default_factory=list
    )


class PodAffinityTerm(ApiStruct):
    label_selector: LabelSelector | None = None
    topology_key: str = ""
    namespaces: list[str] = []
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] = []
    mismatch_label_keys: list[str] = []


class WeightedPodAffinityTerm(ApiStruct):
    weight: int = 0
    pod_affinity_term: PodAffinityTerm = field(default_factory=PodAffinityTerm)


class PodAffinity(ApiStruct):
    """The terms of `podAffinity` or of `podAntiAffinity`; both have the same shape."""

    required: list[PodAffinityTerm] = field(name="requiredDuringSchedulingIgnoredDuringExecution", default_factory=list)
    preferred: list[WeightedPodAffinityTerm] = field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default_factory=list
    )


class Affinity(ApiStruct):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(ApiStruct):
    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] = []
