"""Effects over HTTP: signed webhooks."""

from becket.kernel.http.post import Endpoint, HttpPost

__all__ = ["Endpoint", "HttpPost"]
