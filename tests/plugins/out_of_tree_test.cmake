# Installs the SDK, builds a device and a package of operators against it as a vendor would, and loads
# the results.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN}\n${output}")
  endif()
  message(STATUS "${output}")
endfunction()

set(flags "")
if(sanitize STREQUAL "address")
  set(flags "-fsanitize=address,undefined")
elseif(sanitize STREQUAL "thread")
  set(flags "-fsanitize=thread")
endif()

# A copy, so that nothing of the repository is beside it.
function(build_and_load folder library name)
  get_filename_component(project "${folder}" NAME)
  file(COPY "${folder}" DESTINATION "${work}/source")
  run(${CMAKE_COMMAND} -S "${work}/source/${project}" -B "${work}/${project}" -G "${generator}"
    "-DCMAKE_PREFIX_PATH=${work}/prefix" "-DCMAKE_CXX_COMPILER=${compiler}" "-DCMAKE_CXX_FLAGS=${flags}")
  run(${CMAKE_COMMAND} --build "${work}/${project}")
  run("${probe}" "${work}/${project}/${library}" "${name}")
endfunction()

file(REMOVE_RECURSE "${work}")
run(${CMAKE_COMMAND} --install "${build}" --component sdk --prefix "${work}/prefix")
build_and_load("${source}/plugins/null" libtenon_null.so null:0)
if(EXISTS "${work}/prefix/bin/tenon-codegen")
  build_and_load("${source}/tests/plugins/operator_package" libtenon_acme_operators.so acme::triple)
endif()
