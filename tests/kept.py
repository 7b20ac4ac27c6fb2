"""A cache that the tests of whole systems share."""


class Kept:
    """Results in memory, and how often they were put."""

    def __init__(self):
        self.kept, self.puts = {}, 0

    def get(self, name):
        return self.kept.get(name)

    def put(self, name, arrays):
        self.puts += 1
        self.kept[name] = list(arrays)
