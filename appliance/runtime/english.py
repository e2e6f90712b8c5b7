"""How US English is said in running speech: data for the phonemiser, in the symbols of espeak's en-us voices."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _table(text: str) -> dict[str, str]:
    """Lines of: word pronunciation|word pronunciation..."""
    pairs = (pair.strip().partition(" ") for line in text.strip().split("\n") for pair in line.split("|"))
    return {word: said for word, _, said in pairs}


REDUCED = _table("""
    a ɐ|an ɐn|the ðə|and ænd|or ɔːɹ|but bˌʌt|nor nɔːɹ|if ɪf|of ʌv|to tə|in ɪn|on ˌɔn|at æt|for fɔːɹ|from fɹʌm|by baɪ
    with wɪð|as æz|than ðɐn|into ˌɪntʊ|onto ˌɔntʊ|about ɐbˌaʊt|up ˌʌp|over ˌoʊvɚ|through θɹuː|so sˌoʊ|per pɜː
    is ɪz|are ɑːɹ|was wʌz|were wɜː|be biː|been bˌɪn|am æm|have hæv|has hɐz|had hæd|do duː|does dˌʌz|did dˈɪd
    can kæn|could kʊd|will wɪl|would wʊd|should ʃˌʊd|must mˈʌst|may mˈeɪ|might mˌaɪt|shall ʃæl
    i aɪ|you juː|he hiː|she ʃiː|it ɪt|we wiː|they ðeɪ|me mˌiː|him hˌɪm|us ˌʌs|them ðˌɛm
    my maɪ|your jʊɹ|his hɪz|her hɜː|its ɪts|our ˌaʊɚ|their ðɛɹ
    this ðɪs|that ðæt|these ðiːz|those ðoʊz|there ðɛɹ|here hˈɪɹ
    what wˌʌt|which wˌɪtʃ|who hˌuː|when wˌɛn|where wˌɛɹ|why wˌaɪ|how hˌaʊ|whose hˌuːz
    not nˌɑːt|some sˌʌm|any ˌɛni|because bɪkˈʌz|just dʒˈʌst|get ɡˈɛt|got ɡˈɑːt|gone ɡˈɔn|going ɡˌoʊɪŋ
    i'm aɪm|i'll aɪl|i've aɪv|i'd aɪd|you're jʊɹ|you'll juːl|you've juːv|he's hiːz|she's ʃiːz|it's ɪts|it'll ˌɪɾəl
    we're wɪɹ|we'll wiːl|we've wiːv|they're ðɛɹ|they'll ðeɪl|they've ðeɪv|that's ðæts|there's ðɛɹz|what's wˌʌts
    let's lˈɛts|isn't ˈɪzənt|don't dˈoʊnt|can't kˈænt|won't wˈoʊnt|couldn't kˈʊdənt|wouldn't wˈʊdənt
""")
"""Words that lose their stress, or keep little of it, in a sentence."""

CORRECTED = _table("""
    ninety nˈaɪnti|seventy sˈɛvənti|every ˈɛvɹi|everything ˈɛvɹɪθˌɪŋ|everyone ˈɛvɹɪwˌʌn|everybody ˈɛvɹɪbˌɑːdi
    several sˈɛvɹəl|average ˈævɹɪdʒ|different dˈɪfɹənt|difference dˈɪfɹəns|interest ˈɪntɹɛst|interested ˈɪntɹɛstᵻd
    interesting ˈɪntɹɛstɪŋ|minute mˈɪnɪt|minutes mˈɪnɪts|amanda ɐmˈændə|zero zˈiəɹoʊ|o'clock əklˈɑːk
    am ˌeɪˈɛm|pm pˌiːˈɛm
""")
"""Words that the lexicon has otherwise than the voice knows them."""

BEFORE_VOWEL = {"the": "ðɪ", "to": "tʊ", "it": "ɪɾ", "at": "æɾ", "get": "ɡˈɛɾ"}
"""Forms in front of a vowel."""

AT_END = _table("""
    is ˈɪz|are ˈɑːɹ|was wˈʌz|were wˈɜː|be bˈiː|am ˈæm|have hˈæv|has hˈæz|had hˈæd|do dˈuː|does dˈʌz|can kˈæn
    could kˈʊd|will wˈɪl|would wˈʊd|should ʃˈʊd|up ˈʌp|on ˈɔn|in ˈɪn|to tˈuː|for fˈɔːɹ|from fɹˈʌm|of ˈʌv
    about ɐbˈaʊt|over ˈoʊvɚ|through θɹˈuː|with wˈɪð|at ˈæt|by bˈaɪ|so sˈoʊ|not nˈɑːt|this ðˈɪs|that ðˈæt
    these ðˈiːz|those ðˈoʊz|there ðˈɛɹ|what wˈʌt|which wˈɪtʃ|who hˈuː|when wˈɛn|where wˈɛɹ|why wˈaɪ|how hˈaʊ
    his hˈɪz|some sˈʌm|any ˈɛni|you jˈuː|me mˈiː|us ˈʌs|going ɡˈoʊɪŋ
""")
"""Forms at the end of a clause, where English gives a function word its stress back."""

LETTERS = _table("""
    a ˈeɪ|b bˈiː|c sˈiː|d dˈiː|e ˈiː|f ˈɛf|g dʒˈiː|h ˈeɪtʃ|i ˈaɪ|j dʒˈeɪ|k kˈeɪ|l ˈɛl|m ˈɛm|n ˈɛn|o ˈoʊ|p pˈiː
    q kjˈuː|r ˈɑːɹ|s ˈɛs|t tˈiː|u jˈuː|v vˈiː|w dˈʌbəljˌuː|x ˈɛks
    y wˈaɪ|z zˈiː
    0 zˈiəɹoʊ|1 wˈʌn|2 tˈuː|3 θɹˈiː|4 fˈɔːɹ|5 fˈaɪv|6 sˈɪks|7 sˈɛvən|8 ˈeɪt|9 nˈaɪn
""")
"""Names of letters and digits."""


FINITE_CUES = _words("he she it who that everyone somebody nobody everybody someone")
VERB_CUES = _words(
    "to will would can could should may might must shall do does did don't doesn't didn't can't couldn't "
    "won't wouldn't "
    "i you we they who please let's i'll you'll we'll they'll i'd you'd we'd they'd not never always also just and then"
)
NOUN_CUES = _words(
    "the a an my your his her its our their this that these those some any no of every each another one first last "
    "next new old in on for with from by at"
)
OBJECT_CUES = _words("the a an my your his her its our their this that these those it them him me us all")
PERFECT_CUES = _words("have has had i've you've we've they've having was were been be being is are get got")
PAST_CUES = _words("he she it yesterday already ago")
"""Neighbours that tell a verb, a noun, a participle or a past tense from its twin of the same spelling."""

VOICELESS = ("p", "t", "k", "f", "θ")
HISSING = ("s", "z", "ʃ", "ʒ")
"""Last symbols that decide how the endings -s and -ed are said."""

VOWELS = frozenset("aeiouæɐɑɔəɚɛɜɪʊʌᵻ")
