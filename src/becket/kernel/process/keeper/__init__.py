"""The program that stands between Becket and one child. It imports nothing of Becket: each child pays every import.

For the same reason it takes `posix`, `_signal` and `_ctypes`, not the modules built on them: a third of its start.
"""
