"""Words by which columns of a table are called, for drafts of a schema: what they hint at, a person checks."""

PLACES = ("site", "plant", "location", "building", "region", "ward", "store", "line", "area", "hall", "country")
ACTED = ("action", "control", "setting", "mode", "command", "level", "speed", "compressor", "valve", "pump", "fan")
ACTED += ("heater", "dose", "treatment", "throttle", "power", "order", "bid", "offer", "discount", "campaign")
UNITS = ("unit", "machine", "patient", "customer", "user", "vehicle", "robot", "turbine", "well", "device")
UNITS += ("subject",)
EPISODES = ("episode", "session", "trip", "batch", "run", "visit", "trial", "stay")
SPENT = ("cost", "costs", "energy_cost", "loss", "penalty", "expense", "expenses", "waste")
EARNED = ("reward", "profit", "revenue", "income", "earnings", "score", "margin", "sales", "output", "yield")
LADDERS = (
    ("low", "mid", "high"),
    ("low", "medium", "high"),
    ("off", "on"),
    ("off", "low", "high"),
    ("small", "large"),
)
LADDERS += (("slow", "fast"), ("off", "low", "mid", "high"), ("low", "high"), ("none", "low", "medium", "high"))
