"""Output and exit codes of the command line: 0 success, 1 crash, 2 invalid input or usage, 3 refused."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from rebalance_ledger.cli.day_run import print_problems
from rebalance_ledger.pipeline import gate_input, steps
from rebalance_ledger.pipeline.day import Day
from rebalance_ledger.pipeline.steps import SetUpMissingError
from rebalance_ledger.warehouse.layout import Warehouse
from rebalance_ledger.warehouse.query import query
from rebalance_ledger.warehouse.snapshot import PublishedTable
from rebalance_ledger.warehouse.staging import write_verdict
from tests.support.command_line import ledger
from tests.support.computed_days import ROOT, asked, newest
from tests.support.export_builder import ExportBuilder
from tests.support.published_sample import Publisher
from tests.support.staging_fixtures import stage_day_of_export

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    import pyarrow.dataset as pads

    from rebalance_ledger.warehouse.cluster_day import ClusterDay

CLUSTER, DS = "shop-test", date(2026, 11, 16)

COMMANDS = (
    ("run",),
    ("sql",),
    ("tables",),
    ("summary",),
    ("fingerprint",),
    ("rollback",),
    ("backfill",),
    ("step",),
    ("exports", "collect"),
    ("exports", "import"),
    ("exports", "prune"),
    ("exports", "seal"),
    ("exports", "verify"),
)


@pytest.fixture(autouse=True)
def _no_locations_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LEDGER_EXPORTS", "LEDGER_WAREHOUSE", "LEDGER_SETTINGS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a small unsealed directory of envelopes."""
    export = ExportBuilder(CLUSTER, DS)
    export.route("orders", {"a": 2})
    export.group("g", ["orders"], ["c1"], "a")
    return export.write(tmp_path / "exports")


@pytest.fixture
def sealed(directory: Path) -> Path:
    assert ledger("exports", "seal", str(directory)) == 0
    return directory


def run(folder: Path, *more: str, cluster: str = CLUSTER, ds: str = str(DS)) -> int:
    return ledger(
        *("run", "--cluster", cluster, "--ds", ds),
        *("--exports", str(folder / "exports"), "--warehouse", str(folder / "warehouse")),
        *more,
    )


def words(text: str) -> str:
    """Return the words of a text without its line breaks."""
    return " ".join(text.replace("│", " ").split())


def test_seal_writes_the_manifest_and_prints_its_summary(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ledger("exports", "seal", str(directory)) == 0

    assert capsys.readouterr().out == (
        f"{directory} is sealed: cluster shop-test, 2026-11-16, 4 files, 5 lines (0 errors), "
        "0 attachments that no table reads.\n"
    )
    assert json.loads((directory / "manifest.json").read_text(encoding="utf-8"))["cluster"] == CLUSTER
    assert ledger("exports", "verify", str(directory)) == 0
    assert capsys.readouterr().out.startswith(f"{directory} is verified: ")


@pytest.mark.parametrize("part", ["", "gold", "staging"])
def test_a_warehouse_that_cannot_be_written_is_refused_before_spark_starts(
    sealed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], part: str
) -> None:
    file = tmp_path / "warehouse" / part
    file.parent.mkdir(exist_ok=True)
    file.write_text("a file", encoding="utf-8")

    assert run(tmp_path) == 1

    message = words(capsys.readouterr().err)
    assert f"The warehouse {tmp_path / 'warehouse'} cannot be written: {file} is not a folder." in message
    assert "verify" not in message


def test_the_error_for_a_misspelt_cluster_lists_the_clusters_with_exports(
    sealed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, cluster="shop-tset") == 2
    assert "did you mean shop-test?" in words(capsys.readouterr().err)

    assert run(tmp_path, ds="2026-11-20") == 2
    assert f"newest days in {sealed.parent}: 2026-11-16" in words(capsys.readouterr().err)

    assert ledger("exports", "verify", str(sealed.parent.parent / "2026-11-18")) == 2
    assert f"newest days in {sealed.parent.parent}: none" in words(capsys.readouterr().err)


def test_the_version_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert ledger("--version") == 0
    assert re.fullmatch(r"rebalance-ledger \d+\.\d+\.\d+\+[0-9a-f]{12}\n", capsys.readouterr().out)


