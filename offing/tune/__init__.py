"""The hallway: walks the rooms in order."""
