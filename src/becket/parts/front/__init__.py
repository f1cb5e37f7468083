"""The front: live pages, decisions, an API and an ingress for the rest. A process of its own."""
