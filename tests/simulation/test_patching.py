"""What is replaced while a simulation runs, and given back."""

from __future__ import annotations

from simulator.patching import patched


class Base:
    def read(self) -> str:
        return "base"


class Inheriting(Base):
    pass


class Own(Base):
    def read(self) -> str:
        return "own"


def test_attributes_are_given_back_also_where_a_class_inherits_them() -> None:
    with patched({}, [(Inheriting, "read", lambda _: "virtual"), (Own, "read", lambda _: "virtual")]):
        assert (Inheriting().read(), Own().read(), Base().read()) == ("virtual", "virtual", "base")
    assert (Inheriting().read(), Own().read()) == ("base", "own")
    assert "read" not in vars(Inheriting)
