"""What the skills can answer: words to a plan while the turn may still go on, and to acts once it is over."""

from __future__ import annotations

from collections.abc import AsyncIterator

from appliance.events import Did, Event, Token, Transcript, Understood
from appliance.skills.dialogue import BROKEN, OWN, Dialogue, Outcome, Plan
from appliance.stream import Events, Stage
from appliance.voice.deadline import mark, within
from appliance.voice.turn import Answer


def understand(dialogue: Dialogue, answer: Answer, deadline_s: float = 10.0) -> Stage:
    """Consumes a Transcript that is for a skill, and adds Understood, Did and Token; another is passed on.

    Nothing is done before the turn is confirmed, and nothing twice: what was done marks the answer as `acted`.
    """

    async def stage(events: Events) -> Events:
        async for event in events:
            plan = dialogue.plan((event.text, *event.alternatives)) if isinstance(event, Transcript) else None
            if plan is None or not isinstance(event, Transcript):
                yield event
                continue
            silent = True
            async for found in carry_out(dialogue, plan, event, answer, deadline_s):
                silent = silent and not isinstance(found, Token)
                yield found
            if silent:
                yield Token(event.at, event.turn, BROKEN, by="skill")

    return stage


async def carry_out(
    dialogue: Dialogue, plan: Plan, event: Transcript, answer: Answer, deadline_s: float
) -> AsyncIterator[Event]:
    """Does what is planned, and says what came of it. What has an effect waits for the turn to be confirmed."""
    at, turn = event.at, event.turn
    yield mark(at, turn, "understand", "start")
    for command in plan.does:
        yield Understood(at, turn, command.skill, command.name, dict(command.values), command.score)
    if not plan.does:
        asked = plan.question
        meant = {"intent": f"{asked.command.skill}.{asked.command.name}"} if asked else {}
        yield Understood(at, turn, OWN, asked.kind if asked else "say", meant, 1.0)
    if plan.effect != "none":
        await answer.confirmed.wait()
    async with within("understand", deadline_s):
        outcome = await dialogue.perform(plan)
    for deed in outcome.deeds:
        answer.acted |= deed.ok
        yield Did(at, turn, deed.what, deed.ok, deed.detail)
    yield mark(at, turn, "understand", "done")
    if says := outcome.says or _bare(outcome):
        yield Token(at, turn, says, by="skill")
    await answer.confirmed.wait()
    dialogue.commit(outcome)


def _bare(outcome: Outcome) -> str:
    """Of a skill that says nothing about what it did."""
    if any(deed.ok for deed in outcome.deeds):
        return "Done."
    return BROKEN if outcome.deeds else ""
