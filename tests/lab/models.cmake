sgdph_lab_test(models models)
sgdph_lab_test(models state_dict)

# Weights go to Python and back. Sanitizers would slow the large networks, and find nothing the tests above do not.
if(NOT SGDPH_SANITIZE)
  add_executable(sgdph_exchange lab/models/exchange_tool.cpp)
  target_link_libraries(sgdph_exchange PRIVATE sgdph_lab_base sgdph_lab_models)
  sgdph_test_settings(sgdph_exchange)
  # Debian's PyTorch belongs to Debian's Python, which need not be the first in the path.
  find_program(SGDPH_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
  find_program(SGDPH_PYTHON python3)
  if(SGDPH_PYTHON)
    add_test(NAME lab.models.exchange
      COMMAND ${SGDPH_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/lab/models/exchange.py $<TARGET_FILE:sgdph_exchange>)
    set_tests_properties(lab.models.exchange PROPERTIES LABELS lab TIMEOUT 900 SKIP_RETURN_CODE 77)
  endif()
endif()
