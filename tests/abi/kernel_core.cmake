# kernel_core knows no operator, vendor or gradient by name ("graph" is allowed: it is the name of a group of
# device functions). Reports the lines of code of libtenon, all of its sources wherever they lie.
#   cmake -DSOURCE_DIR=<repository> -P kernel_core.cmake
set(words
  autograd gradient gradients grad backward tape optimizer
  relu gelu silu softmax sigmoid tanh exp matmul conv conv2d convolution pool2d dropout embedding attention
  layer_norm batch_norm cross_entropy adam sgd
  cuda cudnn cublas nvidia rocm hip miopen amd intel onednn mkldnn mkl openblas opencl ascend kunlun metal vulkan
  torch pytorch paddle tensorflow jax onnx)

list(JOIN words "|" alternatives)
set(word "(^|[^a-z0-9])(${alternatives})($|[^a-z0-9])")

# The text of a file in lower case, without the contract's own names.
function(read_words file out)
  file(READ "${file}" text)
  string(TOLOWER "${text}" text)
  string(REGEX REPLACE "tenon_[a-z0-9_]+" "" text "${text}")
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

set(found "")
file(GLOB_RECURSE files "${SOURCE_DIR}/kernel_core/*.[ch]pp" "${SOURCE_DIR}/kernel_core/*.[ch]")
foreach(file ${files})
  read_words("${file}" text)
  if(NOT text MATCHES "${word}")
    continue()
  endif()
  # Lists treat these as their own; they stand in no word.
  string(REGEX REPLACE "[][;\\\\]" " " text "${text}")
  string(REPLACE "\n" ";" lines "${text}")
  set(number 0)
  foreach(line IN LISTS lines)
    math(EXPR number "${number} + 1")
    if(line MATCHES "${word}")
      string(APPEND found "\n  ${file}:${number}: ${CMAKE_MATCH_2}")
    endif()
  endforeach()
endforeach()

set(lines_of_code 0)
file(GLOB formats "${SOURCE_DIR}/formats/*.[ch]pp")
list(FILTER formats EXCLUDE REGEX "/safetensors")  # of the plugin graph
foreach(file ${files} ${formats})
  file(STRINGS "${file}" lines REGEX "^[ \t]*([^/ \t]|/[^/])")  # neither empty nor a comment alone
  list(LENGTH lines count)
  math(EXPR lines_of_code "${lines_of_code} + ${count}")
endforeach()

message(STATUS "libtenon: ${lines_of_code} lines of code in kernel_core and formats")
if(found)
  message(FATAL_ERROR "kernel_core names what only plugins may know:${found}")
endif()
