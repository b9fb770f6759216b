# SPDX-License-Identifier: Apache-2.0
"""How every operator would run on a device, for each dtype.

native: a kernel of the device. lowered: from other operators, on the device. host: on the host, with
copies. none: not at all. view: no kernel is needed."""

from tenon.cli import output
from tenon.cli.errors import CommandError
from tenon.cli.plugins import add_plugin_option, load_plugins

HELP = "how every operator would run on a device"

_ROUTES = ("native", "lowered", "host", "none", "view")
_COLOURS = {"native": "green", "lowered": "blue", "host": "yellow", "none": "red", "view": "dim"}


def add_arguments(parser):
    parser.add_argument("device", metavar="DEVICE")
    parser.add_argument(
        "--dtype", metavar="DTYPES", default="float32", help="separated by commas, or `all`"
    )
    parser.add_argument(
        "--route", choices=_ROUTES, help="only operators that somewhere go this way"
    )
    add_plugin_option(parser)
    output.add_json_option(parser)


def run(arguments):
    import tenon
    from tenon._tensor.dtypes import NAMES

    dtypes = NAMES if arguments.dtype == "all" else arguments.dtype.split(",")
    for name in dtypes:
        if name not in NAMES:
            raise CommandError(f"expected dtypes among {', '.join(NAMES)}, or all; got {name!r}")
    load_plugins(arguments)
    device = tenon.device(arguments.device)
    table = {}
    for dtype in dtypes:
        for route, names in tenon.plugins.coverage(device, getattr(tenon, dtype)).items():
            for name in names:
                table.setdefault(name, {})[dtype] = route
    if arguments.route:
        table = {op: row for op, row in table.items() if arguments.route in row.values()}
    totals = {dtype: _count(row[dtype] for row in table.values()) for dtype in dtypes}
    if arguments.json:
        output.print_json({"device": str(device), "operators": table, "totals": totals})
        return
    rows = [("OPERATOR", *dtypes)]
    rows += [(op, *(row[dtype] for dtype in dtypes)) for op, row in table.items()]
    rows += [("", *("" for _ in dtypes))]
    for route in _ROUTES:
        rows.append((f"total {route}", *(totals[dtype][route] for dtype in dtypes)))
    output.print_table(rows, {number + 1: _COLOURS.get for number in range(len(dtypes))})


def _count(routes):
    totals = dict.fromkeys(_ROUTES, 0)
    for route in routes:
        totals[route] = totals.get(route, 0) + 1
    return totals
