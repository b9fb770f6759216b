// SPDX-License-Identifier: Apache-2.0

// Package tenon runs programs that Python exported with Tenon, by libtenon_predictor (tenon/predictor.h).
//
//	predictor, err := tenon.NewPredictor("model.tenon", map[string]string{"warmup": "recorded"})
//	outputs, err := predictor.Run(map[string]tenon.Tensor{"x": tenon.NewTensor([]int64{1, 784}, pixels)})
//	scores, err := tenon.Elements[float32](outputs["scores"])
//
// Build with CGO_CFLAGS=-I<sdk>/include and CGO_LDFLAGS="<sdk>/lib/libtenon_predictor.so.1 -Wl,-rpath,<sdk>/lib", where
// <sdk> is what `python -c "import tenon; print(tenon.sdk_path())"` prints.
package tenon

/*
#include <stdlib.h>
#include <tenon/predictor.h>

// Handles are numbers, which Go must not take for addresses.
typedef uintptr_t handle;
static tenon_predictor* of(handle number) { return (tenon_predictor*)number; }

static tenon_status create(const char* path, const char** keys, const char** values, int count, handle* out) {
  tenon_config* config;
  tenon_predictor* made = NULL;
  tenon_status status = tenon_config_create(path, &config);
  if (status) return status;
  for (int i = 0; i < count && !status; ++i) status = tenon_config_set(config, keys[i], values[i]);
  if (!status) status = tenon_predictor_create(config, &made);
  // Freeing succeeds, and so leaves the text of what failed.
  tenon_config_free(config);
  if (!status) *out = (handle)made;
  return status;
}
static tenon_status clone_of(handle from, handle* out) {
  tenon_predictor* made;
  tenon_status status = tenon_predictor_clone(of(from), &made);
  if (!status) *out = (handle)made;
  return status;
}
static tenon_status bind(handle p, const char* name, int32_t dtype, int32_t ndim, const int64_t* shape,
                         const void* data, uint64_t bytes) {
  return tenon_predictor_bind_input(of(p), name, dtype, ndim, shape, data, bytes);
}
static tenon_status unbind(handle p) { return tenon_predictor_unbind_inputs(of(p)); }
static tenon_status run(handle p) { return tenon_predictor_run(of(p)); }
static tenon_status cancel(handle p) { return tenon_predictor_cancel(of(p)); }
static tenon_status free_predictor(handle p) { return tenon_predictor_free(of(p)); }
static tenon_status output(handle p, const char* name, tenon_predictor_view* view) {
  view->struct_size = sizeof *view;
  return tenon_predictor_output(of(p), name, view);
}
static tenon_status explain(handle p, const char** text) { return tenon_predictor_explain(of(p), text); }
static tenon_status count_of(handle p, int inputs, uint32_t* count) {
  return inputs ? tenon_predictor_input_count(of(p), count) : tenon_predictor_output_count(of(p), count);
}
static tenon_status name_of(handle p, int inputs, uint32_t index, const char** name) {
  return inputs ? tenon_predictor_input_name(of(p), index, name) : tenon_predictor_output_name(of(p), index, name);
}
*/
import "C"

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"
)

// Error is what a call of the library failed with.
type Error struct {
	Status string // "INVALID_ARGUMENT"
	Text   string
}

func (e *Error) Error() string { return e.Text }

// call runs f and takes the text of a failure from the same thread.
func call(f func() C.tenon_status) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	status := f()
	if status == 0 {
		return nil
	}
	return &Error{C.GoString(C.tenon_predictor_status_name(status)), C.GoString(C.tenon_predictor_error())}
}

// Element is a Go type of which a tensor can have elements.
type Element interface {
	bool | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64
}

func dtypeOf[T Element]() int32 {
	var element T
	switch any(element).(type) {
	case bool:
		return C.TENON_DTYPE_BOOL
	case int8:
		return C.TENON_DTYPE_I8
	case int16:
		return C.TENON_DTYPE_I16
	case int32:
		return C.TENON_DTYPE_I32
	case int64:
		return C.TENON_DTYPE_I64
	case uint8:
		return C.TENON_DTYPE_U8
	case uint16:
		return C.TENON_DTYPE_U16
	case uint32:
		return C.TENON_DTYPE_U32
	case uint64:
		return C.TENON_DTYPE_U64
	case float32:
		return C.TENON_DTYPE_F32
	default:
		return C.TENON_DTYPE_F64
	}
}

// Tensor holds elements in row-major order.
type Tensor struct {
	DType int32 // TENON_DTYPE_*
	Shape []int64
	Bytes []byte
}

// NewTensor copies elements, which are as many as the shape has.
func NewTensor[T Element](shape []int64, elements []T) Tensor {
	tensor := Tensor{DType: dtypeOf[T](), Shape: append([]int64(nil), shape...)}
	if len(elements) > 0 {
		bytes := len(elements) * int(unsafe.Sizeof(elements[0]))
		tensor.Bytes = append([]byte(nil), unsafe.Slice((*byte)(unsafe.Pointer(&elements[0])), bytes)...)
	}
	return tensor
}

// Elements copies the elements of a tensor of that type.
func Elements[T Element](tensor Tensor) ([]T, error) {
	if tensor.DType != dtypeOf[T]() {
		name := C.GoString(C.tenon_predictor_dtype_name(C.int32_t(tensor.DType)))
		var element T
		return nil, fmt.Errorf("expected a tensor of %T, got one of %s", element, name)
	}
	var element T
	elements := make([]T, len(tensor.Bytes)/int(unsafe.Sizeof(element)))
	if len(elements) > 0 {
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&elements[0])), len(tensor.Bytes)), tensor.Bytes)
	}
	return elements, nil
}

