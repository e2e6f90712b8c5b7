"""What a language model writes, without what nobody should hear.

Markdown, code, tags, thoughts, tool calls, template tokens, placeholders, terminal escapes, emoji and what cannot be
seen go; the words stay: what is judged, said and shown is the same. Text may arrive cut anywhere, between two bytes of
a character too: the result is the same. What cannot be decided yet is held, never longer than `HOLD` characters unless
it is being dropped.
"""

from __future__ import annotations

import codecs
import html
import re
import unicodedata

HOLD = 240
"""Characters of an opening that is looked at before it is taken for plain text."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SILENT_TAGS = _words(
    "think thinking thought reasoning reflection scratchpad analysis tool_call tool_calls tool_response tools function "
    "function_call function_calls script style svg math"
)
_BREAKS = _words("br p div li ul ol tr h1 h2 h3 h4 h5 h6 table hr blockquote")
_ATTRIBUTE = r"\s+[\w:.-]+(?:\s*=\s*(?:\"[^\"]{0,200}\"|'[^']{0,200}'|[^\s<>\"']+))?"
_TAG = re.compile(rf"<\s?(/?)([A-Za-z][\w:.-]*|0x[0-9A-Fa-f]{{2}})(?:=[\w.-]+)?((?:{_ATTRIBUTE})*)\s*(/?)>")
_BEGUN = r"(?:\s(?:[^<>\"']|\"[^\"]{0,200}\"|'[^']{0,200}')*(?:\"[^\"]{0,200}|'[^']{0,200})?)"
_TAG_START = re.compile(rf"<\s?/?(?:(?:[A-Za-z][\w:.=-]*|0(?:x[0-9A-Fa-f]{{0,2}})?){_BEGUN}?/?)?")
_TOKEN = re.compile(r"<[|｜][^<>\n]{1,60}?[|｜]>")
_TOKEN_START = re.compile(r"<[|｜][^<>\n]{0,62}")
_CALL_OPEN = re.compile(r"<[|｜](?:tool_calls?_(?:start|begin)|tool▁calls▁begin|tool_call|python_tag)[|｜]>")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]\w{1,30});")
_ENTITY_START = re.compile(r"&(?:#[xX]?[0-9A-Fa-f]{0,7}|[A-Za-z]?\w{0,30})")
_RULE = re.compile(r"[ \t]*([-*_=])(?:[ \t]*\1){2,}[ \t]*(?=\n)")
_BULLET = re.compile(r"[ \t]*(?:[-*+•‣◦▪]|#{1,6}|>)[ \t]+")
_ADDRESS = {")": re.compile(r"(?:[^()\n]|\([^()\n]*\))*"), "]": re.compile(r"[^\]\n]*")}
_EMOJI = re.compile(
    "[\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u2300-\u23ff\u200d\ufe00-\ufe0f\u20e3\U000e0000-\U000e01ef]"
)
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]?)?")
_MARKS = "<[{`*_~&\\【!#\x1b"


class Sanitiser:
    """Takes the pieces of one answer; `feed` returns what may be heard of them, `flush` the rest."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""
        self._last = "\n"  # the character in front of what is held
        self._until = ""  # the marker that ends what is being dropped
        self._depth: list[str] = []  # open brackets of a JSON value that is being dropped
        self._quoted = False

    def feed(self, piece: str | bytes) -> str:
        """What is certain after this piece."""
        self._held += _seen(self._decoder.decode(piece) if isinstance(piece, bytes) else piece)
        return self._run(end=False)

    def flush(self) -> str:
        """The rest, at the end of the answer. An unfinished thought, tool call or code block is dropped."""
        self._held += self._decoder.decode(b"", final=True)
        rest = self._run(end=True)
        self.__init__()  # type: ignore[misc]
        return rest

    def _run(self, *, end: bool) -> str:
        out: list[str] = []
        text, at = self._held, 0
        while at < len(text):
            if self._depth:
                at = self._skip_json(text, at)
                continue
            if self._until:
                found = text.find(self._until, at)
                if found < 0:
                    at = len(text) if end else max(at, len(text) - len(self._until) + 1)
                    break
                at = found + len(self._until)
                self._until, self._last = "", ">"
                continue
            step = self._step(text, at, end=end)
            if step is None:
                break
            used, said = step
            out.append(said)
            self._last = text[at + used - 1]
            at += used
        self._held = text[at:]
        return "".join(out)

    def _step(self, text: str, at: int, *, end: bool) -> tuple[int, str] | None:
        """How many characters to take and what is heard of them; None if that depends on what comes."""
        char = text[at]
        rest = text[at : at + HOLD]
        final = end or len(rest) == HOLD
        if self._last == "\n" and char in "-*_=+•‣◦▪#> \t":
            step = self._line_start(rest, final=final)
            if step is None or step[0]:
                return step
        if char not in _MARKS:
            return 1, "" if _EMOJI.match(char) else char
        match char:
            case "<":
                return self._angle(rest, final=final)
            case "[" | "!" | "【":
                return self._bracket(text, at, end=end)
            case "{":
                return self._brace(rest, final=final)
            case "`" | "~":
                return self._ticks(rest, final=final)
            case "*" | "_":
                return self._emphasis(rest, final=final)
            case "&":
                return self._entity(rest, final=final)
            case "\x1b":
                return self._escape(rest, final=final)
            case "\\":
                return (1, "") if len(rest) > 1 or final else None
        return 1, char

    def _line_start(self, rest: str, *, final: bool) -> tuple[int, str] | None:
        """Bullets, headings, quotation marks and rules; (0, "") if the line starts with something else."""
        if rule := _RULE.match(rest):
            return rule.end(), ""
        bare = rest.rstrip(" \t")
        if not final and (not bare.strip("-*_=+•‣◦▪#> \t") and "\n" not in rest):
            return None
        if final and re.fullmatch(r"[ \t]*([-*_=])(?:[ \t]*\1){2,}[ \t]*", rest):
            return len(rest), ""
        bullet = _BULLET.match(rest)
        return (bullet.end(), "") if bullet else (0, "")

    def _angle(self, rest: str, *, final: bool) -> tuple[int, str] | None:
        if token := _TOKEN.match(rest):
            if _CALL_OPEN.match(rest):
                self._until = "<|tool_call_end|>" if "start" in token.group() else "<|im_end|>"
            return token.end(), ""
        if rest.startswith("<!--"):
            self._until = "-->"
            return 4, ""
        if tag := _TAG.match(rest):
            closing, name, attributes, _ = tag.groups()
            if not attributes.strip() or "=" in attributes:
                if name.lower() in _SILENT_TAGS and not closing and not tag.group(4):
                    self._until = f"</{name}>"
                return tag.end(), "\n" if name.lower() in _BREAKS else ""
            return 1, "<"
        if rest.startswith(("<<SYS>>", "<</SYS>>")):
            return rest.index(">>") + 2, ""
        if final:
            return 1, "<"
        opening = (
            _TOKEN_START.fullmatch(rest)
            or _TAG_START.fullmatch(rest)
            or "<!--".startswith(rest)
            or "<<SYS>>".startswith(rest)
            or "<</SYS>>".startswith(rest)
        )
        return None if opening else (1, "<")

    def _bracket(self, text: str, at: int, *, end: bool) -> tuple[int, str] | None:
        """[placeholders], [links](address), ![pictures](address), [INST], 【sources】, JSON arrays."""
        rest = text[at : at + HOLD]
        final = end or len(rest) == HOLD
        picture = rest[0] == "!"
        if picture:
            if len(rest) == 1:
                return (1, "!") if final else None
            if rest[1] != "[":
                return 1, "!"
        body = rest[2:] if picture else rest[1:]
        if not picture and rest[0] == "[":
            inner = body.lstrip()
            if not inner and not final and "\n" not in body:
                return None
            if inner[:1] == "{" and (len(inner) > 1 or final):
                self._depth = ["]"]
                return 1, ""
            if inner == "{":
                return None
        close = re.search(r"[\]】\n]", body)
        if close is None:
            return (1, "") if final else None
        if close.group() == "\n":
            return 1, ""
        stop = len(rest) - len(body) + close.end()
        label = body[: close.start()]
        if stop == len(rest) and not final:
            return None
        if rest[stop : stop + 1] in {"(", "["} and rest[0] != "【":
            shut = {"(": ")", "[": "]"}[rest[stop]]
            address = _ADDRESS[shut].match(text, at + stop + 1, at + stop + 2000)
            length = len(address.group()) if address else 0
            after = at + stop + 1 + length
            open_ended = after >= len(text) or (text[after] == "(" and not re.search(r"[)\n]", text[after:]))
            if open_ended and not end and length < 1999:
                return None
            if text[after : after + 1] == shut:
                return stop + 2 + length, "" if picture else re.sub(r"[*_`]", "", label)
        return stop, ""

    def _brace(self, rest: str, *, final: bool) -> tuple[int, str] | None:
        inner = rest[1:].lstrip()
        if not inner and not final:
            return None
        if inner[:1] in {'"', "{"}:
            self._depth = ["}"]
            return 1, ""
        return 1, "{"

    def _skip_json(self, text: str, at: int) -> int:
        """Past one character, or one escape, of a JSON value that is being dropped."""
        char = text[at]
        if self._quoted:
            escaped = self._last == "\\"
            self._quoted = escaped or char != '"'
            self._last = "" if escaped else char
            return at + 1
        if char == '"':
            self._quoted = True
        elif char in "{[":
            self._depth.append("}" if char == "{" else "]")
        elif char in "}]":
            self._depth.pop()
        self._last = char
        return at + 1

    def _ticks(self, rest: str, *, final: bool) -> tuple[int, str] | None:
        run = len(rest) - len(rest.lstrip(rest[0]))
        if run == len(rest) and not final:
            return None
        if run >= 3:
            self._until = rest[0] * 3
            return run, ""
        return run, "~" if rest[0] == "~" and run == 1 else ""

    def _escape(self, rest: str, *, final: bool) -> tuple[int, str] | None:
        """A sequence for a terminal, which colours its text or moves about."""
        found = _ESCAPE.match(rest)
        used = found.end() if found else 1
        whole = used > len("\x1b[") and "@" <= rest[used - 1] <= "~"
        return (used, "") if whole or used < len(rest) or final else None

    def _emphasis(self, rest: str, *, final: bool) -> tuple[int, str] | None:
        run = len(rest) - len(rest.lstrip(rest[0]))
        if run == len(rest) and not final:
            return None
        after = rest[run : run + 1]
        alone = self._last.isspace() and (not after or after.isspace())
        factors = rest[0] == "*" and self._last.isdigit() and after.isdigit()
        inside = rest[0] == "_" and self._last.isalnum() and after.isalnum()
        return run, rest[0] * run if alone or factors or inside else ""

    def _entity(self, rest: str, *, final: bool) -> tuple[int, str] | None:
        if entity := _ENTITY.match(rest):
            return entity.end(), html.unescape(entity.group())
        return None if not final and _ENTITY_START.fullmatch(rest) else (1, "&")


def _seen(text: str) -> str:
    """Without control and format characters, which tear words apart for whoever looks for them and not for who hears
    them. An escape is kept for what follows it."""
    return "".join(char for char in text if char in "\n\t\r\x1b" or unicodedata.category(char) not in ("Cc", "Cf"))


def sanitise(text: str) -> str:
    """The whole text at once."""
    sanitiser = Sanitiser()
    return sanitiser.feed(text) + sanitiser.flush()
