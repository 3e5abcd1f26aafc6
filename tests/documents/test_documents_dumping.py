"""What is written as YAML is read back as the same, by YAML readers of either version."""

import pytest
import yaml

from vcscheduler.documents import load_documents
from vcscheduler.documents.dumping import dump_yaml


@pytest.mark.parametrize(
    "name", ["1e5", "0", "12e456", "y", "off", "null", "~", "", "1:30", "2024-01-01", "0x1f", ".5"]
)
def test_text_that_looks_like_something_else_is_quoted(name: str) -> None:
    data = {"placed": {name: name}}
    text = dump_yaml([data])
    assert load_documents(text.encode(), "out.yaml")[0].value == data
    assert yaml.safe_load(text) == data
