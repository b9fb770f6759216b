# libtenon.so: one exported symbol, no library of others behind it, less than 1 MB when stripped.
#   cmake -DLIBRARY=... -DNM=... -DREADELF=... -DSTRIP=... -DCHECK_SIZE=ON -P exports.cmake
execute_process(COMMAND "${NM}" -D --defined-only "${LIBRARY}" OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^ \n]+\n" names "${symbols}")
list(TRANSFORM names STRIP)
if(NOT names STREQUAL "tenon_host_get")
  message(FATAL_ERROR "expected the one exported symbol tenon_host_get, got: ${names}; see kernel_core/exports.map")
endif()

execute_process(COMMAND "${READELF}" -d "${LIBRARY}" OUTPUT_VARIABLE dynamic COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "NEEDED[^\n]*\\[[^]]*\\]" needed "${dynamic}")
list(TRANSFORM needed REPLACE ".*\\[(.*)\\]" "\\1")
foreach(name ${needed})
  # The C and C++ run time and, in a sanitizer build, the sanitizers'.
  if(NOT name MATCHES "^(libc|libm|libdl|libpthread|librt|libgcc_s|libstdc\\+\\+|libasan|libubsan|libtsan)\\.so\\.|^ld-linux")
    message(FATAL_ERROR "libtenon.so needs ${name}: the core depends on no third-party library")
  endif()
endforeach()

if(CHECK_SIZE)
  set(stripped "${LIBRARY}.stripped")
  execute_process(COMMAND "${STRIP}" -o "${stripped}" "${LIBRARY}" COMMAND_ERROR_IS_FATAL ANY)
  file(SIZE "${stripped}" bytes)
  file(REMOVE "${stripped}")
  message(STATUS "libtenon.so, stripped: ${bytes} of 1000000 bytes")
  if(bytes GREATER_EQUAL 1000000)
    message(FATAL_ERROR "libtenon.so has grown past 1 MB")
  endif()
endif()
