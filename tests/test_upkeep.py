"""Small parts of the assembly: words to expect, and when memory is tidied."""

from appliance.compose import Upkeep, near_names


def test_names_that_sound_like_what_was_heard_are_expected():
    assert list(near_names("is Mya at home", ["Mia", "Emma"])) == ["Mia"]
    assert list(near_names("I met Pedra", ["Petra"])) == ["Petra"]
    assert list(near_names("is Mia at home", ["Mia"])) == []
    assert list(near_names("what is the weather like in London", ["Petra", "Klaus", "AB4711"])) == []


class Tidy:
    def __init__(self) -> None:
        self.times = 0

    def tidy(self) -> None:
        self.times += 1


def test_memory_is_tidied_now_and_then_however_often_it_is_asked():
    now, memory = [0.0], Tidy()
    upkeep = Upkeep(memory, every=600.0, clock=lambda: now[0])  # type: ignore[arg-type]
    for second in range(0, 3_600, 2):
        now[0] = float(second)
        upkeep.poll()
    assert memory.times == 5
