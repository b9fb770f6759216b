# Runs the kit on a plugin that is slow and right, and demands that it says so and that nothing fails.
cmake_minimum_required(VERSION 3.22)
execute_process(COMMAND "${kit}" --timeout ${limit} --only "${only}" "${plugin}"
  RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "expected exit code 0, got ${code}\n${output}")
endif()
if(NOT output MATCHES "WARNING  lifecycle.slow: ${wanted}")
  message(FATAL_ERROR "expected a warning \"${wanted}\", got\n${output}")
endif()
