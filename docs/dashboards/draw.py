"""Draws the dashboards of helm/leasehold/dashboards from a Prometheus, without Grafana: the same panels in the same places, from
the same queries. For the pictures of the documentation, and for a look at a change of a dashboard.

    python -m venv /tmp/draw && /tmp/draw/bin/pip install -r docs/dashboards/requirements.txt
    /tmp/draw/bin/python docs/dashboards/draw.py --prometheus http://localhost:9090 --minutes 10 --out docs/dashboards
"""

import argparse
import json
import re
import time
import urllib.parse
import urllib.request
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.colors import LogNorm  # noqa: E402
from matplotlib.ticker import FuncFormatter  # noqa: E402
from PIL import Image  # noqa: E402

BOARDS = Path(__file__).resolve().parents[2] / "helm/leasehold/dashboards"
CELL = (0.75, 0.36)  # inches of one unit of a dashboard's grid
STEPS = 180
NAMED = 12


class Source:
    """A Prometheus and the time that is shown."""

    def __init__(self, url, minutes):
        self.url, self.end = url.rstrip("/"), time.time()
        self.start, self.step = self.end - minutes * 60, max(1, minutes * 60 / STEPS)
        self.filled = {"$__rate_interval": f"{max(15, int(4 * self.step))}s", "$__range": f"{minutes}m", "$replica": ".*"}

    def ask(self, path, **parameters):
        """An answer of its API."""
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}", timeout=30) as answer:
            return json.load(answer)["data"]["result"]

    def series(self, target):
        """The series of a panel's query over the time shown: (name, times, values, labels)."""
        query = target["expr"]
        for variable, text in self.filled.items():
            query = query.replace(variable, text)
        found = self.ask("query_range", query=query, start=self.start, end=self.end, step=self.step)
        named = []
        for series in found:
            name = re.sub(r"\{\{(\w+)\}\}", lambda label: series["metric"].get(label[1], ""), target["legendFormat"])
            times, values = zip(*((at, float(value)) for at, value in series["values"]))
            named.append((name, times, values, series["metric"]))
        return sorted(named)


def written(value, unit):
    """A number as the panel's unit has it."""
    if value != value:
        return "–"
    if unit == "s":
        for factor, name in ((60, "min"), (1, "s"), (1e-3, "ms")):
            if abs(value) >= factor:
                return f"{value / factor:.3g} {name}"
        return f"{value * 1e6:.3g} µs" if value else "0"
    if unit == "percentunit":
        return f"{value * 100:.3g} %"
    for factor, name in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{value / factor:.3g} {name}"
    return f"{value:.3g}"


def clock(axes, source):
    """Times below, from the left end to the right one."""
    axes.set_xlim(source.start, source.end)
    ticks = [source.start + part * (source.end - source.start) / 4 for part in range(5)]
    axes.set_xticks(ticks, [time.strftime("%H:%M:%S", time.localtime(tick)) for tick in ticks], fontsize=6)


def lines(axes, panel, source):
    """A graph over time, stacked where the panel says so."""
    unit, stacked = panel["fieldConfig"]["defaults"]["unit"], "stacking" in panel["fieldConfig"]["defaults"]["custom"]
    apart = {rule["matcher"]["options"] for rule in panel["fieldConfig"]["overrides"]}
    found = [series for target in panel["targets"] for series in source.series(target)]
    colours = plt.get_cmap("tab20")
    areas = [series for series in found if stacked and series[0] not in apart]
    if areas:
        times = sorted({at for _, times, _, _ in areas for at in times})
        rows = [[dict(zip(times_of, values)).get(at, 0) for at in times] for _, times_of, values, _ in areas]
        axes.stackplot(times, rows, labels=[series[0] for series in areas], alpha=0.75,
                       colors=[colours(number % 20) for number in range(len(areas))])
    for number, (name, times, values, _) in enumerate(series for series in found if series not in areas):
        style = {"color": "red", "linestyle": "--"} if name in apart else {"color": colours(number % 20)}
        axes.plot(times, values, label=name or panel["title"], linewidth=1.2, **style)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: written(value, unit)))
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.25)
    clock(axes, source)
    # the legend names the largest alone, and none that is always zero
    tops = {name or panel["title"]: max(values) for name, _, values, _ in found if max(values) > 0}
    named = set(sorted(tops, key=tops.get)[-NAMED:])
    shown = [(handle, label) for handle, label in zip(*axes.get_legend_handles_labels()) if label in named]
    if shown:
        axes.legend(*zip(*shown), fontsize=5.5, loc="upper left", ncols=2, framealpha=0.7)
    return found


