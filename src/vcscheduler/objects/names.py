"""The syntax rules of Kubernetes names: objects, labels, qualified keys.

Each check returns what is wrong as the end of a sentence ("must consist of ..."), or "" when all is well.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_LABEL_1123: Final = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", re.ASCII)
_SUBDOMAIN_1123: Final = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*", re.ASCII)
_QUALIFIED: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?", re.ASCII)

_LABEL_RULE: Final = "must consist of lower case letters, digits and '-', and start and end with a letter or digit"
_SUBDOMAIN_RULE: Final = (
    "must consist of lower case letters, digits, '-' and '.', and each part between dots must start and end "
    "with a letter or digit"
)
_QUALIFIED_RULE: Final = "must consist of letters, digits, '-', '_' and '.', and start and end with a letter or digit"


@lru_cache(maxsize=4096)
def dns_label_problem(name: str) -> str:
    """What keeps `name` from being a DNS-1123 label (namespaces, containers, Volcano tasks)."""
    if len(name) > 63:
        return "must be no longer than 63 characters"
    return "" if _LABEL_1123.fullmatch(name) else _LABEL_RULE


def dns_subdomain_problem(name: str) -> str:
    """What keeps `name` from being a DNS-1123 subdomain (most object names)."""
    if len(name) > 253:
        return "must be no longer than 253 characters"
    return "" if _SUBDOMAIN_1123.fullmatch(name) else _SUBDOMAIN_RULE


@lru_cache(maxsize=16384)
def qualified_name_problem(key: str) -> str:
    """What keeps `key` from being a qualified name, `[<DNS subdomain>/]<name>`, as label keys are."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        return "must have at most one '/'"
    if slash and (not prefix or dns_subdomain_problem(prefix)):
        return f"must have a valid prefix before '/': it {_SUBDOMAIN_RULE}"
    if not name or len(name) > 63:
        return "must have a name part of 1 to 63 characters"
    return "" if _QUALIFIED.fullmatch(name) else _QUALIFIED_RULE


@lru_cache(maxsize=16384)
def label_value_problem(value: str) -> str:
    """What keeps `value` from being a label value: empty, or at most 63 characters of a restricted set."""
    if not value:
        return ""
    if len(value) > 63:
        return "must be no longer than 63 characters"
    return "" if _QUALIFIED.fullmatch(value) else _QUALIFIED_RULE
