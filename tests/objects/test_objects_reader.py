"""Reading manifests: files, directories, lists, streams; what is counted, warned about, filled in."""

import errno
import io
import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from vcscheduler.objects import (
    Container,
    LabelSelector,
    ManifestError,
    Node,
    NodeSpec,
    NodeStatus,
    ObjectMeta,
    Pod,
    PodGroup,
    PodSpec,
    Queue,
    QueueSpec,
    ResourceRequirements,
    Taint,
    VolcanoJob,
    from_value,
    read_manifest_text,
    read_manifests,
    to_json,
    to_manifest,
    to_yaml,
)
from vcscheduler.objects import reader as reader_module

NODE = "apiVersion: v1\nkind: Node\nmetadata:\n  name: {}\n"
POD = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {}\nspec:\n  containers:\n  - name: main\n"


def test_directories_are_read_recursively_in_order(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / "b" / "c.yml").write_text(NODE.format("n3"))
    (tmp_path / "a.yaml").write_text(NODE.format("n1") + "---\n" + NODE.format("n2"))
    (tmp_path / "z.json").write_text(json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n4"}}))
    (tmp_path / "notes.txt").write_text("not a manifest")
    (tmp_path / ".git" / "x.yaml").write_text("not: [a manifest")
    found = read_manifests([tmp_path])
    assert [(each.obj.name, str(each.origin)) for each in found] == [
        ("n1", f"{tmp_path}/a.yaml:1"),
        ("n2", f"{tmp_path}/a.yaml:6"),
        ("n3", f"{tmp_path}/b/c.yml:1"),
        ("n4", f"{tmp_path}/z.json:1"),
    ]


def test_standard_input_and_files_can_be_mixed(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(NODE.format("n1"))
    found = read_manifests(["-", file], stdin=io.BytesIO(NODE.format("n0").encode()))
    assert [str(each.origin) for each in found] == ["<stdin>:1", f"{file}:1"]


def test_lists_and_json_streams() -> None:
    pods = {"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "p"}, "spec": {"containers": [{}]}}]}
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "q"}}
    nested = {"apiVersion": "v1", "kind": "List", "items": [pods, queue]}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    found = read_manifest_text(json.dumps(nested) + "\n" + json.dumps(node))
    assert [(type(each.obj), each.obj.key) for each in found] == [(Pod, "default/p"), (Queue, "q"), (Node, "n")]
    assert [str(each.origin) for each in found] == ["<text>:1 (item 1)", "<text>:1 (item 2)", "<text>:2"]


def test_empty_documents_and_empty_lists_are_nothing() -> None:
    assert read_manifest_text("---\n---\n# only a comment\n---\napiVersion: v1\nkind: List\nitems: []\n").objects == []


def test_namespaced_objects_land_in_default() -> None:
    found = read_manifest_text(POD.format("a") + "---\n" + NODE.format("n1"))
    assert [each.namespace for each in found.objects] == ["default", ""]


def test_generated_names_count_up() -> None:
    text = POD.replace("name: {}", "generateName: run-")
    assert [each.name for each in read_manifest_text(f"{text}---\n{text}").objects] == ["run-00001", "run-00002"]


def test_kinds_that_play_no_part_are_counted() -> None:
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n---\n"
    event = "apiVersion: v1\nkind: Event\nmetadata: {name: e}\n---\n"
    found = read_manifest_text(secret + event + secret)
    assert (found.objects, found.ignored, found.warnings) == ([], {"v1/Secret": 2, "v1/Event": 1}, [])


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (
            "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: g}\nspec:\n  minmember: 3\n",
            'm.yaml:5: PodGroup default/g: spec.minmember: unknown field, ignored; did you mean "minMember"?',
        ),
        (
            "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: q}\nspec:\n  capabilities: {}\n",
            'm.yaml:5: Queue q: spec.capabilities: unknown field, ignored; did you mean "capability"?',
        ),
        (
            POD.format("a") + "    resource: {requests: {cpu: 1}}\n",
            'm.yaml:8: Pod default/a: spec.containers[0].resource: unknown field, ignored; did you mean "resources"?',
        ),
        (
            "apiVersion: scheduling.volcano.sh/v1\nkind: Queue\nmetadata: {name: q}\n",
            "objects of kind scheduling.volcano.sh/v1/Queue are ignored; "
            "did you mean scheduling.volcano.sh/v1beta1/Queue?",
        ),
        (
            "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Podgroup\nmetadata: {name: q}\n",
            "objects of kind scheduling.volcano.sh/v1beta1/Podgroup are ignored; "
            "did you mean scheduling.volcano.sh/v1beta1/PodGroup?",
        ),
        (
            "apiVersion: v1\nkind: Node\nmetadata: {name: n, namespace: kube}\n".replace("name: n,", "name: n1,"),
            "m.yaml:1: Node n1: metadata.namespace: ignored, objects of this kind belong to no namespace",
        ),
    ],
)
def test_what_is_probably_not_meant_is_warned_about(text: str, warning: str) -> None:
    assert read_manifest_text(text, "m.yaml").warnings == [warning]


