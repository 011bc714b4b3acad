"""A headless Chromium, driven by WebDriver, with a page's requests, console errors and accessibility violations.

Chromium and its driver are Debian packages. The first program that needs them installs them if it has permission.
"""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from axe_core_python.selenium import Axe
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support import expected_conditions
from selenium.webdriver.support.ui import WebDriverWait

from setup.system_packages import install

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from selenium.webdriver.remote.webelement import WebElement

_WAIT_S = 60
_HEIGHT_PX = 1000
_SEVERE = {"serious", "critical"}
_PACKAGES = {"chromium": "chromium", "chromedriver": "chromium-driver"}


@dataclass(frozen=True)
class Browser:
    """A browser window.

    Attributes:
        driver: Selenium's driver.
    """

    driver: webdriver.Chrome

    def open(self, url: str) -> None:
        """Load a page, and discard the requests and console messages of earlier pages."""
        self._log("performance")
        self._log("browser")
        self.driver.get(url)

    def resize(self, width: int, height: int) -> None:
        """Set the viewport in CSS pixels. Unlike Chromium's window, it can be narrower than 500."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def click_link(self, text: str) -> None:
        """Wait until a link can be clicked, and click it."""
        link = expected_conditions.element_to_be_clickable((By.LINK_TEXT, text))
        WebDriverWait(self.driver, _WAIT_S).until(link).click()

    def wait_for_title(self, part: str) -> None:
        """Wait until the page's title contains this text."""
        WebDriverWait(self.driver, _WAIT_S).until(expected_conditions.title_contains(part))

    def wait_for_url(self, url: str) -> None:
        """Wait until the browser is at this URL."""
        WebDriverWait(self.driver, _WAIT_S).until(expected_conditions.url_to_be(url))

    def wait_for(self, selector: str) -> WebElement:
        """Wait until an element is visible."""
        found = expected_conditions.visibility_of_element_located((By.CSS_SELECTOR, selector))
        element: WebElement = WebDriverWait(self.driver, _WAIT_S).until(found)
        return element

    def wait_until_still(self, selector: str) -> None:
        """Wait until an element's position and size are equal in two consecutive polls."""
        seen: list[object] = []

        def is_still(driver: webdriver.Chrome) -> bool:
            seen.append(driver.find_element(By.CSS_SELECTOR, selector).rect)
            return len(seen) > 1 and seen[-1] == seen[-2]

        WebDriverWait(self.driver, _WAIT_S).until(is_still)

    def requested_urls(self) -> list[str]:
        """Return the URLs that the page has requested since it was opened, including its own."""
        messages = [json.loads(entry["message"])["message"] for entry in self._log("performance")]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]

    def console_errors(self) -> list[str]:
        """Return the console's errors and warnings since the page was opened."""
        return [entry["message"] for entry in self._log("browser")]

    def _log(self, name: str) -> list[dict[str, Any]]:
        """Return the entries of a log since the last read."""
        entries: list[dict[str, Any]] = self.driver.get_log(name)  # type: ignore[no-untyped-call]  # Selenium's own
        return entries

    def serious_violations(self) -> list[dict[str, Any]]:
        """Return the accessibility violations that axe rates serious or critical, with rule and elements."""
        violations = Axe().run(self.driver)["violations"]
        return [
            {"rule": rule["id"], "elements": [node["html"][:200] for node in rule["nodes"][:3]]}
            for rule in violations
            if rule["impact"] in _SEVERE
        ]

    def overflow_px(self) -> int:
        """Return the number of pixels by which the page is wider than the window."""
        script = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        return int(self.driver.execute_script(script))


@contextmanager
def browser(
    profile: Path, *, width: int = 1200, is_offline: bool = False, is_dark: bool = False
) -> Iterator[Browser]:
    """Start a browser with a separate profile, and end it afterwards.

    Args:
        profile: An empty folder.
        width: Width of the viewport in CSS pixels.
        is_offline: Whether the network is off.
        is_dark: Whether the browser prefers the dark colour scheme.
    """
    for program, package in _PACKAGES.items():
        if shutil.which(program) is None:
            install(package, why=f"{program} is not on the PATH.")
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for option in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "no-proxy-server"):
        options.add_argument(f"--{option}")
    options.add_argument(f"--user-data-dir={profile}")
    options.set_capability("goog:loggingPrefs", {"browser": "WARNING", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        window = Browser(driver)
        window.resize(width, _HEIGHT_PX)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        if is_offline:
            driver.set_network_conditions(offline=True, latency=0, throughput=0)
        yield window
    finally:
        driver.quit()
