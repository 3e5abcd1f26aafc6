"""What filters and scorers know of the cluster beyond the node table, kept from session to session."""

from __future__ import annotations

from vcscheduler.model.nodes import NodeTable
from vcscheduler.placement.holders import TermHolders
from vcscheduler.placement.labels import NodeColumns
from vcscheduler.placement.node_rules import NodeRuleCache
from vcscheduler.placement.pods import PodIndex

_KEY = "placement.cluster"


class ClusterIndex:
    """Node columns and the rules evaluated on them, terms that pods hold, and (once somebody counts pods) the pods."""

    def __init__(self, table: NodeTable) -> None:
        self.table = table
        self.view = table.view
        self.columns = NodeColumns(table)
        self.rules = NodeRuleCache(self.columns)
        self.holders = TermHolders(table)
        self._pods: PodIndex | None = None
        self._session: str | None = None

    @classmethod
    def of(cls, store: dict[str, object], table: NodeTable, session: str) -> ClusterIndex:
        """The index of a table, as it stands when the session of that id opens."""
        found = store.get(_KEY)
        if not isinstance(found, cls) or found.table is not table or found.view is not table.view:
            found = store[_KEY] = cls(table)
        found._begin(session)
        return found

    def _begin(self, session: str) -> None:
        if session == self._session:
            return
        self._session = session
        self.columns.refresh()
        self.holders.begin_session()
        if self._pods is not None:
            self._pods.begin_session()

    @property
    def pods(self) -> PodIndex:
        if self._pods is None:
            self._pods = PodIndex(self.table)
        return self._pods
