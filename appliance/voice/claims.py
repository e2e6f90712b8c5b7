"""Which sentences say that something was done, is being done or will be; and which tell what only a tool can know.

English. In other languages nothing is recognised here: there the model is not given the word about deeds at all
(`honest.honest` lets nothing but skills and documents speak of them).
"""

from __future__ import annotations

import re
from typing import Literal

Kind = Literal["", "deed", "outcome", "state", "syntax"]
"""deed: who speaks did it, does it or will; outcome: it has come about; state: what only a look can tell; syntax: no
sentence at all, but a call or a place that was not filled."""

_PAST = (
    "set|reset|put|made|sent|did|done|took|taken|let|wrote|written|bought|paid|began|begun|shut|found|gave"
    "|given|went ahead|woke|woken|ran"
    "|told|brought|held|got"
)
_HARMLESS_PAST = (
    "heard|learned|learnt|enjoyed|loved|liked|wanted|lived|wondered|hoped|needed|tried|guessed|missed|agreed"
    "|supposed|pleased"
    "|excited|interested|trained|designed|limited|based|located|tired|bored|delighted|honoured|flattered"
    "|confused|named|called parley"
    "|asked|answered|talked|listened|looked forward|imagined|believed|realised|realized|noticed|mentioned"
    "|explained|described|worked"
)
_HARMLESS = (
    "be|do my best|try|think|help|answer|tell|explain|say|guess|listen|enjoy|like|love|hope|talk|speak|hear"
    "|understand|see|know|wait|work"
    "|assist|give you|need|have|agree|wish|describe|share|suggest|recommend|always|never|not|imagine|only|also"
    "|gladly|learn|look forward"
    "|miss|want|feel|stay|come|respond|read you"
)
_SAFE_AFTER_HAVE = (
    "been|heard|seen|read|known|met|thought|felt|had|learned|learnt|enjoyed|loved|liked|always|never|no|not|a"
    "|an|the|to|some|many|much|lots|little"
    "|few|any|one|two|three|nothing|something|enough|fun|good|great|time|questions?|feelings?|friends?|trouble"
    "|access|this|that|all|my|more|wondered"
)
_ODD_PAST = (
    "threw|went|left|drew|hid|spoke|kept|lent|hung|built|caught|chose|drove|rang|rung|hit|cut|fed|led|lit"
    "|met them|popped|slid|stuck|swept|swapped"
    "|tore|wound|froze|blew|broke|dug|flew"
)
_YOUR_HARMLESS = (
    "question|voice|name|friend|friends|idea|ideas|favou?rite|body|heart|brain|mind|day|turn|opinion|choice"
    "|health|mood|family|mother|father|life"
    "|eyes?|smile|feelings?|time|skin|teeth|own|words|guess|kindness|patience|company|dreams?|best|birthday"
    "|help|interest|dog|cat|child|children"
)
_HARMLESS_ING = (
    "doing|being|feeling|talking|listening|learning|thinking|looking forward|having|trying|hoping|speaking"
    "|wondering|working|running on"
    "|asking|living|getting better|enjoying|afraid|glad|happy|sorry|telling|kidding|joking|guessing|assuming|missing"
)
_ADVERBS = (
    r"(?:(?:just|now|already|also|then|successfully|quickly|gladly|right away|immediately|certainly|happily),? )*"
)
_AS_ASKED = r"(?:, [^,]{1,40},)?"
_THINGS = (
    "timers?|alarms?|reminders?|lights?|lamps?|lighting|doors?|windows?|sunroof|music|volume|microphone|heating"
    "|heater|temperature|fan|defrost"
    "|seat heating|air conditioning|order|orders|message|messages|e-?mails?|call|table|appointment|reservation"
    "|booking|meeting|reports?|entry"
    "|item|items|list|request|task|payment|refund|receipt|navigation|answer|settings?|counter|router|car|oven"
    "|machine|screen|event"
    "|alarm system|notification|everything|blinds?|shutters?|curtains?|kettle|dishwasher|washing machine|garage"
    "|gate|parcel|package|delivery|taxi"
    "|ticket|tickets|song|track|playlist|radio|tv|television|phone|camera|robot|vacuum|thermostat|boiler"
    "|radiator|tap|pump|valve|engine|seat|boot"
    "|trunk|mirrors?|wipers?|horn|sprinklers?|socket|plug|printer|countdown|stopwatch|form|file|document|photo"
    "|photos|account|subscription"
)
_ACTED = (
    "placed|booked|reserved|confirmed|sent|saved|stored|cancell?ed|added|deleted|removed|scheduled|submitted"
    "|processed|issued|created"
    "|ordered|forwarded|recorded|printed|completed|updated|reset|logged|notified|informed|refunded|paid"
    "|uploaded|noted|registered|transferred"
)
_STATES = (
    "set|on|off|running|playing|open|opened|closed|locked|unlocked|muted|unmuted|paused|started|stopped|active"
    "|activated|enabled|disabled|ready"
    "|turned|switched|lowered|raised|changed|being"
)
_PARTICIPLES = (
    f"{_ACTED}|{_STATES}|taken care of|done|made|ended|called|fixed|adjusted|increased|decreased"
    f"|dimmed|connected|charged|stored"
)
_NUMBER = (
    r"(?:\d+\b|one\b|two\b|three\b|four\b|five\b|six\b|seven\b|eight\b|nine\b|ten\b|eleven\b|twelve\b"
    r"|thirteen\b|fourteen\b|fifteen\b|sixteen\b"
    r"|seventeen\b|eighteen\b|nineteen\b|twenty\b|thirty\b|forty\b|fifty\b|sixty\b|seventy\b|eighty\b|ninety\b"
    r"|half\b|a quarter\b|quarter\b"
    r"|noon\b|midnight\b)"
)
_DAYS = (
    "monday|tuesday|wednesday|thursday|friday|saturday|sunday|january|february|march|april|may|june|july|august"
    "|september|october|november"
    "|december"
)
_OKAY = (
    r"^(?:(?:okay|ok|sure|sure thing|alright|all right|got it|yes|great|perfect|certainly|of course|absolutely"
    r"|no problem|there)[,.!]* )*"
)
_FINITE = (
    r"\b(?:is|are|was|were|can|could|may|might|will|would|should|must|helps?|lets?|takes?|makes?|gives?|keeps?"
    r"|needs?|means|trains|costs?|does"
    r"|has|seems|sounds|saves|brings|requires|works)\b"
)
_DOINGS = (
    "setting|starting|stopping|turning|switching|opening|closing|locking|unlocking|sending|calling|texting"
    "|booking|ordering|reserving|scheduling"
    "|buying|cancell?ing|adding|deleting|removing|saving|updating|changing|playing|pausing|creating|checking"
    "|searching|placing|processing"
    "|muting|connecting|raising|lowering|dimming|navigating|recording|logging|printing|submitting|uploading"
    "|resetting|reminding"
)


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


