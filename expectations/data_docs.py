"""How Great Expectations measures and shows one of our expectations.

What belongs here: the expectation class for a number that Spark measured, and what Data Docs say of it. What does not:
which expectations there are, and the verdict (`gate`).

Names in examples come from clusters: a client id may be any text. Data Docs put templates into pages unescaped but
escape the parameters of a template, so whatever is not written in this file is given as a parameter.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from great_expectations.expectations import ExpectColumnMaxToBeBetween
from great_expectations.render import (
    LegacyDiagnosticRendererType,
    LegacyRendererType,
    RenderedStringTemplateContent,
)
from great_expectations.render.renderer.renderer import renderer
from great_expectations.render.view import DefaultJinjaPageView
from jinja2 import ChoiceLoader, FileSystemLoader

from expectations.verdict import allowed, waiver_text

if TYPE_CHECKING:
    import great_expectations as gx

    from expectations.evaluation import Evaluation

_PAGES: Final = Path(__file__).parent / "pages"
_VIEW: Final = {"module_name": __name__, "class_name": "SelfContainedPage"}
_GX_SEVERITY: Final = {"block": "critical", "warn": "warning"}
_ON_FAILURE: Final = {
    "block": "the day is not published",
    "warn": "the day is published and this is reported",
}


# Great Expectations ships no types, so to mypy its classes and decorators are Any.
class ExpectMeasureToBeBetween(ExpectColumnMaxToBeBetween):  # type: ignore[misc]
    """Expects the only value of a column, a number measured in Spark, to be in a range.

    A null or a missing column fails. The class adds nothing but words to its parent: Data Docs show the sentence of
    the expectation and its examples instead of "maximum value must be …".
    """

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
    """A evaluation, over the column named by its expectation's id, with what Data Docs say of it."""
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


class SelfContainedPage(DefaultJinjaPageView):  # type: ignore[misc]
    """A page that loads nothing: Great Expectations' own pages take scripts and styles from public servers.

    Whoever reads about a private cluster should not tell four companies so, and the pages must be whole without a network.
    """

    _template = "self_contained_page.j2"

    def __init__(
        self, custom_styles_directory: str | None = None, custom_views_directory: str | None = None
    ) -> None:
        """The parameters are those by which Great Expectations makes views; none of them is used."""
        super().__init__(custom_styles_directory, custom_views_directory)
        self.env.loader = ChoiceLoader([FileSystemLoader(_PAGES), self.env.loader])


def add_site(context: gx.data_context.EphemeralDataContext, directory: str) -> str:
    """Adds Data Docs in a local directory to a context; gives the site's name."""
    context.add_data_docs_site(
        site_name="gate",
        site_config={
            "class_name": "SiteBuilder",
            "show_how_to_buttons": False,
            "store_backend": {"class_name": "TupleFilesystemStoreBackend", "base_directory": directory},
            "site_index_builder": {"class_name": "DefaultSiteIndexBuilder", "view": _VIEW},
            "site_section_builders": {
                "expectations": {"view": _VIEW},
                "validations": {"view": _VIEW},
            },
        },
    )
    return "gate"


def drop_unused_files(site: Path) -> None:
    """Removes the fonts, pictures and styles that Great Expectations puts beside its own pages: 4 MB that ours never load."""
    shutil.rmtree(site / "static", ignore_errors=True)


def _text(template: str, params: dict[str, str]) -> RenderedStringTemplateContent:
    return RenderedStringTemplateContent(
        content_block_type="string_template", string_template={"template": template, "params": params}
    )
