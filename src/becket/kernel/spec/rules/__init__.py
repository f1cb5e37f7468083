"""The rules of `becket loops lint`, by theme. A rule yields findings; it never changes anything."""
