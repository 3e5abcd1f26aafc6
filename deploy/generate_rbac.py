"""Writes the roles of the manifests and of the chart from `vcscheduler.cluster.permissions`.

python deploy/generate_rbac.py            write the files
python deploy/generate_rbac.py --check    fail if they are not up to date
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from vcscheduler.cluster.permissions import (
    CONTROLLER_PERMISSIONS,
    LEASE_PERMISSIONS,
    REQUIRED_PERMISSIONS,
    Permission,
)

DEPLOY = Path(__file__).parent
NOTE = "Written by deploy/generate_rbac.py from src/vcscheduler/cluster/permissions.py"
NAME = "vcscheduler"
CHART_NAME = "{{ .Release.Name }}"
NAMESPACE = "vcscheduler-system"
CHART_NAMESPACE = "{{ .Release.Namespace }}"
LABELS = "    app.kubernetes.io/name: vcscheduler\n"
CHART_LABELS = (
    LABELS
    + "    app.kubernetes.io/instance: {{ .Release.Name }}\n    app.kubernetes.io/managed-by: {{ .Release.Service }}\n"
)


def _list(words: Iterable[str]) -> str:
    return ", ".join(f'"{word}"' for word in words)


def _rules(permissions: Iterable[Permission]) -> str:
    lines = []
    for each in permissions:
        lines.append(f"# {each.why}")
        lines.append(f"- apiGroups: [{_list((each.group,))}]")
        lines.append(f"  resources: [{_list(each.resources)}]")
        lines.append(f"  verbs: [{_list(each.verbs)}]")
    return "\n".join(lines)


def _role(
    kind: str, name: str, namespace: str, labels: str, permissions: Iterable[Permission], account: str = ""
) -> str:
    """A role and its binding to the service account, which has the same name unless `account` is given; cluster-wide
    ones have no namespace of their own."""
    own = f"  namespace: {namespace}\n" if kind == "Role" else ""
    return f"""apiVersion: rbac.authorization.k8s.io/v1
kind: {kind}
metadata:
  name: {name}
{own}  labels:
{labels}rules:
{_rules(permissions)}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {kind}Binding
metadata:
  name: {name}
{own}  labels:
{labels}roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {kind}
  name: {name}
subjects:
- kind: ServiceAccount
  name: {account or name}
  namespace: {namespace}
"""


def _roles(name: str, namespace: str, labels: str) -> str:
    cluster = _role("ClusterRole", name, namespace, labels, REQUIRED_PERMISSIONS)
    return f"{cluster}---\n{_role('Role', name, namespace, labels, LEASE_PERMISSIONS)}"


def _controllers(name: str, namespace: str, labels: str) -> str:
    return _role("ClusterRole", f"{name}-controllers", namespace, labels, CONTROLLER_PERMISSIONS, name)


def files() -> dict[Path, str]:
    """What each file must hold."""
    return {
        DEPLOY / "kubernetes" / "20-roles.yaml": f"# {NOTE}\n{_roles(NAME, NAMESPACE, LABELS)}",
        DEPLOY / "chart" / "vcscheduler" / "templates" / "roles.yaml": (
            f"{{{{- /* {NOTE} */ -}}}}\n{_roles(CHART_NAME, CHART_NAMESPACE, CHART_LABELS)}"
        ),
        DEPLOY / "controllers" / "roles.yaml": f"# {NOTE}\n{_controllers(NAME, NAMESPACE, LABELS)}",
        DEPLOY / "chart" / "vcscheduler" / "templates" / "controller-roles.yaml": (
            f"{{{{- /* {NOTE} */ -}}}}\n{{{{- if .Values.controllers }}}}\n"
            f"{_controllers(CHART_NAME, CHART_NAMESPACE, CHART_LABELS)}{{{{- end }}}}\n"
        ),
    }


def main() -> None:
    if sys.argv[1:] == ["--check"]:
        stale = [path.name for path, text in files().items() if not path.exists() or path.read_text() != text]
        if stale:
            sys.exit(f"not up to date, run deploy/generate_rbac.py: {', '.join(stale)}")
        return
    for path, text in files().items():
        path.write_text(text)


if __name__ == "__main__":
    main()
