"""Ears that are closed while the mouth is open."""

import numpy as np

from appliance.voice.ears import ECHO_TAIL, half_duplex
from firmware.fake import Fake
from firmware.frame import FRAME, RATE


def test_the_box_does_not_hear_itself_and_hears_again_when_the_room_is_quiet():
    near = np.full(2 * RATE, 500, np.int16)
    sound = Fake(near, tail=0.0)
    heard = []
    for frame in half_duplex(sound.frames(), sound):
        if frame.at == RATE // 2:
            sound.player.play(np.full(RATE // 4, 1000, np.int16), RATE)
        heard.append(bool(frame.samples.any()))
    deaf = [number * FRAME for number, hears in enumerate(heard) if not hears]
    played = RATE // 4
    assert heard[0]
    assert heard[-1]
    assert abs(len(deaf) * FRAME - (played + ECHO_TAIL)) <= 2 * FRAME
    assert deaf == list(range(deaf[0], deaf[-1] + 1, FRAME))
