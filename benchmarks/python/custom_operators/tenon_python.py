# SwiGLU for Tenon, in Python: in terms of other operators. Gradients come from its parts.
import tenon


@tenon.op("bench::swiglu_composite(Tensor x, Tensor g) -> Tensor")
def swiglu(x, g):
    return tenon.silu(x) * g
