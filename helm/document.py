#!/usr/bin/env python3
"""Writes what is made from the chart's values: values.schema.json and README.md.

The values' comments say what each is for ("--") and what may be given ("@schema"); the options of the broker come from
docs/configuration.md. With --check nothing is written, and the exit code says whether all is current.
"""

import json
import re
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
CHART = ROOT / "helm/leasehold"
TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}

# What the chart decides itself, or what must not stand in a ConfigMap.
NOT_FOR_THE_FILE = {
    "database_url", "database_url_file", "listen", "http_listen", "data_dir", "migrate", "insecure_plaintext", "replica_name",
    "telemetry.otlp_headers",
}

WORKER = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name", "target", "queue"],
    "anyOf": [{"required": ["targetReady"]}, {"required": ["targetAgeSeconds"]}],
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 63},
        "target": {"anyOf": [{"type": "string", "minLength": 1}, {
            "type": "object", "additionalProperties": False, "required": ["name"],
            "properties": {name: {"type": "string"} for name in ("apiVersion", "kind", "name", "envSourceContainerName")}}]},
        "queue": {"type": "string", "minLength": 1},
        "targetReady": {"type": "number", "exclusiveMinimum": 0},
        "targetAgeSeconds": {"type": "number", "exclusiveMinimum": 0},
        "activationReady": {"type": "integer", "minimum": 0},
        "minReplicas": {"type": "integer", "minimum": 0},
        "maxReplicas": {"type": "integer", "minimum": 1},
        "pollingInterval": {"type": "integer", "minimum": 1},
        "cooldownPeriod": {"type": "integer", "minimum": 0},
        "push": {"type": "boolean"},
        "fallback": {"type": "object"},
        "advanced": {"type": "object"},
        "authenticationRef": {"type": "object"},
    },
}


class Value:
    """One value of the chart that has a line in the table."""

    def __init__(self, path, default, about, schema, special):
        self.path, self.default, self.about, self.schema, self.special = path, default, about, schema, special


def read_values(text):
    """Every value with a comment, in the file's order."""
    values, about, schema, special, path = [], [], None, None, []
    tree = yaml.safe_load(text)
    for line in text.splitlines():
        comment = re.match(r"^\s*# ?(.*)$", line)
        if comment:
            words = comment.group(1)
            if words.startswith("-- "):
                about, schema, special = [words[3:]], None, None
            elif words.startswith("@schema "):
                schema = json.loads(words.removeprefix("@schema "))
            elif words in ("@config", "@workers"):
                special = words
            elif about:
                about.append(words)
            continue
        key = re.match(r"^( *)([A-Za-z]+):", line)
        if not key:
            about, schema, special = ([], None, None) if not line.strip() else (about, schema, special)
            continue
        depth = len(key.group(1)) // 2
        if depth > len(path):
            continue  # within a value that has its line already
        path = path[:depth] + [key.group(2)]
        if about:
            default = tree
            for name in path:
                default = default[name]
            values.append(Value(path, default, " ".join(about), schema or {}, special))
            path = path[:depth] if isinstance(default, (dict, list)) else path
        about, schema, special = [], None, None
    return values


def read_options(text):
    """The broker's options by section, as docs/configuration.md lists them: (section, name, range)."""
    section = ""
    for line in text.splitlines():
        heading = re.match(r"^## `\[(.+)\]`$", line)
        section = heading.group(1) if heading else section
        row = re.match(r"^\| `([a-z_.]+)` \| [^|]+ \| ([^|]+) \|", line)
        if row:
            yield section, row.group(1).rsplit(".", 1)[-1], row.group(2).strip()


def schema_of_option(range_):
    """What an option may be given, as far as its range tells; the broker itself looks closer."""
    words = range_.removesuffix(", or none")
    if words == "true, false":
        kind = {"type": "boolean"}
    elif re.search(r"\d(ms|s|m|h|d) to \d", words):
        kind = {"type": "string", "pattern": "^([0-9]+(ms|s|m|h|d)|none)$"}
    elif re.search(r"(KiB|MiB|GiB)", words):
        kind = {"type": ["string", "integer"], "pattern": "^([0-9]+ ?(KiB|MiB|GiB)?|none)$"}
    elif re.fullmatch(r"[a-z]+(, [a-z]+)+", words):
        kind = {"type": "string", "enum": words.split(", ")}
    elif re.fullmatch(r"(above )?\d+ to \d+", words):
        kind = {"type": ["number", "string"], "pattern": "^none$"} if "none" in range_ else {"type": "number"}
    elif words.startswith("up to"):
        kind = {"type": "array", "items": {"type": "string"}}
    else:
        kind = {"type": "string"}
    return {**kind, "type": [*(kind["type"] if isinstance(kind["type"], list) else [kind["type"]]), "null"],
            **({"enum": [*kind["enum"], None]} if "enum" in kind else {})}


def schema_of_config(options):
    """The broker's options as an object of sections."""
    top, sections, callers = {}, {}, {}
    for section, name, range_ in options:
        key = f"{section}.{name}" if section else name
        if key in NOT_FOR_THE_FILE:
            continue
        place = {"": top, "callers.NAME": callers}.get(section)
        (sections.setdefault(section, {}) if place is None else place)[name] = schema_of_option(range_)
    closed = {name: {"type": "object", "additionalProperties": False, "properties": of} for name, of in sections.items()}
    if callers:
        closed["callers"]["additionalProperties"] = {
            "type": "object", "additionalProperties": False, "properties": callers}
    return {"type": "object", "additionalProperties": False, "properties": {**top, **closed}}


def schema_of(value, config):
    """What may be given for a value."""
    if value.special == "@config":
        return config
    if value.special == "@workers":
        return {"type": "array", "items": WORKER}
    kind = {"type": TYPES[type(value.default)]} if value.default is not None else {}
    return {**kind, **value.schema}


def make_schema(values, config):
    """The chart's schema: nothing is let in that it does not name."""
    top = {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Values of the chart leasehold",
           "type": "object", "additionalProperties": False, "properties": {"global": {"type": "object"}}}
    for value in values:
        place = top
        for name in value.path[:-1]:
            place = place["properties"].setdefault(
                name, {"type": "object", "additionalProperties": False, "properties": {}})
        place["properties"][value.path[-1]] = {"description": value.about, **schema_of(value, config)}
    return json.dumps(top, indent=2, ensure_ascii=False) + "\n"


def make_readme(values, head):
    """The chart's README."""
    rows = ["| value | default | |", "| --- | --- | --- |"]
    for value in values:
        default = json.dumps(value.default, ensure_ascii=False)
        shown = f"`{default}`" if len(default) <= 60 else "see [values.yaml](values.yaml)"
        rows.append(f"| `{'.'.join(value.path)}` | {shown} | {value.about} |".replace("| |", "|  |"))
    return head.replace("@values@\n", "\n".join(rows) + "\n")


def made():
    """What each file must hold."""
    values = read_values((CHART / "values.yaml").read_text())
    config = schema_of_config(read_options((ROOT / "docs/configuration.md").read_text()))
    return {CHART / "values.schema.json": make_schema(values, config),
            CHART / "README.md": make_readme(values, (ROOT / "helm/README.in.md").read_text())}


def main():
    stale = [path for path, text in made().items() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is not current: run helm/document.py", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        path.write_text(made()[path])
    return 0


if __name__ == "__main__":
    sys.exit(main())
