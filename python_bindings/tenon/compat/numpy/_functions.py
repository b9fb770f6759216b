# SPDX-License-Identifier: Apache-2.0
"""NumPy's functions that others are made of, in one place."""

from tenon.compat.numpy._creation import *  # noqa: F403
from tenon.compat.numpy._elementwise import *  # noqa: F403
from tenon.compat.numpy._layout import *  # noqa: F403
from tenon.compat.numpy._layout import any_nonzero, conj_transpose, int_of  # noqa: F401
from tenon.compat.numpy._ordering import *  # noqa: F403
from tenon.compat.numpy._ordering import indices_within  # noqa: F401
from tenon.compat.numpy._products import *  # noqa: F403
