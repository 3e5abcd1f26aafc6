"""From manifests to PodGroups and pods, as Volcano's webhooks and the controllers of a cluster make them."""

from vcscheduler.workloads.expansion import Expansion, HeldPods, Refusal, expand

__all__ = ["Expansion", "HeldPods", "Refusal", "expand"]
