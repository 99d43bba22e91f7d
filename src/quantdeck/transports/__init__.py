"""How calls reach the pipeline: stdio, HTTP and REST, and nothing but carrying."""
