"""Image summaries are captured as nodes come (spec 01 §5.9)."""

from __future__ import annotations

from builders import node
from vcscheduler.placement.images import ImageTable


def test_counts_are_those_of_the_moment_a_node_came() -> None:
    images = ImageTable()
    images.set_node(node("n1", images={"a": 10}))
    images.set_node(node("n2", images={"a": 99, "b": 5}))
    assert images.nodes_with("a") == {"n1": (10, 1), "n2": (10, 2)}
    assert images.nodes_with("b") == {"n2": (5, 1)}
    images.set_node(node("n1", images={"a": 10}))
    assert images.nodes_with("a") == {"n1": (10, 2), "n2": (10, 2)}


def test_an_image_that_no_node_has_any_more_is_forgotten() -> None:
    images = ImageTable()
    images.set_node(node("n1", images={"a": 10}))
    images.set_node(node("n2", images={"a": 10}))
    images.remove_node("n1")
    assert images.nodes_with("a") == {"n2": (10, 2)}
    images.set_node(node("n2"))
    assert images.nodes_with("a") == {}
    images.set_node(node("n3", images={"a": 77}))
    assert images.nodes_with("a") == {"n3": (77, 1)}


def test_nodes_without_images_do_not_count_as_a_change() -> None:
    images = ImageTable()
    images.set_node(node("n1"))
    images.remove_node("n1")
    assert images.version == 0
