"""Which node has which container images, with the counts that the image locality score reads (spec 01 §5.9)."""

from __future__ import annotations

from vcscheduler.objects import Node as NodeObject

_KEY = "placement.images"


class ImageTable:
    """Fed with node objects as they come, change and go.

    Quirk: how many nodes have an image is captured for a node when that node arrives or changes, and not corrected
    when others follow. A user expects the true count; scores follow the captured ones.
    """

    def __init__(self) -> None:
        self.version = 0
        self._sizes: dict[str, int] = {}
        self._nodes: dict[str, set[str]] = {}
        #: image name -> node name -> (size, nodes that had it then)
        self._captured: dict[str, dict[str, tuple[int, int]]] = {}
        self._names: dict[str, list[str]] = {}

    @classmethod
    def of(cls, store: dict[str, object]) -> ImageTable:
        """The table of a scheduler: the cache feeds it, scorers read it."""
        found = store.get(_KEY)
        if not isinstance(found, cls):
            found = store[_KEY] = cls()
        return found

    def set_node(self, obj: NodeObject) -> None:
        """A node was added or updated."""
        name = obj.metadata.name
        if not obj.status.images and name not in self._names:
            return
        self.remove_node(name)
        names: dict[str, None] = {}
        for image in obj.status.images:
            for each in image.names:
                nodes = self._nodes.setdefault(each, set())
                if not nodes:
                    self._sizes[each] = image.size_bytes
                nodes.add(name)
                if each not in names:
                    names[each] = None
                    self._captured.setdefault(each, {})[name] = (self._sizes[each], len(nodes))
        if names:
            self._names[name] = list(names)
            self.version += 1

    def remove_node(self, name: str) -> None:
        names = self._names.pop(name, None)
        if names is None:
            return
        self.version += 1
        for each in names:
            nodes, captured = self._nodes[each], self._captured[each]
            nodes.discard(name)
            del captured[name]
            if not nodes:
                del self._nodes[each]
                del self._sizes[each]
            if not captured:
                del self._captured[each]

    def nodes_with(self, image: str) -> dict[str, tuple[int, int]]:
        """Node name -> (size in bytes, number of nodes) for nodes that have the image of that exact name."""
        return self._captured.get(image, {})
