"""Tables of what is written and what is said, and what holds for any text."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.errors import ConfigFault
from appliance.runtime.locales import LOCALES
from appliance.runtime.normalise import normalise

ENGLISH = """
I have 3 cats. | I have three cats.
21 | twenty-one
100 | one hundred
1,234 people | one thousand two hundred thirty-four people
1000000 | one million
2,500,000 | two million five hundred thousand
007 | zero zero seven
-7 degrees | minus seven degrees
It is -12 outside. | It is minus twelve outside.
3.14 | three point one four
0.5 | zero point five
.5 | point five
-2.25 | minus two point two five
1.50 | one point five zero
the 1st time | the first time
2nd | second
the 3rd, 4th and 21st | the third, fourth and twenty-first
the 100th day | the one hundredth day
pages 10-20 | pages ten to twenty
5–7 people | five to seven people
5 - 3 | five minus three
1990-1995 | nineteen ninety to nineteen ninety-five
½ cup | one half cup
1/2 cup | one half cup
3/4 of it | three quarters of it
2/3 | two thirds
1 1/2 cups | one and a half cups
2½ hours | two and a half hours
120/80 | one hundred twenty over eighty
24/7 | twenty-four seven
50% | fifty percent
1% | one percent
12.5 % off | twelve point five percent off
10-15% | ten to fifteen percent
$500 | five hundred dollars
$1 | one dollar
$5.50 | five dollars and fifty cents
$42.01 | forty-two dollars and one cent
$0.99 | ninety-nine cents
$3.00 | three dollars
$1,234.56 | one thousand two hundred thirty-four dollars and fifty-six cents
$1.2m | one point two million dollars
$5 million | five million dollars
$3bn | three billion dollars
£1.2m | one point two million pounds
£2.50 | two pounds and fifty pence
€3.50 | three euros and fifty cents
3.50 € | three euros and fifty cents
¥500 | five hundred yen
500 USD | five hundred dollars
$5-$7 | five to seven dollars
-$5 | minus five dollars
$5.500 | five point five zero zero dollars
50¢ | fifty cents
3/5/2024 | March fifth, twenty twenty-four
12/25/23 | December twenty-fifth, twenty twenty-three
2024-03-05 | March fifth, twenty twenty-four
March 5 | March fifth
March 5th | March fifth
Mar. 5, 2024 | March fifth, twenty twenty-four
March 5, 2024, was sunny | March fifth, twenty twenty-four, was sunny
On Jan 1 we met. | On January first we met.
5 March 2024 | the fifth of March twenty twenty-four
on the 4th of July | on the fourth of July
July 1969 | July nineteen sixty-nine
in 1999 | in nineteen ninety-nine
in 2000 | in two thousand
in 2005 | in two thousand five
in 1905 | in nineteen oh-five
since 1066 | since one thousand sixty-six
1500 users | one thousand five hundred users
the 1990s | the nineteen nineties
the '80s | the eighties
in her 30s | in her thirties
8:00 | eight o'clock
8:05 | eight oh five
8:30 | eight thirty
17:05 | seventeen oh five
00:00 | midnight
8:00 am | eight AM
6:15 p.m. | six fifteen PM.
at 8am | at eight AM
at 8 AM sharp | at eight AM sharp
9-5pm | nine to five PM
12:30 PM | twelve thirty PM
1:02:03 | one hour two minutes three seconds
5 km | five kilometers
1 km | one kilometer
5 km/h | five kilometers per hour
60 mph | sixty miles per hour
20°C | twenty degrees Celsius
-5°C | minus five degrees Celsius
98.6 °F | ninety-eight point six degrees Fahrenheit
a 90° turn | a ninety degrees turn
3 GB | three gigabytes
16GB | sixteen gigabytes
100 Mbps | one hundred megabits per second
2.4 GHz | two point four gigahertz
70 kg | seventy kilograms
150 lbs | one hundred fifty pounds
500 ml | five hundred milliliters
30 min | thirty minutes
90 sec. | ninety seconds
25 m² | twenty-five square meters
6'2" | six foot two
5–7 km | five to seven kilometers
(555) 123-4567 | five five five, one two three, four five six seven
555-1234 | five five five, one two three four
+1 555 123 4567 | plus one, five five five, one two three, four five six seven
1-800-555-0199 | one, eight zero zero, five five five, zero one nine nine
version 1.2.3 | version one point two point three
v2.0 | version two point zero
192.168.1.1 | one nine two dot one six eight dot one dot one
https://www.example.com/path?x=1 | example dot com
See http://test.org. | See test dot org.
john.doe@example.com | john dot doe at example dot com
Mr. Smith | Mister Smith
Mrs Jones | Missus Jones
Dr. Smith lives on Oak Dr. | Doctor Smith lives on Oak Drive
St. Paul | Saint Paul
12 Main St. | twelve Main Street
fruit, e.g. apples | fruit, for example, apples
i.e. now | that is, now
cats, dogs, etc. | cats, dogs, et cetera.
red vs. blue | red versus blue
No. 5 | number five
the U.S. economy | the US economy
J. Smith Jr. | J. Smith Junior
Henry VIII | Henry the eighth
Queen Elizabeth II | Queen Elizabeth the second
World War II | World War two
Chapter IV | Chapter four
I am | I am
2+2=4 | two plus two equals four
3 x 4 = 12 | three times four equals twelve
6 ÷ 2 | six divided by two
x < y | x less than y
10x faster | ten times faster
A & B | A and B
R&D | R and D
~5 miles | about five miles
±3 | plus or minus three
#5 | number five
10k runners | ten thousand runners
COVID-19 | COVID nineteen
MP3 | MP three
B14 | B fourteen
iPhone 15 | iPhone fifteen
order 48213 | order four eight two one three
Hello 😀 world 👍🏽! | Hello world!
well… yes | well, yes
Well... No. | Well. No.
wait -- what | wait, what
word—word | word, word
(really) yes | really, yes
“Hi,” she said | Hi, she said
it’s don’t | it's don't
rock 'n' roll | rock n roll
ﬁne ｆｕｌｌ | fine full
café naïve | café naïve
what?! | what?
*bold* _it_ | bold it
and/or | and or
x² + y² | x squared plus y squared
well-known | well-known
"""

GERMAN = """
3 Katzen | drei Katzen
21 | einundzwanzig
1.234 | eintausendzweihundertvierunddreißig
3,14 | drei Komma eins vier
-5 | minus fünf
50 % | fünfzig Prozent
20 °C | zwanzig Grad Celsius
1 km | ein Kilometer
5 km/h | fünf Kilometer pro Stunde
3,50 € | drei Euro fünfzig
1 € | ein Euro
500 Euro | fünfhundert Euro
$20 | zwanzig Dollar
2,5 Mio. € | zwei Komma fünf Millionen Euro
8:30 Uhr | acht Uhr dreißig
8:00 Uhr | acht Uhr
17.05 Uhr | siebzehn Uhr fünf
um 7:15 | um sieben Uhr fünfzehn
am 3. März 2024 | am dritten März zweitausendvierundzwanzig
der 3. Oktober | der dritte Oktober
3. Oktober | dritter Oktober
03.10.2024 | dritter Oktober zweitausendvierundzwanzig
am 24.12.2023 | am vierundzwanzigsten Dezember zweitausenddreiundzwanzig
1989 | neunzehnhundertneunundachtzig
5–7 | fünf bis sieben
1/2 | ein halb
3/4 | drei Viertel
z. B. heute | zum Beispiel heute
d.h. morgen | das heißt morgen
Dr. Müller | Doktor Müller
Nr. 5 | Nummer fünf
ca. 10 | circa zehn
Hunde, Katzen usw. | Hunde, Katzen und so weiter
die 2. Etage | die zweite Etage
2 + 2 = 4 | zwei plus zwei gleich vier
16 GB | sechzehn Gigabyte
Müller & Söhne | Müller und Söhne
"""

FRENCH = """
3 chats | trois chats
21 | vingt-et-un
80 | quatre-vingts
91 | quatre-vingt-onze
1 234 | mille deux cent trente-quatre
3,14 | trois virgule quatorze
-5 | moins cinq
50 % | cinquante pour cent
20 °C | vingt degrés Celsius
1 km | un kilomètre
5 km/h | cinq kilomètres par heure
3,50 € | trois euros cinquante
1 € | un euro
500 € | cinq cents euros
2,5 M € | deux virgule cinq millions d'euros
8h30 | huit heures trente
8 h 30 | huit heures trente
17:05 | dix-sept heures cinq
12h | midi
1h | une heure
le 1er mai | le premier mai
le 14 juillet 1789 | le quatorze juillet mille sept cent quatre-vingt-neuf
14/07/2024 | quatorze juillet deux mille vingt-quatre
le 2e jour | le deuxième jour
la 1re fois | la première fois
5–7 | cinq à sept
1/2 | un demi
3/4 | trois quarts
M. Dupont | monsieur Dupont
Mme Curie | madame Curie
n° 5 | numéro cinq
p. ex. ici | par exemple ici
chats, chiens, etc. | chats, chiens, et cetera.
2 + 2 = 4 | deux plus deux égale quatre
16 Go | seize gigaoctets
l'été | l'été
"""

SPANISH = """
3 gatos | tres gatos
21 | veintiuno
100 | cien
1.234 | mil doscientos treinta y cuatro
3,14 | tres coma catorce
-5 | menos cinco
50 % | cincuenta por ciento
20 °C | veinte grados Celsius
1 km | un kilómetro
5 km/h | cinco kilómetros por hora
3,50 € | tres euros con cincuenta céntimos
1 € | un euro
500 € | quinientos euros
$20 | veinte dólares
2,5 M € | dos coma cinco millones de euros
a las 8:30 | a las ocho y media
a las 8:15 | a las ocho y cuarto
a las 17:05 | a las diecisiete y cinco
a las 8:00 | a las ocho en punto
3 de marzo de 2024 | tres de marzo de dos mil veinticuatro
03/10/2024 | tres de octubre de dos mil veinticuatro
el 1 de mayo | el primero de mayo
en 1999 | en mil novecientos noventa y nueve
el 1º | el primero
la 2ª vez | la segunda vez
5–7 | cinco a siete
1/2 | un medio
3/4 | tres cuartos
Sr. García | señor García
Sra. López | señora López
EE. UU. | Estados Unidos
gatos, etc. | gatos, etcétera.
2 + 2 = 4 | dos más dos igual a cuatro
16 GB | dieciséis gigabytes
¿Qué tal? | Qué tal?
¡Hola! | Hola!
"""

BRITISH = """
105 | one hundred and five
5 km | five kilometres
3/5/2024 | the third of May twenty twenty-four
020 7946 0958 | zero two zero, seven nine four six, zero nine five eight
£2.50 | two pounds and fifty pence
"""

TABLES = {"en-US": ENGLISH, "en-GB": BRITISH, "de-DE": GERMAN, "fr-FR": FRENCH, "es-ES": SPANISH}
ROWS = [
    (code, *(part.strip() for part in line.split(" | ")))
    for code, table in TABLES.items()
    for line in table.strip().split("\n")
]
SIGNS = "0123456789.,:;/-–—%$€£°'\"#@&+=*<>()½²³ªº\n\t km/hGBuhramp stndrdVIXé😀"


@pytest.mark.parametrize(("code", "written", "said"), ROWS)
def test_table(code: str, written: str, said: str) -> None:
    assert normalise(written, code) == said


def speakable(text: str) -> bool:
    return all(c in " ',.;:?!-" or unicodedata.category(c)[0] in "LM" for c in text)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(LOCALES)), st.text(max_size=60) | st.text(SIGNS, max_size=40))
def test_any_text_becomes_speakable_and_stays_so(code: str, text: str) -> None:
    said = normalise(text, code)
    assert speakable(said)
    assert normalise(said, code) == said
    assert said == unicodedata.normalize("NFC", said).strip()


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(sorted(LOCALES)), st.integers(-(10**17), 10**17))
def test_every_number_has_words(code: str, number: int) -> None:
    assert re.search(r"\w", normalise(f"x {number} y", code).strip("xy "))


def test_unknown_locale() -> None:
    with pytest.raises(ConfigFault, match="tlh"):
        normalise("nuqneH", "tlh")
