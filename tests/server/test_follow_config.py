"""The file that `kraftlake follow` takes, and the errors of one that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.metrics_address import MetricsAddress
from kraftlake.server.follow_config import ClusterConfig, FollowConfig, read_follow_config

EAST = '[clusters.east]\nbootstrap = "localhost:9093"\nlake = "east"\n'


def fault_of(tmp_path: Path, text: str | bytes) -> str:
    file = tmp_path / "clusters.toml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(UsageError) as caught:
        read_follow_config(file)
    message = str(caught.value)
    assert message.startswith(str(file))
    assert message.endswith(".")
    assert "\n" not in message
    return message.removeprefix(str(file))


def test_a_file_says_what_is_followed_and_where_metrics_are(tmp_path: Path) -> None:
    file = tmp_path / "clusters.toml"
    (tmp_path / "client.properties").touch()
    file.write_text(
        EAST + '[clusters."the west"]\nbootstrap = ["a:9093", "[::1]:9094"]\nlake = "s3://bucket/west"\n'
        'command-config = "client.properties"\ntables = true\n[metrics]\nport = 9400\n'
    )
    assert read_follow_config(file) == FollowConfig(
        clusters=(
            ClusterConfig(name="east", bootstrap="localhost:9093", lake=str(tmp_path / "east")),
            ClusterConfig(
                name="the west", bootstrap="a:9093,[::1]:9094", lake="s3://bucket/west",
                command_config=str(tmp_path / "client.properties"), tables=True,
            ),
        ),
        metrics=MetricsAddress(port=9400),
    )  # fmt: skip


def test_without_a_section_no_metrics_are_served(tmp_path: Path) -> None:
    file = tmp_path / "clusters.toml"
    file.write_text(EAST)
    assert read_follow_config(file).metrics is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the key clusters is missing: give sections such as [clusters.east]"),
        ("[clusters]\n", "there is no cluster"),
        ("clusters = 3\n", "clusters is 3: give sections"),
        ("[clusters]\neast = 3\n", "[clusters]: east is no section; write [clusters.east]"),
        ("cluster.east.lake = 'x'\n", "the key cluster is not known; the keys are clusters, metrics and notify"),
        ("[clusters.east\n", "is no TOML"),
        (b"\xff\n", "is no TOML"),
        (EAST + EAST, "is no TOML"),
        (
            EAST + "table = true\n",
            "[clusters.east]: the key table is not known; the keys are bootstrap, command-config",
        ),
        (EAST + 'tables = "yes"\n', "[clusters.east]: tables is 'yes': give true or false"),
        ('[clusters.east]\nlake = "east"\n', "[clusters.east]: the key bootstrap is missing"),
        ('[clusters.east]\nbootstrap = "localhost:9093"\n', "[clusters.east]: the key lake is missing"),
        (EAST.replace("localhost:9093", "localhost"), "[clusters.east]: bootstrap: 'localhost' is no HOST:PORT"),
        (EAST.replace('"localhost:9093"', "[]"), "[clusters.east]: bootstrap is []: give HOST:PORT"),
        (EAST.replace('"east"', '"no/where"'), "does not exist"),
        (EAST.replace('"east"', '"ftp://host/lake"'), "[clusters.east]: lake: ftp://host/lake has a scheme that"),
        (EAST + 'command-config = "none"\n', "there is no such file"),
        (EAST + EAST.replace(".east", ".west").replace('"east"', '"./east"'), "which is the lake of [clusters.east]"),
        (EAST + "[metrics]\n", "[metrics]: the key port is missing"),
        (EAST + "[metrics]\nport = true\n", "[metrics]: port is True: give a port"),
        (EAST + "[metrics]\nport = 65536\n", "[metrics]: port is 65536: give a port"),
        (EAST + '[metrics]\nport = 1\nhost = "0.0.0.0"\n', "[metrics]: host is 0.0.0.0, which is not a loopback"),
        (EAST + '[metrics]\nport = 1\nhots = "::1"\n', "[metrics]: the key hots is not known"),
        (EAST + "[notify]\n", "[notify]: there is no receiver: give url or exec"),
        (EAST + "[notify]\nurl = 3\n", "[notify]: url is 3: give a URL"),
        (EAST + '[notify]\nurl = "ftp://h"\n', "[notify]: url: The URL of --notify has to begin with https://"),
        (EAST + '[notify]\nexec = "\'"\n', "[notify]: exec: The command of --exec can't be split into words"),
        (EAST + "metrics = 3\n", "[clusters.east]: the key metrics is not known"),
    ],
    ids=str,
)
def test_a_fault_names_file_section_and_key(tmp_path: Path, text: str | bytes, message: str) -> None:
    assert message in fault_of(tmp_path, text)


def test_an_open_address_needs_a_key_that_says_insecure(tmp_path: Path) -> None:
    file = tmp_path / "clusters.toml"
    file.write_text(EAST + '[metrics]\nport = 1\nhost = "0.0.0.0"\ninsecure = true\n')
    metrics = read_follow_config(file).metrics
    assert metrics is not None
    assert metrics.host == "0.0.0.0"


def test_receivers_of_findings_have_their_queue_beside_the_file_and_show_no_secret(tmp_path: Path) -> None:
    file = tmp_path / "clusters.toml"
    file.write_text(EAST + '[notify]\nurl = "https://me:pass@example.org/s3cret"\nexec = "/bin/page --loud"\n')
    notify = read_follow_config(file).notify
    assert notify is not None
    assert notify.to_json() == {
        "queue": f"{tmp_path}/clusters.toml.notices", "url": "https://example.org", "exec": "/bin/page",
    }  # fmt: skip
    assert "s3cret" not in repr(notify)
    file.write_text(f'{EAST}[notify]\nexec = "true"\nqueue = "waiting"\n')
    assert (read_follow_config(file).notify or notify).queue == str(tmp_path / "waiting")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.toml can't be read: No such file"):
        read_follow_config(tmp_path / "none.toml")
