"""Forty tables as people have them, made from one table that is known: dialects, languages, spreadsheets and faults.

    python -m tests.files.messy_tables FOLDER        # writes them

Each case is a file, the flags without which it cannot be read (none for most), and what it holds.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np

ROWS, LABELS = 60, 24
PIECES = ("north", "south", "east", "west")


@dataclass(frozen=True)
class Case:
    """A file, and what it holds."""

    path: Path
    target: str
    loss: str
    numbers: dict[str, list[float | None]]
    """By the name that a feature has for the model, the numbers that it must be."""
    labels: dict[int, str]
    """By row; numbers as `float` takes them."""
    flags: tuple[str, ...] = ()
    """Without these it is refused, and the message names the first of them."""
    notes: tuple[str, ...] = ()
    """Parts of the notes."""
    texts: tuple[list[str], ...] = ()
    """Columns of text beside the names of flats and the parts of the town."""


@dataclass(frozen=True)
class Truth:
    """The table that all are made from."""

    ids: list[str] = field(default_factory=list)
    area: list[float] = field(default_factory=list)
    rent: list[float] = field(default_factory=list)
    share: list[float] = field(default_factory=list)
    year: list[int] = field(default_factory=list)
    piece: list[str] = field(default_factory=list)
    lift: list[bool] = field(default_factory=list)
    day: list[date] = field(default_factory=list)
    price: list[float | None] = field(default_factory=list)
    kind: list[str | None] = field(default_factory=list)


def truth() -> Truth:
    """Sixty flats, twenty-four of them with a price and a kind."""
    rng = np.random.default_rng(5)
    area = np.round(rng.uniform(20, 180, ROWS), 1)
    price = np.round(900 + 41.37 * area + rng.normal(0, 150, ROWS), 2)
    known = set(rng.choice(ROWS, LABELS, replace=False).tolist())
    return Truth(
        [f"F{row:03d}" for row in range(ROWS)],
        area.tolist(),
        np.round(rng.uniform(800, 4200, ROWS), 2).tolist(),
        np.round(rng.uniform(0, 1, ROWS), 3).tolist(),
        rng.integers(1890, 2024, ROWS).tolist(),
        rng.choice(PIECES, ROWS).tolist(),
        (rng.random(ROWS) < 0.5).tolist(),
        [date(2019, 1, 1) + timedelta(days=int(days)) for days in rng.integers(0, 2000, ROWS)],
        [price[row] if row in known else None for row in range(ROWS)],
        [("expensive" if area[row] > 95 else "cheap") if row in known else None for row in range(ROWS)],
    )


def grouped(value: float, digits: int = 2, *, decimal: str = ".", thousands: str = ",") -> str:
    """1234.5 as people write it."""
    return f"{value:,.{digits}f}".translate(str.maketrans({",": thousands, ".": decimal}))


def german(value: float, digits: int = 2) -> str:
    """1.234,50."""
    return grouped(value, digits, decimal=",", thousands=".")


def indian(value: int) -> str:
    """1,23,456."""
    head, tail = divmod(value, 1000)
    pairs = f"{head // 100},{head % 100:02d}" if head >= 100 else str(head)
    return f"{pairs},{tail:03d}"


def days(moments: list[date]) -> list[float | None]:
    """What the model sees of dates."""
    return [float((each - date(1970, 1, 1)).days) for each in moments]


def parted(name: str, moments: list[date]) -> dict[str, list[float | None]]:
    """All parts of dates."""
    return {
        f"{name} (days)": days(moments),
        f"{name} (year)": [float(each.year) for each in moments],
        f"{name} (month)": [float(each.month) for each in moments],
        f"{name} (weekday)": [float(each.isoweekday()) for each in moments],
    }


def text_of(names: list[str], columns: list[list[str]], delimiter: str, *, quoting: int = csv.QUOTE_MINIMAL) -> str:
    """A CSV."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, quoting=quoting, lineterminator="\r\n")
    writer.writerow(names)
    writer.writerows(zip(*columns, strict=True))
    return out.getvalue()


