"""A real Kubernetes control plane on loopback: etcd, kube-apiserver, and what else a test asks for.

No certificates of one's own: the API server signs itself, a token file makes its bearer an administrator, RBAC is on.
"""

from __future__ import annotations

import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from live.tools import NEEDED

_TOKEN = "administrator-of-a-test"
_PATIENCE = 120.0
_CONTROLLERS = (
    "namespace-controller,serviceaccount-controller,serviceaccount-token-controller,garbage-collector-controller"
)


class ControlPlane:
    """Starts in `start`, ends in `stop`; `url`, `token`, `ca` and `kubeconfig` say how to reach it."""

    def __init__(self, binaries: Path, *, controllers: bool = False, kwok: bool = True) -> None:
        self._binaries = binaries
        self._controllers = controllers
        self._kwok = kwok
        self._folder = Path(tempfile.mkdtemp(prefix="vcscheduler-live-"))
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.token = _TOKEN
        self.ca = self._folder / "certs" / "apiserver.crt"
        self.kubeconfig = self._folder / "kubeconfig"
        self.url = ""

    def start(self) -> None:
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def _start(self) -> None:
        folder = self._folder
        ports = _free_ports(5)
        etcd, peer, api, manager, kwok = ports
        (folder / "tokens.csv").write_text(f'{_TOKEN},administrator,administrator,"system:masters"\n')
        key = folder / "service-accounts.key"
        subprocess.run(
            ["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(key)],
            check=True,
            capture_output=True,
        )
        etcd_url, peer_url = f"http://127.0.0.1:{etcd}", f"http://127.0.0.1:{peer}"
        self._spawn(
            "etcd",
            f"--data-dir={folder / 'etcd'}",
            f"--listen-client-urls={etcd_url}",
            f"--advertise-client-urls={etcd_url}",
            f"--listen-peer-urls={peer_url}",
            f"--initial-advertise-peer-urls={peer_url}",
            f"--initial-cluster=default={peer_url}",
            "--log-level=error",
            "--unsafe-no-fsync",
        )
        self._wait("etcd", lambda: _answers(f"{etcd_url}/health"))
        self.url = f"https://127.0.0.1:{api}"
        # Without the service account and node life cycle controllers nobody does what these admissions wait for.
        disabled = [] if self._controllers else ["ServiceAccount"]
        disabled.append("TaintNodesByCondition")
        self._spawn(
            "kube-apiserver",
            f"--etcd-servers={etcd_url}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={api}",
            "--endpoint-reconciler-type=none",
            f"--cert-dir={folder / 'certs'}",
            "--service-cluster-ip-range=10.0.0.0/16",
            "--authorization-mode=RBAC",
            f"--token-auth-file={folder / 'tokens.csv'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            f"--disable-admission-plugins={','.join(disabled)}",
            "--allow-privileged=true",
            "--profiling=false",
        )
        self._wait("kube-apiserver", lambda: self.ca.exists() and self._is_ready())
        self.kubeconfig.write_text(self.kubeconfig_text(self.url))
        self.kubeconfig.chmod(0o600)
        if self._controllers:
            self._spawn(
                "kube-controller-manager",
                f"--kubeconfig={self.kubeconfig}",
                "--bind-address=127.0.0.1",
                f"--secure-port={manager}",
                f"--cert-dir={folder / 'manager-certs'}",
                "--leader-elect=false",
                f"--service-account-private-key-file={key}",
                f"--root-ca-file={self.ca}",
                f"--controllers={_CONTROLLERS}",
                "--kube-api-qps=2000",
                "--kube-api-burst=2000",
            )
            self._wait("kube-controller-manager", lambda: _answers(f"https://127.0.0.1:{manager}/healthz", insecure()))
        if self._kwok:
            self._spawn(
                "kwok",
                f"--kubeconfig={self.kubeconfig}",
                f"--config={Path(__file__).parent / 'stages.yaml'}",
                "--manage-all-nodes=true",
                f"--server-address=127.0.0.1:{kwok}",
                "--node-ip=127.0.0.1",
                "--node-lease-duration-seconds=0",
                "-v=WARN",
            )
            self._wait("kwok", lambda: _answers(f"http://127.0.0.1:{kwok}/healthz"))

    def kubeconfig_text(self, server: str, token: str = _TOKEN) -> str:
        """A kubeconfig for this cluster, by way of another address or as somebody else."""
        authority = f'certificate-authority: "{self.ca}"' if server.startswith("https") else ""
        return f"""apiVersion: v1
kind: Config
clusters:
- name: test
  cluster:
    server: "{server}"
    {authority}
users:
- name: test
  user: {{token: "{token}"}}
contexts:
- name: test
  context: {{cluster: test, user: test}}
current-context: test
"""

    def stop(self) -> None:
        for name in reversed(NEEDED):
            process = self._processes.pop(name, None)
            if process is None:
                continue
            process.send_signal(signal.SIGTERM)
            try:
                # An API server waits for watches to end for up to a minute; nothing here is worth that.
                process.wait(3.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _spawn(self, name: str, *arguments: str) -> None:
        with (self._folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [str(self._binaries / name), *arguments],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def log_of(self, name: str) -> str:
        path = self._folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def _wait(self, name: str, ready: Callable[[], bool]) -> None:
        end = time.monotonic() + _PATIENCE
        while not ready():
            code = self._processes[name].poll()
            if code is not None:
                raise RuntimeError(f"{name} ended with status {code}:\n{self.log_of(name)[-3000:]}")
            if time.monotonic() > end:
                raise RuntimeError(f"{name} was not ready after {_PATIENCE:g} s:\n{self.log_of(name)[-3000:]}")
            time.sleep(0.05)

    def _is_ready(self) -> bool:
        try:
            context = ssl.create_default_context(cafile=str(self.ca))
        except (ssl.SSLError, OSError):
            return False  # It is being written.
        return _answers(f"{self.url}/readyz", context, _TOKEN)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def insecure() -> ssl.SSLContext:
    """For asking a server on loopback for its health, whose certificate nobody signed."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _answers(url: str, context: ssl.SSLContext | None = None, token: str = "") -> bool:
    request = urllib.request.Request(url)
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    with (
        suppress(urllib.error.URLError, OSError),
        urllib.request.urlopen(request, timeout=2, context=context) as answer,
    ):
        return bool(answer.status == 200)
    return False
