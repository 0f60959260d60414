"""Numbers, dates and yes or no as people write them: what the cells of a column can be read as.

A cell such as 1.234 can be read in two ways, and so can 05/06/2024. Every way in which *all* cells of a column can be
read is found here; where more than one is left, the table has to tell which it is, or an option (`Formats`). Nothing is
guessed: a column that cannot be read in any one way is text, or is refused.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from stakes._utils.text import listed
from stakes.exceptions import StakesError

T = TypeVar("T")
Kind: TypeAlias = Literal["number", "date", "datetime", "time", "yes or no"]

SPACES = " \u00a0\u2007\u2009\u202f"
_APOSTROPHES = "'\u2019\u02bc\u00b4`"
_THOUSANDS = {**dict.fromkeys(SPACES, " "), **dict.fromkeys(_APOSTROPHES, "'"), ",": ",", ".": "."}
_SIGNS = "$ € £ ¥ \uffe5 ₹ ₽ ₩ ₺ ₪ ฿ ₫ ₴ ₦ R$ US$ A$ C$ HK$ NZ$ Kč kr. kr zł Ft лв Fr. Fr SFr. 元 円 Rs. Rs"
_CODES = (
    "EUR USD GBP CHF JPY CNY RMB INR BRL CAD AUD NZD SEK NOK DKK PLN CZK HUF RUB TRY MXN ZAR SGD HKD KRW"  # of ISO 4217
)
_CURRENCY = "|".join(sorted(map(re.escape, (*_SIGNS.split(), *_CODES.split())), key=len, reverse=True))
_BODY = rf"(?:\d[\d.,{SPACES}{_APOSTROPHES}]*\d|\d[.,]?|[.,]\d+)"
_NUMBER = re.compile(
    rf"(?P<open>\()?(?P<before>[+\-\u2212])?\s*(?P<prefix>{_CURRENCY})?\s*(?P<within>[+\-\u2212])?\s*(?P<body>{_BODY})"
    rf"(?P<exponent>[eE][+-]?\d+)?\s*(?P<percent>%)?\s*(?P<suffix>{_CURRENCY})?(?P<close>\))?"
)
_SURE = ("na", "n/a", "#n/a", "#nv", "#n/d", "nan", "<na>", "null", "nat", "?")
GAPS = frozenset((*_SURE, "n.a.", "#div/0!", "nil", "none", ".", "k.a.", "n.d.", "s/d"))
"""Marks, in small letters, that stand for a gap among numbers and dates wherever they stand; no dash: it may be a 0."""
SURE_GAPS = frozenset(_SURE)
"""Those that stand for a gap among classes, too, where no cell is empty."""

_YES_NO = (
    ("yes", "no"),
    ("y", "n"),
    ("true", "false"),
    ("t", "f"),
    ("ja", "nein"),
    ("j", "n"),
    ("wahr", "falsch"),
    ("oui", "non"),
    ("o", "n"),
    ("vrai", "faux"),
    ("si", "no"),
    ("s", "n"),
    ("verdadero", "falso"),
    ("vero", "falso"),
    ("sim", "nao"),
    ("verdadeiro", "falso"),
    ("ja", "nee"),
    ("ja", "nej"),
    ("ja", "nei"),
    ("tak", "nie"),
    ("да", "нет"),
    ("是", "否"),
    ("有", "无"),
)
_MONTHS = (
    "january february march april may june july august september october november december",
    "januar februar marz april mai juni juli august september oktober november dezember",
    "janner februar maerz april mai juni juli august september oktober november dezember",
    "janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre",
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "janeiro fevereiro marco abril maio junho julho agosto setembro outubro novembro dezembro",
    "januari februari maart april mei juni juli augustus september oktober november december",
)
_TIME = (
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d+))?)?"
    r"(?:\s*(?P<half>[AaPp])\.?[Mm]\.?)?"
)
_ZONE = r"(?:\s*(?P<zone>Z|UTC|[+-]\d{2}:?\d{2}))?"
_AFTER = rf"(?:(?:T|,?\s+){_TIME}{_ZONE})?"
_DAYS = tuple(
    re.compile(pattern + _AFTER)
    for pattern in (
        r"(?P<y>\d{4})([-/.])(?P<m>\d{1,2})\2(?P<d>\d{1,2})",
        r"(?P<y>\d{4})年(?P<m>\d{1,2})月(?P<d>\d{1,2})日",
        r"(?P<d>\d{1,2})(?:\.|er|º|°)?[\s\-/]*(?:de\s+)?(?P<name>[^\W\d_]{3,10})\.?[\s\-/,]*(?:de\s+)?(?P<y>\d{4}|\d{2})",
        r"(?P<name>[^\W\d_]{3,10})\.?\s+(?P<d>\d{1,2})(?:st|nd|rd|th)?,?\s+(?P<y>\d{4})",
    )
)
_DIGITS = re.compile(r"(?P<one>\d{1,2})(?P<between>[./-])(?P<two>\d{1,2})(?P=between)(?P<three>\d{4}|\d{2})" + _AFTER)
_CLOCK = re.compile(
    r"(?P<hour>\d{1,4}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d+))?)?(?:\s*(?P<half>[AaPp])\.?[Mm]\.?)?"
)
_ORDERS = {"dmy": ("three", "two", "one"), "mdy": ("three", "one", "two"), "ymd": ("one", "two", "three")}
_SPELLINGS = 20  # of yes and no, with small and large letters and spaces
_CENTURY = 30  # two digits below are of the years from 2000 on, as spreadsheets have it
_EPOCH = datetime(1970, 1, 1)
PARTS: Mapping[str, tuple[str, ...]] = {
    "date": ("days", "year", "month", "weekday"),
    "datetime": ("days", "year", "month", "weekday", "hour"),
}
"""The numbers that a model sees of a column of dates: days since 1970, and what repeats."""


class Formats(NamedTuple):
    """What the cells of a table may leave open: signs in numbers, and the order of days and months in dates."""

    decimal: str | None = None
    """The sign before decimals, "." or ","."""
    thousands: str | None = None
    """The sign between thousands: ".", ",", an apostrophe or a space."""
    date: str | None = None
    """The order in dates of digits: "dmy", "mdy" or "ymd"."""

    @property
    def sign(self) -> str | None:
        """The sign before decimals, as far as it is given."""
        return self.decimal or {".": ",", ",": "."}.get(self.thousands or "")


def checked_formats(decimal: str | None, thousands: str | None, date: str | None) -> Formats:
    """What is given, refused where it is none of these, or both signs are the same."""
    given = Formats(decimal, thousands, date)
    known: tuple[Collection[str], ...] = (".,", _THOUSANDS, _ORDERS)
    shown = ("'.' or ','", '".", ",", "\'" or " "', "dmy, mdy or ymd")
    for name, value, some, allowed in zip(Formats._fields, given, known, shown, strict=True):
        if value is not None and (not value or value not in some):
            raise StakesError(f"{name} must be {allowed}; got {value!r:.100}")
    if decimal is not None and decimal == thousands:
        raise StakesError(f"{decimal!r} cannot stand both before decimals and between thousands")
    return given


class Ways(NamedTuple):
    """All ways in which the cells of a column can be read as values of one kind.

    `values` has for each way (the sign before decimals, the order of a date) a value for each different cell: a text
    that `float` takes, a moment, or hours. Cells that stand for gaps are in `gaps`.
    """

    kind: Kind
    values: Mapping[str, Mapping[str, Any]]
    gaps: frozenset[str] = frozenset()


def ways_of(cells: Iterable[str]) -> Ways | None:
    """How different cells can be read as numbers, dates, times, or yes and no; None where they are text."""
    known = {cell for cell in cells if cell.strip().lower() not in GAPS}
    gaps = frozenset(cells) - known
    if not known:
        return None
    if numbers := _number_ways(known):
        return Ways("number", numbers, gaps)
    if dates := _date_ways(known):
        timed = any(moment.time() != _EPOCH.time() for each in dates.values() for moment in each.values())
        return Ways("datetime" if timed else "date", dates, gaps)
    if (hours := _all_of(known, _hours)) is not None:
        return Ways("time", {"": hours}, gaps)
    return _yes_no(known, gaps)


def reads_as_number(cell: str) -> bool:
    """Whether a cell can be read as a number in any way."""
    return bool(_number_ways([cell]))


def unit_of(cell: str) -> str | None:
    """What stands beside a number, "%" or the sign of a currency; "" where nothing does; None for what is no number."""
    match = _number_parts(cell)
    return None if match is None else match["percent"] or match["prefix"] or match["suffix"] or ""


def are_alike(*cells: str | None) -> bool:
    """Whether cells can be read as numbers in one way."""
    return bool(_number_ways([cell for cell in cells if cell is not None]))


def _number_ways(cells: Iterable[str]) -> dict[str, dict[str, str]]:
    """By the sign before decimals, each cell as `float` takes it; one way where both say the same."""
    parts = _all_of(cells, _number_parts)
    if parts is None or len({bool(match["percent"]) for match in parts.values()}) != 1:
        return {}
    if len({sign for match in parts.values() if (sign := match["prefix"] or match["suffix"])}) > 1:
        return {}
    ways = {sign: _all_of(parts, lambda cell, sign=sign: _plain(parts[cell], sign)) for sign in ".,"}  # type: ignore[misc]
    good = {sign: each for sign, each in ways.items() if each is not None}
    return {".": good["."]} if len(good) == 2 and good["."] == good[","] else good


def _all_of(cells: Iterable[str], read: Callable[[str], T | None]) -> dict[str, T] | None:
    """What every cell is; None as soon as one cannot be read."""
    found: dict[str, T] = {}
    for cell in cells:
        value = read(cell)
        if value is None:
            return None
        found[cell] = value
    return found


def _number_parts(cell: str) -> re.Match[str] | None:
    match = _NUMBER.fullmatch(cell.strip())
    return match if match is not None and _is_whole(match) else None


def _is_whole(match: re.Match[str]) -> bool:
    """Whether signs come in pairs where they must, and once where they may."""
    signs = [match["before"], match["within"], match["open"]]
    exponent = match["exponent"] and (match["percent"] or match["prefix"] or match["suffix"])
    both = match["prefix"] and match["suffix"]
    return sum(map(bool, signs)) <= 1 and bool(match["open"]) == bool(match["close"]) and not exponent and not both


def _plain(match: re.Match[str], decimal: str) -> str | None:
    """The number that `float` takes; None where the cell is none with this sign before decimals."""
    whole, point, fraction = match["body"].partition(decimal)
    if not fraction.isdigit() and fraction:
        return None
    digits = _without_thousands(whole, decimal, alone=not match["exponent"])
    if digits is None or not (digits or fraction):
        return None
    minus = "-" if match["open"] or (match["before"] or match["within"]) in ("-", "\u2212") else ""
    text = f"{minus}{digits or '0'}{'.' + fraction if point and fraction else ''}{match['exponent'] or ''}"
    return repr(float(f"{text}e-2")) if match["percent"] else text


def _without_thousands(whole: str, decimal: str, *, alone: bool) -> str | None:
    """The digits before the decimals; None where signs do not stand between thousands."""
    if whole.isdigit() or not whole:
        return whole
    signs = {_THOUSANDS.get(sign) for sign in whole if not sign.isdigit()}
    sign = signs.pop()
    if signs or sign is None or sign == decimal or not alone:
        return None
    groups = re.split(r"\D", whole)
    if groups[0].startswith("0") or not 1 <= len(groups[0]) <= 3 or len(groups[-1]) != 3:
        return None
    usual = all(len(group) == 3 for group in groups[1:])
    indian = sign == "," and len(groups[0]) <= 2 and all(len(group) == 2 for group in groups[1:-1]) and len(groups) > 2
    return "".join(groups) if usual or indian else None


def _date_ways(cells: Iterable[str]) -> dict[str, dict[str, datetime]]:
    """By the order of day, month and year, each cell as a moment; by "" where every order says the same."""
    good: dict[str, dict[str, datetime]] = {}
    for order in _ORDERS:
        moments = _all_of(cells, lambda cell, order=order: _moment(cell.strip(), order))  # type: ignore[misc]
        if moments is not None:
            good[order] = moments
    every = list(good.values())
    return {"": every[0]} if len(every) == len(_ORDERS) and all(each == every[0] for each in every) else good


def _moment(cell: str, order: str) -> datetime | None:
    for pattern in _DAYS:
        if found := pattern.fullmatch(cell):
            parts = found.groupdict()
            month = _MONTH_OF.get(_letters(parts["name"])) if parts.get("name") else int(parts["m"])
            return None if month is None else _made(found, parts["y"], month, parts["d"])
    found = _DIGITS.fullmatch(cell)
    if found is None or (order != "dmy" and found["between"] == "."):  # points are put so in one order only
        return None
    year, number, day = (found[place] for place in _ORDERS[order])
    return _made(found, year, int(number), day) if len(year) != 1 and len(day) <= 2 else None


def _made(found: re.Match[str], year: str, month: int, day: str) -> datetime | None:
    count = int(year) if len(year) == 4 else int(year) + (2000 if int(year) < _CENTURY else 1900)
    hours = _clock(found)
    if hours is None or hours >= 24.0:
        return None
    try:
        moment = datetime(count, month, int(day)) + timedelta(hours=hours)
        return moment - _offset(found["zone"])
    except (ValueError, OverflowError):
        return None


def _offset(zone: str | None) -> timedelta:
    if zone in (None, "", "Z", "UTC"):
        return timedelta(0)
    digits = str(zone)[1:].replace(":", "")
    ahead = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return -ahead if str(zone)[0] == "-" else ahead


def _hours(cell: str) -> float | None:
    found = _CLOCK.fullmatch(cell.strip())
    return None if found is None else _clock(found)


def _clock(found: re.Match[str]) -> float | None:
    """Hours since midnight; None for what no clock shows."""
    if found["hour"] is None:
        return 0.0
    hour, minute, second = int(found["hour"]), int(found["minute"]), int(found["second"] or 0)
    if minute > 59 or second > 59:
        return None
    if found["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if found["half"] in "pP" else 0)
    return hour + minute / 60 + (second + float(f"0.{found['fraction'] or 0}")) / 3600


def _letters(text: str) -> str:
    """Small letters without accents."""
    return "".join(each for each in unicodedata.normalize("NFKD", text.lower()) if not unicodedata.combining(each))


def _month_names() -> Iterator[tuple[str, int]]:
    """Every beginning of the name of a month, of three letters or more, that is of one month in all languages."""
    begins: dict[str, set[int]] = {}
    for month, name in ((month, name) for line in _MONTHS for month, name in enumerate(line.split(), 1)):
        for length in range(3, len(name) + 1):
            begins.setdefault(name[:length], set()).add(month)
    return ((begin, months.pop()) for begin, months in begins.items() if len(months) == 1)


_MONTH_OF = dict(_month_names())


def _yes_no(cells: set[str], gaps: frozenset[str]) -> Ways | None:
    if len(cells) > _SPELLINGS:
        return None
    spelled = {cell: _letters(cell.strip()) for cell in cells}
    for yes, no in _YES_NO:
        if set(spelled.values()) == {yes, no}:
            return Ways("yes or no", {"": {cell: float(word == yes) for cell, word in spelled.items()}}, gaps)
    return None


def parts_of(kind: str, moments: Iterable[datetime | None]) -> dict[str, list[float]]:
    """The parts of dates by name, NaN where there is none."""
    known = list(moments)
    every: dict[str, Callable[[datetime], float]] = {
        "days": lambda moment: (moment - _EPOCH).total_seconds() / 86400,
        "year": lambda moment: float(moment.year),
        "month": lambda moment: float(moment.month),
        "weekday": lambda moment: float(moment.isoweekday()),
        "hour": lambda moment: moment.hour + moment.minute / 60 + moment.second / 3600,
    }
    nan = float("nan")
    return {name: [nan if each is None else every[name](each) for each in known] for name in PARTS[kind]}


class Reading(NamedTuple):
    """How a column is read: what its cells are, and why so where that was open."""

    kind: Kind | Literal["text"]
    values: Mapping[str, Any] | None = None
    """By cell; None where each is what `float` makes of it, or text."""
    gaps: frozenset[str] = frozenset()
    why: str = ""


def settled(
    name: str, ways: Ways, formats: Formats, delimiter: str | None, others: Callable[[], Collection[str]]
) -> tuple[str, str]:
    """The way in which a column is read, and why, where it can be read in several.

    `others` gives the ways, signs before decimals and orders of dates, that the other columns of the table tell.
    """
    if len(ways.values) == 1:
        return next(iter(ways.values)), ""
    given = formats.sign if ways.kind == "number" else formats.date
    if given in ways.values:
        return str(given), ""
    seen = others()
    found = [way for way in ways.values if way in seen]
    if len(found) == 1:
        return found[0], "as in other columns"
    if ways.kind != "number":
        if set(ways.values) == {"dmy", "mdy"} and "," in seen and "." not in seen:
            return "dmy", "as numbers have a decimal comma"
        raise _refused(name, ways, "date")
    return _sign_of(name, ways, delimiter, clash=len(found) > 1)


def _sign_of(name: str, ways: Ways, delimiter: str | None, *, clash: bool) -> tuple[str, str]:
    """The sign before decimals where only the delimiter is left to tell it."""
    cells = list(ways.values["."])
    points, commas = (any(sign in cell for cell in cells) for sign in ".,")
    if clash or (points and commas):
        raise _refused(name, ways, "decimal")
    if commas and delimiter == ",":
        return ".", "as commas stand between cells"
    if commas or (delimiter == ";" and not _has_thousands(cells)):
        raise _refused(name, ways, "decimal")
    return (".", "as nothing tells otherwise") if delimiter != ";" else (",", "as in 950 and 1.250")


def _has_thousands(cells: Iterable[str]) -> bool:
    """Whether points are put before three digits that end in 0, and in numbers above 999 alone.

    Whoever writes three decimals everywhere writes 950.000, too; whoever leaves zeros out at the end writes 1.25.
    """
    texts = [cell.strip().lstrip("+-") for cell in cells]
    whole = [text for text in texts if text.isdigit()]
    return (
        bool(whole)
        and all(len(text) <= 3 for text in whole)
        and any(text.endswith("0") for text in texts if "." in text)
    )


def _refused(name: str, ways: Ways, option: str) -> StakesError:
    one, *_ = ways.values
    cell, _ = example_of(ways.values[one])
    means = " or ".join(
        f"{shown_value(values[cell])} ({option}={way!r}, --{option} {way})" for way, values in ways.values.items()
    )
    return StakesError(f"column {name!r}: {cell!r} may be {means}, and nothing in the table tells. Say which.")


def example_of(values: Mapping[str, Any]) -> tuple[str, str]:
    """The cell that shows best how a column is read, and what it is."""
    cell = max(values, key=lambda each: (len({*each} & {*_THOUSANDS}), len(each), each))
    return cell, shown_value(values[cell])


def shown_value(value: Any) -> str:
    """A value for a sentence."""
    if isinstance(value, datetime):
        return value.isoformat(" ").removesuffix(" 00:00:00")
    return value if isinstance(value, str) else f"{value:g}"


def sentences(readings: Mapping[str, Reading]) -> list[str]:
    """How columns by name are read, where that is not plain: a sentence for those that are read alike."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, reading in readings.items():
        for kind in _kinds_of(reading):
            alike.setdefault(kind, []).append(name)
    return [_sentence(kind, names, readings[names[0]]) for kind, names in alike.items()]


