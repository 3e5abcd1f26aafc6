"""Which sub-group of a job a pod belongs to, by the policies of the PodGroup (spec 01 §4.8)."""

from __future__ import annotations

from vcscheduler.objects import SubGroupPolicy
from vcscheduler.objects.selectors import Selector, SelectorError, compile_label_selector


def policy_selector(policy: SubGroupPolicy) -> Selector | None:
    """The compiled selector; None = no filter. An invalid one selects nothing."""
    if policy.label_selector is None:
        return None
    try:
        return compile_label_selector(policy.label_selector)
    except SelectorError:
        return compile_label_selector(None)


def match_values(policy: SubGroupPolicy, selector: Selector | None, labels: dict[str, str]) -> list[str]:
    if selector is not None and not selector.matches(labels):
        return []
    values = [labels.get(key, "") for key in policy.match_label_keys]
    return values if all(values) else []


def joined(values: list[str]) -> str:
    """The values as part of a sub-job's id, hashed when long. Different values can give the same id (Quirk)."""
    text = "-".join(values)
    return text if len(text.encode()) <= 128 else _hash(text)


def _hash(text: str) -> str:
    """32-bit FNV-1a in Kubernetes' safe alphabet (spec 01 §4.8)."""
    h = 2166136261
    for byte in text.encode():
        h = ((h ^ byte) * 16777619) & 0xFFFFFFFF
    return "".join("bcdfghjklmnpqrstvwxz2456789"[ord(c) % 27] for c in str(h))