def heat(axes, panel, source):
    """A heat map of a distribution: each bucket's own events over time."""
    buckets = sorted(((float(labels["le"]), times, values) for _, times, values, labels in source.series(panel["targets"][0])))
    if not buckets:
        return []
    times = sorted({at for _, times, _ in buckets for at in times})
    rows = [[dict(zip(times_of, values)).get(at, 0) for at in times] for _, times_of, values in buckets]
    own = [rows[0]] + [[max(0, upper - lower) for lower, upper in zip(*pair)] for pair in zip(rows, rows[1:])]
    most = max((value for row in own for value in row), default=0)
    shown = [[value if value > 0 else float("nan") for value in row] for row in own]
    if most > 0:
        axes.imshow(shown, aspect="auto", origin="lower", cmap="Oranges", norm=LogNorm(vmin=max(most / 1e4, 1e-3), vmax=most),
                    extent=(times[0], times[-1], 0, len(buckets)), interpolation="nearest")
    names = ["∞" if bound == float("inf") else written(bound, "s") for bound, _, _ in buckets]
    axes.set_yticks([row + 1 for row in range(len(names))], names, fontsize=5)
    clock(axes, source)
    return buckets


def bars(axes, panel, source):
    """The last value of each series."""
    unit = panel["fieldConfig"]["defaults"]["unit"]
    last = sorted((values[-1], name) for target in panel["targets"] for name, _, values, _ in source.series(target))[-12:]
    axes.barh([name for _, name in last], [value for value, _ in last], color="tab:orange")
    for row, (value, _) in enumerate(last):
        axes.text(value, row, f" {written(value, unit)}", va="center", fontsize=6)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: written(value, unit)))
    return last


def number(axes, panel, source):
    """The last value, large, in the colour of its threshold."""
    defaults = panel["fieldConfig"]["defaults"]
    found = source.series(panel["targets"][0])
    value = found[0][2][-1] if found else float("nan")
    colour = "green"
    for step in defaults["thresholds"]["steps"]:
        if step["value"] is None or value >= step["value"]:
            colour = step["color"]
    axes.text(0.5, 0.45, written(value, defaults["unit"]), ha="center", va="center", fontsize=20, color=colour)
    axes.set_axis_off()
    return found


KINDS = {"timeseries": lines, "heatmap": heat, "bargauge": bars, "stat": number}


def draw(board, source, out):
    """One dashboard as a picture; titles of the panels that had nothing to show."""
    panels = board["panels"]
    height = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels)
    figure = plt.figure(figsize=(24 * CELL[0], height * CELL[1] + 0.6), dpi=85)
    figure.suptitle(board["title"], fontsize=13, y=1 - 0.25 / figure.get_figheight(), x=0.01, ha="left")
    top, empty = 1 - 0.5 / figure.get_figheight(), []
    for panel in panels:
        place = panel["gridPos"]
        left, width = place["x"] / 24, place["w"] / 24
        bottom, tall = top * (1 - (place["y"] + place["h"]) / height), top * place["h"] / height
        if panel["type"] == "row":
            figure.text(0.01, bottom + tall / 3, panel["title"], fontsize=10, weight="bold")
            continue
        margin = 0.09 if panel["type"] == "bargauge" else 0.035
        axes = figure.add_axes((left + margin, bottom + 0.32 * tall / max(1, place["h"] / 4), width - margin - 0.01,
                                tall - (0.32 / max(1, place["h"] / 4) + 0.16) * tall))
        axes.tick_params(labelsize=6)
        axes.set_title(panel["title"], fontsize=8, loc="left")
        if not KINDS[panel["type"]](axes, panel, source):
            empty.append(panel["title"])
    figure.savefig(out)
    plt.close(figure)
    Image.open(out).quantize(64).save(out, optimize=True)  # a third of the size; these colours are enough
    return empty


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prometheus", required=True, help="its URL")
    parser.add_argument("--minutes", type=int, default=60, help="time that is shown, until now")
    parser.add_argument("--out", type=Path, default=Path("."), help="directory of the pictures")
    options = parser.parse_args()
    source = Source(options.prometheus, options.minutes)
    for path in sorted(BOARDS.glob("*.json")):
        empty = draw(json.loads(path.read_text()), source, options.out / f"{path.stem}.png")
        print(f"{options.out / path.stem}.png" + (f"; nothing to show: {', '.join(empty)}" if empty else ""))


if __name__ == "__main__":
    main()
