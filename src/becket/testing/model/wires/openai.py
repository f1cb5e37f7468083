"""What OpenAI's two wires share: the key, the errors, the list of models."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from becket.testing.model.steps import Status

_KNOWN: dict[tuple[int, str], tuple[str, str | None, str]] = {
    (400, ""): ("invalid_request_error", None, "Invalid request."),
    (401, ""): (
        "invalid_request_error",
        "invalid_api_key",
        "Incorrect API key provided. You can find your API key at https://platform.openai.com/account/api-keys.",
    ),
    (403, ""): (
        "request_forbidden",
        "unsupported_country_region_territory",
        "Country, region, or territory not supported",
    ),
    (404, ""): (
        "invalid_request_error",
        "model_not_found",
        "The model does not exist or you do not have access to it.",
    ),
    (429, ""): ("tokens", "rate_limit_exceeded", "Rate limit reached on tokens per min (TPM)."),
    (429, "rate"): ("tokens", "rate_limit_exceeded", "Rate limit reached on tokens per min (TPM)."),
    (429, "quota"): (
        "insufficient_quota",
        "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details.",
    ),
    (429, "usage_limit"): ("usage_limit_reached", None, "The usage limit has been reached"),
    (500, ""): ("server_error", None, "The server had an error while processing your request. Sorry about that!"),
    (503, ""): ("server_error", "server_is_overloaded", "The server is currently overloaded. Please try again later."),
}


def bearer(headers: Mapping[str, str]) -> str | None:
    kind, _, key = headers.get("authorization", "").partition(" ")
    return key if kind == "Bearer" and key else None


def wait_of(status: Status) -> int | None:
    """Seconds until it is worth trying again."""
    if status.retry_after is not None or status.resets_at is None:
        return status.retry_after
    return max(0, round(status.resets_at - time.time()))


def error_of(status: Status) -> dict[str, Any]:
    kind, code, message = _KNOWN.get((status.code, status.kind)) or (
        "server_error" if status.code >= 500 else "invalid_request_error",
        status.kind or None,
        f"Error {status.code}.",
    )
    wait = wait_of(status)
    if wait is not None and code == "rate_limit_exceeded":
        message = f"{message} Please try again in {wait}s."
    error: dict[str, Any] = {"message": status.message or message, "type": kind, "param": None, "code": code}
    if kind == "usage_limit_reached":
        error["plan_type"] = "plus"
        error["resets_at"] = int(status.resets_at or time.time() + (wait or 3600))
        error["resets_in_seconds"] = wait if wait is not None else 3600
    return error


def error(status: Status) -> tuple[dict[str, str], dict[str, Any]]:
    wait = wait_of(status)
    headers = {"x-request-id": "req_scripted"}
    if status.code == 429 and wait is not None:
        headers |= {
            "retry-after": str(wait),
            "x-ratelimit-limit-requests": "500",
            "x-ratelimit-remaining-requests": "0",
            "x-ratelimit-reset-requests": f"{wait}s",
        }
    return headers, {"error": error_of(status)}


def models(names: tuple[str, ...]) -> dict[str, Any]:
    listed = [{"id": name, "object": "model", "created": 1700000000, "owned_by": "scripted"} for name in names]
    return {"object": "list", "data": listed}