class Maker:
    """Writes cases into a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.truth, self.cases = folder, truth(), []
        self.folder.mkdir(parents=True, exist_ok=True)

    def labels(self, kind: bool = False) -> dict[int, str]:
        found = self.truth.kind if kind else self.truth.price
        return {row: str(label) for row, label in enumerate(found) if label is not None}

    def prices(self, write: Callable[[float], str] = str, gap: str = "") -> list[str]:
        return [gap if price is None else write(price) for price in self.truth.price]

    def add(
        self,
        name: str,
        content: str | bytes | None,
        numbers: dict[str, list[float | None]],
        *,
        target: str = "price",
        loss: str = "squared-error",
        encoding: str = "utf-8",
        flags: tuple[str, ...] = (),
        notes: tuple[str, ...] = (),
        texts: tuple[list[str], ...] = (),
    ) -> None:
        path = self.folder / name
        if isinstance(content, str):
            path.write_bytes(content.encode(encoding))
        elif content is not None:
            path.write_bytes(content)
        labels = self.labels(kind=loss == "log-loss")
        self.cases.append(Case(path, target, loss, numbers, labels, flags, notes, texts))


def european(make: Maker) -> None:
    """German, French, Spanish and Italian files, with decimal commas."""
    t = make.truth
    area, rent, price = [german(v, 1) for v in t.area], [german(v) for v in t.rent], make.prices(german)
    lift = ["ja" if each else "nein" for each in t.lift]
    day = [f"{each:%d.%m.%Y}" for each in t.day]
    ones = [float(each) for each in t.lift]
    names = ["Wohnung", "Fläche", "Miete", "Aufzug", "Bezug", "price"]
    truths = {"Fläche": t.area, "Miete": t.rent, "Aufzug": ones, **parted("Bezug", t.day)}
    table = text_of(names, [t.ids, area, rent, lift, day, price], ";")
    notes = ("as", "in column", "Bezug")
    make.add("01_german_excel_1252.csv", table, truths, encoding="cp1252", notes=("Windows-1252", *notes))
    make.add("02_german_utf8_mark.csv", table, truths, encoding="utf-8-sig", notes=notes)
    euros = [f"{each} €" for each in rent]
    table = text_of(names, [t.ids, area, euros, lift, day, [each and f"{each} €" for each in price]], ";")
    make.add("03_german_euros.csv", table, truths, encoding="cp1252")
    names = ["logement", "surface", "loyer", "ascenseur", "date", "price"]
    truths = {"surface": t.area, "loyer": t.rent, "ascenseur": ones, **parted("date", t.day)}
    oui = ["oui" if each else "non" for each in t.lift]
    day = [f"{each:%d/%m/%Y}" for each in t.day]
    for number, space, encoding in (("04", "\u202f", "utf-8"), ("05", "\u00a0", "latin-1")):
        loyer = [f"{grouped(v, decimal=',', thousands=space)}" for v in t.rent]
        table = text_of(names, [t.ids, [german(v, 1) for v in t.area], loyer, oui, day, make.prices(german)], ";")
        make.add(f"{number}_french_{encoding}.csv", table, truths, encoding=encoding)
    meses = "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre".split()  # noqa: SIM905
    fecha = [f"{each.day} de {meses[each.month - 1]} de {each.year}" for each in t.day]
    si = ["Sí" if each else "No" for each in t.lift]
    names = ["piso", "superficie", "alquiler", "ascensor", "fecha", "price"]
    table = text_of(names, [t.ids, area, rent, si, fecha, price], ";")
    truths = {"superficie": t.area, "alquiler": t.rent, "ascensor": ones, **parted("fecha", t.day)}
    make.add("06_spanish.csv", table, truths)
    mesi = "gen feb mar apr mag giu lug ago set ott nov dic".split()  # noqa: SIM905
    data = [f"{each.day:02d}-{mesi[each.month - 1]}-{each.year}" for each in t.day]
    quota = [f"{german(100 * v, 1)}%" for v in t.share]
    table = text_of(["casa", "metri", "quota", "data", "price"], [t.ids, area, quota, data, price], ";")
    truths = {"metri": t.area, "quota": t.share, **parted("data", t.day)}
    make.add("07_italian_percent.csv", table, truths, encoding="cp1252")


def english(make: Maker) -> None:
    """American, British, Swiss, Indian and Chinese files."""
    t = make.truth
    ones = [float(each) for each in t.lift]
    area, yes = [str(v) for v in t.area], ["Yes" if each else "No" for each in t.lift]
    dollars, price = [f"${grouped(v)}" for v in t.rent], make.prices(lambda v: f"${grouped(v)}")
    day = [f"{each.month}/{each.day}/{each.year}" for each in t.day]
    names = ["flat", "area", "rent", "lift", "since", "price"]
    truths = {"area": t.area, "rent": t.rent, "lift": ones, **parted("since", t.day)}
    make.add("08_american.csv", text_of(names, [t.ids, area, dollars, yes, day, price], ","), truths)
    pounds = [f"£{grouped(v, 0)}" for v in t.rent]
    day = [f"{each.day:02d}-{each:%b}-{each:%y}" for each in t.day]
    whole = {**truths, "rent": [float(f"{v:.0f}") for v in t.rent]}
    table = text_of(names, [t.ids, area, pounds, yes, day, make.prices()], ",")
    make.add("09_british.csv", table, whole, encoding="cp1252")
    francs = [f"CHF {grouped(v, thousands=chr(0x2019))}" for v in t.rent]
    day = [f"{each.day}.{each.month}.{each.year}" for each in t.day]
    table = text_of(names, [t.ids, area, francs, yes, day, make.prices(lambda v: grouped(v, thousands="'"))], ";")
    make.add("10_swiss.csv", table, truths)
    lakh = [f"₹{indian(round(40 * v))}" for v in t.rent]
    truths = {"area": t.area, "rent": [float(round(40 * v)) for v in t.rent]}
    table = text_of(["flat", "area", "rent", "price"], [t.ids, area, lakh, make.prices()], ",")
    make.add("11_indian.csv", table, truths)
    zh = ["是" if each else "否" for each in t.lift]
    day = [f"{each.year}年{each.month}月{each.day}日" for each in t.day]
    names = ["编号", "面积", "租金", "电梯", "日期", "price"]
    table = text_of(names, [t.ids, area, [f"\uffe5{grouped(v)}" for v in t.rent], zh, day, make.prices()], ",")
    truths = {"面积": t.area, "租金": t.rent, "电梯": ones, **parted("日期", t.day)}
    make.add("12_chinese_gbk.csv", table, truths, encoding="gbk", notes=("GBK",))
    table = text_of(names, [t.ids, area, [str(v) for v in t.rent], zh, day, make.prices()], "\t")
    make.add("13_excel_unicode_text.txt", table, truths, encoding="utf-16")
    make.add("14_utf16_big_endian.txt", b"\xfe\xff" + table.encode("utf-16-be"), truths)


def programs(make: Maker) -> None:
    """What R, pandas, SAS and others write."""
    t = make.truth
    numbers = [str(row + 1) for row in range(ROWS)]
    area = ["NA" if row % 9 == 4 else str(v) for row, v in enumerate(t.area)]
    gaps = [None if row % 9 == 4 else v for row, v in enumerate(t.area)]
    names, quoted = ["area", "rent", "piece", "price"], [f'"{each}"' for each in t.piece]
    rent, price = [str(v) for v in t.rent], make.prices(gap="NA")
    truths = {"area": gaps, "rent": t.rent}

    def lines(columns: list[list[str]], between: str, header: list[str]) -> str:
        head = between.join(f'"{name}"' for name in header)
        rows = [between.join(cells) for cells in zip(*columns, strict=True)]
        return "\n".join([head, *rows]) + "\n"

    index = [f'"{number}"' for number in numbers]
    make.add(
        "15_r_write_csv.csv", lines([index, area, rent, quoted, price], ",", ["", *names]), truths, notes=("'NA'",)
    )
    comma = [[each.replace(".", ",") for each in column] for column in (area, rent, price)]
    table = lines([index, comma[0], comma[1], quoted, comma[2]], ";", ["", *names])
    make.add("16_r_write_csv2.csv", table, truths)
    make.add("17_r_write_table.txt", lines([index, area, rent, quoted, price], " ", names), truths)
    kind = ["NA" if each is None else f'"{each}"' for each in t.kind]
    table = lines([index, area, rent, quoted, kind], ",", ["", "area", "rent", "piece", "kind"])
    notes = ("'NA' in 'kind' is taken for a gap",)
    make.add("18_r_classes.csv", table, truths, target="kind", loss="log-loss", notes=notes)
    import pandas

    frame = pandas.DataFrame({"area": t.area, "rent": t.rent, "since": pandas.to_datetime(t.day), "price": t.price})
    plain = {"area": t.area, "rent": t.rent, **parted("since", t.day)}
    make.add("19_pandas_index.csv", frame.to_csv(), plain, notes=("has no name", "'index'"))
    again = pandas.read_csv(io.StringIO(frame.to_csv()))
    make.add("20_pandas_index_twice.csv", again.to_csv(index=False), plain)
    make.add("21_pandas_nan.csv", frame.to_csv(index=False, na_rep="NaN"), plain)
    table = text_of(["flat", "area", "price"], [t.ids, [german(v, 1) for v in t.area], make.prices(german)], ";")
    make.add("22_excel_sep_line.csv", f"sep=;\r\n{table}", {"area": t.area})
    titled = f"Flats of the town;;\r\n;;\r\n{table}"
    make.add("23_title_rows.csv", titled, {"area": t.area}, notes=("'Flats of the town'", "line 3"))
    make.add("24_blank_rows_at_the_end.csv", table + ";;\r\n" * 4, {"area": t.area}, notes=("4 blank rows",))
    ended = "".join(f"{line};\r\n" for line in table.splitlines())
    make.add("25_delimiter_at_the_end.csv", ended, {"area": t.area})
    names = ["flat", "area", "rent", "price"]
    columns = [t.ids, [str(v) for v in t.area], rent, make.prices()]
    make.add("26_bars.txt", text_of(names, columns, "|"), {"area": t.area, "rent": t.rent})
    signed = [v - 2500 for v in t.rent]
    booked = [f"({grouped(-v)})" if v < 0 else grouped(v) for v in signed]
    table = text_of(names, [t.ids, columns[1], booked, make.prices()], ",")
    make.add("27_accounting.csv", table, {"area": t.area, "rent": [float(f"{v:.2f}") for v in signed]})
    area = ["." if row % 7 == 3 else str(v) for row, v in enumerate(t.area)]
    rent = ["?" if row % 5 == 1 else str(v) for row, v in enumerate(t.rent)]
    truths = {
        "area": [None if row % 7 == 3 else v for row, v in enumerate(t.area)],
        "rent": [None if row % 5 == 1 else v for row, v in enumerate(t.rent)],
    }
    make.add("28_marks_of_sas_and_uci.csv", text_of(names, [t.ids, area, rent, make.prices()], ","), truths)


def numbers_and_codes(make: Maker) -> None:
    """Numbers that only the rest of the table explains, clocks and codes; and what must be refused."""
    t = make.truth
    whole = [100.0 * round(v) for v in t.rent]
    points = [german(v, 0) for v in whole]
    names, area = ["flat", "area", "rent", "price"], [german(v, 1) for v in t.area]
    table = text_of(names, [t.ids, area, points, make.prices(german)], ";")
    make.add("29_points_between_thousands.csv", table, {"area": t.area, "rent": whole}, notes=("as in other columns",))
    clock = [f"{row % 24:02d}:{(7 * row) % 60:02d}" for row in range(ROWS)]
    hours = [row % 24 + ((7 * row) % 60) / 60 for row in range(ROWS)]
    moments = [datetime(each.year, each.month, each.day, 6, 30) for each in t.day]
    built = [each.isoformat(" ") for each in moments]
    plain = [str(v) for v in t.area]
    table = text_of(["opens", "built", "area", "price"], [clock, built, plain, make.prices()], ",")
    parts = parted("built", t.day)
    parts["built (days)"] = [float(each or 0.0) + 6.5 / 24 for each in parts["built (days)"]]
    truths = {"opens (hours)": hours, "area": t.area, "built (hour)": [6.5] * ROWS, **parts}
    make.add("30_times.csv", table, truths)
    codes = [[f"A{column}{(row * column) % 4 + 1}" for row in range(ROWS)] for column in range(1, 6)]
    names = [*(f"attribute {column}" for column in range(1, 6)), "area", "flat", "kind"]
    kind = [each or "" for each in t.kind]
    table = text_of(names, [*codes, plain, t.ids, kind], ",")
    notes, texts = ("--id flat",), tuple(codes)
    make.add("31_codes.csv", table, {"area": t.area}, target="kind", loss="log-loss", notes=notes, texts=texts)
    thousands = [f"{1 + row % 9}.{100 + 7 * row}" for row in range(ROWS)]
    read = [float(each.replace(".", "")) for each in thousands]
    table = text_of(["flat", "rent", "price"], [t.ids, thousands, make.prices(lambda v: str(round(v)))], ";")
    make.add("37_open_decimal.csv", table, {"rent": read}, flags=("--decimal", ","))
    make.cases[-1].labels.update({row: str(round(float(label))) for row, label in make.cases[-1].labels.items()})
    open_days = [each.replace(day=each.day % 12 + 1) for each in t.day]
    since = [f"{each:%m/%d/%Y}" for each in open_days]
    table = text_of(["since", "area", "price"], [since, plain, make.prices()], ",")
    truths = {"area": t.area, **parted("since", open_days)}
    make.add("38_open_date.csv", table, truths, flags=("--date", "mdy"))
    flats = [f"квартира {each}" for each in t.ids]
    table = text_of(["квартира", "площадь", "price"], [flats, plain, make.prices()], ";")
    flags = ("--encoding", "cp1251")
    make.add("39_cyrillic.csv", table, {"площадь": t.area}, encoding="cp1251", flags=flags, texts=(flats,))
    dashes = ["-" if row % 6 == 2 else str(v) for row, v in enumerate(t.area)]
    rent = [str(v) for v in t.rent]
    table = text_of(["flat", "area", "rent", "price"], [t.ids, dashes, rent, make.prices()], ",")
    truths = {"area": [None if row % 6 == 2 else v for row, v in enumerate(t.area)], "rent": t.rent}
    make.add("40_dashes.csv", table, truths, flags=("--missing", "-"))


def spreadsheets(make: Maker) -> None:
    """Written by openpyxl, and by pandas with odfpy."""
    import openpyxl
    import pandas

    t = make.truth
    ones = [float(each) for each in t.lift]
    frame = pandas.DataFrame(
        {"flat": t.ids, "area": t.area, "share": t.share, "lift": t.lift, "since": t.day, "price": t.price}
    )
    truths = {"area": t.area, "share": t.share, "lift": ones, **parted("since", t.day)}
    for number, ending in (("32", "xlsx"), ("33", "ods")):
        frame.to_excel(str(make.folder / f"{number}_pandas.{ending}"), index=False)
        make.add(f"{number}_pandas.{ending}", None, truths)
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Wohnungen"
    sheet["A1"] = "Wohnungen der Stadt"
    sheet.merge_cells("A1:D1")
    for place, name in enumerate(["Wohnung", "Fläche", "Anteil", "Bezug", "price"], 2):
        sheet.cell(3, place, name)
    for row in range(ROWS):
        cells = [t.ids[row], t.area[row], t.share[row], t.day[row], t.price[row]]
        for place, value in enumerate(cells, 2):
            sheet.cell(row + 4, place, value)
        sheet.cell(row + 4, 4).number_format = "0.0%"
        sheet.cell(row + 4, 6).number_format = '#,##0.00 "€"'
    book.save(make.folder / "34_title_and_formats.xlsx")
    truths = {"Fläche": t.area, "Anteil": t.share, **parted("Bezug", t.day)}
    make.add("34_title_and_formats.xlsx", None, truths, notes=("'Wohnungen der Stadt'", "row 3"))
    with pandas.ExcelWriter(make.folder / "35_second_sheet.xlsx") as writer:
        about = pandas.DataFrame({"about": ["flats of the town"], "who": ["me"]})
        about.to_excel(writer, sheet_name="Info", index=False)
        frame.to_excel(writer, sheet_name="Data", index=False)
    truths = {"area": t.area, "share": t.share, "lift": ones, **parted("since", t.day)}
    make.add("35_second_sheet.xlsx", None, truths, notes=("Sheet 'Data'",))
    area, rent = [german(v, 1) for v in t.area], [german(v) for v in t.rent]
    typed = pandas.DataFrame({"flat": t.ids, "Fläche": area, "Miete": rent, "price": make.prices(german)})
    typed.to_excel(str(make.folder / "36_numbers_as_text.ods"), index=False)
    make.add("36_numbers_as_text.ods", None, {"Fläche": t.area, "Miete": t.rent})


def messy_tables(folder: Path) -> list[Case]:
    """Write all, and say what they hold."""
    make = Maker(folder)
    for part in (european, english, programs, numbers_and_codes, spreadsheets):
        part(make)
    return sorted(make.cases, key=lambda case: case.path.name)


if __name__ == "__main__":
    messy_tables(Path(sys.argv[1]))