_DEED = _any(
    rf"\b(?:I|we)(?:'ve| have|'d| had)?{_AS_ASKED},? {_ADVERBS}(?!(?:{_HARMLESS_PAST})\b)(?:{_PAST}|(?!need"
    rf"|indeed)[a-z]{{2,}}ed|looked up)\b"
    r"(?! (?:a question|no |not |nothing|it wrong|to be|better|good|bad|the feeling|the impression))",
    rf"\b(?:I'm|I am|we're|we are) {_ADVERBS}(?!(?:{_HARMLESS_ING})\b)(?!going to\b)[a-z]{{2,}}ing\b",
    rf"\b(?:I|we) {_ADVERBS}(?:{_ODD_PAST})\b",
    rf"\b(?:I've|we've|I have|we have) {_ADVERBS}(?!(?:{_SAFE_AFTER_HAVE})\b)(?!(?:{_HARMLESS_PAST})\b)"
    rf"(?:{_PAST}|{_ODD_PAST}|[a-z]+(?:ed|en|wn|ne|ught|ung|unk))\b",
    r"\b(?:I've got|I have got) (?:it|that|this|them|your|the)\b",
    rf"\b(?:I'm|I am|we're|we are) {_ADVERBS}(?:about to|on to|onto) {_ADVERBS}(?!(?:{_HARMLESS})\b)[a-z]+",
    r"\b(?:I'm |I am )?on it\b[.!]?$",
    rf"\b(?:I'm|I am|we're|we are) {_ADVERBS}going to {_ADVERBS}(?!(?:{_HARMLESS})\b)[a-z]+",
    rf"\b(?:I'll|I will|I shall|we'll|we will|I can)(?! not\b) {_ADVERBS}(?!(?:{_HARMLESS})\b)[a-z]+",
    rf"\blet me {_ADVERBS}(?!(?:{_HARMLESS})\b)[a-z]+",
)
_OUTCOME = _any(
    rf"\b(?:has|have|'s|'ve)(?: now| already| just)* been(?: now| already"
    rf"| just)* (?:successfully )?(?:{_PARTICIPLES}|shipped|fixed|swapped)\b",
    rf"\b(?:the|your) (?:\w+ )?(?:{_THINGS}) (?:is|are) (?:now )?(?!(?:being )?used\b)[a-z]{{2,}}ing\b",
    rf"\b(?:the|your) (?:\w+ )?(?:{_THINGS}) (?:went|goes|starts?|stops?|comes?|came) \b",
    r"\byour (?:\w+ ){0,3}?\w+ starts? now\b",
    rf"^(?:the |your |a |an |all |both )?(?:\w+ ){{0,3}}?(?:{_THINGS})(?: is| are|'s|'re)(?: now"
    rf"| already)+ (?!not)\w",
    rf"^(?:the |your |a |an |all |both )?(?:\w+ ){{0,3}}?(?:{_THINGS})(?: is| are| was| were|'s|'re) (?:{_ACTED})\b",
    rf"^(?:the |your |a |an |all |both )?(?:\w+ ){{0,3}}?(?:{_THINGS}) (?:has|have) (?:now |just )?(?:started"
    rf"|stopped|ended|begun)\b",
    r"\b(?:is|are)(?: \w+){0,3} now\b[.!]?$",
    rf"{_OKAY}(?:all )?done\b",
    rf"{_OKAY}(?:you're |you are )?all set\b",
    rf"{_OKAY}consider it done\b",
    rf"\b(?:it|that|this)(?:'s| is| has)(?: been)? (?:all )?(?:done|sorted|fixed|taken care of|{_ACTED})\b",
    rf"{_OKAY}(?:the |your )?(?:\w+ )?(?:{_THINGS}) (?:now )?(?:{_PARTICIPLES})\b(?! (?:of|by|when|while)\b)",
    rf"{_OKAY}(?:successfully )?(?:{_ACTED}|locked|unlocked|muted|unmuted|stopped|paused|opened|closed|booked"
    rf"|turned (?:on|off|up|down))"
    r"(?:[.!]|$| (?:to|from|it|the|your|you|milk|\w+ (?:and|to|from)\b))",
    rf"{_OKAY}(?:{_DOINGS})(?: (?:a|an|the|your|my|it|now|down|up|off|on|navigation|\w+)\b)(?!.*{_FINITE})",
    r"\b(?:on (?:its|the|their) way)\b|\bon the phone with\b|\btaken care of\b",
    r"\byou(?:'ll| will) (?:now )?(?:be (?:reminded|notified|called|contacted|woken)|(?:get|receive) (?:a|an"
    r"|the|your))\b",
    rf"\b(?:the|your) (?:{_THINGS}) will\b(?! not)",
    r"\b(?:was|were) \w+ (?:a (?:minute|moment|second)|just) ago\b|\bcoming (?:right )?up\b|\bo'clock it is\b",
    r"\bsuccessfully\b",
    r"\b(?:added|removed|put|saved|sent|moved) (?:to|from|on) (?:your|the) (?:list|cart|basket|order|calendar"
    r"|shopping list)\b",
    r"\b(?:payment|refund|order) (?:went|has gone|is going) (?:through|out)\b",
    r"\bnow playing\b",
    rf"{_OKAY}(?:\w+ ){{1,2}}(?:is|are) now on (?:your|the) (?:shopping )?list\b",
    rf"^[a-z]+s (?:a|an|the|your) (?:{_THINGS})\b",
)
_HELD = _any(
    rf"{_OKAY}(?:the |your |a |an |all |both )?(?:\w+ ){{0,3}}?(?:{_THINGS})(?: is| are|'s|'re) (?:{_STATES}"
    rf"|at {_NUMBER}|scheduled)\b",
    rf"{_OKAY}(?:\w+ ){{1,2}}(?:is|are) on (?:your|the) (?:shopping )?list\b",
)
"""How things stand: a deed for who has just been asked to change them, a look for who has been asked how they stand."""
_STATE = _any(
    rf"\byour (?!(?:{_YOUR_HARMLESS})\b)(?:\w+ ){{1,4}}?(?:is|are|was|were|has|have|will|arrives?|comes?|goes)\b",
    rf"\b(?:the|your) (?:\w+ )?(?:{_THINGS}) (?:is|are) (?:now )?(?:{_STATES}|up|down)\b",
    rf"\btime (?:is|now is)(?: now| currently)? (?:{_NUMBER}|\W*$)",
    rf"\bit(?:'s| is)(?: now| currently| about| almost| exactly)* {_NUMBER}(?!.*\bkinds?\b)",
    r"\bit(?:'s| is)(?: now| currently)* (?:sunny|raining|rainy|cloudy|snowing|windy|foggy|warm|cold"
    r"|hot) (?:and|outside|today|right now)",
    r"\b(?:currently|right now|outside)\b.*\bdegrees\b|\bdegrees\b.*\b(?:outside|right now)\b",
    rf"\btoday(?:'s date)? is (?:the |a )?(?:{_DAYS}|{_NUMBER})",
    rf"\b(?:battery|range|temperature|pressure|fuel|volume|speed|odometer|humidity"
    rf"|charge)\b(?: \w+){{0,2}}? (?:is|are)(?: now| at| currently)* {_NUMBER}",
    rf"\byou have (?:no|{_NUMBER}|an?) (?:\w+ ){{0,2}}?(?:messages?|timers?|alarms?|meetings?|e-?mails?"
    rf"|appointments?|reminders?|calls?)\b",
    r"\byour (?:\w+ )?(?:timer|alarm|list|calendar|meeting|appointment|reminder|order|battery|range|balance"
    r"|account)s? (?:has|have|contains?|is|are|will)\b",
    r"\bleft on (?:your|the) timer\b",
    r"\btotal (?:is|comes|will)\b",
)
_SYNTAX = _any(
    r"\[[^\]]*\]",
    r"\{[^}]*\}?",
    r"<[a-z_/|][^>]*>?",
    r"```",
    r"\b\w+\([^)]*[=:][^)]*\)",
    r"\btool[ _]call\b|\bfunction[ _]call\b",
    r"\bas an (?:ai|artificial)\b",
    r"^\*[^*]+\*$",
)
_NEGATED = _any(
    r"\b(?:can't|cannot|can not|couldn't|could not|didn't|did not|haven't|have not|hasn't|has not|won't"
    r"|will not|isn't|is not|aren't|wasn't"
    r"|unable|not able|don't|do not|never|nothing|without)\b",
)
_CONDITION = re.compile(
    r"^(?:if|when|once|before|after|unless|while|people|they|he|she|who|what|where|how|why|to) ", re.IGNORECASE
)
_QUESTION = re.compile(
    r"^(?:shall|should|would|could|can|may|do|did|does|is|are|was|were|have|has|had|will|what|when|where|who"
    r"|which|how|why|want)\b.*\?\s*$",
    re.IGNORECASE,
)


