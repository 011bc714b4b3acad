"""Validation and rendering of an expectation in Great Expectations.

Belongs here: the expectation class for a measured number, and its text in Data Docs. Does not belong here: the list of expectations
(`suites`) and the verdict (`gate`).

Names in examples come from clusters: a client id may be any text. Data Docs do not escape templates, but they escape
template parameters, so every text from outside this file is a parameter.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from great_expectations.compatibility.pydantic import PrivateAttr
from great_expectations.expectations import ExpectColumnMaxToBeBetween
from great_expectations.render import (
    LegacyDiagnosticRendererType,
    LegacyRendererType,
    RenderedStringTemplateContent,
)
from great_expectations.render.renderer.page_renderer import ValidationResultsPageRenderer
from great_expectations.render.renderer.renderer import renderer
from great_expectations.render.view import DefaultJinjaPageView
from jinja2 import ChoiceLoader, FileSystemLoader

from rebalance_ledger.gate.verdict import allowed, waiver_text

if TYPE_CHECKING:
    from great_expectations.core import ExpectationSuiteValidationResult
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

    from rebalance_ledger.gate.evaluation import Evaluation

_TEMPLATES: Final = Path(__file__).parent
_GX_SEVERITY: Final = {"block": "critical", "warn": "warning"}
_ON_FAILURE: Final = {
    "block": "the day is not published",
    "warn": "the day is published and this is reported",
}


# Great Expectations ships no types, so mypy treats its classes and decorators as Any.
class ExpectMeasureToBeBetween(ExpectColumnMaxToBeBetween):  # type: ignore[misc]
    """Expect the single value of a column, a number measured of the staged day, to be in a range.

    A null or a missing column fails. The class changes only the text of its parent: Data Docs show the sentence of the
    expectation and its examples instead of "maximum value must be …".
    """

    # Great Expectations reads it some fifty times for each expectation, and its parent copies every value each time.
    _configuration: tuple[str | None, ExpectationConfiguration] | None = PrivateAttr(default=None)

    @property
    def configuration(self) -> ExpectationConfiguration:
        """The configuration of the parent, computed once: after the expectation is made, only its id changes."""
        if self._configuration is None or self._configuration[0] != self.id:
            self._configuration = (self.id, super().configuration)
        return self._configuration[1]

    @classmethod
    @renderer(renderer_type=LegacyRendererType.PRESCRIPTIVE)  # type: ignore[untyped-decorator]
    def _prescriptive_renderer(cls, configuration: Any, **_: Any) -> list[RenderedStringTemplateContent]:  # noqa: ANN401 - see above
        meta = configuration.meta
        return [
            _text(
                "$sentence\nAllowed: $allowed. If it fails, $on_failure.",
                {key: meta[key] for key in ("sentence", "allowed", "on_failure")},
            )
        ]

    @classmethod
    @renderer(renderer_type=LegacyDiagnosticRendererType.OBSERVED_VALUE)  # type: ignore[untyped-decorator]
    def _diagnostic_observed_value_renderer(cls, result: Any, **_: Any) -> RenderedStringTemplateContent:  # noqa: ANN401 - see above
        meta = result.expectation_config.meta
        examples = {f"example_{place}": example for place, example in enumerate(meta["examples"])}
        lines = ["$observed", *(f"${name}" for name in examples)]
        return _text("\n".join(lines), {"observed": meta["observed"]} | examples)


def gx_expectation(evaluation: Evaluation) -> ExpectMeasureToBeBetween:
    """Return the Great Expectations expectation for the column that is named by the expectation id."""
    waiver = waiver_text(evaluation)
    observed = "not measured" if evaluation.observed is None else f"{evaluation.observed:g}"
    return ExpectMeasureToBeBetween(
        column=evaluation.expectation.expectation_id,
        min_value=evaluation.threshold_min,
        max_value=evaluation.threshold_max,
        severity=_GX_SEVERITY[evaluation.severity],
        meta={
            "sentence": evaluation.expectation.sentence,
            "allowed": allowed(evaluation),
            "on_failure": _ON_FAILURE[evaluation.severity],
            "observed": observed if waiver is None else f"{observed}; {waiver}",
            "examples": list(evaluation.examples),
        },
    )


# See above: mypy treats its parent as Any.
class _SelfContainedPage(DefaultJinjaPageView):  # type: ignore[misc]
    """A page without external resources; Great Expectations' own pages load scripts and styles from public servers.

    Readers of a private cluster's pages must not send requests to third parties, and the pages must work without a network.
    """

    _template = "self_contained_page.j2"

    def __init__(self) -> None:
        """Look for templates in this folder first."""
        super().__init__()
        self.env.loader = ChoiceLoader([FileSystemLoader(_TEMPLATES), self.env.loader])


_VIEW: Final = _SelfContainedPage()
"""One for all pages of this process, because each compiles its templates."""


def write_suite_page(directory: Path, title: str, result: ExpectationSuiteValidationResult) -> None:
    """Write `suites/<suite>.html`: what Great Expectations found for each expectation of a suite.

    Args:
        directory: Data Docs of one cluster and day.
        title: Title of the page.
        result: Result of the suite.
    """
    document = ValidationResultsPageRenderer().render(result)
    document.page_title = title
    # Around the statistics, a link to a page of the suite without results, and facts about a data frame in memory.
    overview = document.sections[0]
    _, statistics, _ = overview.content_blocks
    overview.content_blocks = [statistics]
    page = directory / "suites" / f"{result.suite_name}.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(_VIEW.render(document), encoding="utf-8")


def _text(template: str, params: dict[str, str]) -> RenderedStringTemplateContent:
    return RenderedStringTemplateContent(
        content_block_type="string_template", string_template={"template": template, "params": params}
    )