def test_settings_are_checked_and_their_clusters_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "ledger.yaml"
    file.write_text("clusters: {shop: {}, pay: {}}", encoding="utf-8")

    assert ledger("settings", "check", "--settings", str(file)) == 0
    assert capsys.readouterr().out == f"{file} is valid. Clusters: pay, shop.\n"


def test_one_table_is_shown_by_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ledger("tables", "publication", "--warehouse", str(tmp_path)) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("gold.publication: one row per cluster x day")
    assert "gold.finding" not in shown

    assert ledger("tables", "publicatoin", "--warehouse", str(tmp_path)) == 2
    assert "did you mean publication?" in words(capsys.readouterr().err)


def test_seal_refuses_malformed_lines_and_names_file_and_line(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (directory / "nameserver_routes.jsonl").open("a", encoding="utf-8") as lines:
        lines.write("{}\n")

    assert ledger("exports", "seal", str(directory)) == 2

    output = capsys.readouterr().err
    assert f"{directory} is not sealed:" in output
    assert "nameserver_routes.jsonl line 3: 'kind' is missing" in words(output)
    assert not (directory / "manifest.json").exists()


def test_a_sealed_directory_is_sealed_again_only_on_demand(
    sealed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (sealed / "notes.txt").write_text("more\n", encoding="utf-8")

    assert ledger("exports", "seal", str(sealed)) == 2
    assert "manifest.json is already there" in words(capsys.readouterr().err)
    assert ledger("exports", "seal", str(sealed), "--replace") == 0
    assert "1 attachment that" in capsys.readouterr().out


def test_seal_accepts_cluster_and_day_as_options(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ledger("exports", "seal", str(directory), "--cluster", "other") == 2
    assert "other" in capsys.readouterr().err
    assert ledger("exports", "seal", str(directory), "--ds", "2026-11-17") == 2
    assert "2026-11-17" in capsys.readouterr().err


def truncate(directory: Path) -> str:
    file = directory / "consumer_connections.jsonl"
    file.write_bytes(file.read_bytes()[:-20])
    return file.name


def change(directory: Path) -> str:
    file = directory / "nameserver_routes.jsonl"
    file.write_text(file.read_text(encoding="utf-8").replace("orders", "Orders"), encoding="utf-8")
    return file.name


def remove(directory: Path) -> str:
    (directory / "consumer_running_infos.jsonl").unlink()
    return "consumer_running_infos.jsonl"


def add(directory: Path) -> str:
    (directory / "broker_configs.jsonl").write_text("", encoding="utf-8")
    return "broker_configs.jsonl"


@pytest.mark.parametrize("spoil", [truncate, change, remove, add], ids=lambda fault: fault.__name__)
def test_an_export_changed_after_sealing_is_refused_with_the_files_name_and_nothing_is_written(
    sealed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], spoil: Callable[[Path], str]
) -> None:
    file_name = spoil(sealed)

    assert run(tmp_path) == 2

    output = capsys.readouterr().err
    assert f"{sealed} is not a valid export:" in output
    assert f"- {file_name}" in output
    assert "Traceback" not in output
    assert not (tmp_path / "warehouse").exists()


def test_a_truncated_export_ends_the_process_with_2(sealed: Path, tmp_path: Path) -> None:
    file_name = truncate(sealed)
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "rebalance_ledger.cli.app", "run", "--cluster", CLUSTER, "--ds", str(DS)),
            *("--exports", tmp_path / "exports", "--warehouse", tmp_path / "warehouse"),
        ],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )

    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr.splitlines()[-1].startswith(f"- {file_name}")
    assert not (tmp_path / "warehouse").exists()


def test_a_crash_ends_the_process_with_1_and_shows_where(tmp_path: Path) -> None:
    program = (
        "import sys; from rebalance_ledger.pipeline import steps; from rebalance_ledger.cli.app import main\n"
        "def verify(day): raise RuntimeError('the disk is gone')\n"
        "steps.verify = verify\n"
        f"sys.argv = ['ledger', 'run', '--cluster', 'c', '--ds', '2026-11-16', '--warehouse', {str(tmp_path)!r}]\n"
        "main()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, check=False, capture_output=True, text=True
    )

    assert ended.returncode == 1
    assert "Traceback" in ended.stderr
    assert ended.stderr.splitlines()[-1] == "RuntimeError: the disk is gone"


