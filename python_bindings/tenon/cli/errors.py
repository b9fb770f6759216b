# SPDX-License-Identifier: Apache-2.0
"""How a command ends that did not do what it was told."""

# Exit codes that every command shares; `tenon plugins doctor` has more, one for each reason.
FAILED = 1
USAGE = 2  # argparse's own


class CommandError(Exception):
    """What the user must be told; the exit code is `code`."""

    def __init__(self, text, code=FAILED):
        super().__init__(text)
        self.code = code
