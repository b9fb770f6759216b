# SPDX-License-Identifier: Apache-2.0
"""What would run one operator on a device, and why. Nothing is run."""

from tenon.cli import output
from tenon.cli.plugins import add_plugin_option, load_plugins

HELP = "what would run an operator on a device"

_ROUTES = {
    "native": "a kernel of the device runs it",
    "lowered": "it is computed from other operators on the device",
    "host": "the host computes it, and its arguments are copied there and back",
    "view": "it makes a view; no kernel is needed",
    "none": "nothing can run it",
}


def add_arguments(parser):
    parser.add_argument("op", metavar="OP", help="an operator: add, acme::swiglu")
    parser.add_argument("--device", metavar="DEVICE", help="default: the host's")
    parser.add_argument("--dtype", metavar="DTYPE", help="default: float32")
    add_plugin_option(parser)
    output.add_json_option(parser)


def run(arguments):
    from tenon import plugins

    load_plugins(arguments)
    report = plugins.explain(arguments.op, arguments.device, arguments.dtype)
    if arguments.json:
        output.print_json(report)
        return
    for line in describe(report):
        print(line)


def describe(report):
    from tenon.plugins import OPTIONAL_SCORE

    route = report["route"]
    yield f"{report['schema']}"
    yield f"  defined in   {report['origin'] or '-'}"
    yield f"  on           {report['device']}, {report['dtype']}"
    yield f"  route        {route}: {_ROUTES.get(route, '')}"
    if "if_all_decline" in report:
        other = report["if_all_decline"]
        yield f"               if its kernels decline the arguments, {other}: {_ROUTES.get(other, '')}"
    if "policy" in report:
        yield f"  policy       {report['policy']} (for what runs on the host)"
    alternatives = {}  # by plugin: how many algorithms are there for autotuning alone
    others = []
    for kernel in report.get("kernels", ()):
        if kernel["score"] <= OPTIONAL_SCORE:
            alternatives[kernel["plugin"]] = alternatives.get(kernel["plugin"], 0) + 1
        else:
            others.append(kernel)
    for number, kernel in enumerate(others):
        traits = [f"score {kernel['score']}"]
        traits += ["typed"] if kernel["typed"] else ["boxed"]
        traits += ["may decline"] if kernel["may_decline"] else []
        label = "kernels" if number == 0 else ""
        traits += ["override"] if kernel["override"] else []
        traits += ["optional"] if kernel["optional"] else []
        yield f"  {label:<12} of {kernel['plugin']}: {', '.join(traits)}"
        yield f"               {kernel['state']}"
    for name, count in alternatives.items():
        yield f"               of {name}: up to {count} other algorithms, where tenon.autotune chooses one"
    for decision in report.get("autotune", ()):
        times = ", ".join(f"{name} {time} us" for name, time in decision["microseconds"].items())
        algorithm = decision["algorithms"].get(decision["chosen"])
        yield (
            f"  autotune     {decision['call']}: {decision['chosen']}"
            + (f", {algorithm}" if algorithm else "")
            + f", of {len(decision['microseconds'])}"
        )
        yield f"               {decision['why']} ({decision['source']}: {times})"
    if "why" in report:
        yield f"  why          {report['why']}"
    if route != "view" and not report.get("kernels"):
        yield "  kernels      none for this device and dtype"
    if report.get("has_decomposition"):
        yield "  lowering     it has a decomposition into other operators"
