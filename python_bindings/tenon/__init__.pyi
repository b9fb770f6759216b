# SPDX-License-Identifier: Apache-2.0
from tenon import autograd as autograd
from tenon import collective as collective
from tenon import data as data
from tenon import fft as fft
from tenon import io as io
from tenon import ipc as ipc
from tenon import linalg as linalg
from tenon import memory as memory
from tenon import nn as nn
from tenon import ops as ops
from tenon import optim as optim
from tenon import plugins as plugins
from tenon import random as random
from tenon import safetensors as safetensors
from tenon import signal as signal
from tenon import testing as testing
from tenon import utils as utils
from tenon._array_api import astype as astype
from tenon._array_api import broadcast_arrays as broadcast_arrays
from tenon._array_api import broadcast_shapes as broadcast_shapes
from tenon._array_api import broadcast_to as broadcast_to
from tenon._array_api import can_cast as can_cast
from tenon._array_api import expand_dims as expand_dims
from tenon._array_api import finfo as finfo
from tenon._array_api import iinfo as iinfo
from tenon._array_api import isdtype as isdtype
from tenon._array_api import isin as isin
from tenon._array_api import matrix_transpose as matrix_transpose
from tenon._array_api import moveaxis as moveaxis
from tenon._array_api import permute_dims as permute_dims
from tenon._array_api import result_type as result_type
from tenon._array_api import take as take
from tenon._array_api import unique_all as unique_all
from tenon._array_api import unique_counts as unique_counts
from tenon._array_api import unique_inverse as unique_inverse
from tenon._array_api import unique_values as unique_values
from tenon._array_api import unstack as unstack
from tenon._autotune import autotune as autotune
from tenon._core import DeviceError as DeviceError
from tenon._core import Event as Event
from tenon._core import InternalError as InternalError
from tenon._core import NotFoundError as NotFoundError
from tenon._core import Operator as Operator
from tenon._core import OutOfMemoryError as OutOfMemoryError
from tenon._core import PolicyError as PolicyError
from tenon._core import Stream as Stream
from tenon._core import Tensor as Tensor
from tenon._core import asarray as asarray
from tenon._core import bfloat16 as bfloat16
from tenon._core import complex64 as complex64
from tenon._core import complex128 as complex128
from tenon._core import current_stream as current_stream
from tenon._core import device as device
from tenon._core import device_properties as device_properties
from tenon._core import devices as devices
from tenon._core import dtype as dtype
from tenon._core import float8_e4m3 as float8_e4m3
from tenon._core import float8_e5m2 as float8_e5m2
from tenon._core import float16 as float16
from tenon._core import float32 as float32
from tenon._core import float64 as float64
from tenon._core import from_dlpack as from_dlpack
from tenon._core import from_numpy as from_numpy
from tenon._core import frombuffer as frombuffer
from tenon._core import get_num_threads as get_num_threads
from tenon._core import int8 as int8
from tenon._core import int16 as int16
from tenon._core import int32 as int32
from tenon._core import int64 as int64
from tenon._core import is_grad_enabled as is_grad_enabled
from tenon._core import manual_seed as manual_seed
from tenon._core import set_num_threads as set_num_threads
from tenon._core import synchronize as synchronize
from tenon._core import tensor as tensor
from tenon._core import uint8 as uint8
from tenon._core import uint16 as uint16
from tenon._core import uint32 as uint32
from tenon._core import uint64 as uint64
from tenon._fallback import fallback as fallback
from tenon._fallback import fallback_report as fallback_report
from tenon._graph import Graph as Graph
from tenon._operator_definition import kernel as kernel
from tenon._operator_definition import op as op
from tenon._operators import *
from tenon._profile import profile as profile
from tenon._validation import validation as validation
from tenon.autograd import Function as Function
from tenon.autograd import enable_grad as enable_grad
from tenon.autograd import grad as grad
from tenon.autograd import no_grad as no_grad
from tenon.autograd import set_grad_enabled as set_grad_enabled
from tenon.io import load as load
from tenon.io import save as save
from tenon.plugins import explain as explain
from tenon.plugins import load_plugin as load_plugin
from tenon.plugins import sdk_path as sdk_path

__version__: str
bool: dtype
e: float
inf: float
nan: float
newaxis: None
pi: float
