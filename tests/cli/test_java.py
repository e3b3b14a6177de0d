"""Orders and hashes that Java gave for the same input."""

from stratalog.cli.java import hash_map_order, string_hash


def paths(numbers: list[int]) -> list[str]:
    return [f"/data/orders-0/{20 * number:020d}.log" for number in numbers]


def test_keys_come_in_the_order_of_a_hash_map() -> None:
    few = [2, 0, 4, 3, 1]
    many = [29, 8, 18, 22, 26, 5, 1, 25, 14, 11, 0, 3, 15, 7, 28, 24, 17, 10]
    many += [21, 6, 13, 9, 23, 2, 16, 27, 19, 4, 12, 20]

    assert hash_map_order(paths(list(range(5)))) == paths(few)
    assert hash_map_order(paths(list(range(30)))) == paths(many)


def test_strings_are_hashed_by_their_utf_16_units() -> None:
    assert string_hash("grün €\U0001f600") == 248972684
