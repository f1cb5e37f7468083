"""Effects over HTTP: signed webhooks."""

from becket.adapters.http.post import Endpoint, HttpPost

__all__ = ["Endpoint", "HttpPost"]
