"""One file per family of build tools: what its files say about tests, set-up and lint. Siblings are strangers."""
