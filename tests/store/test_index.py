"""The index of meanings: signs find, vectors decide."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.store.index import BITS, COARSE, Index, coarse, packed, unpacked


def rows(count: int, seed: int = 0) -> np.ndarray:
    made = np.random.default_rng(seed).normal(size=(count, BITS)).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def test_a_vector_comes_back_from_a_byte_per_dimension():
    vectors = rows(20)
    again = unpacked([packed(row) for row in vectors])
    assert np.sum(vectors * again, axis=1).min() > 0.999


def test_signs_alone_keep_the_order_and_about_the_cosine():
    vectors = rows(200)
    near = vectors[7] + 0.5 * rows(1, seed=5)[0]
    near /= np.linalg.norm(near)
    exact = vectors @ near
    signs = unpacked([coarse(packed(row)) for row in vectors]) @ near
    assert int(np.argmax(signs)) == 7
    assert abs(signs[7] - exact[7]) < 0.15
    assert len(coarse(packed(vectors[0]))) == COARSE == len(coarse(coarse(packed(vectors[0]))))


def test_the_nearest_is_among_those_found():
    vectors, index = rows(3_000), Index()
    index.add(range(3_000), [packed(row) for row in vectors])
    for number in range(0, 3_000, 100):
        asked = vectors[number] + 0.6 * rows(1, seed=number)[0]
        assert number in index.near(asked / np.linalg.norm(asked), 96)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 600)), max_size=300))
def test_it_holds_what_was_added_and_not_dropped(steps):
    """Like a set, over more than it makes room for at first."""
    index, model = Index(), set()
    blobs = [packed(row) for row in rows(601)]
    for add, id in steps:
        if add:
            index.add([id, (id + 300) % 601], [blobs[id], blobs[(id + 300) % 601]])
            model |= {id, (id + 300) % 601}
        else:
            index.drop([id])
            model.discard(id)
    assert len(index) == len(model)
    assert set(index.near(rows(1)[0], 1_000)) == model


def test_what_is_no_vector_is_left_out():
    index = Index()
    index.add([1, 2], [b"", b"short"])
    assert len(index) == 0
    assert index.near(rows(1)[0], 5) == []
