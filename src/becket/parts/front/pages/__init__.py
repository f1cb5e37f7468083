"""One function for each page: read models in, a template and its data out."""
