# SPDX-License-Identifier: Apache-2.0
"""What one says to the host, which loads plugins and chooses kernels: `tenon.fallback`, `tenon.autotune`, `tenon.validation`,
and which plugins installed distributions announce. (The folder `plugins` holds libraries; `tenon.plugins` is the file beside it.)
"""
