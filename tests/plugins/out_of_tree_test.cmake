# Installs the SDK, builds the null device against it as a vendor would, and loads the result.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN}\n${output}")
  endif()
  message(STATUS "${output}")
endfunction()

file(REMOVE_RECURSE "${work}")
run(${CMAKE_COMMAND} --install "${build}" --component sdk --prefix "${work}/prefix")

# A copy, so that nothing of the repository is beside it.
file(COPY "${source}/" DESTINATION "${work}/source")
set(flags "")
if(sanitize STREQUAL "address")
  set(flags "-fsanitize=address,undefined")
elseif(sanitize STREQUAL "thread")
  set(flags "-fsanitize=thread")
endif()
run(${CMAKE_COMMAND} -S "${work}/source" -B "${work}/build" -G "${generator}"
  "-DCMAKE_PREFIX_PATH=${work}/prefix" "-DCMAKE_CXX_COMPILER=${compiler}" "-DCMAKE_CXX_FLAGS=${flags}")
run(${CMAKE_COMMAND} --build "${work}/build")
run("${probe}" "${work}/build/libtenon_null.so" "null:0")
