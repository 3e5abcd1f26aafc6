"""The image: what it starts, that its kernels are compiled beforehand, what it is built from. Nothing is built here."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from deploy.shipped import DEPLOY

CONTAINERFILE = (DEPLOY / "Containerfile").read_text()
EXAMPLE = DEPLOY.parent / "examples" / "platform"


@pytest.fixture
def start() -> dict[str, Any]:
    return runpy.run_path(str(DEPLOY / "container" / "start.py"))


def stages() -> list[str]:
    return re.split(r"^FROM ", CONTAINERFILE, flags=re.MULTILINE)[1:]


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ([], ["run"]),
        (["--logtostderr", "-v=3", "2>&1"], ["run", "--logtostderr", "-v=3", "2>&1"]),
        (["simulate", "/data", "--explain"], ["simulate", "/data", "--explain"]),
    ],
)
def test_flags_alone_are_those_of_vc_scheduler(start: dict[str, Any], given: list[str], made: list[str]) -> None:
    assert start["command_line"](given) == made


def test_without_a_volume_it_starts_all_the_same_and_says_what_that_costs(
    start: dict[str, Any], tmp_path: Path
) -> None:
    baked = tmp_path / "baked"
    baked.mkdir()
    (baked / "kernel").touch()
    (tmp_path / "file").touch()
    assert "starting takes some seconds longer" in start["place_kernels"](baked, tmp_path / "file" / "kernels")
    assert start["place_kernels"](baked, tmp_path / "volume") == ""
    assert start["place_kernels"](baked, tmp_path / "volume") == "", "a container that was started again"
    assert (tmp_path / "volume" / "kernel").exists()


def test_the_baked_kernels_are_used_and_nothing_is_compiled_anew(tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.mkdir()
    shutil.copy(DEPLOY / "container" / "start.py", image)
    environment = {**os.environ, "NUMBA_CPU_NAME": "generic", "NUMBA_DEBUG_CACHE": "1"}
    bake = [sys.executable, str(DEPLOY / "container" / "bake_kernels.py"), str(EXAMPLE)]
    baking = {**environment, "NUMBA_CACHE_DIR": str(image / "kernels")}
    subprocess.run(bake, env=baking, check=True, capture_output=True)
    for each in (image, *image.rglob("*")):
        each.chmod(0o555 if each.is_dir() else 0o444)

    running = {**environment, "NUMBA_CACHE_DIR": str(tmp_path / "volume")}
    command = [sys.executable, str(image / "start.py"), "simulate", str(EXAMPLE)]
    done = subprocess.run(command, env=running, check=True, capture_output=True, text=True)
    told = [line for line in done.stdout.splitlines() if line.startswith("[cache]")]
    assert sum("data loaded from" in line for line in told) >= 4
    assert not [line for line in told if "saved" in line]
    assert "starting takes" not in done.stderr


def test_kernels_work_where_no_cache_can_be_written() -> None:
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": "/proc/nothing-can-be-made-here",
        "NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator",
    }
    code = "from vcscheduler.placement.kernels import best_of_blocks; print(best_of_blocks._cache.cache_path)"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "None"), done.stderr


def test_it_runs_as_a_user_without_rights_and_without_tools() -> None:
    build, final = stages()
    assert "USER 1000:1000" in final
    assert not re.search(r"\b(gcc|apt-get|build-essential|curl)\b", CONTAINERFILE)
    assert "pip uninstall --yes" in build
    assert re.search(r"pip uninstall --yes .*\bpip\b", final)


def test_images_are_named_without_a_registry() -> None:
    assert re.findall(r"^ARG PYTHON_IMAGE=(\S+)", CONTAINERFILE, re.MULTILINE) == ["python:3.11-slim"]
    assert [stage.split()[0] for stage in stages()] == ["${PYTHON_IMAGE}"] * 2


def test_kernels_are_compiled_for_the_processor_that_the_image_says_it_runs_on() -> None:
    build, final = stages()
    names = [re.findall(r"NUMBA_CPU_NAME=(\S+)", stage) for stage in (build, final)]
    assert names == [["generic"], ["generic"]]
    (folder,) = re.findall(r"NUMBA_CACHE_DIR=(\S+)", build)
    (entry,) = re.findall(r'ENTRYPOINT \["[^"]+", "([^"]+)"\]', final)
    assert folder == f"{Path(entry).parent}/kernels"


def test_what_is_copied_exists_and_is_sent_to_the_builder() -> None:
    sent = re.findall(r"^!(\S+)", (DEPLOY / "Containerfile.dockerignore").read_text(), re.MULTILINE)
    sources = [
        source
        for line in re.findall(r"^COPY (?!--from)(.+)", CONTAINERFILE, re.MULTILINE)
        for source in line.split()[:-1]
    ]
    for source in sources:
        assert (DEPLOY.parent / source).exists(), source
        assert any(source == each or source.startswith(f"{each}/") for each in sent), source


def test_versions_are_pinned_for_all_that_is_needed() -> None:
    lines = (DEPLOY / "container" / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    needed: list[Requirement] = runpy.run_path(str(DEPLOY / "pin_dependencies.py"))["direct_requirements"]()
    for each in needed:
        assert each.specifier.contains(pins[canonicalize_name(each.name)]), f"{each}: run deploy/pin_dependencies.py"
