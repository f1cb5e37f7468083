"""Reads LoopSpecs and becket.yaml, and proves them before anything runs."""
