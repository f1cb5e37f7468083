"""One call of one agent, judged and kept."""
