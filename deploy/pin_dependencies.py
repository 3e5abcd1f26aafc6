"""Writes the versions of this environment's packages to ``deploy/container/constraints.txt``, for the image.

    .venv/bin/python deploy/pin_dependencies.py

Only what `vcscheduler[live]` needs is listed: its dependencies, theirs, and so on.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
FILE = ROOT / "deploy" / "container" / "constraints.txt"
HEADER = "# What the image holds: the versions that the tests ran with. Written by deploy/pin_dependencies.py\n"


def direct_requirements() -> list[Requirement]:
    """What pyproject.toml asks for with the extra `live`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [Requirement(each) for each in (*project["dependencies"], *project["optional-dependencies"]["live"])]


def _applies(requirement: Requirement, extras: Iterable[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras))


def installed(requirements: Iterable[Requirement]) -> dict[str, str]:
    """Name -> version of all packages that these lead to."""
    versions: dict[str, str] = {}
    waiting = list(requirements)
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name in versions:
            continue
        package = distribution(name)
        versions[name] = package.version
        further = map(Requirement, package.requires or ())
        waiting.extend(each for each in further if _applies(each, requirement.extras))
    return versions


def main() -> None:
    versions = installed(direct_requirements())
    FILE.write_text(HEADER + "".join(f"{name}=={version}\n" for name, version in sorted(versions.items())))


if __name__ == "__main__":
    main()
