"""Text made ready for the ear: numbers, money, dates, units, abbreviations and signs in words.

What comes out holds letters, combining marks, spaces, apostrophes, hyphens inside words and the pauses , . ; : ? !
only. Emoji are dropped: a name read aloud in the middle of a sentence tells a listener nothing. Of a web address the
host is said, of a path nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache

from appliance.errors import ConfigFault
from appliance.runtime.locales import LOCALES, Locale
from appliance.runtime.numerals import LARGEST, spell

Match = re.Match[str]
Rule = tuple[re.Pattern[str], Callable[[Match], str]]

PASSES = 8
_TLD = r"(?:com|org|net|edu|gov|io|dev|app|info|biz|co\.uk|uk|de|fr|es|eu|us|ca|ch|at|it|nl|ai|tv|me)"
_KEPT = frozenset("²³ºª½¼¾⅓⅔⅕⅛⅜⅝⅞™©®№")
_VULGAR = {"½": (1, 2), "¼": (1, 4), "¾": (3, 4), "⅓": (1, 3), "⅔": (2, 3), "⅕": (1, 5), "⅛": (1, 8), "⅜": (3, 8),
           "⅝": (5, 8), "⅞": (7, 8)}  # fmt: skip
_LIKE = {
    **dict.fromkeys("‘’‛ʼ´`＇", "'"),
    **dict.fromkeys("“”„‟«»″＂", '"'),
    **dict.fromkeys("‐‑⁃", "-"),
    **dict.fromkeys("−﹣－", "-"),
    **dict.fromkeys("‒–", "–"),
    **dict.fromkeys("—―", "—"),
    **dict.fromkeys("⁄∕", "/"),
    "…": "...",
    "′": "'",
    "℃": "°C",
    "℉": "°F",
    "™": "",
    "©": "",
    "®": "",
    "؟": "?",
    "،": ",",
    "。": ". ",
    "、": ", ",
    "，": ", ",
    "？": "? ",
    "！": "! ",
    "¿": "",
    "¡": "",
}
_ROMAN = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}
_PARTS = (
    "Chapter|Part|Act|Scene|Volume|Book|Section|Article|Title|Phase|Type|Class|Stage|Level|Figure|Appendix|Mark"
    "|Super Bowl|World War|War|Star Wars|Episode|Rocky|Final Fantasy"
    "|Kapitel|Teil|Band|Akt|Chapitre|Tome|Partie|Capítulo|Parte|Tomo"
)
_RULERS = (
    "Henry|Louis|George|Elizabeth|Charles|James|Edward|William|Richard|Pope|Paul|Benedict|Philip|Napoleon|Catherine|Mary"
    "|Frederick|Pius|Francis|Alexander|Ferdinand|Leo|Ivan|Peter|Nicholas|Gregory|Ramses|Xerxes"
)
_AS_DIGITS = (
    r"(?:order|code|pin|PIN|id|ID|ref|reference|extension|zip|ZIP|account|serial|confirmation|tracking|booking)"
)


def normalise(text: str, locale: str = "en-US") -> str:
    """`text` as words to be said in `locale` ("en-US", "en-GB", "de-DE", "fr-FR", "es-ES").

    Applying it twice changes nothing more. Raises ConfigFault for a locale that is not known.
    """
    return normaliser(locale)(text)


@lru_cache(8)
def normaliser(locale: str) -> Callable[[str], str]:
    """The function for one locale; ConfigFault if it is not known."""
    if locale not in LOCALES:
        raise ConfigFault(f"no text rules for the locale {locale!r}", f"choose one of {', '.join(LOCALES)}")
    return Normaliser(LOCALES[locale]).say


def clean(text: str) -> str:
    """NFC, with typographic variants, odd spaces, invisible characters and emoji reduced to what rules expect."""
    out = []
    for char in unicodedata.normalize("NFC", text):
        kind = unicodedata.category(char)
        if char in _LIKE:
            out.append(_LIKE[char])
        elif char in _KEPT:
            out.append(char)
        elif kind == "Nd":
            out.append(str(unicodedata.digit(char)))
        elif kind in {"Zs", "Zl", "Zp", "Cc", "Cs", "Co", "Cn"} or _is_emoji(char):
            out.append(" ")
        elif kind != "Cf":
            plain = unicodedata.normalize("NFKC", char)
            out.append(char if plain.startswith(" ") else plain)
    return re.sub(r" +", " ", unicodedata.normalize("NFC", "".join(out))).strip()


def _is_emoji(char: str) -> bool:
    point = ord(char)
    return (
        0x1F000 <= point <= 0x1FAFF
        or 0x2600 <= point <= 0x27BF
        or 0xFE00 <= point <= 0xFE0F
        or 0xE0000 <= point <= 0xE01EF
    )


class Normaliser:
    """The rules of one locale, compiled."""

    def __init__(self, locale: Locale) -> None:
        self._locale = locale
        self._words = locale.words
        self._rules = self._compile()

    def say(self, text: str) -> str:
        """`text` in words; what one pass uncovers (an abbreviation behind an emoji) the next one says."""
        for _ in range(PASSES):
            before = text
            text = self._once(text)
            if text == before:
                break
        return text

    def _once(self, text: str) -> str:
        text = clean(text)
        for pattern, rule in self._rules:
            text = pattern.sub(rule, text)
        return finish(text)

    # --- numbers -----------------------------------------------------------------------------------------------

    def digits(self, text: str) -> str:
        """Digit by digit; other characters are dropped."""
        return " ".join(
            spell(self._locale.language, int(c), "spellout-numbering") for c in text if c.isascii() and c.isdigit()
        )

    def integer(self, text: str) -> str:
        """A whole number as written, grouping allowed."""
        bare = re.sub(r"\D", "", text)
        if not bare:
            return ""
        if (len(bare) > 1 and bare[0] == "0") or len(bare) > 15 or int(bare) >= LARGEST:
            return self.digits(bare)
        return spell(self._locale.language, int(bare), self._locale.cardinal)

    def number(self, text: str) -> str:
        """A number as written: grouping, decimals and a sign allowed."""
        sign = f"{self._words['minus']} " if text[:1] in "-–" and text else ""
        whole, point, rest = text.lstrip("-–+").partition(self._locale.decimal)
        if not point or not rest:
            return sign + self.integer(whole)
        as_number = self._locale.decimals == "number" and len(rest) <= 2 and rest[0] != "0"
        said = self.integer(rest) if as_number else self.digits(rest)
        return f"{sign}{self.integer(whole)} {self._words['point']} {said}".replace("  ", " ").strip()

    def quantity(self, text: str, pair: tuple[str, str]) -> str:
        """A number with the thing it counts."""
        one, many = pair
        if re.fullmatch(r"[-–+]?1", text):
            return f"{self._words['minus']} {one}" if text[0] in "-–" else one
        return f"{self.number(text)} {many}"

    def year(self, text: str) -> str:
        return spell(self._locale.language, int(text), self._locale.year)

    # --- rules -------------------------------------------------------------------------------------------------

    def _compile(self) -> list[Rule]:
        here = self._locale
        group = re.escape(here.grouping)
        integer = rf"(?:\d{{1,3}}(?:{group}\d{{3}})+(?!\d)|\d+)"
        number = rf"(?:{integer}(?:{re.escape(here.decimal)}\d+)?)"
        if here.language == "en":
            number = rf"(?:{number}|\.\d+)"
        sign = r"(?<![\w.,)])[-–]?"
        free = r"(?<![\w.,])"
        rules: list[tuple[str, Callable[[Match], str], int]] = []

        def add(pattern: str, rule: Callable[[Match], str], flags: int = 0) -> None:
            rules.append((pattern, rule, flags))

        self._add_names(add)
        self._add_abbreviations(add)
        self._add_dates(add)
        self._add_times(add)
        self._add_money(add, number)
        self._add_codes(add)
        self._add_units(add, number, free, sign)
        self._add_counting(add, number, integer, free, sign)
        self._add_signs(add)
        return [(re.compile(pattern, flags), rule) for pattern, rule, flags in rules]

    def _add_names(self, add: Callable[..., None]) -> None:
        w = self._words

        def address(m: Match) -> str:
            user = re.sub(r"[._+-]", lambda s: f" {self._mark(s.group())} ", m.group(1))
            return f" {user} {w['at']} {self._host(m.group(2))} "

        add(r"\b([\w.+-]+)@([\w-]+(?:\.[\w-]+)*\.\w{2,})\b", address)
        add(
            r"\b(?:https?|ftp)://(?:www\.)?([\w-]+(?:\.[\w-]+)*)(?::\d+)?(?:[/?#][^\s\"<>]*?)?(?=[.,;:!?)\]]*(?:\s|$)|[\"<>])",
            lambda m: f" {self._host(m.group(1))} ",
            re.IGNORECASE,
        )
        add(
            rf"\b(?:www\.)?((?:[a-z0-9-]+\.)+{_TLD})(?:/[^\s\"<>]*?)?(?=[.,;:!?)\]]*(?:\s|$)|[\"<>])",
            lambda m: f" {self._host(m.group(1))} ",
            re.IGNORECASE,
        )
        add(r"(?<![\w.])(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})(?![\w])", lambda m: self._dotted(m, spelled=True))
        add(r"(?<![\w.])[vV]?\.?(\d+(?:\.\d+)+(?:\.\d+)+)(?!\w)(?=\S*)", self._versions)
        add(r"\b[vV]\.?(\d+(?:\.\d+)*)\b", lambda m: f"{w['version']} {self._point(m.group(1))}")

    def _mark(self, mark: str) -> str:
        names = {".": "dot", "-": "dash", "_": "underscore", "+": "plus"}
        return self._words[names[mark]]

    def _host(self, host: str) -> str:
        dot = f" {self._words['dot']} "
        return dot.join(part.replace("-", " ").replace("_", " ") for part in host.split("."))

    def _dotted(self, m: Match, *, spelled: bool) -> str:
        return f" {self._words['dot']} ".join(self.digits(part) for part in m.groups())

    def _point(self, text: str) -> str:
        english = "point" if self._locale.language == "en" else self._words["dot"]
        return f" {english} ".join(self.integer(part) for part in text.split("."))

    def _versions(self, m: Match) -> str:
        text = m.group(1)
        if re.fullmatch(r"\d{1,2}\.\d{1,2}\.(?:\d{2}|\d{4})", text) and self._locale.day_first:
            return m.group()  # a date
        if self._locale.grouping == "." and re.fullmatch(r"\d{1,3}(?:\.\d{3})+", text):
            return m.group()  # a number
        return self._point(text)

    def _add_abbreviations(self, add: Callable[..., None]) -> None:
        for pattern, said in self._locale.abbreviations.items():
            start = "" if pattern.startswith(("(?<", "№")) else r"(?<![\w.])"
            add(
                rf"{start}(?:{pattern})(?!\w)" if pattern[-1] not in "*)" else rf"{start}(?:{pattern})",
                lambda m, said=said: said,
            )
        add(r"\b((?:[A-Z]\.){2,})(?=\s+[a-z0-9]|[,;:?!)'])", lambda m: m.group().replace(".", ""))
        add(
            r"\b((?:[A-Z]\.){2,})",
            lambda m: m.group().replace(".", "") + ("." if not m.string[m.end() :].strip() else ""),
        )
        add(rf"\b({_RULERS}) ([IVX]+)\b", self._ruler)
        add(rf"\b({_PARTS}) ([IVXL]+)\b", lambda m: f"{m.group(1)} {self._roman(m.group(2))}")
        add(r"\b([A-ZÀ-Þ][\w'-]+) ([IVX]{2,})\b", lambda m: f"{m.group(1)} {self._roman(m.group(2))}")

    def _roman(self, text: str) -> str:
        values = [_ROMAN[c] for c in text]
        total = sum(-v if v < max(values[n:]) else v for n, v in enumerate(values))
        return self.integer(str(total)) if _as_roman(total) == text else text

    def _ruler(self, m: Match) -> str:
        number = self._roman(m.group(2))
        if self._locale.language != "en" or number == m.group(2):
            return f"{m.group(1)} {number}"
        value = next(n for n in range(1, 90) if _as_roman(n) == m.group(2))
        return f"{m.group(1)} the {self._locale.ordinal(value, '')}"

    def _add_dates(self, add: Callable[..., None]) -> None:
        here = self._locale
        before = r"(?:(?<=\s)|(?<=^)|(?<=[(,]))"
        months = "|".join(sorted((re.escape(m) for m in here.month_forms), key=len, reverse=True))
        day = rf"([0-3]?\d){here.day_suffix}"

        def date(m: Match, day: str, month: str, year: str | None) -> str:
            if not (1 <= int(day) <= 31 and 1 <= int(month) <= 12):
                return m.group()
            if year is not None and len(year) == 2:
                year = ("20" if int(year) < 50 else "19") + year
            front = m.string[: m.start()].split()
            said = here.date(int(day), int(month), None if year is None else int(year), front[-1] if front else "")
            return said + self._comma(m, year)

        def named(m: Match) -> str:
            return date(m, m["day"], str(here.month_forms[m["month"].lower()]), m["year"])

        add(rf"{before}(\d{{4}})-(\d{{2}})-(\d{{2}})(?![\d-])", lambda m: date(m, m.group(3), m.group(2), m.group(1)))
        a, b = (1, 2) if here.day_first else (2, 1)
        for mark in (r"/", r"\.", r"-"):
            if mark == r"\." and not here.day_first:
                continue
            add(
                rf"{before}(\d{{1,2}}){mark}(\d{{1,2}}){mark}(\d{{4}}|\d{{2}})(?![\w/])",
                lambda m: date(m, m.group(a), m.group(b), m.group(3)),
            )
        year = r"(?:,?\s+(?P<year>1\d{3}|20\d{2}))?(?![\d:.]\d|\d)"
        if here.language == "es":
            year = r"(?:\s+(?:de\s+|del\s+)?(?P<year>1\d{3}|20\d{2}))?(?![\d:.]\d|\d)"
        fourth = day.replace("(", "(?P<day>", 1)
        if here.language == "en":
            add(rf"{before}(?P<month>{months})\b\.?\s+{fourth}\b{year}", named, re.IGNORECASE)
            add(rf"{before}{fourth}\s+(?:of\s+)?(?P<month>{months})\b\.?{year}", self._day_month(named), re.IGNORECASE)
            add(rf"{before}({months})\.?\s+(1\d{{3}}|20\d{{2}})\b", self._month_year, re.IGNORECASE)
        else:
            add(rf"{before}{fourth}{here.month_joiner}(?P<month>{months})\b\.?{year}", named, re.IGNORECASE)

    def _day_month(self, named: Callable[[Match], str]) -> Callable[[Match], str]:
        """5 March: the order is kept, whichever one the locale likes."""

        def rule(m: Match) -> str:
            if not 1 <= int(m["day"]) <= 31:
                return m.group()
            here = self._locale
            front = m.string[: m.start()].split()
            article = "" if front and front[-1].lower() == "the" else "the "
            month = here.months[here.month_forms[m["month"].lower()] - 1]
            said = f"{article}{here.ordinal(int(m['day']), '')} of {month}"
            return said + (f" {self.year(m['year'])}" if m["year"] else "")

        return rule

    def _month_year(self, m: Match) -> str:
        month = self._locale.months[self._locale.month_forms[m.group(1).lower()] - 1]
        return f"{month} {self.year(m.group(2))}"

    def _comma(self, m: Match, year: str | None) -> str:
        """After a full English date a short pause, if text goes on without one."""
        goes_on = re.match(r"\s+\w", m.string[m.end() :])
        return "," if year and goes_on and self._locale.code == "en-US" else ""

    def _add_times(self, add: Callable[..., None]) -> None:
        here = self._locale
        half = r"(?:\s?([ap])\.?\s?m\b\.?)"

        def clock(m: Match) -> str:
            hour, minute = int(m.group(1)), int(m.group(2))
            if hour > 24 or minute > 59:
                return m.group()
            half = m.group(3) if len(m.groups()) > 2 else None
            if half:
                said = here.clock(hour, minute).removesuffix(" o'clock") if minute == 0 else here.clock(hour, minute)
                return f"{said} {half.upper()}M" + self._stop(m)
            return here.clock(hour, minute)

        def hour(m: Match) -> str:
            return f"{self.integer(m.group(1))} {m.group(2).upper()}M" + self._stop(m)

        if here.language == "en":
            add(rf"{_FREE}(\d{{1,2}})[:.](\d\d){half}", clock, re.IGNORECASE)
            add(
                rf"{_FREE}(\d{{1,2}})[-–](\d{{1,2}}){half}",
                lambda m: (
                    f"{self.integer(m.group(1))} {self._words['to']} {self.integer(m.group(2))} {m.group(3).upper()}M"
                ),
                re.IGNORECASE,
            )
            add(rf"{_FREE}(1[0-2]|0?[1-9]){half}", hour, re.IGNORECASE)
            add(rf"{_FREE}(\d{{1,2}}):(\d\d) o'clock", clock)
            add(rf"{_FREE}(\d{{1,2}}):(\d\d):(\d\d)(?![\d:])", self._long_time)
        separators = (
            f"[{here.clock_separators}]" if here.clock_suffix else "[:hH]" if "h" in here.clock_separators else ":"
        )
        if here.clock_suffix:
            add(rf"{_FREE}(\d{{1,2}}){separators}(\d\d){here.clock_suffix}\b", clock)
        if here.language == "fr":
            add(rf"{_FREE}(\d{{1,2}})\s[hH]\s(\d\d)\b", clock)
            add(
                rf"{_FREE}(\d{{1,2}})\s?[hH]\b(?!\s?\d)",
                lambda m: here.clock(int(m.group(1)), 0) if int(m.group(1)) <= 24 else m.group(),
            )
        add(rf"{_FREE}(\d{{1,2}}){separators if here.language == 'fr' else ':'}(\d\d)(?![\d:]|[.,]\d)", clock)

    def _long_time(self, m: Match) -> str:
        hour, minute, second = (int(part) for part in m.groups())
        if minute > 59 or second > 59:
            return m.group()
        units = self._locale.units
        parts = ((hour, "h"), (minute, "min"), (second, "s"))
        return " ".join(self.quantity(str(count), units[unit]) for count, unit in parts if count or unit == "s")

    def _stop(self, m: Match) -> str:
        """The full stop of "a.m." ends the sentence, if it stands at its end."""
        rest = m.string[m.end() :]
        return "." if m.group().endswith(".") and (not rest.strip() or re.match(r"\s+[A-Z]", rest)) else ""

    def _add_money(self, add: Callable[..., None], number: str) -> None:
        here = self._locale
        signs = "|".join(sorted((re.escape(s) for s in here.currencies), key=len, reverse=True))
        large = "|".join(sorted((re.escape(s) for s in here.magnitudes), key=len, reverse=True))
        names = "|".join(dict.fromkeys(name for pair in here.magnitudes.values() for name in pair))
        scale = rf"(?:\s?(?P<scale>{large})(?![\w])|\s(?P<name>{names})\b)?"

        def amount(m: Match) -> str:
            currency = here.currencies[m["sign"]]
            text = m["number"]
            minus = f"{self._words['minus']} " if m["minus"] else ""
            if m["scale"] or m["name"]:
                one, many = here.magnitudes[m["scale"]] if m["scale"] else (m["name"], m["name"])
                big = self._scaled(text, one, many)
                return f"{minus}{big}{here.of_money(currency.major[1])}"
            whole, point, rest = text.partition(here.decimal)
            if point and len(rest) == 2:
                major = self.quantity(re.sub(r"\D", "", whole) or "0", currency.major)
                cents = str(int(rest))
                if cents == "0":
                    return minus + major
                minor = self.quantity(cents, currency.minor)
                if not whole or int(re.sub(r"\D", "", whole)) == 0:
                    return minus + minor
                return minus + here.money(major, minor, self.integer(cents))
            return minus + self.quantity(text, currency.major)

        def spread(m: Match) -> str:
            currency = here.currencies[m["sign"]]
            return f"{self.number(m['a'])} {self._words['to']} {self.quantity(m['b'], currency.major)}"

        start = r"(?<![\w.,])"
        add(rf"{start}(?P<sign>{signs})\s?(?P<a>{number})\s?[-–]\s?(?:{signs})?\s?(?P<b>{number})(?![\w.,]*\d)", spread)
        add(rf"{start}(?P<a>{number})\s?[-–]\s?(?P<b>{number})\s?(?P<sign>{signs})(?!\w)", spread)
        add(rf"{start}(?P<minus>[-–])?(?P<sign>{signs})\s?(?P<number>{number}){scale}", amount)
        add(rf"{start}(?P<minus>[-–])?(?P<number>{number}){scale}\s?(?P<sign>{signs})(?!\w)", amount)

    def _scaled(self, text: str, one: str, many: str) -> str:
        if text == "1" and self._locale.language != "en":
            return {"de": "eine", "fr": "un", "es": "un"}[self._locale.language] + f" {one}"
        return f"{self.number(text)} {many}"

    def _add_codes(self, add: Callable[..., None]) -> None:
        def phone(m: Match) -> str:
            plus = f"{self._words['plus']} " if m.group().startswith("+") else ""
            return plus + ", ".join(self.digits(part) for part in re.findall(r"\d+", m.group()))

        add(r"(?<![\w.,])\+\d[\d ()./-]{6,}\d\b", phone)
        add(r"(?<![\w.,-])(?:1[-. ])?(?:\(\d{3}\)\s?|\d{3}[-. ])\d{3}[-.]\d{4}\b(?!-)", phone)
        add(r"(?<![\w.,-])\d{3}[-.]\d{4}\b(?![-.]?\d)", phone)
        add(r"(?<![\w.,-])0\d{2,4}[ /-]\d{3,8}(?:[ -]\d{2,6})*\b", phone)
        add(r"(?<![\w.,-])0\d(?: \d\d){4}\b", phone)
        add(
            rf"\b({_AS_DIGITS}(?: (?:number|no|is|of))*:?) #?(\d{{4,}})\b",
            lambda m: f"{m.group(1)} {self.digits(m.group(2))}",
        )
        add(r"(?<![\w.,])\d{4}([ -])\d{4}\1\d{4}\1\d{4}\b", phone)

    def _add_units(self, add: Callable[..., None], number: str, free: str, sign: str) -> None:
        here = self._locale
        units = {symbol.replace("_", " "): pair for symbol, pair in here.units.items()}
        names = "|".join(sorted((re.escape(s) for s in units), key=len, reverse=True))
        behind = r"(?![\w²³°/]|\.\w)"
        w = self._words

        def measure(m: Match) -> str:
            return self.quantity(m["number"], units[m["unit"]])

        def spread(m: Match) -> str:
            return f"{self.number(m['a'])} {w['to']} {self.quantity(m['b'], units[m['unit']])}"

        if here.language == "en":
            add(
                r"\b(the|her|his|my|their|our|your|early|mid|late|in)(\s|-)'?([2-9]0)s\b",
                lambda m: f"{m.group(1)} {self._decade(m.group(3))}",
            )
            add(r"(?<!\w)'([1-9]0)s\b", lambda m: self._decade(m.group(1)))
            add(r"\b(1\d|20)(\d0)'?s\b", lambda m: self._decade(m.group(2), m.group(1)))
            add(
                r"(?<![\w.,])(\d)'(?:\s?(1[01]|\d)(?:\"|'')?)(?!\w)",
                lambda m: f"{self.integer(m.group(1))} foot {self.integer(m.group(2))}",
            )
            add(r"(?<![\w.,])(\d+(?:\.\d+)?)\"(?=[\s.,;)]|$)", self._inches)
        add(rf"{free}(?P<a>{number})\s?[-–]\s?(?P<b>{number})\s?(?P<unit>{names}){behind}", spread)
        add(rf"(?<![\w.,)])(?P<number>[-–]?{number})[\s-]?(?P<unit>{names}){behind}", measure)

    def _inches(self, m: Match) -> str:
        if m.string[: m.start()].count('"') % 2:
            return m.group(1)  # the quotation mark closes a quotation
        return self.quantity(m.group(1), ("one inch", "inches"))

    def _decade(self, tens: str, century: str = "") -> str:
        if tens == "00":
            return self.year(f"{century}00").removesuffix("s") + "s"
        name = {"10": "tens"}.get(tens) or self.integer(tens).removesuffix("y") + "ies"
        return f"{self.integer(century)} {name}" if century else name

    def _add_counting(self, add: Callable[..., None], number: str, integer: str, free: str, sign: str) -> None:
        here, w = self._locale, self._words
        large = "|".join(sorted((re.escape(s) for s in here.magnitudes), key=len, reverse=True))
        years = r"(1[1-9]\d{2}|20\d{2})"

        def vulgar(m: Match) -> str:
            top, bottom = _VULGAR[m.group(2)]
            part = here.fraction(top, bottom)
            if not m.group(1):
                return f" {part} "
            return f"{self.integer(m.group(1))} {w['and']} {self._half(part)} "

        def fraction(m: Match) -> str:
            top, bottom = int(m.group(2)), int(m.group(3))
            if bottom not in {2, 3, 4, 5, 6, 8, 10} or top >= bottom:
                return f"{m.group(1) or ''}{self.integer(m.group(2))} {w['over']} {self.integer(m.group(3))}"
            part = here.fraction(top, bottom)
            return f"{self.integer(m.group(1))} {w['and']} {self._half(part)}" if m.group(1) else part

        def scaled(m: Match) -> str:
            return self._scaled(m.group(1), *here.magnitudes[m.group(2)])

        def ordinal(m: Match) -> str:
            value = int(re.sub(r"\D", "", m.group(1)))
            return here.ordinal(value, m.group(2)) if value < LARGEST else self.digits(m.group(1))

        if here.language == "de":
            add(rf"(?:(\w+)\s)?\b{here.ordinals}", self._german_ordinal)
        else:
            add(rf"(?<![\w.,]){here.ordinals}(?!\w)", ordinal, re.IGNORECASE)
        add(r"(\d+)?\s?([½¼¾⅓⅔⅕⅛⅜⅝⅞])", vulgar)
        add(rf"{free}(?:(\d+)\s)?(\d{{1,4}})/(\d{{1,4}})(?![\d/])", fraction)
        add(rf"{free}({number})\s?({large})(?![\w])", scaled)
        add(
            rf"{free}{years}\s?[-–]\s?{years}(?![\w.,]*\d)",
            lambda m: f"{self.year(m.group(1))} {w['to']} {self.year(m.group(2))}",
        )
        add(rf"{free}{years}(?![\d\w]|{re.escape(here.decimal)}\d)", self._maybe_year)
        add(
            rf"{free}({number})\s?[–-]\s?({number})(?=\s*=)",
            lambda m: f"{self.number(m.group(1))} {w['minus']} {self.number(m.group(2))}",
        )
        add(
            rf"{free}({number})\s-\s({number})(?![\w.,]*\d)",
            lambda m: f"{self.number(m.group(1))} {w['minus']} {self.number(m.group(2))}",
        )
        add(
            rf"{free}({number})\s?[–-]\s?({number})(?![\w.,]*\d|-)",
            lambda m: f"{self.number(m.group(1))} {w['to']} {self.number(m.group(2))}",
        )
        add(r"(?<=\d)\s?[x×]\s?(?=\d+\s?[x×=]|\d+\b\s*=)", lambda m: f" {w['times']} ")
        add(r"(?<=\d)\s?[x×]\s?(?=\d)", lambda m: f" {w['by' if m.group().strip() == 'x' else 'times']} ")
        add(r"(?<=\d)x\b", lambda m: f" {w['times']}")
        add(r"#(?=\d)", lambda m: f"{w['number']} ")
        add(
            rf"{sign}({integer})(?={re.escape(here.decimal)}?(?!\d))(?<![\d.,]{{2}})",
            lambda m: f"{self.number(m.group())} " if m.group()[0] in "-–" else m.group(),
        )
        add(rf"{sign}({number})", lambda m: f" {self.number(m.group())} ")
        add(r"\d+", lambda m: f" {self.integer(m.group())} ")

    def _half(self, part: str) -> str:
        first = part.split(" ", 1)
        return f"a {first[1]}" if self._locale.language == "en" and first[0] == "one" else part

    def _maybe_year(self, m: Match) -> str:
        """A bare number from 1100 to 2099 without grouping is a year, unless it counts what follows."""
        follows = re.match(r"\s+([a-zà-ÿ]+)", m.string[m.end() :])
        counted = (
            bool(follows)
            and follows is not None
            and follows.group(1).endswith("s")
            and follows.group(1) not in {"was", "is", "has", "as"}
        )
        if counted and self._locale.language == "en":
            return self.integer(m.group(1))
        return self.year(m.group(1))

    def _german_ordinal(self, m: Match) -> str:
        before = m.group(1) or ""
        said = self._locale.ordinal(int(m.group(2)), before)
        return f"{before} {said}" if before else said

    def _add_signs(self, add: Callable[..., None]) -> None:
        w = self._words
        between = r"(?<=[\w)])\s*{}\s*(?=[\w(-])"
        for mark, name in (
            ("=", "equals"),
            ("≈", "about"),
            ("≠", "not_equal"),
            ("≤", "less_equal"),
            ("≥", "more_equal"),
        ):
            add(rf"\s*{mark}\s*(?=\w)", lambda m, name=name: f" {w[name]} ")
        add(between.format("<="), lambda m: f" {w['less_equal']} ")
        add(between.format(">="), lambda m: f" {w['more_equal']} ")
        add(r"(?<=\w)\s+<\s+(?=\w)", lambda m: f" {w['less']} ")
        add(r"(?<=\w)\s+>\s+(?=\w)", lambda m: f" {w['more']} ")
        add(r"±\s*", lambda m: f" {w['plus_minus']} ")
        add(between.format(r"\+"), lambda m: f" {w['plus']} ")
        add(r"\+(?=\w)|(?<=\w)\+", lambda m: f" {w['plus']} ")
        add(between.format("÷"), lambda m: f" {w['divided']} ")
        add(between.format("×"), lambda m: f" {w['times']} ")
        add(r"(?<=\w) \* (?=\w)", lambda m: f" {w['times']} ")
        add(r"\s?²|\^2\b", lambda m: f" {w['squared']} ")
        add(r"\s?³|\^3\b", lambda m: f" {w['cubed']} ")
        add(r"√\s*", lambda m: f" {w['root']} ")
        add(r"π", lambda m: f" {w['pi']} ")
        add(r"∞", lambda m: f" {w['infinity']} ")
        add(r"(?:~|≈)\s*(?=\w)", lambda m: f"{w['about']} ")
        add(r"\s*&\s*", lambda m: f" {w['and']} ")
        add(r"§+\s*", lambda m: f"{w['section']} ")
        add(r"%", lambda m: f" {self._locale.units['%'][1]} ")
        add(r"°", lambda m: f" {w['degrees']} ")
        add(r"(?<!\w)#(?=\w)", lambda m: f"{w['hashtag']} ")
        add(r"(?<!\w)@(?=\w)", lambda m: f"{w['at']} ")
        for sign, currency in self._locale.currencies.items():
            if not sign.isalnum():
                add(re.escape(sign), lambda m, currency=currency: f" {currency.major[1]} ")


_FREE = r"(?<![\w.,:])"


def _as_roman(number: int) -> str:
    out = ""
    for value, text in (
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ):
        out += text * (number // value)
        number %= value
    return out


def finish(text: str) -> str:
    """Leaves what can be said: letters, marks, spaces, apostrophes and hyphens in words, and pauses, each once."""
    text = re.sub(r"\.\.\.+(?=\s*[^\W\dA-ZÀ-Þ])", ", ", text)
    text = re.sub(r"\s*(?:—|--+|\s[–-]\s|\u2015|[()\[\]{}])\s*", " , ", text)
    text = re.sub(r"(?<=\w)–(?=\w)", "-", text)
    text = "".join(c if c in " ',.;:?!-" or unicodedata.category(c)[0] in "LM" else " " for c in text)
    text = re.sub(r"(?<![^\W_])['-]+|['-]+(?![^\W_])(?!(?<=s')\s)", " ", text)
    text = re.sub(r"\s+", " ", text)
    text = re.sub(r"(?:\s*[,;:.?!])+", _strongest, text)
    return re.sub(r"\s+", " ", text).strip(" ,;:")


def _strongest(m: Match) -> str:
    """Of several pauses in a row the strongest is kept."""
    marks = m.group()
    return next(mark for mark in "?!.:;," if mark in marks)
