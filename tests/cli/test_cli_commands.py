"""Commands in processes of their own: starting up, formats, exit codes, bytes that do not vary."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from cli_run import PLATFORM, ROOT, run

from vcscheduler import __version__

CASE = """
id: one
now: 2026-01-01T00:00:00Z
config: {actions: "enqueue, allocate, backfill", tiers: [{plugins: [{name: gang}, {name: predicates}]}]}
cycles: 1
objects:
  - {apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}}
  - {apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: q}, spec: {weight: 1},
     status: {state: Open}}
  - {apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: g, namespace: ns},
     spec: {minMember: 1, queue: q}}
  - {apiVersion: v1, kind: Pod, metadata: {name: p, namespace: ns, annotations: {scheduling.k8s.io/group-name: g}},
     spec: {schedulerName: volcano, containers: [{name: c, resources: {requests: {cpu: 1}}}]}, status: {phase: Pending}}
expect: [{binds: {ns/p: NODE}}]
"""


def test_version_in_all_formats() -> None:
    assert run("version").stdout.decode().startswith(f"vcscheduler {__version__} ")
    assert json.loads(run("version", "-o", "json").stdout)["version"] == __version__
    assert yaml.safe_load(run("version", "-o", "yaml").stdout)["version"] == __version__


def test_a_full_disk_is_told_in_one_line() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "vcscheduler", "version"],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            timeout=60,
        )
    assert done.returncode == 2
    assert done.stderr.decode() == "error: standard output cannot be written: No space left on device\n"


def test_the_version_is_told_without_importing_what_is_heavy() -> None:
    script = (
        "import sys; sys.argv = ['vcscheduler', 'version']\n"
        "from vcscheduler.__main__ import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted({'numpy', 'numba', 'yaml', 'msgspec', 'rich.table'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, timeout=60)
    assert done.stdout.decode().splitlines()[-1] == "[]"


def test_the_platform_shows_what_went_where_and_why_the_rest_waits() -> None:
    done = run("simulate", PLATFORM)
    text = done.stdout.decode()
    assert done.returncode == 0
    for title in ("Placed", "Waiting", "Refused: a cluster would not have accepted these objects", "Queues", "Cluster"):
        assert f"\n{title}\n" in text
    for rule in (
        "NodeAffinity",
        "NodePorts",
        "NodeUnschedulable",
        "InterPodAffinity",
        "TaintToleration",
        "Insufficient nvidia.com/gpu",
        "the largest node has 1Ti",
        "Not admitted by enqueue",
        "Queue batch would exceed its limit",
        "held back by scheduling gates",
        'did you mean "research"?',
        "v1/Secret",
    ):
        assert rule in text, rule
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 100
    assert all(line == line.rstrip() for line in text.splitlines())
    assert b"Traceback" not in done.stderr


def test_colours_only_where_they_are_wanted() -> None:
    assert "\x1b[1m" in run("simulate", PLATFORM, environment={"FORCE_COLOR": "1"}).stdout.decode()
    without = run("simulate", PLATFORM, environment={"NO_COLOR": "1"}).stdout.decode()
    assert "\x1b" not in without


def test_the_table_follows_the_width_that_is_asked_for() -> None:
    text = run("simulate", PLATFORM, environment={"COLUMNS": "70"}).stdout.decode()
    assert max(map(len, text.splitlines())) <= 70


@pytest.mark.parametrize("form", ["table", "json", "yaml"])
def test_the_same_input_gives_the_same_bytes_in_two_processes(form: str) -> None:
    first, second = (
        run("simulate", PLATFORM, "-o", form, environment={"PYTHONHASHSEED": seed}) for seed in ("1", "4242")
    )
    assert first.returncode == second.returncode == 0
    assert first.stdout == second.stdout
    assert first.stderr == second.stderr


def test_random_ties_follow_their_seed() -> None:
    def placed(*more: str) -> bytes:
        return run("simulate", PLATFORM, "-o", "json", "--tie-break", "random", *more).stdout

    assert placed("--seed", "1") == placed("--seed", "1")
    assert placed("--seed", "1") != placed("--seed", "2")


def test_a_seed_without_random_ties_is_a_mistake() -> None:
    done = run("simulate", PLATFORM, "--seed", "1")
    assert done.returncode == 2
    assert b"--seed has no effect without --tie-break random" in done.stderr


def test_json_and_yaml_say_the_same() -> None:
    from_json = json.loads(run("simulate", PLATFORM, "-o", "json").stdout)
    from_yaml = yaml.safe_load(run("simulate", PLATFORM, "-o", "yaml").stdout)
    assert from_json == from_yaml
    assert from_json["settled"] is True
    assert from_json["summary"]["podsPlaced"] + from_json["summary"]["podsWaiting"] == from_json["summary"]["pods"]
    placed = {pod for job in from_json["jobs"] for pod in job["placed"]}
    assert len(placed) == from_json["summary"]["podsPlaced"]


def test_manifests_come_from_standard_input_too() -> None:
    listing = {
        "apiVersion": "v1",
        "kind": "List",
        "items": [
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": "n1"},
                "status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "10"}},
            },
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "p", "namespace": "default"},
                "spec": {
                    "schedulerName": "mine",
                    "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
                },
            },
        ],
    }
    done = run("simulate", "-", "--scheduler-name", "mine", "-o", "json", stdin=json.dumps(listing).encode())
    [job] = json.loads(done.stdout)["jobs"]
    assert job["placed"] == {"default/p": "n1"}


def test_the_sampling_of_the_reference_can_be_asked_for() -> None:
    done = run("simulate", PLATFORM, "--percentage-nodes-to-find", "10", "--minimum-feasible-nodes", "1", "-o", "json")
    assert done.returncode == 0
    exact = json.loads(run("simulate", PLATFORM, "-o", "json").stdout)
    assert json.loads(done.stdout)["jobs"] != exact["jobs"]


def test_the_nodes_that_were_refused_can_be_named() -> None:
    text = run("simulate", PLATFORM, "--explain").stdout.decode()
    assert "on a100-[0-5]" in text


def test_a_configuration_of_one_s_own() -> None:
    done = run("simulate", PLATFORM, "--config", ROOT / "examples" / "volcano-scheduler.conf", "-o", "json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["settled"] is True


def test_a_trace_is_decided_and_says_what_was_rounded(tmp_path: Path) -> None:
    nodes, pods = tmp_path / "nodes.csv", tmp_path / "pods.csv"
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\nn0,8000,8192,1,T4\n")
    pods.write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\np0,1000,1024,1,500,T4\np1,1000,1024,1,500,P100\n"
    )
    done = run("simulate", "--trace", "openb", "--nodes-csv", nodes, "--pods-csv", pods)
    text = done.stdout.decode()
    assert done.returncode == 0
    assert "2 of 2 pods ask for a part of one GPU" in text
    assert "1 pod placed on 1 node" in text
    assert b"decided in" in done.stderr


def test_a_reader_that_leaves_early_is_no_error() -> None:
    command = f"{sys.executable} -m vcscheduler simulate {PLATFORM} -o yaml | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=60, check=True)
    assert done.stdout.startswith(b"cycles: ")
    assert b"Traceback" not in done.stderr


def test_verify_tells_what_passed_and_fails_with_1(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(CASE.replace("NODE", "n1"))
    bad.write_text(CASE.replace("NODE", "n2").replace("id: one", "id: two"))
    done = run("verify", good)
    assert (done.returncode, done.stdout.decode().splitlines()[-1]) == (0, "1 passed, 0 failed")
    report = tmp_path / "report.xml"
    done = run("verify", tmp_path, "--junit", report, "-v")
    lines = done.stdout.decode().splitlines()
    assert done.returncode == 1
    assert lines[-1] == "1 passed, 1 failed"
    assert "two: cycle 1: binds" in lines
    assert any("expected n2, found n1" in line for line in lines)
    assert "two" in report.read_text()
    listing = tmp_path / "list.txt"
    listing.write_text("good.yaml\n")
    assert run("verify", "--from-file", listing).stdout == b"1 passed, 0 failed\n"
    assert json.loads(run("verify", tmp_path, "-k", "good", "-o", "json").stdout)["passed"] == 1


def test_config_check_names_the_place_and_what_was_meant(tmp_path: Path) -> None:
    file = tmp_path / "a.conf"
    file.write_text('actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: gangg\n')
    done = run("config", "check", file)
    assert done.returncode == 2
    assert done.stdout.decode().splitlines()[0].startswith(f"{file}:4:11: error: tiers[0].plugins[0].name: ")
    assert "did you mean 'gang'?" in done.stdout.decode()


def test_config_check_is_content_with_warnings(tmp_path: Path) -> None:
    file = tmp_path / "a.conf"
    file.write_text(
        'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: binpack\n    arguments: {binpack.wieght: 3}\n'
        "  - name: gang\n  - name: predicates\n"
    )
    done = run("config", "check", file, "-o", "json")
    assert done.returncode == 0
    [finding] = json.loads(done.stdout)
    assert (finding["level"], finding["line"]) == ("warning", 5)
    assert "binpack.weight" in finding["message"]


def test_config_check_reads_arguments_of_actions_and_numbers() -> None:
    text = (
        'actions: "enqueue, allocate"\n'
        "configurations:\n- name: allocate\n  arguments: {predicateErrorCacheEnable: maybe}\n"
        "tiers:\n- plugins:\n  - name: overcommit\n    arguments: {overcommit-factor: high}\n"
        "  - name: gang\n  - name: predicates\n"
    )
    lines = run("config", "check", "-", stdin=text.encode()).stdout.decode().splitlines()
    assert lines[0].startswith("<stdin>:4:42: warning: configurations[0].arguments.predicateErrorCacheEnable: ")
    assert lines[1].startswith("<stdin>:8:36: warning: tiers[0].plugins[0].arguments.overcommit-factor: ")
    assert lines[2:] == ["0 errors, 2 warnings"]


def test_the_example_configuration_is_in_order() -> None:
    done = run("config", "check", ROOT / "examples" / "volcano-scheduler.conf")
    assert (done.returncode, done.stdout) == (0, b"0 errors, 0 warnings\n")


def test_evictions_are_shown_with_the_opinion_of_each_rule(tmp_path: Path) -> None:
    stored = 'creationTimestamp: "2026-01-01T00:00:00Z"'
    running = "".join(
        f"""---