def test_fields_of_the_api_that_nothing_reads_are_no_misspellings() -> None:
    text = POD.format("a") + "    env: []\n    volumeMounts: []\n  serviceAccount: x\n  hostIPC: true\n"
    assert read_manifest_text(text).warnings == []


def test_numbers_are_accepted_as_quantities() -> None:
    text = POD.format("a") + "    resources: {requests: {cpu: 2, memory: 1.5e9}}\n"
    assert read_manifest_text(text).of(Pod)[0].spec.containers[0].resources.requests == {"cpu": 2, "memory": 1.5e9}


def test_null_means_absent_in_yaml_and_json() -> None:
    value = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j", "labels": None, "creationTimestamp": None},
        "spec": {
            "queue": None,
            "tasks": [{"replicas": 1, "name": None, "template": {"spec": {"containers": [{"resources": None}]}}}],
        },
        "status": None,
    }
    for text in (json.dumps(value), to_large_list([value])):
        (job,) = read_manifest_text(text).of(VolcanoJob)
        assert (job.metadata.labels, job.spec.queue, job.spec.tasks[0].name) == ({}, "", "")


def to_large_list(values: list[dict[str, object]]) -> str:
    """A JSON list large enough to take the quick road."""
    padding = {"annotations": {"padding": "x" * 300_000}}
    return json.dumps({"apiVersion": "v1", "kind": "List", "metadata": padding, "items": values})


def node_value(name: str, **status: object) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def test_large_json_gives_the_same_as_small_json() -> None:
    values = [node_value("n1", capacity={"cpu": "4"}), {"apiVersion": "v1", "kind": "Secret"}, node_value("n2")]
    small = read_manifest_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": values}))
    large = read_manifest_text(to_large_list(values))
    assert large.objects == small.objects
    assert large.ignored == small.ignored == {"v1/Secret": 1}
    assert [str(each.origin) for each in large] == ["<text> (item 1)", "<text> (item 3)"]


def test_large_json_does_not_build_plain_data(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the document reader was asked")

    monkeypatch.setattr(reader_module, "load_documents", refuse)
    assert len(read_manifest_text(to_large_list([node_value("n1")]))) == 1


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (node_value("N2"), 'Node N2: metadata.name: found "N2", a name must consist of lower case letters'),
        (node_value("n2", capacity=3), "Node n2: status.capacity: found 3, allowed is a mapping"),
        (node_value("n1"), "Node n1: metadata.name: the same object was already given at <text>"),
        ({"kind": "Node"}, ": apiVersion: missing, every object needs apiVersion and kind"),
    ],
)
def test_mistakes_in_large_json_have_a_line_too(value: dict[str, object], message: str) -> None:
    with pytest.raises(ManifestError) as caught:
        read_manifest_text(to_large_list([node_value("n1"), value]))
    assert (caught.value.line, caught.value.column > 300_000) == (1, True)
    assert f"{caught.value.obj}: {caught.value.field}: {caught.value.detail}".startswith(message)


def test_mistakes_in_very_large_json_name_the_item(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_module, "_LARGEST_LOCATED", 1000)
    with pytest.raises(ManifestError) as caught:
        read_manifest_text(to_large_list([node_value("n1"), node_value("n1")]), "dump.json")
    assert str(caught.value) == (
        "dump.json (item 2): Node n1: metadata.name: the same object was already given at dump.json (item 1)"
    )


