"""No claim without a deed: a sentence that says something was done is not spoken when nothing was done.

A small language model says "I have set a timer" as readily as anything else. Until a tool result of the same turn
stands behind a sentence, a first-person claim of an action is replaced by the truth.
"""

from __future__ import annotations

import re
from dataclasses import replace

from appliance.events import Phrase
from appliance.stream import Events, Stage

TRUTH = "I can't do that myself yet."

_DEEDS = (
    "set|started|stopped|turned|switched|opened|closed|locked|unlocked|sent|emailed|called|phoned|texted|booked|ordered"
    "|reserved|scheduled|bought|paid|refunded|cancelled|canceled|added|deleted|removed|saved|updated|changed|played"
    "|paused|created|reminded|notified|contacted|checked|looked up|searched|found|arranged|placed|processed"
)
_DOINGS = (
    "setting|starting|stopping|turning|switching|opening|closing|locking|unlocking|sending|calling|texting|booking"
    "|ordering|reserving|scheduling|buying|cancelling|canceling|adding|deleting|removing|saving|updating|changing"
    "|playing|pausing|creating|checking|looking up|searching|arranging|placing|processing"
)
_CLAIM = re.compile(
    rf"\bI(?:'ve| have|'d| had)?(?: just| now| already| successfully)* (?:{_DEEDS})\b"
    rf"|\bI(?:'m| am)(?: just| now| already)* (?:{_DOINGS})\b"
    rf"|\bI(?:'ll| will| shall| can)(?: just| now)* (?:set|start|stop|turn|switch|open|close|lock|unlock|send|call|text"
    rf"|book|order|reserve|schedule|buy|cancel|add|delete|remove|save|update|change|play|pause|create|remind|notify)\b"
    rf"|^\s*(?:\w+ ){{1,4}}(?:has|have|is|are)(?: now| been| just| already)+ (?:{_DEEDS})\b"
    rf"|^\s*(?:okay, |ok, |sure, |done[,.!] )?(?:timer|alarm|reminder|message|order|call|light|lights|music)s? "
    rf"(?:{_DEEDS})\b",
    re.IGNORECASE,
)


def claims_a_deed(text: str) -> bool:
    """Whether the sentence says, in the first person or by its result, that the box acted, acts or will."""
    return _CLAIM.search(text.replace("’", "'")) is not None


def honest() -> Stage:
    """Replaces the first claiming Phrase of an answer by TRUTH and drops what the answer says after it."""

    async def stage(events: Events) -> Events:
        caught = False
        async for event in events:
            if isinstance(event, Phrase):
                if caught:
                    continue
                if claims_a_deed(event.text):
                    caught = True
                    event = replace(event, text=f" {TRUTH}", spoken=TRUTH)
            yield event

    return stage