def test_a_day_that_was_not_exported_is_named(
    sealed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, ds="2026-11-17") == 2

    assert str(sealed.parent / "2026-11-17") in words(capsys.readouterr().err)
    assert not (tmp_path / "warehouse").exists()


def test_an_export_without_a_manifest_is_no_export(
    directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path) == 2

    assert "manifest.json" in capsys.readouterr().err
    assert directory.is_dir()


@pytest.mark.parametrize("name", ["..", "a/b", "", " x"])
def test_an_invalid_cluster_name_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert run(tmp_path, cluster=name) == 2

    assert "the cluster's name" in capsys.readouterr().err


def test_settings_are_read_before_anything_is_started(
    sealed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "--settings", str(tmp_path / "none.yaml")) == 2
    assert f"The settings file {tmp_path / 'none.yaml'} cannot be read" in capsys.readouterr().err

    (tmp_path / "wrong.yaml").write_text("cluster: {}\n", encoding="utf-8")
    assert run(tmp_path, "--settings", str(tmp_path / "wrong.yaml")) == 2
    assert f"In the settings file {tmp_path / 'wrong.yaml'}, cluster: " in capsys.readouterr().err
    assert sealed.is_dir()
    assert not (tmp_path / "warehouse").exists()


@pytest.mark.parametrize(
    "ds", ["yesterday", "2026-13-45", "16.11.2026", "20261116", "2026-11-16T00:00:00", ""]
)
def test_an_invalid_day_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str], ds: str) -> None:
    assert run(tmp_path, ds=ds) == 2

    message = words(capsys.readouterr().err)
    assert f"Invalid value for '--ds': '{ds}' is not a day such as 2026-11-16." in message


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (("run", "--colour", "red"), "--colour"),
        (("walk",), "walk"),
        (("run", "--ds", "2026-11-16"), "--cluster"),
        (("run", "--cluster", "c"), "--ds"),
        (("sql", "SELECT 1", "--format", "xml"), "xml"),
        (("step", "build", "--cluster", "c", "--ds", "2026-11-16"), "build"),
        (("exports", "seal"), "directory"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_invalid_arguments_are_usage_errors_that_name_the_argument(
    capsys: pytest.CaptureFixture[str], given: tuple[str, ...], named: str
) -> None:
    assert ledger(*given) == 2

    assert named in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_a_help_text(capsys: pytest.CaptureFixture[str], command: tuple[str, ...]) -> None:
    assert ledger(*command, "--help") == 0

    shown = capsys.readouterr().out
    assert f"ledger {' '.join(command)}" in shown
    assert "--help" in shown


def test_the_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert ledger("--help") == 0
    of_ledger = capsys.readouterr().out
    assert ledger("exports", "--help") == 0
    of_exports = capsys.readouterr().out

    for group, name in (command for command in COMMANDS if len(command) == 2):
        assert f" {name} " in of_exports
        assert f" {group} " in of_ledger
    for name in (command[0] for command in COMMANDS if len(command) == 1):
        assert f" {name} " in of_ledger


@pytest.mark.parametrize("command", [("sql", "SELECT 1"), ("summary",)], ids=lambda words: words[0])
def test_queries_without_a_warehouse_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    assert ledger(*command, "--warehouse", str(tmp_path / "none")) == 2

    assert f"There is no warehouse at {tmp_path / 'none'}: " in capsys.readouterr().err


def test_a_published_warehouse_can_be_queried(
    shop_warehouse: str, capsys: pytest.CaptureFixture[str]
) -> None:
    query = "SELECT DISTINCT consumer_group AS g FROM queue_assignment ORDER BY 1"
    assert ledger("sql", query, "--format", "json", "--warehouse", shop_warehouse) == 0
    assert [row["g"] for row in json.loads(capsys.readouterr().out)] == ["member-sync", "order-service"]

    assert ledger("summary", "--warehouse", shop_warehouse) == 0
    assert "pay-prod" in capsys.readouterr().out

    assert ledger("sql", "DROP TABLE publication", "--warehouse", shop_warehouse) == 2
    assert capsys.readouterr().out == ""


def test_a_summary_tells_no_queues_from_unknown_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = {"finding_id": "f", "kind": "source_failed", "severity": "warning"}
    publisher = Publisher(tmp_path / "warehouse")
    publisher.publish("c", "2026-11-17", finding=[failed])
    publisher.publish("c", "2026-11-18")

    assert ledger("summary", "--warehouse", publisher.root) == 0

    rows = [line.split() for line in capsys.readouterr().out.splitlines()[2:4]]
    assert [row[2:7] for row in rows] == [["null", "null", "null", "1", "0"], ["0", "0", "0", "0", "0"]]


def test_a_summary_reads_one_cluster_at_a_time_to_limit_memory(
    shop_warehouse: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    read = []
    dataset = PublishedTable.dataset

    def recorded(
        table: PublishedTable, days: Collection[ClusterDay] | None = None, *others: Collection[str]
    ) -> pads.Dataset:
        read.append({day.cluster for day in days or ()})
        return dataset(table, days, *others)

    monkeypatch.setattr(PublishedTable, "dataset", recorded)
    assert ledger("summary", "--warehouse", shop_warehouse) == 0

    assert max(map(len, read)) == 1
    days = [line.split()[:2] for line in capsys.readouterr().out.splitlines()[2:5]]
    assert days == [["pay-prod", "2026-11-17"], ["shop-prod", "2026-11-17"], ["shop-prod", "2026-11-18"]]


@pytest.mark.parametrize("command", ["summary", "tables"])
def test_a_closed_standard_output_is_no_crash(
    shop_warehouse: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert ledger(command, "--warehouse", shop_warehouse) == 0
    assert not capsys.readouterr().err


def test_the_warehouse_location_can_be_set_in_the_environment(
    shop_warehouse: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LEDGER_WAREHOUSE", shop_warehouse)

    assert ledger("sql", "SELECT count(*) AS days FROM publication", "--format", "csv") == 0
    assert capsys.readouterr().out.split() == ["days", "3"]


@pytest.fixture
def staged(sealed: Path, tmp_path: Path) -> Day:
    """Return a staged day without rows, in the form that the build writes, of an export with rows."""
    day = Day(CLUSTER, DS, tmp_path / "exports", Warehouse.at(str(tmp_path / "warehouse")), None)
    stage_day_of_export(day.warehouse, sealed)
    return day


def stage_command(day: Day, name: str, *more: str) -> int:
    place = ("--cluster", day.cluster, "--ds", str(day.ds), "--warehouse", day.warehouse.root)
    return ledger("step", name, *place, "--exports", str(day.exports), *more)


def test_a_stage_that_the_gate_refuses_ends_with_3_and_the_reasons(
    staged: Day, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()

    assert stage_command(staged, "gate") == 3

    output = capsys.readouterr()
    assert re.fullmatch(r"metrics of the gate: \d+\.\d s\n", output.out)
    assert output.err.startswith("The gate refused this day: ")
    assert "silver.topic_route fails " in output.err
    assert asked(
        staged.warehouse,
        "SELECT bool_or(NOT is_success), count(DISTINCT run_id) FROM quarantine.gate_result",
    ) == [(True, 1)]
    assert stage_command(staged, "publish") == 2
    assert "The gate refused the staging area" in capsys.readouterr().err


def test_a_stage_is_evaluated_only_with_the_export_and_strategy_settings_of_its_build(
    staged: Day, directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = tmp_path / "ledger.yaml"
    settings.write_text(f"clusters: {{{CLUSTER}: {{gate: {{quarantine_groups: true}}}}}}\n", encoding="utf-8")
    assert stage_command(staged, "gate", f"--settings={settings}") == 3, "the gate's own part may change"
    capsys.readouterr()
    settings.write_text(
        f"clusters: {{{CLUSTER}: {{groups: {{g: {{strategy: AVG_BY_CIRCLE}}}}}}}}\n", encoding="utf-8"
    )
    assert stage_command(staged, "gate", f"--settings={settings}") == 2
    output = words(capsys.readouterr().err)
    assert f"does not fit the settings of {CLUSTER}, now another: run the build of this day again." in output

    change(directory)
    assert ledger("exports", "seal", "--replace", str(directory)) == 0
    capsys.readouterr()
    assert stage_command(staged, "gate") == 2
    output = words(capsys.readouterr().err)
    assert f"does not fit the export at {directory}, now another: run the build of this day again." in output


def test_an_export_that_changes_while_the_gate_reads_it_gives_no_verdict(
    staged: Day, directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measure = gate_input.measure

    def measure_while_it_changes(*of_day: Any) -> list[dict[str, Any]]:
        change(directory)
        return measure(*of_day)

    monkeypatch.setattr(gate_input, "measure", measure_while_it_changes)

    assert stage_command(staged, "gate") == 2
    assert "nameserver_routes.jsonl" in capsys.readouterr().err
    assert not Path(newest(staged).gate_verdict).exists()


def test_the_problems_of_a_day_are_those_of_its_cluster(
    shop_warehouse: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both clusters have this day with the same problems, so the counts must include only one cluster."""
    day = Day("shop-prod", date(2026, 11, 17), tmp_path, Warehouse.at(shop_warehouse), None)
    sql = "SELECT severity FROM finding WHERE ds = DATE '2026-11-17' AND root_finding_id IS NULL AND cluster = 'shop-prod'"
    with query(shop_warehouse, sql) as result:
        severities = [severity for (severity,) in result.rows]

    print_problems(day, Console(stderr=True, highlight=False))

    shown = words(capsys.readouterr().err)
    assert severities
    assert all(f"{severities.count(each)} {each}" in shown for each in set(severities))


def test_an_accepted_stage_is_published_once(staged: Day, capsys: pytest.CaptureFixture[str]) -> None:
    write_verdict(staged.warehouse, CLUSTER, DS, newest(staged), "passed", [])
    capsys.readouterr()

    assert stage_command(staged, "publish") == 0
    assert capsys.readouterr().out.startswith("Published run run-1; ")
    assert stage_command(staged, "publish") == 0
    assert capsys.readouterr().out == "Published run run-1; 0 tables changed.\n"


@pytest.mark.parametrize("name", ["gate", "publish"])
def test_a_stage_without_a_build_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    day = Day(CLUSTER, DS, tmp_path, Warehouse.at(str(tmp_path / "warehouse")), None)

    assert stage_command(day, name) == 2

    assert capsys.readouterr().err == (
        f"There is no whole stage at {day.warehouse.attempts(CLUSTER, DS)}: run the build of this day first.\n"
    )


def test_stage_verify_confirms_a_complete_export(
    sealed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    day = Day(CLUSTER, DS, tmp_path / "exports", Warehouse.at(str(tmp_path / "warehouse")), None)
    capsys.readouterr()

    assert stage_command(day, "verify") == 0
    assert (
        capsys.readouterr().out == "The export of shop-test for 2026-11-16 matches its manifest (4 files).\n"
    )
    truncate(sealed)
    assert stage_command(day, "verify") == 2


def test_a_cluster_that_is_not_in_the_settings_has_no_group_settings(tmp_path: Path) -> None:
    path = tmp_path / "ledger.yaml"
    path.write_text("clusters: {other: {groups: {g: {strategy: AVG}}}}\n", encoding="utf-8")
    warehouse = Warehouse.at(str(tmp_path / "warehouse"))

    assert Day("shop", DS, tmp_path, warehouse, path).settings.groups == {}
    assert set(Day("other", DS, tmp_path, warehouse, path).settings.groups) == {"g"}
    assert Day("shop", DS, tmp_path, warehouse, None).settings.groups == {}


def test_a_build_without_set_up_reports_it(
    sealed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    monkeypatch.setattr(steps, "_ROOT", tmp_path)
    day = Day(CLUSTER, DS, tmp_path / "exports", Warehouse.at(str(tmp_path / "warehouse")), None)
    assert sealed.is_dir()

    with pytest.raises(SetUpMissingError) as missing:
        steps.build(day)

    conf = tmp_path / ".local" / "spark-conf"
    assert str(missing.value) == (
        f"There is no Spark configuration at {conf}: run `make setup`, or set SPARK_CONF_DIR."
    )
