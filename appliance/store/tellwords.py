"""The words of statements: verbs that make one, what is no assertion, traits, moods, complaints, times and numbers."""

from __future__ import annotations

import re

from appliance.store.knowenglish import DAYS


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FINITE = _words(
    """
    is are am was were has have had do does did will would shall should must can cannot could might may need
    needs live lives lived moved move work works worked like likes liked love loves loved hate hates hated
    prefer prefers enjoy enjoys adore adores dislike dislikes detest avoid avoids loathe want wants come comes
    came go goes went speak speaks drive drives drove own owns got get gets bought sold eat eats drink drinks
    take takes took decided chose agreed picked settled finished done started starts begins opens closes leaves
    arrives ends departs costs cost weighs measures play plays study studies teach teaches know knows said says
    think thinks told feel feels felt sleep sleeps wear wears use uses used changed postponed shifted left lost
    found made gave broke fell won met saw ran paid put sent kept heard read wrote ordered called booked adopted
    keeps broken wish hope ought became turned looks look sounds runs makes seems seem remember forgot believe
    guess suppose collect collects grew graduated married plan plans smoke smokes snore snores sing sings cook
    cooks swim swims run walk walks travel travels spent spend visited stayed return returns returned belongs
    means stands stays sits hurts hurt keep store hide put park parked charge charges pay pays
    rents joined resides retrained qualified
    """
)
PAST = re.compile(
    r"[a-z]{2,}ed|went|bought|sold|took|got|gave|met|saw|ran|paid|sent|made|broke|fell|won|wrote|read|put|left|lost"
    r"|found|had|ate|"
    r"drank|drove|flew|slept|spoke|told|felt|came|kept|built|caught|taught|brought|began|chose|cut|hit|hurt|let|set"
    r"|shut"
)
DETERMINERS = _words("my our the this that his her their a an some")
IMPERATIVES = _words(
    """
    set turn open close play stop start call tell show give make put add remove delete cancel find get go let
    please order bring read write say repeat remind wake switch check ask send buy take help look search book
    forget ignore disregard pretend act unlock lock increase decrease raise lower mute pause skip what who where
    when why how which whose whom if unless suppose imagine can could will would should shall do does did is are
    was were am may might have has thanks thank hello hi hey good never not yes no
    """
)

CONDITION = re.compile(
    r"^(?:if|unless|suppose|supposing|imagine|assuming|what if|let us say|say|when i was|in case|whether|as if"
    r"|pretend)\b"
    r"|\bif (?:i|we|my|you|he|she|it|the)\b|\b(?:would|could) (?:be|have|like|love|prefer|rather|you|i)\b|\bI wish\b"
    r"|\bI would\b|\b(?:might|maybe|perhaps|possibly)\b|\bwould\b",
    re.IGNORECASE,
)
HEARSAY = re.compile(
    r"\b(?:he|she|they|you|people|someone|somebody|everyone|everybody|who|it|\w+) (?:says?|said|thinks?|claims?"
    r"|claimed|told(?! (?:me|us)(?: on the phone| again)? about\b)"
    r"|believes?|tells|asked|asks|wrote|reckons?) (?:that|me|us|i|we|my|you|he|she|they|the|it|people|a)\b"
    r"|\bI (?:heard|read|dreamt|dreamed|was told|imagine)\b"
    r"|\b(?:rumou?r|apparently|supposedly|allegedly|in the (?:movie|film|book|story|game|song)|they say|a dream)\b",
    re.IGNORECASE,
)
UNSURE = re.compile(
    r"\bI (?:do not know|do not remember|cannot remember|forgot|wonder|am not sure|have no idea|am wondering"
    r"|am unsure|doubt)\b"
    r"|\bnot sure\b|^I (?:mean|know|see|think|hope|guess)\b|^(?:that|it|this) (?:is|was) (?:a )?(?:good|great|nice"
    r"|fine|right|true|correct"
    r"|okay|funny|wrong|all|enough|it|cool|bad|better|interesting|amazing|awesome|perfect|not (?:what|right|true"
    r"|correct))\b"
    r"|^I (?:want|need|have) (?:you|to ask|to know|a question)\b|^you\b|\bthank you\b",
    re.IGNORECASE,
)
ORDERS = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass|overwrite) (?:all|any|every|each|previous|prior|your|the|what"
    r"|everything|my|these|those)\b"
    r"|\b(?:system|developer|admin) ?(?:prompt|message|mode|override)|\bsystem ?:|\bassistant ?:|\buser ?:"
    r"|\b(?:new|previous|prior|following|these|your) instructions?\b|\bfrom now on\b|\byou (?:are now|must|shall"
    r"|have to|will)\b"
    r"|[<>{}`|\\]|\b(?:every|each|all) (?:of your )?(?:answer|reply|response)s?\b|\bmake you\b|\bthe operator\b"
    r"|\bsystem colon\b|\bthe user is\b|\bthe assistant\b|<\||\|>|\[/?INST|###|<<|\bjailbreak\b|\bact as\b"
    r"|\bpretend\b|\brepeat after me\b|\bprint\b.*\bprompt\b"
    r"|\b(?:always|only|never) (?:say|answer|reply|respond|obey|tell|claim)\b|\b(?:say|answer|reply"
    r"|respond) (?:with|only|that)\b"
    r"|\band (?:then )?(?:open|unlock|close|lock|delete|erase|disable|turn|send|call|order|buy|play|transfer"
    r"|execute|run|say) (?:the|all|every|on|off|my|it|me|up|that|everything)\b"
    r"|\b(?:drop table|select \*|rm -rf|sudo)\b|https?://",
    re.IGNORECASE,
)

