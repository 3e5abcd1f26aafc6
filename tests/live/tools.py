"""Finds or builds the programs that live tests run: etcd, kube-apiserver, kube-controller-manager, kwok.

    python tests/live/tools.py      prints the folder that holds them

They are looked for where ``KUBEBUILDER_ASSETS`` points, then in the cache folder. With Go they are built into the
cache folder, once for each version of ``go/go.mod`` (6 to 15 minutes on two cores). Without both the exit status is 3.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

NEEDED = ("etcd", "kube-apiserver", "kube-controller-manager", "kwok")
MODULE = Path(__file__).parent / "go"
KUBERNETES = ("k8s.io/kubernetes/cmd/kube-apiserver", "k8s.io/kubernetes/cmd/kube-controller-manager")
KWOK = "sigs.k8s.io/kwok/cmd/kwok"
ETCD = "go.etcd.io/etcd/server/v3"
NOT_AVAILABLE = 3


def complete(folder: Path) -> bool:
    return all((folder / each).is_file() for each in NEEDED)


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    digest = hashlib.sha256((MODULE / "go.mod").read_bytes()).hexdigest()[:16]
    return Path(base) / "vcscheduler" / "control-plane" / digest


def find() -> Path | None:
    named = os.environ.get("KUBEBUILDER_ASSETS")
    if named:
        folder = Path(named)
        if complete(folder):
            return folder
        missing = [each for each in NEEDED if not (folder / each).is_file()]
        print(f"KUBEBUILDER_ASSETS={named} lacks {', '.join(missing)}", file=sys.stderr)
    folder = cache_folder()
    return folder if complete(folder) else None


def build(folder: Path) -> None:
    """Build all of them; the folder appears only when it is complete."""
    print(f"building the control plane for live tests into {folder}, this takes a while", file=sys.stderr)
    started = time.monotonic()
    rough = folder.with_name(f"{folder.name}.{os.getpid()}")
    rough.mkdir(parents=True)
    try:
        # A server that does not know its own version is not accepted by its clients.
        version = _go("list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes").strip()
        major, minor = version.removeprefix("v").split(".")[:2]
        stamps = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
        stamps |= {"gitTreeState": "clean", "gitCommit": "0" * 40}
        flags = ["-s", "-w"]
        for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"):
            flags += [f"-X {package}.{name}={value}" for name, value in stamps.items()]
        _go("build", "-trimpath", "-ldflags", " ".join(flags), "-o", f"{rough}/", *KUBERNETES, KWOK)
        _go("build", "-trimpath", "-ldflags", "-s -w", "-o", str(rough / "etcd"), ETCD)
        shutil.rmtree(folder, ignore_errors=True)
        rough.rename(folder)
    finally:
        shutil.rmtree(rough, ignore_errors=True)
    print(f"built in {time.monotonic() - started:.0f} s", file=sys.stderr)


def _go(*arguments: str) -> str:
    return subprocess.run(["go", *arguments], cwd=MODULE, check=True, stdout=subprocess.PIPE, text=True).stdout


def main() -> int:
    folder = find()
    if folder is None:
        if shutil.which("go") is None:
            print("neither Go nor the programs of a control plane are here (see KUBEBUILDER_ASSETS)", file=sys.stderr)
            return NOT_AVAILABLE
        folder = cache_folder()
        try:
            build(folder)
        except subprocess.CalledProcessError as error:
            print(
                f"building the control plane failed: {' '.join(error.cmd[:2])} ended with {error.returncode}",
                file=sys.stderr,
            )
            return 1
    print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
