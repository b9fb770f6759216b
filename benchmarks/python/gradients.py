# SPDX-License-Identifier: Apache-2.0
"""What recording and backward cost beyond arithmetic: chains of ten operators on few elements.

    python gradients.py [--rounds 21] [--only matmul] [--peers torch] [--json results.json]

w has 2 x 2 elements and requires grad; `row` has 2, `c` is a constant. "recorded" is one call whose
result is dropped; "chain" is ten of them, forward and backward; "parameters" is a hundred tensors of
four elements, their gradients and one step of the optimiser.
"""

from __future__ import annotations

import timeit

from _libraries import Built, Case, compare, start
from _report import parser

LENGTH = 10
STEPS = {  # one operator of the chain, from z
    "add": "z + c",
    "add of a row": "z + row",
    "multiply": "z * w",
    "exp": "exp(z) * w",
    "relu": "relu(z)",
    "matmul": "z @ w",
    "sum": "z.sum() * w",
    "mean of rows": "z.mean(1, keepdim=True) * w",
    "reshape": "z.reshape(4).reshape(2, 2)",
    "transpose": "z.transpose(0, 1)",
    "slice": "z[0:2]",
    "select": "z[0] + row",
}
RECORDED = (
    "add",
    "multiply",
    "exp",
    "relu",
    "matmul",
    "sum",
    "reshape",
    "transpose",
    "slice",
    "select",
)
OPTIMISERS = ("SGD", "Adam")


class Cases:
    """The statements, in one library: tenon, or torch, whose names agree."""

    def __init__(self, library):
        ones = library.ones
        self.library = library
        self.names = {name: getattr(library, name) for name in ("exp", "relu")}
        self.names |= {
            "w": ones((2, 2)) * 0.1,
            "row": ones(2) * 0.1,
            "c": ones((2, 2)),
            "LENGTH": LENGTH,
        }
        self.names["w"].requires_grad_()
        self.names["row"].requires_grad_()

    def define(self, lines: list[str]):
        scope = {}
        body = "".join(f"    {line}\n" for line in lines)
        exec(
            f"def run({', '.join(f'{name}={name}' for name in self.names)}):\n{body}",
            self.names,
            scope,
        )
        return scope["run"]

    def recorded(self, step: str) -> Built:
        code = step.replace("z", "w")
        output = self.define([f"return ({code}).detach()"])
        return Built(timeit.Timer(code, globals=self.names), output)

    def chain(self, step: str) -> Built:
        ready = ["w.grad = None", "row.grad = None", "z = w"]
        steps = [f"z = {step}"] * LENGTH
        run = self.define([*ready, *steps, "z.sum().backward()"])

        def output():
            run()
            return self.names["w"].grad

        return Built(timeit.Timer(run), output)

    def parameters(self, optimiser: str) -> Built:
        library = self.library
        parameters = [library.ones(4) for _ in range(100)]
        for parameter in parameters:
            parameter.requires_grad_()
        step = getattr(library.optim, optimiser)(parameters, lr=1e-6)

        def run():
            step.zero_grad()
            z = parameters[0]
            for parameter in parameters[1:]:
                z = z * parameter
            z.sum().backward()
            step.step()

        def output():
            run()
            return parameters[7].detach()

        return Built(timeit.Timer(run), output)


def build(name: str, case: Case, options):
    if name not in ("tenon", "torch"):
        return None
    cases = Cases(start(name, options.threads))
    return getattr(cases, case.group)(case.parameters["code"])


def main() -> None:
    options = parser(__doc__).parse_args()
    cases = [Case(name, "recorded", parameters={"code": STEPS[name]}) for name in RECORDED]
    cases += [Case(name, "chain", parameters={"code": code}) for name, code in STEPS.items()]
    cases += [Case(name, "parameters", parameters={"code": name}) for name in OPTIMISERS]
    compare("gradients", cases, build, options)


if __name__ == "__main__":
    main()