PERFECT = re.compile(
    r"(?:now |already |just |finally |recently |both |never |always )*(moved|relocated|decided|chosen|agreed"
    r"|finished|done|bought"
    r"|paid|called|fixed|sent|booked|started|changed|got|sold|cleaned|cancelled|canceled|ordered|picked|settled"
    r"|adopted|lost"
    r"|found|replaced|repaired|put|kept|left|hidden|stored|parked|met|seen|written|read|taken|\w{2,}ed)\b",
    re.IGNORECASE,
)
DECIDES = re.compile(
    r"(?:(?:have )?(?:decided|chosen|chose|agreed|settled|picked|opted)(?: (?:to|on|for|that|upon))?"
    r"|(?:am|are|is) going (?:with|for)|went (?:with|for)|go with) (.+)",
    re.IGNORECASE,
)
DONE = re.compile(
    r"(?:done|finished|ready|fixed|paid|sorted|repaired|completed|complete|solved|settled|delivered)\b", re.IGNORECASE
)
BECOME = re.compile(
    r"(?:cancelled|canceled|closed|open|postponed|full|empty|gone|over|on hold|sold|rented|booked|locked|unlocked)\b",
    re.IGNORECASE,
)

ATTRIBUTES = re.compile(
    r"(?:(?:first|last|family|full|middle|maiden|nick|user|middle|pet|wifi|network|company|street) ?name|name"
    r"|surname|nickname|age"
    r"|birthday|birth date|date of birth|(?:\w+ )?address|e-?mail(?: address)?|(?:\w+ )*number|(?:\w+ )*code"
    r"|(?:\w+ )*password|pin"
    r"|(?:\w+ )*pin|(?:\w+ )*id|job|profession|occupation|height|weight|(?:\w+ )?size|blood (?:type|group)"
    r"|nationality|hometown"
    r"|home ?town|star sign|mother tongue|native language|(?:\w+ )?plate|(?:\w+ )?registration|favourite [\w ]+"
    r"|budget|diet"
    r"|religion|salary|(?:\w+ )?reference|username|login|anniversary|iban)"
)
PEOPLE = _words(
    """
    daughter son wife husband partner mother father mum mom dad sister brother boss manager friend neighbour
    neighbor girlfriend boyfriend uncle aunt cousin grandmother grandfather grandma grandpa granddaughter
    grandson niece nephew colleague dentist doctor teacher assistant landlord plumber mechanic vet baby child
    kid twin flatmate roommate coach accountant lawyer hairdresser nurse cleaner nanny babysitter gardener
    electrician secretary supervisor foreman driver stepson stepdaughter fiance fiancee ex co-worker coworker
    tutor trainer therapist pharmacist best-friend
    """
)
TRAITS = _words(
    """
    vegetarian vegan diabetic pregnant left-handed right-handed colour-blind colour-blinded deaf blind lactose-
    intolerant coeliac celiac gluten-intolerant asthmatic married single divorced engaged widowed retired
    unemployed catholic muslim jewish hindu buddhist christian atheist pescatarian teetotal epileptic self-
    employed smoker non-smoker
    """
) | {
    "left handed",
    "right handed",
    "colour blind",
    "lactose intolerant",
    "gluten intolerant",
    "hard of",
    "short sighted",
}
EXCLUSIVE = {
    "status": _words("married single divorced engaged widowed"),
    "diet": _words("vegetarian vegan pescatarian"),
    "work": _words("retired unemployed self-employed"),
}
"""Of these only one holds."""
JOB = re.compile(
    r"\b(?:\w+(?:er|or|ist|ian|eer|ant|man|woman|yst|medic|ress)|nurse|chef|cook|clerk|judge|pilot|student|guide"
    r"|coach|vet|ceo|nanny"
    r"|priest|surgeon|architect|barista|diplomat|attorney|athlete|apprentice|intern|guard)$",
    re.IGNORECASE,
)
MOOD = re.compile(
    r"(?:angry|happy|upset|tired|frustrated|sad|annoyed|excited|worried|nervous|disappointed|bored|lonely|scared|afraid"
    r"|stressed|furious|glad|hungry|thirsty|cold|hot|sick|ill|exhausted|unhappy|anxious|sorry|proud|relieved"
    r"|confused|fine|okay|ok"
    r"|good|great|well|busy|late|ready|sure|done|back|home|here|lost|depressed|fed up|in a (?:good|bad) mood"
    r"|not happy|delighted"
    r"|thrilled|sleepy|dissatisfied|mad|grateful)\b",
    re.IGNORECASE,
)
COMPLAINT = re.compile(
    r"\b(?:unacceptable|ridiculous|outrageous|scandal|disgrace|complain|complaint|disappointed|furious|dissatisfied"
    r"|fed up|refund)\b"
    r"|\b(?:is|was|are|were|arrived|came|tastes|smells) (?:\w+ )?(?:cold|broken|wrong|dirty|rude|terrible|awful"
    r"|disgusting|horrible|damaged"
    r"|defective|faulty|stale|burnt|late again|too (?:cold|slow|loud|late|expensive|salty)|not working|missing"
    r"|leaking|mouldy|unfriendly)\b"
    r"|\b(?:does not|do not|did not) (?:work|arrive|come)\b",
    re.IGNORECASE,
)
COLOURS = _words("red green blue yellow white black grey gray brown orange purple pink silver gold beige turquoise")

