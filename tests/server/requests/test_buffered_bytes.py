"""Which client is ended when slow ones hold too much."""

from __future__ import annotations

from kraftlake.server.requests.buffered_bytes import BufferedBytes


class Client:
    aborted = False

    def abort(self) -> None:
        self.aborted = True


def test_the_transfer_that_began_first_is_ended_however_lively_it_is() -> None:
    buffered = BufferedBytes(100)
    slow, other, late = Client(), Client(), Client()
    for client, size in ((slow, 30), (other, 30), (slow, 31), (late, 39)):
        buffered.hold(client.abort, size)
    assert not slow.aborted
    assert buffered.total == 100
    buffered.hold(late.abort, 40)
    assert (slow.aborted, other.aborted, late.aborted) == (True, False, False)
    assert buffered.total == 70


def test_a_transfer_that_has_ended_is_young_again() -> None:
    buffered = BufferedBytes(100)
    first, second = Client(), Client()
    for client, size in ((first, 50), (second, 50), (first, 0), (first, 51)):
        buffered.hold(client.abort, size)
    assert (first.aborted, second.aborted) == (False, True)
    assert buffered.total == 51


def test_as_many_are_ended_as_have_to_be() -> None:
    buffered = BufferedBytes(100)
    clients = [Client() for _ in range(4)]
    for client in clients:
        buffered.hold(client.abort, 25)
    buffered.hold(clients[3].abort, 80)
    assert [client.aborted for client in clients] == [True, True, True, False]
    buffered.hold(clients[3].abort, 101)
    assert clients[3].aborted
    assert buffered.total == 0
