"""Things to start from."""
