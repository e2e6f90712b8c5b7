"""parley doctor"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from appliance.commands.console import command, console, escape, print_json
from appliance.config import Config

MARKS = {"ok": "[green]ok  [/]", "warn": "[yellow]warn[/]", "fail": "[red]FAIL[/]"}


def add(commands: Any, everywhere: argparse.ArgumentParser) -> None:
    command(commands, everywhere, "doctor", run, "say what this box has and lacks, and the exact fix", machine=True)


def run(args: argparse.Namespace, config: Config) -> int:
    """Returns 1 when a check failed; warnings do not count."""
    from appliance.commands.shelf import open_shelf
    from appliance.doctor import examine

    findings = examine(config, open_shelf(config))
    if args.json:
        found = list(findings)
        print_json({"healthy": all(f.level != "fail" for f in found), "findings": [asdict(f) for f in found]})
        return int(any(f.level == "fail" for f in found))
    out, failed = console(), False
    for finding in findings:
        failed |= finding.level == "fail"
        out.print(f"{MARKS[finding.level]} {finding.check:24} {escape(finding.found)}")
        if finding.fix and finding.level != "ok":
            out.print(f"     {'':24} [bold]fix:[/] {escape(finding.fix)}")
    return int(failed)
