"""One small function each: pass, fail or undecided, with evidence. Only the runtime calls them."""
