"""Validation and rendering of an expectation in Great Expectations.

What belongs here: the expectation class for a measured number, and its text in Data Docs. What does not: the list
of expectations (`suites`) and the verdict (`gate`).

Names in examples come from clusters: a client id may be any text. Data Docs do not escape templates, but they escape
template parameters, so every text from outside this file is a parameter.
"""

from __future__ import annotations

import shutil
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from great_expectations.compatibility.pydantic import PrivateAttr
from great_expectations.expectations import ExpectColumnMaxToBeBetween
from great_expectations.render import (
    LegacyDiagnosticRendererType,
    LegacyRendererType,
    RenderedStringTemplateContent,
)
from great_expectations.render.renderer.renderer import renderer
from great_expectations.render.view import DefaultJinjaPageView
from jinja2 import BytecodeCache, ChoiceLoader, FileSystemLoader

from rebalance_ledger.gate.verdict import allowed, waiver_text

if TYPE_CHECKING:
    import great_expectations as gx
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
    from jinja2.bccache import Bucket

    from rebalance_ledger.gate.evaluation import Evaluation

_TEMPLATES: Final = Path(__file__).parent
_VIEW: Final = {"module_name": __name__, "class_name": "SelfContainedPage"}
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
        return copy(self._configuration[1])

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


class _CompiledTemplates(BytecodeCache):
    """Compiled templates of this process: each page of each day would compile them again."""

    def __init__(self) -> None:
        self._code: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        """Give a template its compiled code, if there is any."""
        if bucket.key in self._code:
            bucket.bytecode_from_string(self._code[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep the compiled code of a template."""
        self._code[bucket.key] = bucket.bytecode_to_string()


_COMPILED_TEMPLATES: Final = _CompiledTemplates()


class SelfContainedPage(DefaultJinjaPageView):  # type: ignore[misc]
    """A page without external resources; Great Expectations' own pages load scripts and styles from public servers.

    Readers of a private cluster's pages must not send requests to third parties, and the pages must work without a network.
    """

    _template = "self_contained_page.j2"

    def __init__(
        self, custom_styles_directory: str | None = None, custom_views_directory: str | None = None
    ) -> None:
        """Accept the parameters that Great Expectations passes to views."""
        super().__init__(custom_styles_directory, custom_views_directory)
        self.env.loader = ChoiceLoader([FileSystemLoader(_TEMPLATES), self.env.loader])
        self.env.bytecode_cache = _COMPILED_TEMPLATES


def add_site(context: gx.data_context.EphemeralDataContext, directory: str) -> str:
    """Add Data Docs in a local directory to a context and return the site's name."""
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
    """Remove the fonts, pictures and styles of Great Expectations' own pages: 4 MB that our pages never load."""
    shutil.rmtree(site / "static", ignore_errors=True)


def _text(template: str, params: dict[str, str]) -> RenderedStringTemplateContent:
    return RenderedStringTemplateContent(
        content_block_type="string_template", string_template={"template": template, "params": params}
    )
