# SPDX-License-Identifier: Apache-2.0
"""The navigation of the site. A page that no section names is an error."""

WRITTEN = {
    "Home": ["index.md"],
    "Tutorial": [
        "tutorial/index.md",
        "tutorial/tensors.md",
        "tutorial/gradients.md",
        "tutorial/digits.md",
        "tutorial/operator.md",
        "tutorial/kernel.md",
        "tutorial/device.md",
    ],
    "Guides": {
        "Coming from": [
            "from_pytorch.md",
            "torch_alias.md",
            "torch.md",
            "onnx.md",
            "from_paddle.md",
            "paddle_models.md",
            "jax.md",
            "compat_namespaces.md",
            "array_api.md",
        ],
        "Training": [
            "training.md",
            "high_level.md",
            "distributed.md",
            "parameter_server.md",
            "data.md",
            "dtypes.md",
            "amp.md",
            "profiler.md",
            "func.md",
            "random.md",
            "distributions.md",
            "domains.md",
            "examples.md",
        ],
        "Programs": [
            "graphs.md",
            "compiled_functions.md",
            "control_flow.md",
            "program_execution.md",
            "rewrites.md",
            "program_graphs.md",
            "inference.md",
            "quantization.md",
            "llm.md",
            "serving.md",
        ],
        "Operators": [
            "operators.md",
            "python_operators.md",
            "cpp_extension.md",
            "operator_files.md",
            "overrides.md",
            "linalg.md",
            "sparse.md",
            "model_operators.md",
            "autotuning.md",
            "onednn.md",
            "paddle_compat.md",
        ],
        "Devices": [
            "vendors.md",
            "primitives.md",
            "conformance.md",
            "kernel_c.md",
            "opencl.md",
            "cuda.md",
            "rocm.md",
            "ascend.md",
            "kunlun.md",
            "bindings.md",
            "isolated.md",
        ],
        "How it works": [
            "architecture.md",
            "where_things_live.md",
            "glossary.md",
            "plugins.md",
            "runtime.md",
            "autograd.md",
        ],
    },
    "Reference": {
        "Operators": "reference/operators/",
        "Python": "reference/python/",
        "C ABI and C++": "reference/headers/",
        "Notation": ["reference/operator_definitions.md"],
        "Training classes": [
            "reference/training_classes.md",
            "reference/training_classes_paddle.md",
            "reference/phi_operators.md",
        ],
        "Bound operators": ["reference/bound_operators.md"],
        "Functions of other libraries": ["reference/compat_namespaces.md"],
    },
    "Performance": ["performance.md", "performance/", "accuracy.md", "support.md"],
    "Project": [
        "project/changelog.md",
        "project/contributing.md",
        "dependencies.md",
        "project/security.md",
        "project/conduct.md",
        {"Decisions": "decisions/"},
        {"In the source tree": "project/"},
    ],
}


def names(item) -> list[str]:
    """The pages that a part of WRITTEN names one by one."""
    if isinstance(item, str):
        return [] if item.endswith("/") else [item]
    return [
        name for part in (item.values() if isinstance(item, dict) else item) for name in names(part)
    ]


def tree(pages) -> list:
    """The `nav` of MkDocs for these pages."""
    named = set(names(WRITTEN))
    if missing := named - set(pages):
        raise SystemExit(f"navigation: expected pages {', '.join(sorted(missing))}, found none")
    used = set(named)

    def take(item) -> list:
        if isinstance(item, dict):
            return [{title: take(part)} for title, part in item.items()]
        if isinstance(item, list):
            return [entry for part in item for entry in take(part)]
        if not item.endswith("/"):
            return [item]
        found = {page for page in pages if page.startswith(item)} - used
        used.update(found)
        return sorted(found, key=lambda page: (not page.endswith("/index.md"), page))

    result = take(WRITTEN)
    if rest := set(pages) - used:
        raise SystemExit(
            f"navigation: no section has {', '.join(sorted(rest))}; add them to navigation.py"
        )
    return result
