"""`becket demo`: a bug in a running service is healed, without a key and without a network."""
