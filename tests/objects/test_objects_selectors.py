"""Label and node selectors match as in Kubernetes."""

import pytest

from vcscheduler.objects import (
    EVERYTHING,
    NOTHING,
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    SelectorError,
    compile_label_map,
    compile_label_selector,
    compile_node_selector_term,
    label_selector_matches,
    node_selector_matches,
    with_requirement,
)


def expression(key: str, operator: str, *values: str) -> LabelSelector:
    return LabelSelector(match_expressions=[LabelSelectorRequirement(key, operator, list(values))])


def term(key: str, operator: str, *values: str) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=[NodeSelectorRequirement(key, operator, list(values))])


def by_name(operator: str, *names: str) -> NodeSelectorTerm:
    requirement = NodeSelectorRequirement("metadata.name", operator, list(names))
    return NodeSelectorTerm(match_fields=[requirement])


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        (None, {"a": "b"}, False),
        (LabelSelector(), {}, True),
        (LabelSelector(match_labels={"a": "b"}), {"a": "b", "c": "d"}, True),
        (LabelSelector(match_labels={"a": "b"}), {"a": "c"}, False),
        (LabelSelector(match_labels={"a": ""}), {}, False),
        (LabelSelector(match_labels={"a": ""}), {"a": ""}, True),
        (expression("a", "In", "x", "y"), {"a": "y"}, True),
        (expression("a", "In", "x"), {}, False),
        (expression("a", "NotIn", "x"), {}, True),
        (expression("a", "NotIn", "x"), {"a": "x"}, False),
        (expression("a", "Exists"), {"a": ""}, True),
        (expression("a", "Exists"), {}, False),
        (expression("a", "DoesNotExist"), {}, True),
        (expression("a", "DoesNotExist"), {"a": "x"}, False),
        (with_requirement(LabelSelector(match_labels={"a": "b"}), "c", "Exists", []), {"a": "b"}, False),
    ],
)
def test_label_selector(selector: LabelSelector | None, labels: dict[str, str], expected: bool) -> None:
    assert label_selector_matches(selector, labels) is expected


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        (expression("a", "in", "x"), 'key "a": operator "in" is not one of In, NotIn, Exists, DoesNotExist'),
        (expression("a", "Gt", "1"), 'key "a": operator "Gt" is not one of In, NotIn, Exists, DoesNotExist'),
        (expression("a", "In"), 'requirement "a In" needs at least one value'),
        (expression("a", "Exists", "x"), 'requirement "a Exists" takes no values'),
        (expression("", "Exists"), 'key "" must have a name part of 1 to 63 characters'),
    ],
)
def test_malformed_label_selectors_are_refused(selector: LabelSelector, message: str) -> None:
    with pytest.raises(SelectorError) as caught:
        compile_label_selector(selector)
    assert str(caught.value) == message


def test_compiled_selectors_are_values() -> None:
    one = compile_label_selector(LabelSelector(match_labels={"a": "b", "c": "d"}))
    assert one == compile_label_map({"c": "d", "a": "b"})
    assert hash(one) == hash(compile_label_map({"a": "b", "c": "d"}))
    assert compile_label_selector(None) is NOTHING
    assert compile_label_selector(LabelSelector()) is EVERYTHING


ZONE_OR_NEW = [term("zone", "In", "a"), term("gen", "Gt", "3")]


@pytest.mark.parametrize(
    ("terms", "labels", "expected"),
    [
        # the worked example of spec 05 §4.2
        (ZONE_OR_NEW, {"zone": "b", "gen": "4"}, True),
        (ZONE_OR_NEW, {"zone": "b", "gen": "3"}, False),
        (ZONE_OR_NEW, {"zone": "b", "gen": "x"}, False),
        ([term("gen", "Lt", "3")], {"gen": "2"}, True),
        ([term("gen", "Lt", "3")], {}, False),
        ([term("gen", "Lt", "3")], {"gen": "-99999999999999999999"}, False),
        ([], {"a": "b"}, False),
        ([NodeSelectorTerm()], {"a": "b"}, False),
        ([term("gen", "Gt", "x"), term("zone", "Exists")], {"zone": "b"}, True),
        ([term("gen", "Gt", "x")], {"gen": "5"}, False),
        ([by_name("In", "n1")], {}, True),
        ([by_name("NotIn", "n1")], {}, False),
        ([by_name("In", "n1", "n2")], {}, False),
    ],
)
def test_node_selector(terms: list[NodeSelectorTerm], labels: dict[str, str], expected: bool) -> None:
    assert node_selector_matches(NodeSelector(node_selector_terms=terms), labels, "n1") is expected


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (term("gen", "Gt", "1", "2"), 'requirement "gen Gt" needs exactly one value, an integer'),
        (term("gen", "Lt", "1.5"), 'requirement "gen Lt" needs exactly one value, an integer'),
        (by_name("In", "a", "b"), "matchFields: metadata.name needs exactly one value"),
        (by_name("Exists"), 'matchFields: operator "Exists" is not one of In, NotIn'),
        (
            NodeSelectorTerm(match_fields=[NodeSelectorRequirement("metadata.uid", "In", ["x"])]),
            'matchFields knows only the key "metadata.name", not "metadata.uid"',
        ),
    ],
)
def test_malformed_node_terms_are_refused(wrong: NodeSelectorTerm, message: str) -> None:
    with pytest.raises(SelectorError) as caught:
        compile_node_selector_term(wrong)
    assert str(caught.value) == message
