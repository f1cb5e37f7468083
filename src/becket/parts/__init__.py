"""One folder a capability."""
