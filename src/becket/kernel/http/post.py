"""http.post: JSON to a URL, with a key that the receiver drops doubles by; signed where a secret is configured."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import json
import logging
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from becket.kernel.contract.base import Json, Record
from becket.kernel.contract.effect import EffectCall, LookUpResult, Permit, demand
from becket.kernel.contract.errors import EffectFailed
from becket.kernel.contract.spec import Autonomy, EffectClass

if TYPE_CHECKING:
    import ssl

    import httpx

_LONGEST_BODY = 1_000_000
_READ_OF_ANSWER = 64_000
_EXCERPT = 2_000
_TIME_FOR_ANSWER_BODY = 2.0
_BUSY = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS})


class Endpoint(Record):
    """A URL that the configuration knows by name. Only its own requests are signed with its secret."""

    url: str
    secret: str | None = None
    allow_http: bool = False  # without TLS to another machine: only on the user's word


class HttpPost:
    """The target is an endpoint's name or a URL; payload is the body. A URL that is itself a secret needs a name."""

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        redact: Callable[[str], str],
        now: Callable[[], float] = time.time,
        timeout: float = 10.0,
        proxy: str | None = None,
    ) -> None:
        self.name = "http.post"
        self.class_ = EffectClass.keyed
        self.needs = Autonomy.propose
        self.timeout = timeout
        self._endpoints = endpoints
        self._redact = redact
        self._now = now
        self._proxy = proxy
        self._tls: ssl.SSLContext | None = None

    def check(self, call: EffectCall) -> str | None:
        if "://" not in call.target and call.target not in self._endpoints:
            known = ", ".join(sorted(self._endpoints)) or "none"
            return f"{call.target!r} is neither a URL nor a configured endpoint ({known})"
        try:
            body = _body(call.payload)
        except (TypeError, ValueError) as error:
            return f"the payload is not JSON: {error}"
        if len(body) > _LONGEST_BODY:
            return f"the body is longer than {_LONGEST_BODY} bytes"
        return _wrong_with(self._endpoint(call.target))

    async def perform(self, call: EffectCall, permit: Permit) -> dict[str, Json]:
        demand(permit, call)
        endpoint, body = self._endpoint(call.target), _body(call.payload)
        import httpx

        # It logs every URL, and a webhook's URL is its secret.
        logging.getLogger("httpx").setLevel(logging.WARNING)
        try:
            # trust_env off: neither a proxy nor a .netrc password that nobody configured here.
            async with (
                httpx.AsyncClient(
                    timeout=self.timeout, trust_env=False, proxy=self._proxy, verify=self._trusted()
                ) as client,
                client.stream(
                    "POST", endpoint.url, content=body, headers=self._headers(endpoint, permit.key, body),
                    follow_redirects=False,
                ) as answer,
            ):  # fmt: skip
                excerpt = await self._excerpt(answer)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError) as error:
            raise EffectFailed(f"cannot reach {call.target}: {_name(error)}", retryable=True) from error
        except (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError) as error:
            raise EffectFailed(f"{call.target} cannot be asked: {_name(error)}") from error
        except httpx.HTTPError as error:
            said = f"no answer from {call.target}: {_name(error)}"
            raise EffectFailed(said, retryable=True, ambiguous=True) from error
        return self._judge(call.target, answer, excerpt)

    async def look_up(self, call: EffectCall, key: str) -> LookUpResult:
        return LookUpResult.cannot_tell

    def _trusted(self) -> ssl.SSLContext:
        """Made once: reading the certificates takes longer than most requests."""
        if self._tls is None:
            import httpx

            self._tls = httpx.create_ssl_context()
        return self._tls

    def _endpoint(self, target: str) -> Endpoint:
        if named := self._endpoints.get(target):
            return named
        return next((known for known in self._endpoints.values() if known.url == target), Endpoint(url=target))

    def _headers(self, endpoint: Endpoint, key: str, body: bytes) -> dict[str, str]:
        stamp = str(int(self._now()))
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "becket",
            "Idempotency-Key": key,
            "X-Becket-Timestamp": stamp,
        }
        if endpoint.secret:
            headers["X-Becket-Signature"] = f"sha256={sign(endpoint.secret, stamp, body)}"
        return headers

    async def _excerpt(self, answer: httpx.Response) -> str:
        """The beginning of the answer. The status already says how it ended, so a torn body is no failure."""
        import httpx

        body = b""
        try:
            async with asyncio.timeout(_TIME_FOR_ANSWER_BODY):
                async for part in answer.aiter_bytes():
                    body += part
                    if len(body) >= _READ_OF_ANSWER:
                        break
        except (TimeoutError, httpx.HTTPError):
            pass
        return self._redact(body[:_READ_OF_ANSWER].decode(errors="replace"))[:_EXCERPT]

    def _judge(self, target: str, answer: httpx.Response, excerpt: str) -> dict[str, Json]:
        status = answer.status_code
        if answer.is_success:
            return {"status": status, "answer": excerpt}
        said = f"{target} answered {status}: {excerpt or 'nothing more'}"
        after = _retry_after(answer.headers.get("Retry-After"), self._now())
        if status in _BUSY or (status == HTTPStatus.SERVICE_UNAVAILABLE and after is not None):
            raise EffectFailed(said, retryable=True, retry_after=after)
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise EffectFailed(said, retryable=True, ambiguous=True, retry_after=after)
        if answer.has_redirect_location:
            said = f"{target} answered {status}: redirects are not followed; configure the final URL"
        raise EffectFailed(said)


def sign(secret: str, timestamp: str, body: bytes) -> str:
    """HMAC-SHA256 over `timestamp.body`, in hex: what a receiver computes to check X-Becket-Signature."""
    return hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def _body(payload: dict[str, Json]) -> bytes:
    return json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True).encode()


def _wrong_with(endpoint: Endpoint) -> str | None:
    try:
        url = urlsplit(endpoint.url)
        host = url.hostname or ""
        _ = url.port
    except ValueError as error:
        return f"the URL cannot be read: {error}"
    if not host or not endpoint.url.isprintable() or " " in endpoint.url:
        return "the URL has no host, or characters that no URL has"
    if url.username is not None or url.password is not None:
        return "the URL holds credentials; configure an endpoint with a secret instead"
    if url.scheme == "https" or (url.scheme == "http" and (endpoint.allow_http or _is_loopback(host))):
        return None
    return f"{url.scheme}:// to {host} is not allowed; use https, or set allow_http for a configured endpoint"


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _retry_after(header: str | None, now: float) -> float | None:
    """Seconds, from either form of the header; None if there is none or it is not understood."""
    if header is None:
        return None
    try:
        return max(0.0, float(header) if header.strip().isdigit() else parsedate_to_datetime(header).timestamp() - now)
    except ValueError:
        return None


def _name(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
