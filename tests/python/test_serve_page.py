"""The page of a served drive in a real browser: it draws, keeps up, and asks for nothing but its data."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import flashwright
from conftest import SMALL
from flashwright import Ssd
from nbdclient import Nbd
from test_report_browser import browser  # noqa: F401 # a fixture

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")

DRAWN = """() => [...document.querySelectorAll("canvas")].map((canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return new Set(new Uint32Array(data.buffer)).size;
})"""


def test_the_page_shows_the_drive_at_work(browser) -> None:  # type: ignore[no-untyped-def] # noqa: F811
    complaints: list[str] = []
    with flashwright.serve(Ssd.from_text(SMALL), watch="127.0.0.1:0") as served:
        with Nbd(served.uri) as client:
            for page in range(2000):
                client.write(page * 7 % 1600 * 4096, b"x" * 4096)
        address = served.addresses["watch"]
        context = browser.new_context()
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "request",
            lambda request: complaints.extend(
                [request.url] * (not request.url.startswith(address))
            ),
        )
        page.goto(address)
        # The page's policy allows no evaluation of text, so its functions can't be polled.
        sync_api.expect(page.locator("#state")).to_have_text(re.compile("^served for"))
        tiles = page.inner_text("#tiles")
        assert f"written\n{2000 * 4096 / 2**20:.2f} MiB" in tiles and "blocks erased" in tiles
        assert "write amplification\n" in tiles and "settled\nNO: transient" in tiles
        assert page.inner_text("#notes").startswith("settled: ")
        # Axes and letters alone have fewer shades; the map has many colours.
        assert all(shades > 3 for shades in page.evaluate(DRAWN)), page.evaluate(DRAWN)
    page.wait_for_selector("#state.lost")
    context.close()
    assert [text for text in complaints if "ERR_CONNECTION_REFUSED" not in text] == []


def test_a_device_that_exists_has_no_flash_to_show(
    browser: Any,  # noqa: F811
    tmp_path: Path,
) -> None:
    image = tmp_path / "image"
    image.write_bytes(bytes(1 << 20))
    with flashwright.serve_before(image, scheduler="deadline", watch="127.0.0.1:0") as served:
        with Nbd(served.uri) as client:
            client.read(0, 1 << 20)
        context = browser.new_context()
        page = context.new_page()
        page.goto(served.addresses["watch"])
        sync_api.expect(page.locator("#state")).to_have_text(re.compile("^served for"))
        tiles = page.inner_text("#tiles")
        assert "read\n1.00 MiB" in tiles and "deadline: taken, handed on\n1, 1" in tiles
        assert "amplification" not in tiles and "blocks" not in tiles
        sync_api.expect(page.locator("#amplification")).to_be_hidden()
        sync_api.expect(page.locator("#throughput")).to_be_visible()
        context.close()
