"""From a table as people have it to the rows of a log: ordered, filled, encoded and cut into episodes."""
