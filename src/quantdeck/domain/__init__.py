"""Pure arithmetic and facts. Imports nothing of ours above it and awaits nothing."""
