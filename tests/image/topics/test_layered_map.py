"""A LayeredMap against a dict."""

from hypothesis import given
from hypothesis import strategies as st

from kraftlake.image.topics.layered_map import GROWTH, LayeredMap

CHANGES = st.lists(
    st.dictionaries(st.integers(0, 2 * GROWTH**2), st.integers().map(lambda n: [n]), min_size=1, max_size=3 * GROWTH),
    max_size=40,
)


def map_of(changes):
    made = LayeredMap.EMPTY
    for entries in changes:
        made = made.changed(entries)
    return made


@given(changes=CHANGES, later=CHANGES)
def test_it_is_the_dict_of_its_changes_and_earlier_maps_stay(changes, later):
    first = map_of(changes)
    expected = {number: value for entries in changes for number, value in entries.items()}
    last = first
    for entries in later:
        last = last.changed(entries)
    assert first.entries() == expected
    assert all(first.get(number) is value for number, value in expected.items())
    assert last.entries() == expected | {number: value for entries in later for number, value in entries.items()}
    assert last.get(-1) is None
    assert len(last.entries()) <= last.most


@given(base=CHANGES, changes=CHANGES, others=CHANGES)
def test_two_maps_are_unlike_where_their_objects_are(base, changes, others):
    shared = map_of(base)
    one, two = shared, shared
    for entries in changes:
        one = one.changed(entries)
    for entries in others:
        two = two.changed(entries)
    numbers = {*one.entries(), *two.entries()}
    assert sorted(one.unlike(two)) == sorted(n for n in numbers if one.get(n) is not two.get(n))
    assert sorted(one.unlike(two)) == sorted(two.unlike(one))
    assert one.unlike(one) == []


def test_layers_stay_few_and_within_their_bounds():
    made = LayeredMap.EMPTY
    for number in range(GROWTH**3):
        made = made.changed({number: number + 1})
        sizes = [len(made.first), *map(len, made.later)]
        assert sum(sizes) == number + 1 == made.most
        assert all(size <= GROWTH ** (depth + 1) for depth, size in enumerate(sizes))
    assert len(made.later) == 2