_FRAGMENT = _any(
    rf"^(?!well\b|tired|bored|excited|interested|delighted|pleased|relaxed|indeed"
    rf"|agreed)(?:(?:[\w']+ ){{1,5}}(?:{_PARTICIPLES})\b"
    r"|(?:[\w']+ ){0,5}(?!hundred|speed|need|indeed|breed|embed)\w{3,}ed\b)(?! (?:his|her|its|their|a|an|the|my"
    r"|him|them|me|us)\b)(?: \w+){0,4}[.!]?$",
    rf"^(?:the |your )?(?:{_THINGS}) (?:on|off|up|down|in|out)[.!]?$",
    r"^(?!speaking|looking|talking|considering|according|depending|judging|nothing|something|anything"
    r"|everything|interesting|amazing|boring|exciting)"
    r"[a-z]{3,}ing (?:to |the |a |an |your |my |it\b|that\b|now\b|for you\b)[^,]*[.!]?$",
)
"""Of sentences without a verb of their own: "Sorted.", "Countdown started.", "Volume up.", "Skipping to the next." """
""
_VERB = re.compile(
    r"\b(?:is|are|was|were|am|be|can|could|may|might|will|would|should|must|do|does|did|has|have|had|you|i|we"
    r"|they|he|she|it|that|who|which"
    r"|lets?|helps?|takes?|makes?|gives?|means|trains|costs?|keeps?|needs?|changes?|sounds?|seems?)\b|'(?:s|re"
    r"|m|ll|ve|d)\b",
    re.IGNORECASE,
)
_ACT = (
    "set|turn|switch|open|close|shut|lock|unlock|call|phone|ring|dial|text|message|send|e-?mail|order|book"
    "|reserve|buy|pay|add|put|remove|delete"
    "|cancel|play|pause|resume|start|stop|skip|remind|wake|schedule|print|navigate|drive|take me|raise|lower"
    "|increase|decrease|dim|mute|unmute"
    "|save|store|record|upload|submit|activate|deactivate|enable|disable|connect|charge|heat|cool|clean|notify"
    "|inform|tell (?:him|her|them|my|the)"
    "|let (?:him|her|them|my|the)|move|reschedule|transfer|refund|log|update|reset|restart|order|get me|bring"
    "|make me|fetch|check me|sign"
)
_COMMAND = re.compile(
    rf"^(?:(?:please|okay|ok|hey|now|and|so|then|just|well|parley),? )*(?:(?:can|could|would"
    rf"|will) you(?: please)? |i(?:'d like| want| need) you to "
    rf"|i(?:'d| would) like (?:to order|to book|to buy) |go ahead and |let's )?(?:{_ACT})\b",
    re.IGNORECASE,
)


