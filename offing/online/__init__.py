"""Behind the wall: the true environment. Collects logs and checks results; no room imports it."""
