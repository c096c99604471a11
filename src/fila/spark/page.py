"""Reports as one page: self-contained, nothing is loaded from anywhere.

Owns the page's form and style, light and dark. What it says comes with the reports.
"""

from __future__ import annotations

from html import escape
from typing import Final

from fila.spark.report import Report, Table, cell

_ROWS_MAX: Final = 200

_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #5b6470; --line: #d8dde3; --paper: #fff;
  --blue: #0072b2; --sky: #56b4e9; --orange: #e69f00; --red: #d55e00; --grey: #9aa3ad;
  --purple: #cc79a7; --green: #009e73; --yellow: #d6c800; --brown: #8a5a00;
  --good: #117a45; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ed; --soft: #9aa5b1; --line: #343b44;
  --paper: #14181d; --blue: #58aee0; --good: #58c98b; --bad: #ff8a80; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 1040px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; }
figure { margin: 1.2rem 0; } figcaption { color: var(--soft); font-size: .9rem; }
svg { width: 100%; height: auto; font: 12px system-ui, sans-serif; }
svg text { fill: var(--ink); } svg .label { text-anchor: end; } svg .tick { fill: var(--soft); }
svg .end { text-anchor: end; } svg .middle { text-anchor: middle; }
svg .axis, svg .grid { stroke: var(--line); } svg .hover { fill: transparent; }
svg .fair { fill: var(--grey); fill-opacity: .35; }
svg .got { fill: none; stroke: var(--blue); stroke-width: 2; }
svg .gap { fill: var(--orange); fill-opacity: .25; }
svg .span { stroke: var(--line); stroke-width: 3; }
svg .retry { fill: var(--orange); } svg .throttled { fill: var(--red); }
svg .no_consumer { fill: var(--grey); } svg .own { fill: var(--sky); }
svg .turn { fill: var(--blue); } svg .paused { fill: var(--purple); }
svg .capped { fill: var(--brown); }
svg .busy_own { fill: var(--green); } svg .busy_others { fill: var(--yellow); }
svg .p50 { fill: var(--sky); } svg .p90 { fill: var(--blue); } svg .p95 { fill: var(--orange); }
svg .p99 { fill: var(--red); }
.key span { display: inline-block; margin-right: 1rem; }
.key i { display: inline-block; width: .8em; height: .8em; margin-right: .35em; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: .88rem; }
th, td { padding: .25rem .7rem; text-align: left; border-bottom: 1px solid var(--line); }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
.PASS { color: var(--good); font-weight: 600; } .FAIL { color: var(--bad); font-weight: 600; }
"""


def page(reports: list[Report], source: str) -> str:
    """The whole page."""
    sections = "".join(_section(report) for report in reports)
    title = "Fila: what the journal says"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1>"
        f"<p>From the journal in <code>{escape(source)}</code>. Times are UTC.</p>"
        f"{sections}</body></html>\n"
    )


def figure(picture: str, caption: str, key: dict[str, str] | None = None) -> str:
    """A picture with its words and, where colours mean something, what they mean."""
    legend = "".join(
        f'<span><i style="background: var(--{colour})"></i>{escape(name)}</span>'
        for name, colour in (key or {}).items()
    )
    shown = f'<div class="key">{legend}</div>' if legend else ""
    return f"<figure>{shown}{picture}<figcaption>{escape(caption)}</figcaption></figure>"


def _section(report: Report) -> str:
    said = "".join(f"<p>{_marked(line)}</p>" for line in report.said)
    tables = "".join(_table(one) for one in report.tables)
    return f"<h2>{escape(report.heading)}</h2>{said}{''.join(report.pictures)}{tables}"


def _table(one: Table) -> str:
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in one.columns)
    rows = []
    for row in one.rows[:_ROWS_MAX]:
        cells = []
        for value in map(cell, row):
            if isinstance(value, str):
                mark = f' class="{value}"' if value in ("PASS", "FAIL") else ""
                cells.append(f"<td{mark}>{escape(value)}</td>")
            else:
                cells.append(f'<td class="number">{_number(value)}</td>')
        rows.append(f"<tr>{''.join(cells)}</tr>")
    left = len(one.rows) - _ROWS_MAX
    more = f"<p>… and {left:,} more rows.</p>" if left > 0 else ""
    said = f"<p>{escape(one.said)}</p>" if one.said else ""
    return f'{said}<div class="scroll"><table><tr>{head}</tr>{"".join(rows)}</table></div>{more}'


def _number(value: float) -> str:
    """As many digits as somebody reads; programs have --output json."""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.2f}".rstrip("0").rstrip(".")


def _marked(line: str) -> str:
    text = escape(line)
    for word in ("PASS", "FAIL"):
        text = text.replace(word, f'<span class="{word}">{word}</span>')
    return text
