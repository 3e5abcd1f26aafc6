"""The ``vcscheduler`` command and its subcommands. Only what every command needs is imported here."""

from __future__ import annotations

import typer

from vcscheduler.cli import bench, config, explain, queues, run, simulate, snapshot, verify, version

app = typer.Typer(
    name="vcscheduler",
    help="The Volcano batch scheduler in Python: gang scheduling, fair queues and preemption, "
    "with or without a cluster.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run", context_settings=run.CONTEXT_SETTINGS)(run.run)
app.command("simulate")(simulate.simulate)
app.command("explain")(explain.explain)
app.command("queues")(queues.queues)
app.command("snapshot")(snapshot.snapshot)
app.command("verify")(verify.verify)
app.command("bench")(bench.bench)
app.add_typer(config.app, name="config")
app.command("version")(version.version)
