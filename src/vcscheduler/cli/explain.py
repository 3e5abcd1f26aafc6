"""``vcscheduler explain``: why a pod or a job waits or is where it is, and what a node holds."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vcscheduler.cli.errors import fail, reports_mistakes, warn
from vcscheduler.cli.output import Format, console, one_shot, print_data, progress

if TYPE_CHECKING:
    from vcscheduler.objects import Manifests

_LIVE = "Live cluster"


class Subject(StrEnum):
    """What can be asked about."""

    POD = "pod"
    JOB = "job"
    NODE = "node"


@reports_mistakes
def explain(
    subject: Annotated[Subject, typer.Argument(help="What to ask about.")],
    name: Annotated[str, typer.Argument(help="Its name, or namespace/name.")],
    paths: Annotated[
        list[str] | None,
        typer.Argument(help="Manifests or a dump: files, directories, JSON lists; - is standard input."),
    ] = None,
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Of the pod or job.", show_default=False)] = "",
    config: Annotated[
        Path | None, typer.Option(help="A volcano-scheduler.conf; the built-in one otherwise.", show_default=False)
    ] = None,
    scheduler_name: Annotated[
        list[str] | None,
        typer.Option(help="schedulerName of the pods that are ours; repeatable.", show_default="volcano"),
    ] = None,
    after: Annotated[
        bool, typer.Option("--after", help="Of a node: after scheduling until nothing changes, instead of as given.")
    ] = False,
    trials: Annotated[
        int, typer.Option(min=0, help="How often at most to schedule the whole cluster with something different.")
    ] = 6,
    live: Annotated[
        bool, typer.Option("--live", help="Read the cluster that kubectl would.", rich_help_panel=_LIVE)
    ] = False,
    kubeconfig: Annotated[str, typer.Option(help="A kubeconfig file.", rich_help_panel=_LIVE, show_default=False)] = "",
    context: Annotated[
        str, typer.Option(help="A context of that file.", rich_help_panel=_LIVE, show_default=False)
    ] = "",
    plugins_dir: Annotated[str, typer.Option(help="Directory of custom plugins.")] = "",
    output: Annotated[Format, typer.Option("--output", "-o", help="How to print the answer.")] = Format.TABLE,
) -> None:
    """Say what stands in the way of a pod or a job and what would change it, or what a node holds.

    The cluster is scheduled in memory until nothing changes any more; nothing real is touched. What would help is
    tried, not guessed.
    """
    from vcscheduler.cli.reading import configuration_of, registry_of
    from vcscheduler.config import SchedulerOptions

    one_shot()
    registry = registry_of(plugins_dir)
    configuration = configuration_of(config, registry)
    options = SchedulerOptions(scheduler_names=tuple(scheduler_name or ("volcano",)), plugins_dir=plugins_dir)
    with progress("reading") as show:
        manifests = _read(paths or [], live, kubeconfig, context)
        show("scheduling")
        from vcscheduler.cli import explain_view
        from vcscheduler.simulator import stories
        from vcscheduler.simulator.inquiry import Inquiry

        inquiry = Inquiry(manifests, configuration, options, registry, trials=trials)
        out = console()
        if subject is Subject.POD:
            pod = inquiry.pod(name, namespace)
            plain, shown = stories.pod_story(pod), explain_view.pod_lines(pod)
        elif subject is Subject.JOB:
            job = inquiry.job(name, namespace)
            plain, shown = stories.job_story(job), explain_view.job_lines(job)
        else:
            node = inquiry.node(name, after=after)
            plain, shown = stories.node_story(node), explain_view.node_lines(node)
    for warning in dict.fromkeys([*manifests.warnings, *inquiry.given.expansion.warnings]):
        warn(warning)
    if output is not Format.TABLE:
        print_data(plain, output)
        return
    explain_view.show(shown, out)


def _read(paths: list[str], live: bool, kubeconfig: str, context: str) -> Manifests:
    from vcscheduler.cli.live import live_manifests
    from vcscheduler.cli.reading import manifests_of

    if live:
        if paths:
            fail(f"found {paths[0]}: with --live the cluster is read, no files")
        return live_manifests(kubeconfig, context)
    if kubeconfig or context:
        fail("--kubeconfig and --context belong to a live cluster: add --live")
    if not paths:
        fail("nothing to look at: give files or directories of manifests, - for standard input, or --live")
    return manifests_of(paths)
