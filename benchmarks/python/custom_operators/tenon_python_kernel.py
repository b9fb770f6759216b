# SwiGLU for Tenon, in Python: an operator with a kernel and a gradient of its own.
import tenon


@tenon.op("bench::swiglu(Tensor x, Tensor g) -> Tensor")
def swiglu(x, g): ...


@swiglu.shape
def _(x, g):
    return x.shape


@swiglu.kernel("cpu")
def _(x, g):
    return tenon.silu(x) * g


@swiglu.grad
def _(dout, x, g):
    s = tenon.sigmoid(x)
    return dout * g * s * (1 + x * (1 - s)), dout * x * s
