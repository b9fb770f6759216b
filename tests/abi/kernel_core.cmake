# kernel_core knows no operator, vendor or gradient by name, and stays within its size. ("graph" is allowed: it
# is the name of a group of device functions.)
#   cmake -DSOURCE_DIR=.../kernel_core -P kernel_core.cmake
set(words
  autograd gradient gradients grad backward tape optimizer
  relu gelu silu softmax sigmoid tanh exp matmul conv conv2d convolution pool2d dropout embedding attention
  layer_norm batch_norm cross_entropy adam sgd
  cuda cudnn cublas nvidia rocm hip miopen amd intel onednn mkldnn mkl openblas opencl ascend kunlun metal vulkan
  torch pytorch paddle tensorflow jax onnx)
set(limit 8000)

list(JOIN words "|" alternatives)
file(GLOB_RECURSE files "${SOURCE_DIR}/*.cpp" "${SOURCE_DIR}/*.hpp" "${SOURCE_DIR}/*.h" "${SOURCE_DIR}/*.c")
set(lines_of_code 0)
set(found "")
foreach(file ${files})
  file(READ "${file}" text)
  # Lists treat these as their own; they stand in no word.
  string(REGEX REPLACE "[][;\\\\]" " " text "${text}")
  string(REPLACE "\n" ";" lines "${text}")
  set(number 0)
  foreach(line IN LISTS lines)
    math(EXPR number "${number} + 1")
    if(NOT line MATCHES "^[ \t]*(//.*)?$")
      math(EXPR lines_of_code "${lines_of_code} + 1")
    endif()
    string(TOLOWER "${line}" lower)
    string(REGEX REPLACE "tenon_[a-z0-9_]+" "" lower "${lower}")  # the contract's own names
    if(lower MATCHES "(^|[^a-z0-9])(${alternatives})($|[^a-z0-9])")
      string(APPEND found "\n  ${file}:${number}: ${CMAKE_MATCH_2}")
    endif()
  endforeach()
endforeach()

message(STATUS "kernel_core: ${lines_of_code} of ${limit} lines of code")
if(found)
  message(FATAL_ERROR "kernel_core names what only plugins may know:${found}")
endif()
if(lines_of_code GREATER limit)
  message(FATAL_ERROR "kernel_core has outgrown its ${limit} lines: what it does not need belongs in a plugin")
endif()