// Predictor serves one goroutine at a time, and others wait for it; those that run at once have a Clone each. Close it
// when it is done.
type Predictor struct {
	turn    sync.Mutex // from binding the inputs to copying the outputs
	handle  C.handle
	inputs  []string
	outputs []string
}

// NewPredictor loads a program with settings as tenon_config_set takes them.
func NewPredictor(path string, settings map[string]string) (*Predictor, error) {
	var texts []*C.char
	text := func(s string) *C.char {
		texts = append(texts, C.CString(s))
		return texts[len(texts)-1]
	}
	defer func() {
		for _, each := range texts {
			C.free(unsafe.Pointer(each))
		}
	}()
	keys := make([]*C.char, 1, len(settings)+1) // one more, so that there is a first
	values := make([]*C.char, 1, len(settings)+1)
	for key, value := range settings {
		keys, values = append(keys, text(key)), append(values, text(value))
	}
	// Lists of C pointers lie in C's memory while C reads them.
	list := func(of []*C.char) **C.char {
		size := C.size_t(len(of)) * C.size_t(unsafe.Sizeof(of[0]))
		memory := (**C.char)(C.malloc(size))
		copy(unsafe.Slice(memory, len(of)), of)
		return memory
	}
	keyList, valueList := list(append(keys[1:], nil)), list(append(values[1:], nil))
	defer C.free(unsafe.Pointer(keyList))
	defer C.free(unsafe.Pointer(valueList))
	var handle C.handle
	file := text(path)
	if err := call(func() C.tenon_status {
		return C.create(file, keyList, valueList, C.int(len(settings)), &handle)
	}); err != nil {
		return nil, err
	}
	return named(handle)
}

func named(handle C.handle) (*Predictor, error) {
	predictor := &Predictor{handle: handle}
	for _, side := range []struct {
		inputs C.int
		names  *[]string
	}{{1, &predictor.inputs}, {0, &predictor.outputs}} {
		var count C.uint32_t
		if err := call(func() C.tenon_status { return C.count_of(handle, side.inputs, &count) }); err != nil {
			return nil, err
		}
		for i := C.uint32_t(0); i < count; i++ {
			var name *C.char
			if err := call(func() C.tenon_status { return C.name_of(handle, side.inputs, i, &name) }); err != nil {
				return nil, err
			}
			*side.names = append(*side.names, C.GoString(name))
		}
	}
	return predictor, nil
}

// Inputs and Outputs are the names that Run takes and gives.
func (p *Predictor) Inputs() []string  { return p.inputs }
func (p *Predictor) Outputs() []string { return p.outputs }

// Clone shares the weights.
func (p *Predictor) Clone() (*Predictor, error) {
	var handle C.handle
	if err := call(func() C.tenon_status { return C.clone_of(p.handle, &handle) }); err != nil {
		return nil, err
	}
	return named(handle)
}

// Run copies the inputs in and the outputs out. Nothing is converted.
func (p *Predictor) Run(inputs map[string]Tensor) (map[string]Tensor, error) {
	p.turn.Lock()
	defer p.turn.Unlock()
	var memory []unsafe.Pointer // of C, as the library keeps addresses
	defer func() {
		call(func() C.tenon_status { return C.unbind(p.handle) })
		for _, each := range memory {
			C.free(each)
		}
	}()
	for name, tensor := range inputs {
		text, data := C.CString(name), C.CBytes(tensor.Bytes)
		memory = append(memory, unsafe.Pointer(text), data)
		shape := append(append([]int64(nil), tensor.Shape...), 0) // one more, so that there is a first
		if err := call(func() C.tenon_status {
			return C.bind(p.handle, text, C.int32_t(tensor.DType), C.int32_t(len(tensor.Shape)),
				(*C.int64_t)(unsafe.Pointer(&shape[0])), data, C.uint64_t(len(tensor.Bytes)))
		}); err != nil {
			return nil, err
		}
	}
	if err := call(func() C.tenon_status { return C.run(p.handle) }); err != nil {
		return nil, err
	}
	outputs := make(map[string]Tensor, len(p.outputs))
	for _, name := range p.outputs {
		text := C.CString(name)
		memory = append(memory, unsafe.Pointer(text))
		var view C.tenon_predictor_view
		if err := call(func() C.tenon_status { return C.output(p.handle, text, &view) }); err != nil {
			return nil, err
		}
		bytes := unsafe.Slice((*byte)(view.data), int(view.bytes))
		tensor := Tensor{DType: int32(view.dtype), Bytes: append([]byte(nil), bytes...)}
		for axis := 0; axis < int(view.ndim); axis++ {
			tensor.Shape = append(tensor.Shape, int64(view.shape[axis]))
		}
		outputs[name] = tensor
	}
	return outputs, nil
}

// Cancel ends the run that is under way, from any goroutine. Runs that begin later are not concerned.
func (p *Predictor) Cancel() error {
	return call(func() C.tenon_status { return C.cancel(p.handle) })
}

// Explain says of each step what runs it.
func (p *Predictor) Explain() (string, error) {
	p.turn.Lock()
	defer p.turn.Unlock()
	var text *C.char
	err := call(func() C.tenon_status { return C.explain(p.handle, &text) })
	return C.GoString(text), err
}

// Close frees it, when the run that is under way has ended. A second call is an error.
func (p *Predictor) Close() error {
	p.turn.Lock()
	defer p.turn.Unlock()
	return call(func() C.tenon_status { return C.free_predictor(p.handle) })
}
