"""The page: one file that stands alone, says the verdict, and survives odd numbers and odd text."""

import copy
import re
import warnings
from html.parser import HTMLParser

import matplotlib
import numpy as np
import pytest

from offing.report import figures, labels
from offing.report.jsonable import from_json
from offing.report.page import page, sentences
from offing.report.reports import SorelReport, upgraded
from offing.report.verdict import number, percent

VOID = {"meta", "br", "hr", "img", "link", "input", "path", "use"}


def sample(plans: int = 5, worlds: int = 7, rounds: int = 8):
    """A result as `result.json` has it, and returns of imagined episodes."""
    rng = np.random.default_rng(0)
    tried = []
    for i in range(worlds):
        e, v = (float(x) for x in np.exp(rng.normal(size=2) * 0.8 - [0.0, i / 6]))
        imbalance = (e - v) / (e + v)
        word = "calibrated" if abs(imbalance) <= 0.25 else "over-confident" if imbalance > 0 else "over-dispersed"
        scores = {"error": e, "spread": v, "noise": 0.01, "total": e + v, "imbalance": imbalance, "word": word}
        tried.append({"width": 64, "prior_scale": i / 4, "own": 1.0, **scores, "calibrated": True, "nll": -3.1})
    settings = []
    for i in range(plans):
        rise = 1 - np.exp(-np.arange(rounds) / 2)
        held = -1200 + (950 + 30 * i) * rise + rng.normal(size=rounds) * 20
        best = int(held.argmax())
        hypers = {"lr": 1e-3 * (1 + 2 * (i % 2)), "discount": (0.97, 0.99, 0.995)[i // 2 % 3], "core": "linear"}
        own = (held + 60 * rise).tolist()
        settings.append({**hypers, "score": float(held.max()), "own": own, "held": held.tolist(), "best": best})
    episodes = rng.normal(-140, 25, (8, 1)) + rng.gamma(2.0, 60, (8, 200)) - 120
    earned = {
        **{"median": -138.2, "mean": -141.0, "interval": [-268.4, -8.1], "level": 0.9, "epistemic": 31.0},
        **{
            "aleatoric": 84.0,
            "stderr": 2.1,
            "range": [-190.0, -101.0],
            "gap": 12.0,
            "terms": {"the worlds disagree": 120.0, "the log shows few starts": 12.5, "nothing": 0.0},
        },
    }
    horizons = [1, 2, 4, 8, 16, 32]
    grow = np.sqrt(horizons) * 0.02
    curve = {
        **{"scales": [0.0, 0.5, 1.0], "horizons": horizons, "scale": 0.5},
        "error": [(grow * 1.05).tolist()] * 3,
        "spread": [(grow * s).tolist() for s in (0.5, 1.0, 1.6)],
        "score": [grow.tolist()] * 3,
    }
    result = {
        **{"system": "sorel", "promise": "value", "data": "offing:pendulum", "rows": 20000, "seed": 0},
        **{"scale": "quick", "version": "0.1.0", "jax": "0.10.2", "device": "cpu", "length": 200.0},
        "posterior": {"settings": tried, "chosen": worlds // 3, "replay": curve, "noise_scale": 0.5},
        "policy": {"planner": "rppo", "settings": settings, "chosen": plans - 1},
        "pil": {**tried[worlds // 3], "bound": {"theorem": 1.9, "pinsker": 3.0, "value": 1.9, "vacuous": True}},
        "value": {**earned, "median": -61.0, "interval": [-110.0, -12.0]},
        "return": earned,
        "support": {"outside": 0.123, "clipped": 0.02, "guarded": 0.0},
        "behaviour": {
            **{"mean": -1239.4, "stderr": 12.0, "best": -800.0, "worst": -1600.0},
            **{"episodes": 100, "estimated": False},
        },
        **{"baseline": -1239.4, "probability": 0.9993},
        "verdict": {
            "word": "GO",
            "reasons": [
                "Does the log hang together? Yes: 0% of the steps inside its episodes do not start where the step "
                "before ended.",
                "Is the interval narrow enough to mean anything? No: it is not.",
                "A reason of another form.",
            ],
        },
        "notes": ["no episode in the log ended by itself, so imagined ones end at the horizon alone"],
        **{"seconds": 187.3, "online_samples": 0},
    }
    return result, episodes


def report(plain: dict) -> SorelReport:
    """The report that `result.json` reads as; its settings as version 0.1 wrote them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return from_json(SorelReport, upgraded(plain))


def drawn(plain: dict, episodes: np.ndarray) -> str:
    return page(report(plain), episodes)


class Reader(HTMLParser):
    """Tags in order, text, and whether every tag that opens also closes."""

    def __init__(self, text: str):
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] != "style":
            self.text += data


def read(text: str) -> Reader:
    reader = Reader(text)
    assert reader.open == []
    return reader


@pytest.fixture(scope="module")
def made():
    return drawn(*sample())


def test_the_verdict_comes_first_and_the_numbers_are_said(made):
    text = " ".join(read(made).text.split())
    assert re.search(r"<h1>GO</h1>", made)
    assert text.index("GO") < text.index("In new episodes") < text.index("Does the log hang together?")
    assert (
        "In new episodes this policy will earn about -138 on average; with 90% probability between -268 and -8.1. "
        "The logged behaviour earned -1,239. The policy earns more than that with probability over 99.9%."
    ) in text
    assert "online samples used: 0" in text
    assert "A reason of another form." in text
    assert "offing:pendulum" in text
    assert "says nothing here" in text


def test_the_page_says_how_columns_are_read(made):
    assert "How the worlds read the columns" not in made  # where all are plain amounts
    plain, episodes = sample()
    plain["posterior"]["readings"] = {"a clock": ["hour", "<day>"]}
    text = " ".join(read(drawn(plain, episodes)).text.split())
    assert "How the worlds read the columns of the log" in text
    assert "a clock: hour, <day>" in text


def test_the_page_stands_alone(made):
    reader = read(made)
    assert "http" not in made
    assert not {"script", "link", "img", "iframe"} & set(reader.tags)
    assert all(value.startswith("#") for name, value in reader.attributes if name == "href" and value)
    assert "@import" not in made
    assert not re.search(r"url\((?!#)", made)
    assert len(made.encode()) < 1_000_000
    assert reader.tags.count("svg") == 6
    ids = [value for name, value in reader.attributes if name == "id"]
    assert len(ids) == len(set(ids))


def test_the_page_is_the_same_again_whatever_the_users_style(made):
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "text.color": "blue"}):
        assert drawn(*sample()) == made
        assert matplotlib.rcParams["font.size"] == 30
    assert matplotlib.rcParams["svg.fonttype"] == matplotlib.rcParamsDefault["svg.fonttype"]


def test_text_from_outside_is_escaped():
    result, episodes = sample(plans=2, worlds=2)
    evil = "<script>alert('x')</script> & $\\frac{$"
    result["data"] = evil
    result["notes"] = [evil]
    result["device"] = evil
    result["verdict"]["reasons"] = [evil, f"Is it {evil}? Yes: {evil}."]
    for part in ("posterior", "policy"):
        for i, setting in enumerate(result[part]["settings"]):
            setting["core"] = f"{evil} {i}"
    made = drawn(result, episodes)
    assert "script" not in read(made).tags
    assert "<script>" not in made
    assert "&lt;script&gt;alert" in made


def test_one_setting_no_replay_no_notes_and_an_estimated_behaviour():
    result, episodes = sample(plans=1, worlds=1, rounds=1)
    result["posterior"]["replay"] = None
    result["pil"].pop("bound")
    result["notes"] = []
    result["behaviour"]["estimated"] = True
    result["baseline"] = -500
    made = drawn(result, np.full((3, 5), 500.0))
    reader = read(made)
    assert reader.tags.count("svg") == 5
    assert "the baseline of -500" in reader.text
    assert "estimated from what a step earns" in reader.text
    assert "Notes" not in reader.text
    drawn(result, episodes[:1, :1])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300, -1e300, 0.0, 1e-300, None])
def test_odd_numbers_everywhere(bad):
    result, episodes = sample(plans=2, worlds=2, rounds=2)

    def spoil(value):
        if isinstance(value, dict):
            return {k: v if k in KEPT else spoil(v) for k, v in value.items()}
        if isinstance(value, list):
            return [spoil(v) for v in value]
        return bad if isinstance(value, float) else value

    KEPT = {"level", "scales", "scale"}
    episodes = np.full_like(episodes, np.nan if bad is None else bad)
    read(drawn(spoil(result), episodes))
    episodes[1:] = 3.0
    made = drawn({**result, "baseline": bad, "return": {**result["return"], "median": bad}}, episodes)
    assert read(made).tags.count("svg") >= 5


def test_many_settings_stay_readable():
    result, episodes = sample(plans=60, worlds=200)
    result["policy"]["chosen"] = int(np.argmin([s["score"] for s in result["policy"]["settings"]]))
    made = drawn(result, episodes)
    assert len(made.encode()) < 1_000_000
    picture = figures.settings(report(result).planned)
    assert picture.count("lr ") == figures.MOST


def test_settings_are_named_by_what_differs_or_numbered():
    result, _ = sample(plans=4, worlds=2)
    tried = [dict(each.setting) for each in report(result).planned.settings]
    assert labels.differing(tried) == ["lr", "discount"]
    assert labels.differences(tried)[1] == "lr 0.003, discount 0.97"
    assert labels.differences(tried[:1]) == ["setting 1"]
    for i, setting in enumerate(tried):
        setting["a_long_name"] = i
    assert labels.differences(tried) == ["setting 1", "setting 2", "setting 3", "setting 4"]


def test_a_ranking_promises_no_value():
    result, _ = sample(plans=1, worlds=3)
    assert not any("ranks" in said for said in sentences(report(result)))
    assert "ranks policies" in sentences(report({**result, "promise": "ranking"}))[-1]


def test_pictures_leave_the_result_as_it_was():
    result, episodes = sample(plans=2, worlds=3)
    told = report(result)
    before = copy.deepcopy(told)
    page(told, episodes)
    assert told == before


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (-138.2, "-138"),
        (-1239.4, "-1,239"),
        (1234567, "1,234,567"),
        (12.345, "12.3"),
        (99.97, "100"),
        (999.6, "1,000"),
        (0.5, "0.5"),
        (0.00457, "0.00457"),
        (3e-5, "3e-05"),
        (-0.0, "0"),
        (0, "0"),
        (2.5e12, "2.5e+12"),
        (np.float32(0.25), "0.25"),
        (np.nan, "not a number"),
        (np.inf, "infinite"),
        (-np.inf, "minus infinite"),
        (None, "–"),
        ("gru", "gru"),
        (True, "True"),
    ],
)
def test_numbers_are_rounded_sensibly(x, text):
    assert number(x) == text


@pytest.mark.parametrize(
    ("share", "limit", "text"),
    [
        (0.0, 0.05, "0%"),
        (1.0, 0.9, "100%"),
        (0.12, 0.35, "12%"),
        (0.8996, 0.9, "89.96%"),
        (0.9, 0.9, "90%"),
        (0.004, 0.05, "0.4%"),
        (0.0004, 0.05, "under 0.1%"),
        (0.99996, 0.9, "over 99.9%"),
        (np.nan, 0.9, "not a number"),
        (None, 0.9, "–"),
    ],
)
def test_a_share_is_told_from_its_limit(share, limit, text):
    assert percent(share, limit) == text