apiVersion: v1
kind: Pod
metadata: {{name: low-{i}, uid: l{i}, {stored}, annotations: {{scheduling.k8s.io/group-name: low}}}}
spec: {{schedulerName: volcano, nodeName: n1, containers: [{{name: c, resources: {{requests: {{cpu: 2}}}}}}]}}
status: {{phase: Running}}
"""
        for i in range(2)
    )
    manifests = (
        f"""
apiVersion: v1
kind: Node
metadata: {{name: n1}}
status: {{allocatable: {{cpu: 4, memory: 16Gi, pods: 110}}}}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {{name: high}}
value: 100
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {{name: low, namespace: default, uid: l, {stored}}}
spec: {{minMember: 1, queue: default}}
status: {{phase: Running}}
"""
        + running
        + """---
apiVersion: v1
kind: Pod
metadata: {name: high}
spec: {schedulerName: volcano, priorityClassName: high, containers: [{name: c, resources: {requests: {cpu: 2}}}]}
"""
    )
    conf = tmp_path / "preempt.conf"
    conf.write_text(
        'actions: "enqueue, allocate, preempt"\n'
        "tiers:\n"
        "- plugins: [{name: priority}, {name: gang}]\n"
        "- plugins: [{name: predicates}, {name: nodeorder}]\n"
    )
    done = run("simulate", "-", "--config", conf, "--why-evicted", stdin=manifests.encode())
    text = done.stdout.decode()
    assert "frees cpu 2, for default/high, which asks cpu 2" in text
    assert "gang      its job has 2 ready tasks and needs 1" in text
    assert text.rstrip().endswith("1 ran before; 1 pod evicted.")
