"""What the reader refuses, and the words it finds: where, which object and field, what was found and allowed.

The cases stand in `refused_manifests.txt`, one manifest with its message after the other.
"""

from pathlib import Path

import pytest

from vcscheduler.objects import ManifestError, read_manifest_text


def cases() -> dict[str, tuple[str, str]]:
    text = (Path(__file__).parent / "refused_manifests.txt").read_text()
    found = {}
    for section in text.split("\n### ")[1:]:
        name, _, rest = section.partition("\n")
        manifest, _, message = rest.partition(">>> ")
        assert name not in found, f"two cases are called {name}"
        found[name] = manifest, message.strip()
    return found


CASES = cases()


def test_there_are_cases() -> None:
    assert len(CASES) >= 90


@pytest.mark.parametrize("name", CASES)
def test_refused_with_place_field_and_way_out(name: str) -> None:
    manifest, message = CASES[name]
    with pytest.raises(ManifestError) as caught:
        read_manifest_text(manifest, "f.yaml")
    assert str(caught.value) == message


def test_a_long_name_is_shortened_in_the_message() -> None:
    name = "a" * 254
    with pytest.raises(ManifestError) as caught:
        read_manifest_text(f"apiVersion: v1\nkind: Node\nmetadata: {{name: {name}}}\n", "f.yaml")
    assert caught.value.detail == f'found "{"a" * 57}...", a name must be no longer than 253 characters'


def test_binary_files_are_refused() -> None:
    with pytest.raises(ManifestError, match=r"found the control character U\+007F: this is not a YAML or JSON text"):
        read_manifest_text(b"\x7fELF\x00\x01", "f.yaml")


@pytest.mark.parametrize("text", ["{" * 50_000, '{"a":' * 100_000, "[" * 50_000, "a: &a [*a]\n"])
def test_hostile_nesting_is_an_ordinary_error(text: str) -> None:
    with pytest.raises(ManifestError):
        read_manifest_text(text)
