# SPDX-License-Identifier: Apache-2.0
"""The generator of the site: pages, references, navigation. `scripts/docs.sh` runs it."""
