"""Texts of a table as moments."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute

from ...types import BadInput

FORMS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%Y%m%d")  # dates, after ISO's own
CLOCKS = ("", " %H:%M", " %H:%M:%S")


class UnsureDate(BadInput):
    """Texts that may be dates of several forms, or of one that is not known."""

    def __init__(self, text: str, forms: tuple[str, ...], example: str) -> None:
        super().__init__(text)
        self.forms, self.example = forms, example


def as_times(column: Any, form: str | None, name: str, where: str) -> tuple[Any, str]:
    """Texts as moments, and the form that fits all of them; day and month that could be either are a question."""
    if form is not None and form != "ISO":
        return _strict(column, form, name, where), form
    for zone in (None, "UTC"):
        try:
            return column.cast(pa.timestamp("us", zone)), "ISO"
        except pa.ArrowInvalid:
            continue
    if form == "ISO":
        raise BadInput(f"{where}, column {name!r}: a cell is no date in the form that rows before have")
    sample = column.slice(0, 10_000).drop_null()
    fits = [day + clock for day in FORMS for clock in CLOCKS if _parsed(sample, day + clock).null_count == 0]
    if len(fits) > 1 and len(sample):
        raise UnsureDate(
            f"{where}, column {name!r}: {sample[0].as_py()!r} may be the day or the month first; write "
            f'time_format = "{fits[0]}" or "{fits[1]}" in the schema',
            tuple(fits),
            sample[0].as_py(),
        )
    if not fits:
        word = sample[0].as_py() if len(sample) else ""
        raise UnsureDate(
            f'{where}, column {name!r}: {word[:40]!r} is no date that is known; write its form as time_format = "'
            '%d.%m.%Y %H:%M" in the schema',
            (),
            word,
        )
    return _strict(column, fits[0], name, where), fits[0]


def _parsed(column: Any, form: str) -> Any:
    """Texts of one form as moments; null where one is of another."""
    options = pyarrow.compute.StrptimeOptions(form, "us", error_is_null=True)
    return pyarrow.compute.call_function("strptime", [column], options)


def _strict(column: Any, form: str, name: str, where: str) -> Any:
    try:
        times = _parsed(column, form)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise BadInput(f"schema, 'time_format': {form!r} is no form of dates") from None
    bad = times.is_null().to_numpy(zero_copy_only=False) & column.is_valid().to_numpy(zero_copy_only=False)
    if bad.any():
        word = column[int(bad.argmax())].as_py()
        raise BadInput(f"{where}, column {name!r}: {word[:40]!r} is no date of the form {form!r}")
    return times
