"""One file per technology: how its connections are held, and its failures in our words."""
