"""Errors: one class for each way to react, and the stable ``code`` of the server for the rest.

``BatonError`` is the base of everything that this package raises. A refusal of the server is an ``ApiError``. The families of
orchestration are ``OrchestrationError``, and below it ``HandoffError`` and ``DelegationError``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping, Optional


class BatonError(Exception):
    """Base of all errors of this package."""


class TransportError(BatonError):
    """The server cannot be reached, or the connection broke and no attempt is left."""


class RequestTimeoutError(BatonError):
    """The time that the caller allows has passed. A run that was accepted continues; ``run_id`` names it, if it is known."""

    def __init__(self, message: str, run_id: Optional[str] = None) -> None:
        super().__init__(message)
        self.run_id = run_id


class ProtocolError(BatonError):
    """The server sent something that this version of the package cannot read."""


@dataclass(frozen=True)
class FieldError:
    """One mistake in a request: a JSON pointer into the body, or the name of a parameter or header."""

    pointer: str
    detail: str


class ApiError(BatonError):
    """A refusal of the server (``application/problem+json``). Programs read ``code``, which never changes its meaning."""

    def __init__(self, problem: Mapping[str, Any], retry_after: Optional[float] = None) -> None:
        self.status: int = int(problem.get("status", 0))
        self.code: str = str(problem.get("code", "unknown"))
        self.title: str = str(problem.get("title", ""))
        self.detail: str = str(problem.get("detail", ""))
        self.trace_id: Optional[str] = problem.get("trace_id")
        self.errors = [
            FieldError(str(one.get("pointer", "")), str(one.get("detail", ""))) for one in problem.get("errors") or ()
        ]
        self.problem: Mapping[str, Any] = problem
        """The whole problem. Some codes have more fields, such as ``nearest`` and ``permission``."""
        self.retry_after = retry_after
        super().__init__(f"{self.code}: {self.detail}" if self.detail else self.code)


class AuthenticationError(ApiError):
    """401: the credential is missing, invalid, expired or revoked."""


class PermissionDeniedError(ApiError):
    """403: a permission is missing; ``permission`` names it."""

    @property
    def permission(self) -> Optional[str]:
        return self.problem.get("permission")


class NotFoundError(ApiError):
    """404: it does not exist, or belongs to another user or tenant. The two cannot be told apart."""


class InvalidRequestError(ApiError):
    """The request is wrong; ``errors`` says where."""


class ConflictError(ApiError):
    """409 or 422: the state does not allow it now."""


class CursorExpiredError(ApiError):
    """410: the events of this position are not kept any more. Read the messages and follow without a position."""


class RateLimitedError(ApiError):
    """429: a limit is reached; ``retry_after`` says for how many seconds."""


class BudgetExhaustedError(ApiError):
    """402: a budget is used up."""


class UnavailableError(ApiError):
    """500 and 503: the server cannot do it now. A request with an idempotency key can be repeated."""


class OrchestrationError(ApiError):
    """Agents could not work together: an agent is unknown or unavailable, the thread is busy, or a run failed."""


class HandoffError(OrchestrationError):
    """A handoff was refused, is active already, or is not active."""


class DelegationError(OrchestrationError):
    """A delegation was refused, or a sub-agent gave no response."""

    agent_id: Optional[str] = None


class RunError(OrchestrationError):
    """A run ended without an answer: it failed, was interrupted or was cancelled. ``status`` of the run is ``run_status``."""

    def __init__(self, run_id: str, run_status: str, code: str, message: str) -> None:
        super().__init__({"code": code, "detail": message})
        self.run_id = run_id
        self.run_status = run_status


_BY_CODE: Mapping[str, type[ApiError]] = {
    "handoff_active": HandoffError,
    "no_active_handoff": HandoffError,
    "handoff_rejected": HandoffError,
    "agent_not_found": OrchestrationError,
    "agent_unavailable": OrchestrationError,
    "thread_busy": OrchestrationError,
    "budget_exhausted": BudgetExhaustedError,
    "cursor_expired": CursorExpiredError,
}

_BY_STATUS: Mapping[int, type[ApiError]] = {
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    422: ConflictError,
    429: RateLimitedError,
}


def error_of(
    problem: Mapping[str, Any],
    family: type[OrchestrationError] = OrchestrationError,
    retry_after: Optional[float] = None,
) -> ApiError:
    """The error of a problem. Codes of orchestration become an error of the family of the request."""
    status = int(problem.get("status", 0))
    kind = _BY_CODE.get(str(problem.get("code"))) or _BY_STATUS.get(status)
    if kind is OrchestrationError:
        kind = family
    if kind is None:
        kind = UnavailableError if status >= 500 else InvalidRequestError
    return kind(problem, retry_after)
