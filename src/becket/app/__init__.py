"""The only room that knows everybody: configuration -> adapters -> engine."""