def asks_for_a_deed(words: str) -> bool:
    """Whether the user asks for something to be done, rather than said."""
    return _COMMAND.match(words.strip().replace("’", "'")) is not None


def denies(sentence: str) -> bool:
    """Whether a sentence says what is not or cannot be, or asks: no claim can be in it."""
    text = sentence.replace("’", "'").strip()
    return text.endswith("?") or _NEGATED.search(text) is not None


def kind(sentence: str) -> Kind:
    """What a sentence claims; "" for one that claims nothing."""
    if _SYNTAX.search(sentence):
        return "syntax"
    text = re.sub(r"\s+", " ", sentence.replace("’", "'")).strip(" \"'“”()*-–—")
    if not text or _QUESTION.match(text) or _CONDITION.match(text):
        return ""
    clauses = re.split(r"(?<=[;:])\s+|,? (?:but|so) ", text)
    found: list[Kind] = [_clause(clause) for clause in clauses]
    return next((one for one in found if one), "")


def _clause(text: str) -> Kind:
    if _NEGATED.search(text):
        return ""
    if _DEED.search(text):
        return "deed"
    if _OUTCOME.search(text) or (not _VERB.search(_plain(text)) and _FRAGMENT.search(_plain(text))):
        return "outcome"
    return "state" if _HELD.search(text) or _STATE.search(text) else ""


def _plain(text: str) -> str:
    """Without what is said in front: "Right, that's sorted." """
    return re.sub(
        rf"{_OKAY}(?:(?:right|now|so|well|there you go|here you go|no worries|you can relax)\b[,.!]* *)?",
        "",
        text,
        flags=re.I,
    )
