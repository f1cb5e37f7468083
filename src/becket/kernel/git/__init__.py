"""Git by the git program: `repository.discover` is the way in, `effects` holds what passes the door."""
