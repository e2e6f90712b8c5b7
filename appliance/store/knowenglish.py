"""What is known of English: words that say nothing, words that mean the same, words that exclude each other."""

from __future__ import annotations

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _numbered(text: str, first: int, step: int = 1) -> dict[str, int]:
    return {word: first + step * place for place, word in enumerate(text.split())}


STOP = _words(
    """
    done away find
    before after under over not no nor may here during while whether via until since both either each between than
    today now really maybe anybody somewhere everything perhaps else yet though
    a about actually again ah all already also am an and any anyone anything are as at be been being bit but by came
    can come comes could d did do does doing eh else er ever exactly find for from get gets getting give given go
    goes going got had has have having he hello her here hey hi him his how i if in into is it its itself just kind
    kindly know let like ll look looking looks m many maybe me might mine more much must my need needed needs now of
    oh ok okay on once one ones or our ours please put question quite re really s said say shall she should show
    since so some somebody someone something soon sort still such take taken takes tell than thank thanks that the
    their them then there these they thing things this those to too uh um until up upon us ve very want wants was
    way we well were what when where which while who whom whose why will with wonder wondering would yes you your
    yours
    """
)
LIGHT = _words(
    """
    accept read apply provide include supply perform sit travel drive pick choose visit stay
    fit fits reach wait arrive start begin lie lies see look mean carry stand belong happen require requires
    required recommend amount date name kept held went gone drawn type sort kind number minimum
    maximum limit min max least most top currently normally usually able want try contain have handle help ask
    check know long people person somebody anyone guest guests customer
    allow bring company exist exists give guys happen hold keep leave offer order place possible put
    receive run serve set shop site store turn use using work works you
    """
)
"""Words that say little: a passage need not have them, though it is the better for it."""
CONTRASTS = tuple(
    _words(group)
    for group in (
        "small medium large big tiny extra double single triple half mini maxi",
        "front rear back left right upper lower top bottom inner outer inside outside middle",
        "hot cold warm iced",
        "open closed on off",
        "red green blue yellow white black grey gray brown orange purple pink",
        "summer winter spring autumn",
        "first second third last next previous",
        "minimum maximum min max",
        "with without",
        "old new",
        " ".join(DAYS),
        "january february march april may june july august september october november december",
    )
)
OPPOSED = frozenset[str]().union(*CONTRASTS)
"""Words whose neighbours in meaning are just what is not meant."""

GROUPS = """price, cost, costs, fee, charge, expensive, cheap
opening hours, open, opens, close, closes, closing time, opening time, opening times, closed, shut, business hours
phone, telephone, phone number, telephone number
e-mail, email, mail, e-mail address, email address
wifi, wi-fi, wlan, wireless internet, internet
toilet, restroom, bathroom, loo, washroom
car, vehicle, automobile
tyre, tire
boot, trunk
bonnet, hood
windscreen, windshield
petrol, gasoline, fuel
indicator, turn signal, blinker
gearbox, transmission
kerb, curb
wrench, spanner
torque, tight, tighten, tightening, tightening torque, retighten
caliper, calliper
disc, disk
litre, liter, litres, liters
kilometre, kilometer, kilometres, kilometers, km
metre, meter
colour, color
grey, gray
replace, change, swap, renew, exchange, replacement
remove, take off, take out, dismount
fit, mount, install, put on
warranty, guarantee
refund, money back
voucher, gift card, coupon
book, reserve, reservation, booking
weight, weigh, weighs, heavy, mass
length, long
width, wide
height, tall
depth, deep
thickness, thick, thin, thinner, thinnest
speed, fast, quick, quickly
capacity, volume, big, size, hold
minimum, smallest, least, lowest, at least
maximum, highest, at most, limit, most
allowed, permitted, welcome, may
child, kid, children, kids, baby, babies
person, people, persons
staff, employee, employees
park, parking
bicycle, bike
bus, coach
meaning, mean, means, stand for
specification, spec, grade
stock, in stock, left in stock, available, availability
amp, amps, ampere, amperes
repair, fix, mend
name, called
payment, pay, paying
discount, pay less, save, save money, cheaper, less
cash, coins
pressure, how much air, inflate
free, free of charge, gratis, for nothing
deliver, delivery
expire, expires, run out, expiry, valid, validity, good for
throw away, dispose, waste
what to do, what should i do, what do i do, what must i do, what do we do, what shall i do, how do i react
crew, mechanic, mechanics
working time, job take, work take, job last
battery, accumulator
order, sequence
old, used
press, push
place, position
address, street, located
squeal, squeak, squealing
lamp, bulb, light bulb
photo, picture"""
"""A line for each group of equal words."""

NUMBERS = _numbered(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty",
    0,
) | _numbered("thirty forty fifty sixty seventy eighty ninety", 30, 10)
ORDINALS = _numbered(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
    "sixteenth seventeenth eighteenth nineteenth twentieth",
    1,
)