_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
TIME = re.compile(
    rf"\b(?:{'|'.join(DAYS)})s?\b|\b(?:{_MONTHS})\b(?! (?:be|i|we|not))|\b\d{{1,2}}[:.]\d\d\b|\b\d{{1,2}} ?(?:am|pm"
    rf"|a\.m|p\.m|o'clock)\b"
    r"|\b(?:noon|midnight|tomorrow|today|tonight|yesterday|morning|afternoon|evening|night|weekend|week|month|year"
    r"|easter|christmas)\b"
    r"|\b(?:half|quarter) (?:past|to)\b|\b(?:at|until|by|from|past|to) (?:one|two|three|four|five|six|seven|eight"
    r"|nine|ten|eleven|twelve|\d{1,2})\b"
    r"|\b\d{1,2}(?:st|nd|rd|th)\b|^(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
    r"|\d{1,2})(?: thirty| fifteen| o'clock)?$"
    r"|\b(?:in|after) (?:an?|\d+|two|three|four|five|ten) (?:minutes?|hours?|days?|weeks?|months?|years?)\b",
    re.IGNORECASE,
)
ID = re.compile(
    r"\b(?=\w*\d)[A-Z0-9]{2,}(?:[-/][A-Z0-9]+)+\b|\b\d{4,}\b|\b(?=[A-Z]*\d)(?=\d*[A-Z])[A-Z0-9]{3,}\b"
    r"|\b\d{2,4}(?:[ -]\d{2,4}){2,}\b"
)
NAMED = re.compile(
    r"(?:(?:Dr|Mr|Mrs|Ms|Miss)\.? )?[^\W\d_][\w'\u2019-]*(?: (?:van|de|von|la|le|el|al"
    r"|bin))*(?: [^\W\d_][\w'\u2019-]*){0,2}"
)
NO_NAME = re.compile(
    r"\b(?:the|a|an|not|so|very|really|in|at|on|to|of|for|with|and|or|going|here|there|home|sure|sorry|fine|good"
    r"|well|back|just|all|out|up|down"
    r"|about|my|your|is|are|this|that|it|done|ready|late|busy|looking|trying|working|leaving|coming|waiting|ignore"
    r"|open|delete|what|none|\w+ing)\b"
    r"|^[a-z]\w*ed$",
    re.IGNORECASE,
)

_PASTS = """
    bought buy paid pay sent send wrote write written write got get took take taken take made make found find sold sell
    met meet told tell brought bring built build spoke speak went go gone go saw see seen see chose choose chosen choose
    ran run gave give left leave swept sweep taught teach fed feed done do did do
    """
IRREGULAR = dict(zip(_PASTS.split()[::2], _PASTS.split()[1::2], strict=True))
"""Pasts by their verbs."""
