"""Who causes `advance` to be called. A hint, never an authority."""