def test_broken_large_json_says_where() -> None:
    with pytest.raises(
        ManifestError, match=r"^<text>:2:1: expected ',' or '}' in the mapping that begins with '{' in line 1$"
    ):
        read_manifest_text(to_large_list([node_value("n1")])[:-3])


def test_missing_paths_and_empty_directories_are_refused(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(NODE.format("n1"))
    with pytest.raises(ManifestError) as caught:
        read_manifests([tmp_path / "clustr.yaml"])
    assert str(caught.value) == (f'{tmp_path}/clustr.yaml: no such file or directory; did you mean "cluster.yaml"?')
    (tmp_path / "empty").mkdir()
    with pytest.raises(ManifestError, match=r"no manifests in this directory; they end in \.yaml, \.yml, \.json$"):
        read_manifests([tmp_path / "empty"])
    with pytest.raises(ManifestError, match="there is no standard input to read from"):
        read_manifests(["-"])


def test_errors_carry_their_parts() -> None:
    with pytest.raises(ManifestError) as caught:
        read_manifest_text(NODE.format("n1") + "spec:\n  taints:\n  - key: a\n    effect: No\n", "n.yaml")
    error = caught.value
    assert (error.source, error.line, error.column, error.obj, error.field) == (
        "n.yaml",
        8,
        13,
        "Node n1",
        "spec.taints[0].effect",
    )


def objects() -> list[Node | Pod | Queue | PodGroup]:
    return [
        Node(
            metadata=ObjectMeta(name="n1", labels={"on": "true", "n": "1e3"}, annotations={"a": "0x10", "t": "12:30"}),
            spec=NodeSpec(taints=[Taint("a", "b", "NoSchedule")], provider_id="x://1"),
            status=NodeStatus(allocatable={"cpu": "8", "memory": "1Gi"}),
        ),
        Pod(
            metadata=ObjectMeta(name="p", namespace="ns", creation_timestamp=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
            spec=PodSpec(containers=[Container("main", resources=ResourceRequirements({"cpu": "1"}))], priority=0),
        ),
        Queue(metadata=ObjectMeta(name="q"), spec=QueueSpec(weight=2, reclaimable=False)),
        PodGroup(metadata=ObjectMeta(name="g", namespace="ns")),
    ]


def test_written_objects_read_back_the_same() -> None:
    assert read_manifest_text(to_yaml(objects())).objects == objects()
    assert read_manifest_text(to_json(objects())).objects == objects()
    assert [from_value(to_manifest(obj)) for obj in objects()] == objects()


def test_a_manifest_holds_only_what_was_set() -> None:
    assert [to_manifest(obj) for obj in objects()[1:3]] == [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "ns", "creationTimestamp": "2026-01-02T03:04:05Z"},
            "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}], "priority": 0},
        },
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": "q"},
            "spec": {"weight": 2, "reclaimable": False, "guarantee": {}},
        },
    ]


def test_plain_values_are_taken_without_checks_or_defaults() -> None:
    queue = from_value({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "spec": {"weight": -3}})
    assert queue == Queue(spec=QueueSpec(weight=-3))
    with pytest.raises(ValueError, match="no such kind: v1/Nod"):
        from_value({"apiVersion": "v1", "kind": "Nod"})


def test_absent_and_empty_selectors_stay_apart() -> None:
    text = (
        POD.format("a")
        + "  topologySpreadConstraints:\n"
        + "  - {maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule, labelSelector: {}}\n"
        + "  - {maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule}\n"
    )
    constraints = read_manifest_text(text).of(Pod)[0].spec.topology_spread_constraints
    assert [each.label_selector for each in constraints] == [LabelSelector(), None]


def test_a_directory_that_cannot_be_listed_is_not_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (tmp_path / "queue.yaml").write_text(
        "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: q}\n"
    )
    listed = os.scandir

    def scandir(path: str) -> object:
        if str(path) == str(secret):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(ManifestError) as caught:
        read_manifests([tmp_path])
    assert str(caught.value) == f"{secret}: cannot be read: Permission denied"


def test_a_path_that_may_not_be_looked_at_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stat(path: Path, **_: object) -> object:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "stat", stat)
    with pytest.raises(ManifestError, match=r"a\.yaml: cannot be read: Permission denied$"):
        read_manifests([tmp_path / "a.yaml"])
