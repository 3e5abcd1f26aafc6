"""``vcscheduler run`` as a process of its own, over the control plane of a test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from live.kubeenv import _free_ports

_TICKS = os.sysconf("SC_CLK_TCK")


class Replica:
    """One process. `log` is what it wrote to standard error, all starts of it together."""

    def __init__(self, kubeconfig: Path, log: Path, *flags: str, configuration: str = "") -> None:
        self._log = log
        self._port, debug = _free_ports(2)
        self._command = [
            sys.executable,
            "-m",
            "vcscheduler",
            "run",
            f"--kubeconfig={kubeconfig}",
            "--enable-metrics",
            f"--listen-address=127.0.0.1:{self._port}",
            f"--debug-address=127.0.0.1:{debug}",
            *flags,
        ]
        if configuration:
            file = log.with_suffix(".conf")
            file.write_text(configuration)
            self._command.append(f"--scheduler-conf={file}")
        self._process: subprocess.Popen[bytes] | None = None
        self._said_before = 0
        self.started = 0.0

    def start(self) -> None:
        assert not self.runs
        self.started = time.monotonic()
        self._said_before = len(self.log)
        with self._log.open("ab") as log:
            environment = {**os.environ, "PYTHONPATH": "", "PYTHONDONTWRITEBYTECODE": ""}
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
            )

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def code(self) -> int | None:
        """With which it ended."""
        return self._process.poll() if self._process is not None else None

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    @property
    def schedules(self) -> bool:
        """Whether it has got so far since it was last started."""
        return self.runs and "scheduling begins" in self.log[self._said_before :]

    @property
    def answers(self) -> bool:
        """Whether it has got so far as to serve its metrics, and to end in order when asked to."""
        try:
            return bool(self.metrics())
        except OSError:
            return False

    def signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """At once, as a machine that goes down."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def end(self, timeout: float = 25.0) -> int:
        """As Kubernetes does it; the exit code."""
        assert self._process is not None
        if self.runs:
            self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"it did not end within {timeout:g} s:\n{self.log[-3000:]}") from None

    # --- what it costs and says ---------------------------------------------------------------------------------------

    @property
    def cpu_seconds(self) -> float:
        """Of all of its threads so far."""
        assert self._process is not None
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    @property
    def resident_bytes(self) -> int:
        assert self._process is not None
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        (line,) = [each for each in lines if each.startswith("VmRSS:")]
        return int(line.split()[1]) * 1024

    def metrics(self) -> dict[str, float]:
        """Samples by name and labels as they are written, ``name{label="value"}``."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=10) as answer:
            return samples(answer.read().decode())


def samples(text: str) -> dict[str, float]:
    """Of Prometheus' text form."""
    found = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            found[name] = float(value)
    return found
