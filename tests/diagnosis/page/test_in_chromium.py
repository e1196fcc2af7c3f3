"""A page in a real Chromium: it shows what the images say, moves, searches, opens links, and asks for nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from selenium.webdriver import ActionChains
from selenium.webdriver.common.keys import Keys

import kraftlake
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.serde import ApiMessageAndVersion
from tests.cli.made_logs import HOSTILE, TOPIC_ID, batch_of, directory_of, hostile_log
from tests.cli.running import DIRECTORY
from tests.diagnosis.page.opened import Opened
from tests.diagnosis.page.test_gathered import brokers_of, partitions_of

pytestmark = pytest.mark.xdist_group("chromium")

OpenPage = Callable[..., Opened]
MARKUP = "</script><img src=x onerror=window.bad=1><b id=bad>"


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("page") / "sample.html"
    kraftlake.open(DIRECTORY).page(file)
    return file


def shown_states(page: Opened) -> dict[tuple[str, int], Any]:
    rows = page.run(
        "return [...Array(history.rowCount).keys()].filter((row) => history.stateOf(row)).map((row) =>"
        " [history.topicIds[history.rowTopics[row]], history.rowPartitions[row], history.stateOf(row)])"
    )
    return {(topic, number): state for topic, number, state in rows}


@pytest.mark.parametrize("offset", [458, 1277, 2784, 5736])
def test_a_link_opens_at_its_moment_with_what_the_image_says(open_page: OpenPage, sample: Path, offset: int) -> None:
    page = open_page(sample, f"#at={offset}")
    image = kraftlake.open(DIRECTORY).image(offset)
    states = partitions_of(image)
    assert page.offset <= offset
    assert shown_states(page) == states
    assert page.tiles == {
        "offline": sum(state[-1] & 1 for state in states.values()),
        "under": sum(state[-1] >> 1 & 1 for state in states.values()),
        "moving": sum(state[-1] >> 2 & 1 for state in states.values()),
        "all": len(states),
    }
    brokers = dict(zip(*page.run("return [history.brokerIds, [...history.brokersNow]]"), strict=True))
    assert {id_: state for id_, state in brokers.items() if state} == brokers_of(image)
    assert page.browser.title == "Cluster VXUoBgBGTaWWfCM4Toybuw"


@pytest.mark.parametrize("at", ["2026-11-21T07:46:16.256", "2026-11-21T08:46:16.256%2B01:00", "2026-11-21 07:46:16.3"])
def test_a_link_names_a_time_too(open_page: OpenPage, sample: Path, at: str) -> None:
    assert open_page(sample, f"#at={at}").offset == 458


def test_the_slider_and_the_keys_go_through_the_log(open_page: OpenPage, sample: Path) -> None:
    page = open_page(sample)
    source = kraftlake.open(DIRECTORY)
    assert page.offset == source.end_offset - 1
    page.slide(500_000)
    middle = page.offset
    assert 0 < middle < source.end_offset - 1
    assert page.tiles["all"] == len(partitions_of(source.image(middle)))
    page.keys(Keys.HOME)
    assert page.offset == 0
    page.keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert page.offset == page.run("return history.offsets[2]")
    page.keys("n")
    first = page.run("return history.offsets[history.outages[0][0]]")
    assert page.offset == first
    assert page.tiles["offline"] > 0
    page.keys("n")
    assert page.tiles["offline"] == 0
    page.keys(Keys.END)
    assert page.offset == source.end_offset - 1
    ActionChains(page.browser).move_to_element_with_offset(page.find("#curves"), 0, 0).click().perform()
    assert page.offset == pytest.approx(middle, abs=600)


def test_a_search_lists_what_matches(open_page: OpenPage, sample: Path) -> None:
    page = open_page(sample, "#at=1202")
    everything = page.listed
    page.keys("/")
    page.find("#search").send_keys("T-1-")
    assert page.listed == [name for name in everything if "t-1-" in name] != []
    assert all("t-1-" in text for text in page.texts("#list .what"))
    page.find("#search").send_keys("bkq-1")
    assert page.listed == ["t-1-bkq-1"]
    page.find("#search").send_keys(Keys.ENTER)
    assert page.text("#panel-title") in {"t-1-bkq", "t-1-bkq-1"}
    page.find("#search").send_keys(Keys.ESCAPE)
    assert page.listed == everything
    page.find("#search").send_keys("there is no such thing")
    assert page.text("#empty") == "No partition that matches “there is no such thing” is here at this moment."


def test_a_click_on_a_partition_shows_its_history(open_page: OpenPage, sample: Path) -> None:
    page = open_page(sample, "#at=1202&only=offline")
    name = page.listed[0]
    row = page.run("return [...matrix.items].findIndex((item) => item >= 0)")
    scroller = page.find("#scroller")
    y = 46 + 22 * row + 11 - scroller.size["height"] // 2
    ActionChains(page.browser).move_to_element_with_offset(scroller, 0, y).click().perform()
    assert page.text("#panel-title") == name
    assert "none: offline" in page.text("#facts")
    topic, _, partition = name.rpartition("-")
    said = [e["sentence"] for e in kraftlake.open(DIRECTORY).events() if e["subject"] in (name, f"topic {topic}")]
    listed = page.texts("#list .what")
    assert listed == [sentence for sentence in reversed(said) if sentence in listed]
    assert {sentence for sentence in said if sentence.startswith(name)} <= {*listed}
    page.browser.execute_async_script("setTimeout(arguments[0], 250)")  # the address follows when nothing else moves
    assert f"topic={topic}&partition={partition}" in page.browser.current_url
    again = open_page(sample, page.browser.current_url.partition(".html")[2])
    assert again.text("#panel-title") == name
    again.keys("[")
    assert again.run("return history.changedNow(page.row)")
    again.keys(Keys.ESCAPE)
    assert not again.find("#panel-title").is_displayed()


def test_outages_are_listed_and_gone_to(open_page: OpenPage, sample: Path) -> None:
    page = open_page(sample)
    page.find("[data-tab=outages]").click()
    assert len(page.texts("#list li")) == 10
    page.find("#list button").click()
    assert page.tiles["offline"] > 0
    assert page.tiles["all"] == 41


def test_dark_and_light_and_a_small_window(open_page: OpenPage, sample: Path) -> None:
    page = open_page(sample, "#at=1202")
    leader = (
        "const row = [...matrix.items].findIndex((i) => i >= 0 && history.stateOf(i)[0] >= 0);"
        "const column = history.columnOf.get(history.stateOf(matrix.items[row])[0]);"
        "const x = matrix.labelWidth + column * matrix.columnWidth + 8;"
        "const copy = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });"
        "copy.drawImage(matrix.canvas, -x, -(46 + row * 22 + 6));"
        "return [...copy.getImageData(0, 0, 1, 1).data]"
    )
    light = page.run(leader)
    assert light == [0x1F, 0x6F, 0xEB, 255]
    page.keys("t")
    assert page.run(leader) == [0x4B, 0x96, 0xFF, 255]
    page.keys("t")
    assert page.run(leader) == light
    size = page.browser.get_window_size()
    try:
        page.browser.set_window_size(500, 900)
        page.drawn()
        assert page.run("return document.documentElement.scrollWidth <= innerWidth")
    finally:
        page.browser.set_window_size(size["width"], size["height"])


@pytest.mark.parametrize("name", [MARKUP, HOSTILE])
def test_a_topic_named_like_markup_stays_text(open_page: OpenPage, tmp_path: Path, name: str) -> None:
    partition = r.PartitionRecord(partition_id=0, topic_id=TOPIC_ID, replicas=(1, 2), isr=(1,), leader=1)
    setting = r.ConfigRecord(resource_type=4, resource_name=name, name=name, value=name)
    broker = r.RegisterBrokerRecord(broker_id=1, broker_epoch=1, rack=name)
    topic = r.TopicRecord(name=name, topic_id=TOPIC_ID)
    log = directory_of(tmp_path, [batch_of(0, broker, topic, partition, setting)], cluster_id=None)
    kraftlake.open(log, cluster_id=name).page(tmp_path / "page.html")
    page = open_page(tmp_path / "page.html", f"#topic={quote(name)}&partition=0")
    assert page.run("return history.topics") == [name]
    visible = page.run("return visible(arguments[0])", name)
    assert page.text("#panel-title").split() == f"{visible}-0".split()
    assert page.text("#cluster").split() == f"Cluster {visible}".split()
    page.keys(Keys.ESCAPE)
    assert any(visible.split()[-1] in text for text in page.texts("#list .what"))
    assert page.run("return [window.bad, document.querySelectorAll('img, b, a').length]") == [None, 0]


def test_its_policy_lets_nothing_else_run_and_nothing_leave(chromium: Any, sample: Path) -> None:
    page = Opened(chromium, sample)
    tried = page.browser.execute_async_script("""
        const done = arguments[0], tried = [];
        const script = document.createElement("script");
        script.textContent = "window.bad = 1";
        document.head.append(script);
        document.body.insertAdjacentHTML("beforeend", "<i onclick='window.bad = 2' style='color: red'></i>");
        document.body.lastChild.click();
        tried.push(window.bad ?? null, document.body.lastChild.style.length);
        fetch("http://localhost:9/").then(() => tried.push("sent"), () => tried.push("refused"));
        const image = new Image();
        image.onload = image.onerror = (event) => { tried.push(event.type); setTimeout(() => done(tried), 50); };
        image.src = "data:image/gif;base64,R0lGODlhAQABAAAAACw=";
    """)
    assert sorted(map(str, tried)) == ["0", "None", "error", "refused"]
    assert all("Content Security Policy" in entry["message"] for entry in page.browser.get_log("browser"))


def test_a_cluster_without_partitions_and_a_log_without_times(open_page: OpenPage, tmp_path: Path) -> None:
    feature = ApiMessageAndVersion(r.FeatureLevelRecord(name="metadata.version", feature_level=19), 0)
    kraftlake.open(directory_of(tmp_path, [RecordBatch.of(0, 1, -1, [feature])])).page(tmp_path / "page.html")
    page = open_page(tmp_path / "page.html")
    assert page.text("#time") == "offset 0"
    assert page.text("#empty") == "No partition is here at this moment."
    assert page.texts("#list .what") == ["metadata.version is at level 19"]
    assert not page.find("[data-axis=time]").is_displayed()


def test_all_strings_of_a_log_that_attacks(open_page: OpenPage, tmp_path: Path) -> None:
    kraftlake.open(hostile_log(tmp_path)).page(tmp_path / "page.html")
    page = open_page(tmp_path / "page.html", "#topic=foo")
    assert "\x1b" not in page.text("body")
    assert page.find("#unknown").is_displayed()
    assert not page.run(r"return /[\u202e\u2028\u0007]/.test(document.body.innerText)")


def test_the_stability_of_the_range_is_drawn_by_kind_and_a_bar_leads_to_its_time(
    open_page: OpenPage, sample: Path
) -> None:
    page = open_page(sample)
    page.run("document.querySelector('[data-tab=stability]').click()")
    page.drawn()
    kinds = page.run("return history.stability.kinds.map((kind) => [kind.kind, kind.level, kind.spans])")
    drawn = page.run("return [...document.querySelectorAll('#list canvas')].map((one) => one.ariaLabel)")
    assert [label.partition(" by ")[0] for label in drawn] == [kind for kind, _, _ in kinds]
    counts = {kind: [sum(span[at] for span in spans) for at in (1, 2)] for kind, _, spans in kinds}
    found = kraftlake.open(DIRECTORY).stability().counts
    assert counts == {one.kind.replace("_", " "): [one.count, one.orderly] for one in found}
    assert drawn[3] == "unclean elections by 5 s: 51, 0 orderly; unusual in 4"
    before = page.offset
    page.run(
        "const canvas = document.querySelector('#list canvas'), box = canvas.getBoundingClientRect();"
        "canvas.dispatchEvent(new MouseEvent('click', { clientX: box.left + box.width / 2, bubbles: true }))"
    )
    page.drawn()
    size, first, count = page.run("return [history.stability.size, history.stability.first, history.stability.count]")
    time = page.run("return history.times[history.at]")
    assert page.offset < before
    assert first + count // 2 * size <= time < first + (count // 2 + 1) * size
