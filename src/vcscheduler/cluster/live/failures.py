"""What can come back from the API server instead of success, and what to make of it.

The one question that matters for a write is whether it may have been carried out all the same: then it must be
settled by reading, never by sending it again blindly.
"""

from __future__ import annotations

from typing import Final

import msgspec

from vcscheduler.cluster.interface import ClusterError, ErrorReason

_TRANSIENT: Final = frozenset((408, 429, 500, 502, 503, 504))
_CERTAIN: Final = frozenset((429,))
"""Answers that are given before anything is done."""


class ApiStatus(msgspec.Struct, rename="camel"):
    """The body of an error answer, and of an ERROR event of a watch."""

    code: int = 0
    reason: str = ""
    message: str = ""


class ApiFailure(Exception):
    """A request that was not answered with success.

    status: the HTTP status, 0 when there was no complete answer.
    retry_after: seconds that the server asks to wait, None when it does not say.
    uncertain: the request may have been carried out.
    """

    def __init__(
        self, status: int, reason: str, message: str, retry_after: float | None = None, uncertain: bool = False
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after
        self.uncertain = uncertain

    @property
    def transient(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status == 0 or self.status in _TRANSIENT

    def as_cluster_error(self) -> ClusterError:
        return ClusterError(self._cluster_reason(), self.message)

    def _cluster_reason(self) -> ErrorReason:
        if self.reason == "AlreadyExists":
            return ErrorReason.ALREADY_EXISTS
        match self.status:
            case 404 | 410:
                return ErrorReason.NOT_FOUND
            case 409:
                return ErrorReason.CONFLICT
            case 400 | 405 | 413 | 415 | 422:
                return ErrorReason.INVALID
            case 401 | 403:
                return ErrorReason.FORBIDDEN
            case 408 | 504:
                return ErrorReason.TIMEOUT
            case 0 | 429 | 502 | 503:
                return ErrorReason.UNAVAILABLE
            case _:
                return ErrorReason.INTERNAL


def failure_of(method: str, path: str, status: int, body: bytes, retry_after: str | None) -> ApiFailure:
    """The failure that an HTTP answer of 400 or more stands for."""
    try:
        found = msgspec.json.decode(body, type=ApiStatus)
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = ApiStatus(message=body[:200].decode("utf-8", "replace").strip())
    seconds: float | None = None
    if retry_after is not None and retry_after.strip().isdigit():
        seconds = float(retry_after)
    return ApiFailure(
        status,
        found.reason,
        found.message or f"{method} {path} was answered with HTTP status {status}",
        seconds,
        uncertain=method != "GET" and status in _TRANSIENT and status not in _CERTAIN,
    )


def no_answer(method: str, path: str, error: BaseException, sent: bool) -> ApiFailure:
    """The failure of a request that was cut, timed out or never left."""
    what = str(error) or type(error).__name__
    return ApiFailure(0, "", f"{method} {path}: no answer from the API server: {what}", None, sent and method != "GET")
