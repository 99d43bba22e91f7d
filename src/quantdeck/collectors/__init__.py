"""What brings facts into the stores: files, feeds."""
