"""Text to plain data: YAML and JSON documents that still know where each of their values stands.

Everything a user hands in as a file (manifests, configuration, traces) comes through here once. What comes
out is plain data (dict, list, str, int, float, bool, None) typed the way Kubernetes and Volcano read YAML.
`Document.mark` turns a path back into a line and a column, so that whoever finds a mistake can point at it.
"""

from vcscheduler.documents.document import Document, DuplicateKey
from vcscheduler.documents.errors import DocumentError
from vcscheduler.documents.loading import iter_documents, load_documents
from vcscheduler.documents.nearest import nearest_name
from vcscheduler.documents.scalars import plain_value
from vcscheduler.documents.syntax import decode_text

__all__ = [
    "Document",
    "DocumentError",
    "DuplicateKey",
    "decode_text",
    "iter_documents",
    "load_documents",
    "nearest_name",
    "plain_value",
]
