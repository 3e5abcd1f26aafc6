"""``vcscheduler explain`` in processes of its own: the words, the JSON, what cannot be asked."""

from __future__ import annotations

import json

from cli_run import PLATFORM, run


def test_a_waiting_pod_is_told_rule_by_rule() -> None:
    done = run("explain", "pod", "event-log-4", PLATFORM)
    text = done.stdout.decode()
    assert done.returncode == 0
    assert text.startswith("Pod production/event-log-4 waits.\n  StatefulSet production/event-log, queue production")
    for words in ("Rules about nodes: 0 of 24 would take it", "InterPodAffinity", "a100-[0-5]", "each was tried"):
        assert words in text
    assert max(map(len, text.splitlines())) <= 100


def test_a_job_is_told_with_its_gang() -> None:
    text = run("explain", "job", "climate", "-n", "research", PLATFORM).stdout.decode()
    assert "The gang needs 8 at once and has 0: 8 more must find room together." in text
    assert "cpu-8  lacks cpu 10" in text
    assert "were gone: it would still wait" in " ".join(text.split())


def test_a_node_as_given_and_after() -> None:
    given, after = (
        json.loads(run("explain", "node", "t4-3", PLATFORM, "-o", "json", *more).stdout) for more in ([], ["--after"])
    )
    assert (given["used"]["cpu"], given["pods"], given["takesPods"]) == ("0", [], True)
    assert after["used"]["nvidia.com/gpu"] == "3"
    assert "research/notebook-alice" in [each["pod"] for each in after["pods"]]


def test_json_is_the_same_in_every_process() -> None:
    first, second = (
        run("explain", "job", "spark-clean", PLATFORM, "-o", "json", environment={"PYTHONHASHSEED": seed}).stdout
        for seed in ("1", "99")
    )
    assert first == second
    driver = json.loads(first)["waiting"][0]
    assert driver["cause"] == "QueueLimit"
    assert driver["changes"] == [
        {
            "if": "queue batch might hold cpu 8 more",
            "helps": True,
            "nodes": ["t4-0"],
            "outcome": "it would run on t4-0",
        }
    ]


def test_what_is_not_there_is_named_with_the_nearest() -> None:
    done = run("explain", "pod", "event-log-9", PLATFORM)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b'error: there is no pod "event-log-9"; did you mean "event-log-' in done.stderr
    done = run("explain", "node", "t4-33", PLATFORM)
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)


def test_files_and_a_live_cluster_exclude_one_another() -> None:
    assert b"with --live the cluster is read" in run("explain", "pod", "x", PLATFORM, "--live").stderr
    assert b"add --live" in run("explain", "pod", "x", PLATFORM, "--context", "y").stderr
    assert b"nothing to look at" in run("explain", "pod", "x").stderr


def test_no_cluster_to_reach_is_one_message() -> None:
    done = run("explain", "pod", "x", "--live", "--kubeconfig", "/no/such/file")
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr
    assert done.stderr.startswith(b"error: --kubeconfig /no/such/file: no such file")
