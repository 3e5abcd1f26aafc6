"""HyperNodes as the scheduler knows them: which nodes each holds, who lies in whom, and whether that makes sense.

Changes wait in a queue by name until :meth:`HyperNodes.settle` works them off, as the reference's worker does. A change
builds anew the HyperNode itself and everything above it (spec 06 §A3). Where HyperNodes contradict each other the
topology is not ready, until a later change anywhere succeeds (Quirk, spec 06 §A3.7).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from vcscheduler.objects import HyperNode, HyperNodeSpec, MemberSpec
from vcscheduler.objects.selectors import SelectorError, compile_label_selector

log = logging.getLogger(__name__)

HYPER_NODE, NODE = "HyperNode", "Node"


class TopologyError(Exception):
    """HyperNodes contradict each other. The message names them."""


@dataclass(slots=True)
class Entry:
    """One HyperNode. ``spec`` is None while only a parent names it; such a placeholder has tier 0 and no nodes."""

    name: str
    spec: HyperNodeSpec | None = None
    tier: int = 0
    parent: str = ""
    children: set[str] = field(default_factory=set)
    deleting: bool = False

    @property
    def members(self) -> list[MemberSpec]:
        return self.spec.members if self.spec is not None else []

    @property
    def listed_children(self) -> list[str]:
        """The children as the spec lists them."""
        return [name for name in dict.fromkeys(_named(self.members)) if name in self.children]


class HyperNodes:
    """All HyperNodes, and the nodes of the cluster as far as selectors look at them.

    Attributes:
        entries: by name. by_tier: names by tier; placeholders are in none. nodes: names of the nodes inside, by
            HyperNode. ready: whether the last change that built anything succeeded. version: grows with every change.
    """

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.by_tier: dict[int, set[str]] = {}
        self.nodes: dict[str, set[str]] = {}
        self.ready = True
        self.version = 0
        self._objects: dict[str, HyperNode] = {}
        self._labels: dict[str, Mapping[str, str]] = {}
        self._waiting: dict[str, None] = {}
        self._reported: set[str] = set()
        self._selecting: dict[str, list[MemberSpec]] = {}
        self._named_by: dict[str, set[str]] = {}

    # --- what the cluster tells ---------------------------------------------------------------------------------------

    def put(self, obj: HyperNode) -> None:
        self._objects[obj.name] = obj
        self._waiting[obj.name] = None

    def drop(self, name: str) -> None:
        self._objects.pop(name, None)
        self._waiting[name] = None

    def put_node(self, name: str, labels: Mapping[str, str]) -> None:
        """A node is there, with these labels. Only HyperNodes that select it now are built anew (Quirk: one that
        selected it until now is not)."""
        if self._labels.get(name) == labels:
            return
        self._labels[name] = labels
        self._wake(name)

    def drop_node(self, name: str) -> None:
        self._labels.pop(name, None)
        self._wake(name)

    def _wake(self, node: str) -> None:
        for name, members in self._selecting.items():
            if any(self._selects(m, node) for m in members):
                self._waiting[name] = None

    def _selects(self, member: MemberSpec, node: str) -> bool:
        if member.selector.regex_match is not None:
            return node in _matching_names(member.selector.regex_match.pattern, (node,))
        labels = self._labels.get(node)
        return labels is not None and node in _matching_labels(member, {node: labels})

    def settle(self) -> None:
        """Work off the queue. What fails is tried once more after the others, and then again the next time."""
        failed = self._work(list(self._waiting))
        again = self._work(list(failed)) if failed else {}
        self._waiting = dict.fromkeys(again)
        for name, error in again.items():
            if name not in self._reported:
                log.warning("hyper node %s: %s", name, error)
        self._reported = set(again)

    def _work(self, names: list[str]) -> dict[str, TopologyError]:
        failed = {}
        for name in names:
            obj = self._objects.get(name)
            self.version += 1
            try:
                if obj is not None:
                    self._upsert(obj)
                elif name in self.entries:
                    self._remove(name)
            except TopologyError as error:
                self.ready = False
                failed[name] = error
        return failed

    # --- changes (spec 06 §A3.4, §A3.5) -------------------------------------------------------------------------------

    def _upsert(self, obj: HyperNode) -> None:
        name, spec = obj.name, obj.spec
        entry = self.entries.get(name)
        is_new = entry is None
        if entry is None:
            entry = self.entries[name] = Entry(name)
        members_changed = is_new or entry.members != spec.members
        tier_changed = is_new or entry.tier != spec.tier
        selects = any(m.selector.regex_match or m.selector.label_match for m in spec.members)
        old_names, new_names = set(_named(entry.members)), set(_named(spec.members))
        freed = sorted(old_names - new_names) if members_changed else []
        for child in freed:
            if child in self.entries:
                self.entries[child].parent = ""
        if tier_changed:
            # A placeholder that turns out to be of tier 0 changes nothing and is listed in no tier (Quirk).
            self._unlist(entry)
            self.by_tier.setdefault(spec.tier, set()).add(name)
        self._index(name, old_names, new_names)
        entry.spec, entry.tier, entry.deleting = spec, spec.tier, False
        self._selecting.pop(name, None)
        if selects and all(m.type == NODE for m in spec.members):
            self._selecting[name] = [m for m in spec.members if m.selector.regex_match or m.selector.label_match]
        if members_changed or selects:
            self._rebuild(name)
            for child in freed:
                for other in sorted(self._named_by.get(child, set()) - {name}):
                    self._rebuild(other)
            self.ready = True

    def _remove(self, name: str) -> None:
        entry = self.entries[name]
        entry.deleting = True
        self._rebuild(name)
        self.ready = True
        names = set(_named(entry.members))
        for child in names:
            if child in self.entries:
                self.entries[child].parent = ""
        self._index(name, names, set())
        self._unlist(entry)
        self._selecting.pop(name, None)
        self.nodes.pop(name, None)
        del self.entries[name]

    def _unlist(self, entry: Entry) -> None:
        names = self.by_tier.get(entry.tier)
        if names is not None:
            names.discard(entry.name)
            if not names:
                del self.by_tier[entry.tier]

    def _index(self, name: str, old: set[str], new: set[str]) -> None:
        for child in old - new:
            self._named_by[child].discard(name)
        for child in new - old:
            self._named_by.setdefault(child, set()).add(name)

    # --- building (spec 06 §A3.2, §A3.3) ------------------------------------------------------------------------------

    def _ancestors(self, name: str) -> list[str]:
        chain = [name]
        while True:
            entry = self.entries.get(chain[-1])
            above = entry.parent if entry is not None else ""
            if not above:
                tier = entry.tier if entry is not None else -1
                naming = (self.entries[n] for n in self._named_by.get(chain[-1], ()))
                above = min((e.name for e in naming if e.tier > tier), default="")
            if not above or above in chain:
                return chain
            chain.append(above)

    def _rebuild(self, name: str) -> None:
        """Build the HyperNode and all above it. An error leaves what was built until then."""
        chain = self._ancestors(name)
        for each in chain:
            self.nodes.pop(each, None)
            entry = self.entries.get(each)
            if entry is not None:
                entry.parent = ""
                entry.children = set()
        built: set[str] = set()
        for each in chain:
            if each in self.entries:
                self._build(each, frozenset(chain), built, ())

    def _build(self, name: str, chain: frozenset[str], built: set[str], path: tuple[str, ...]) -> None:
        if name in path:
            raise TopologyError(f"the hyper nodes {' > '.join((*path, name))} lie in each other")
        if name in built or name not in chain:
            return
        entry = self.entries[name]
        if entry.deleting:
            return
        for member in entry.members:
            if member.type == NODE:
                self.nodes.setdefault(name, set()).update(self._resolve(member))
            elif member.type != HYPER_NODE:
                log.warning("hyper node %s: members of type %r are not known", name, member.type)
            elif member.selector.exact_match is not None:
                child = member.selector.exact_match.name
                below = self.entries.setdefault(child, Entry(child))
                if below.parent not in ("", name):
                    raise TopologyError(f"hyper node {child} lies in {below.parent} and in {name}")
                below.parent = name
                entry.children.add(child)
                self._build(child, chain, built, (*path, name))
                self.nodes.setdefault(name, set()).update(self.nodes.get(child, ()))
        built.add(name)

    def _resolve(self, member: MemberSpec) -> Iterable[str]:
        """Names of the nodes that a member of type Node stands for (spec 06 §A2)."""
        selector = member.selector
        if selector.exact_match is not None:
            return (selector.exact_match.name,) if selector.exact_match.name else ()
        if selector.regex_match is not None:
            return _matching_names(selector.regex_match.pattern, self._labels)
        return _matching_labels(member, self._labels) if selector.label_match is not None else ()


def _named(members: list[MemberSpec]) -> list[str]:
    """HyperNodes that members name; other selectors of HyperNodes count for nothing."""
    return [m.selector.exact_match.name for m in members if m.type == HYPER_NODE and m.selector.exact_match is not None]


def _matching_names(pattern: str, names: Iterable[str]) -> list[str]:
    """Names in which the pattern is found anywhere."""
    try:
        compiled = re.compile(pattern)
    except re.error:
        return []
    return [name for name in names if compiled.search(name)]


def _matching_labels(member: MemberSpec, nodes: Mapping[str, Mapping[str, str]]) -> list[str]:
    selector = member.selector.label_match
    if selector is None or not (selector.match_labels or selector.match_expressions):
        return []
    try:
        compiled = compile_label_selector(selector)
    except SelectorError:
        return []
    return [name for name, labels in nodes.items() if compiled.matches(labels)]
