"""The loops that come with Becket: one folder each, with its spec, its prompts and what it alone needs."""
