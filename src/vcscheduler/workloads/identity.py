"""Names and UIDs that a cluster draws at random, here derived from what they stand for: same input, same output."""

from __future__ import annotations

import hashlib
from typing import Final

from vcscheduler.objects import KubernetesObject, ObjectMeta, OwnerReference

_NAME_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_CLAIM_LETTERS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


def uid_of(obj: KubernetesObject) -> str:
    """The object's UID, or the one it gets."""
    if obj.metadata.uid:
        return obj.metadata.uid
    digits = hashlib.sha256(f"{obj.api_version}/{obj.kind}/{obj.key}".encode()).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:32]}"


def suffix(*parts: object, length: int = 5) -> str:
    """The random end of a generated name such as ``web-6d4cf56db6-x7k2p``."""
    return _letters("/".join(map(str, parts)), _NAME_LETTERS, length)


def claim_suffix(*parts: object) -> str:
    """The random end of the name of a claim that belongs to a Volcano Job."""
    return _letters("/".join(map(str, parts)), _CLAIM_LETTERS, 12)


def _letters(text: str, alphabet: str, length: int) -> str:
    number = int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")
    letters = []
    for _ in range(length):
        number, index = divmod(number, len(alphabet))
        letters.append(alphabet[index])
    return "".join(letters)


def owned_by(owner: KubernetesObject) -> OwnerReference:
    """The reference that makes `owner` the controller of an object."""
    return OwnerReference(
        api_version=owner.api_version,
        kind=owner.kind,
        name=owner.name,
        uid=uid_of(owner),
        controller=True,
        block_owner_deletion=True,
    )


def is_stored(metadata: ObjectMeta) -> bool:
    """Whether the object comes from a cluster: it has passed defaulting, admission and webhooks already."""
    return bool(metadata.uid) and metadata.creation_timestamp is not None
