"""What a policy does, where it departs from the log's behaviour, and what its promise hangs on."""
