"""Coding agents behind one port."""