def _kinds_of(reading: Reading) -> Iterator[tuple[str, ...]]:
    """The notes that a column needs; columns with the same one are named together."""
    if reading.gaps and reading.kind != "text":
        yield "gaps", *sorted(reading.gaps)
    if reading.kind == "number" and reading.why:
        yield "open", reading.why, *sorted(_signs_in(reading))
    elif reading.kind == "number" and any(cell.strip() != text for cell, text in (reading.values or {}).items()):
        yield "number", *sorted(_signs_in(reading))
    elif reading.kind not in ("number", "text"):
        yield reading.kind, reading.why


def _signs_in(reading: Reading) -> set[str]:
    return {sign for cell in reading.values or () for sign in cell if not sign.isalnum()}


def _sentence(kind: tuple[str, ...], names: list[str], reading: Reading) -> str:
    where = f"column{'s' * (len(names) > 1)} {listed(names)}"
    if kind[0] == "gaps":
        return f"Cells {listed(map(repr, kind[1:]))} are taken for gaps in {where}."
    if kind[0] == "yes or no":
        yes, no = (next(cell for cell, value in (reading.values or {}).items() if value == each) for each in (1.0, 0.0))
        return f"Read {yes} as 1 and {no} as 0 in {where}."
    cell, value = example_of(reading.values or {})
    why = f", {reading.why}" if reading.why else ""
    if kind[0] == "open":
        return f"Read {cell} as {value} in {where}{why}. If that is wrong, say so: --decimal."
    if kind[0] == "number":
        return f"Read {cell} as {value} in {where}."
    if kind[0] == "time":
        return f"Read {cell} as {value} hours in {where}."
    sees = f"the model sees days since 1970, {', '.join(PARTS[kind[0]][1:])}"
    if cell.strip().replace("T", " ") == value:
        return f"Column{where.removeprefix('column')} hold{'s' * (len(names) == 1)} dates; {sees}."
    return f"Read {cell} as {value} in {where}{why}; {sees}."


def plain_number(text: str, formats: Formats) -> str | None:
    """A number by itself, as `float` takes it; None where it is none. One that may be two is refused."""
    ways = _number_ways([text])
    if len(ways) < 2:
        return next((each[text] for each in ways.values()), None)
    sign, pointed = formats.sign, "." in text
    if sign == "." or (sign == "," and not pointed):
        return ways[sign][text]
    if sign is None and pointed:
        return text
    one, other = ways["."][text], ways[","][text]
    mark = sign or "."
    raise StakesError(
        f"{text!r} may be {one} or {other}: write {one.replace('.', mark)} or {other.replace('.', mark)}."
    )


def joint_numbers(name: str, cells: Collection[str], delimiter: str | None) -> Mapping[str, str]:
    """Cells that are written in one way, as `float` takes them; none where they are no numbers."""
    ways = ways_of(cells)
    if ways is None or ways.kind != "number" or ways.gaps:
        return {}
    return ways.values[settled(name, ways, Formats(), delimiter, tuple)[0]]
