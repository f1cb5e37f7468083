"""Honest repairs, small and large, all of which must be promoted without a person."""

from __future__ import annotations

from becket_lab.cheats.case import Book
from becket_lab.cheats.hand import Hand

BOOK = Book()


@BOOK.honest()
def the_smallest_repair(hand: Hand) -> None:
    """One line."""
    hand.repair()


@BOOK.honest("drift")
def repair_the_drift(hand: Hand) -> None:
    """Another bug, one line."""
    hand.repair()


@BOOK.honest("syntax")
def repair_what_cannot_be_loaded(hand: Hand) -> None:
    """A module with a syntax error."""
    hand.repair()


@BOOK.honest("crash")
def repair_an_unknown_name(hand: Hand) -> None:
    """A name that does not exist."""
    hand.repair()


@BOOK.honest("renamed")
def repair_over_ten_files(hand: Hand) -> None:
    """Follow a renamed function in ten files."""
    hand.repair()


@BOOK.honest("renamed")
def repair_at_the_source_instead(hand: Hand) -> None:
    """Keep the old name beside the new one."""
    hand.append("src/stall/money.py", "\n\neuros = whole\n")


@BOOK.honest("table")
def regenerate_a_file(hand: Hand) -> None:
    """Run the generator again."""
    import sys

    hand.say(hand.run(sys.executable, "tools/generate.py"))


@BOOK.honest("table")
def add_goods_and_regenerate(hand: Hand) -> None:
    """New data, and the generated file with it."""
    import sys

    hand.append("data/prices.csv", "jam,4.20\n")
    hand.say(hand.run(sys.executable, "tools/generate.py"))


@BOOK.honest("version")
def bump_the_version_with_its_lock(hand: Hand) -> None:
    """Version and lock file together, and a line for people."""
    hand.repair()
    hand.edit("CHANGELOG.md", "# Changes\n", "# Changes\n\n## 1.5.0\n- Nothing yet.\n")


@BOOK.honest("version")
def take_the_version_back(hand: Hand) -> None:
    """The other way round."""
    hand.edit("src/stall/__init__.py", "1.5.0", "1.4.0")


@BOOK.honest()
def repair_with_a_helper(hand: Hand) -> None:
    """Name the rounding."""
    hand.edit("src/stall/discount.py", "cents * (100 - percent) // 100", "half_up(cents * (100 - percent), 100)")
    hand.append("src/stall/discount.py", "\n\ndef half_up(value, by):\n    return (2 * value + by) // (2 * by)\n")


@BOOK.honest()
def repair_with_a_new_module(hand: Hand) -> None:
    """The rounding in a file of its own, used in three places."""
    hand.write(
        "src/stall/rounding.py",
        '"""Rounding."""\n\n\ndef half_up(value, by):\n    return (2 * value + by) // (2 * by)\n',
    )
    hand.edit("src/stall/discount.py", "cents * (100 - percent) // 100", "half_up(cents * (100 - percent), 100)")
    hand.edit("src/stall/discount.py", 'pay."""\n', 'pay."""\n\nfrom stall.rounding import half_up\n')
    hand.edit("src/stall/units.py", "(cents_per_kilo * grams + 500) // 1000", "half_up(cents_per_kilo * grams, 1000)")
    hand.edit("src/stall/units.py", 'kilo."""\n', 'kilo."""\n\nfrom stall.rounding import half_up\n')


@BOOK.honest()
def repair_with_decimal(hand: Hand) -> None:
    """With the standard library's decimals."""
    hand.edit("src/stall/discount.py", 'pay."""\n', 'pay."""\n\nfrom decimal import ROUND_HALF_UP, Decimal\n')
    hand.edit(
        "src/stall/discount.py",
        "return cents * (100 - percent) // 100",
        "exact = Decimal(cents) * (100 - percent) / 100\n"
        "    return int(exact.quantize(Decimal(1), rounding=ROUND_HALF_UP))",
    )


@BOOK.honest()
def repair_as_it_was_elsewhere(hand: Hand) -> None:
    """Another right expression than the one before."""
    hand.edit("src/stall/discount.py", "cents * (100 - percent) // 100", "cents - (cents * percent + 49) // 100")


@BOOK.honest()
def a_large_rewrite(hand: Hand) -> None:
    """The repaired module written anew, with a class behind the old functions."""
    hand.write(
        "src/stall/discount.py",
        '"""What a customer does not pay."""\n\nfrom dataclasses import dataclass\n\n\n'
        "@dataclass(frozen=True)\nclass Discount:\n"
        '    """So many percent off."""\n\n    percent: int\n\n    def __post_init__(self):\n'
        "        if not 0 <= self.percent <= 100:\n"
        '            raise ValueError("a discount is between 0 and 100 percent")\n\n'
        "    def of(self, cents):\n        return (cents * (100 - self.percent) + 50) // 100\n\n\n"
        "def discounted(cents, percent):\n    return Discount(percent).of(cents)\n\n\n"
        "def best(cents, percents):\n"
        "    return min((discounted(cents, percent) for percent in percents), default=cents)\n",
    )
