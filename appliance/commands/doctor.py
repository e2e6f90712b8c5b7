"""parley doctor"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from appliance.commands.console import command, console, escape, print_json
from appliance.config import Config
from appliance.errors import AudioFault

if TYPE_CHECKING:
    from appliance.doctor import Finding

MARKS = {"ok": "[green]ok  [/]", "warn": "[yellow]warn[/]", "fail": "[red]FAIL[/]"}


def add(commands: Any, everywhere: argparse.ArgumentParser) -> None:
    command(commands, everywhere, "doctor", run, "say what this box has and lacks, and the exact fix", machine=True)


def run(args: argparse.Namespace, config: Config) -> int:
    """Returns 1 when a check failed, 3 when this user may not use the sound card; warnings do not count."""
    from appliance.commands.shelf import open_shelf
    from appliance.doctor import examine

    findings = examine(config, open_shelf(config))
    if args.json:
        found = list(findings)
        print_json({"healthy": all(f.level != "fail" for f in found), "findings": [asdict(f) for f in found]})
        return _code(found)
    out, found = console(), []
    for finding in findings:
        found.append(finding)
        out.print(f"{MARKS[finding.level]} {finding.check:24} {escape(finding.found)}")
        if finding.fix and finding.level != "ok":
            out.print(f"     {'':24} [bold]fix:[/] {escape(finding.fix)}")
    return _code(found)


def _code(findings: list[Finding]) -> int:
    failed = {finding.check for finding in findings if finding.level == "fail"}
    return AudioFault.code if "sound permission" in failed else int(bool(failed))
