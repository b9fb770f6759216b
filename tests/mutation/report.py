# SPDX-License-Identifier: Apache-2.0
"""The table of a run."""

from __future__ import annotations

from pathlib import Path

from plan import GROUPS, Mutant

NOTICED = ("failed", "crashed", "hung", "exited")


def noticed(row: dict) -> bool:
    return row.get("outcome", "").startswith(NOTICED)


def shortened(before: str, after: str, width: int = 60) -> tuple[str, str]:
    """What differs, with some text around it."""
    first = 0
    while first < min(len(before), len(after)) and before[first] == after[first]:
        first += 1
    start = max(0, first - width // 3)
    dots = "…" if start else ""
    first_text, second_text = (
        dots + text[start : start + width] + ("…" if len(text) > start + width else "")
        for text in (before, after)
    )
    return first_text, second_text


def cell(text: str) -> str:
    return "`" + text.replace("|", "¦").replace("`", "'") + "`"


def row_of(mutant: Mutant, result: dict) -> str:
    before, after = shortened(mutant.before, mutant.after)
    place = mutant.file.removeprefix("build/release/") + f":{mutant.line}"
    if mutant.origin:
        place += f" ({mutant.origin})"
    by = result.get("test", "").split("/")[-1]
    outcome = result.get("outcome", "not run")
    return (f"| {mutant.number} | {mutant.group} | {place} {mutant.function} | {cell(before)} | "
            f"{cell(after)} | {outcome}{': ' + by if by else ''} |")  # fmt: skip


def write_report(path: Path, chosen: list[Mutant], results: dict, left_out: list[Mutant],
                 equivalent: dict, dropped: dict, groups=None) -> int:  # fmt: skip
    """Writes the table and returns how many were noticed."""
    groups = groups or [each.name for each in GROUPS]
    caught = [each for each in chosen if noticed(results.get(each.number, {}))]
    lines = ["# Mutation run", "", f"{len(caught)} of {len(chosen)} mutants noticed."]
    for group in groups:
        of_group = [each for each in chosen if each.group == group]
        count = sum(each in caught for each in of_group)
        lines.append(f"- {group}: {count} of {len(of_group)}")
    reasons = sorted(set(dropped.values()))
    counts = ", ".join(f"{sum(w == r for w in dropped.values())} {r}" for r in reasons)
    lines += [f"- left out: {counts or 'none'}; {len(left_out)} equivalent (equivalent.txt)", ""]
    head = ["| mutant | kind | place | is | becomes | outcome |", "|---|---|---|---|---|---|"]
    missed = [each for each in chosen if each not in caught]
    lines += ["## Missed", "", *head, *(row_of(e, results.get(e.number, {})) for e in missed), ""]
    lines += ["## Noticed", "", *head, *(row_of(e, results[e.number]) for e in caught), ""]
    lines += ["## Equivalent", "", "| place | is | becomes | why |", "|---|---|---|---|"]
    for each in left_out:
        before, after = shortened(each.before, each.after)
        lines.append(f"| {each.file}:{each.line} | {cell(before)} | {cell(after)} | "
                     f"{equivalent[each.key]} |")  # fmt: skip
    path.write_text("\n".join(lines) + "\n")
    return len(caught)
