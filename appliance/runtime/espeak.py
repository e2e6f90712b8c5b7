"""Phonemes from an espeak-ng that the user has installed: optional, and a program of its own.

espeak-ng is GPL: Parley neither ships nor links it. Where it is installed, it can be chosen for voices of languages
that have no lexicon here.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import unicodedata

from appliance.errors import ConfigFault, ModelFault
from appliance.runtime.phonemes import SpokenWord, Word, words

PATIENCE = 5.0
"""Seconds that one call may take; a phrase needs a few milliseconds."""

_FLAGS = re.compile(r"\([^)]*\)|[\u200d\u02b2]")


class Espeak:
    """The program as a phonemiser. `voice` is one of espeak-ng's, or a locale ("de-DE"), which it finds one for.
    Raises ConfigFault without it."""

    def __init__(self, voice: str = "en-us", program: str = "espeak-ng") -> None:
        found = shutil.which(program)
        if found is None:
            raise ConfigFault(f"{program} is not installed", 'install it, or set say.phonemes to "lexicon"')
        self._command = [found, "-q", "--ipa", "-v", voice, "--stdin"]

    def phrase(self, text: str) -> list[SpokenWord]:
        """The same contract as Phonemiser.phrase, but for a clause whose words espeak runs together: that one is given
        as a single SpokenWord."""
        clauses: list[list[Word]] = [[]]
        for word in words(text):
            clauses[-1].append(word)
            if word.pause:
                clauses.append([])
        clauses = [clause for clause in clauses if clause]
        if not clauses:
            return []
        lines = self._run("\n".join(" ".join(word.core for word in clause) + "." for clause in clauses))
        if len(lines) != len(clauses):
            return [SpokenWord(text, " ".join(lines) + clauses[-1][-1].pause)]
        return [word for clause, line in zip(clauses, lines, strict=True) for word in _spoken(clause, line)]

    def _run(self, text: str) -> list[str]:
        """One line of phonemes for each clause."""
        try:
            result = subprocess.run(
                self._command,
                input=text,
                capture_output=True,
                text=True,
                encoding="utf-8",
                timeout=PATIENCE,
                check=True,
            )
        except (subprocess.SubprocessError, OSError, UnicodeError) as error:
            raise ModelFault(f"espeak-ng failed: {error}", "try `espeak-ng --ipa hello` by hand") from error
        said = _FLAGS.sub("", unicodedata.normalize("NFC", result.stdout))
        return [line.strip() for line in said.split("\n") if line.strip()]


def _spoken(clause: list[Word], line: str) -> list[SpokenWord]:
    said = line.split()
    if len(said) != len(clause):
        return [SpokenWord(" ".join(word.text for word in clause), line + clause[-1].pause)]
    return [SpokenWord(word.text, sounds + word.pause) for word, sounds in zip(clause, said, strict=True)]
