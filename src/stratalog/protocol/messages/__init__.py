"""Generated: one module an API, imported when first needed; see index.py."""
