"""A part that nobody of Becket wrote: it brings one of each."""
