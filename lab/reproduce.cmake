# The experiments, with the paper's figures where it has them, are compiled in as the recipes are.
set(SGDPH_EXPERIMENT_ENTRIES "")
foreach(experiment cifar mini-imagenet imagenet weight-norm lr-wd tau-so alpha batch-size cost rates curvature)
  set(file ${PROJECT_SOURCE_DIR}/experiments/${experiment}.toml)
  set(figures ${PROJECT_SOURCE_DIR}/experiments/paper/${experiment}.csv)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} text)
  set(table "")
  if(EXISTS ${figures})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${figures})
    file(READ ${figures} table)
  endif()
  string(APPEND SGDPH_EXPERIMENT_ENTRIES
    "      {\"${experiment}\", R\"toml(${text})toml\", R\"csv(${table})csv\"},\n")
endforeach()
configure_file(reproduce/builtin_experiments.cpp.in ${CMAKE_CURRENT_BINARY_DIR}/builtin_experiments.cpp @ONLY)

sgdph_room(reproduce
  SOURCES cells.cpp cost_experiment.cpp estimate.cpp experiment.cpp paper.cpp plan_text.cpp reproduce.cpp result.cpp
    result_text.cpp
  LINK sgdph_lab_cost sgdph_lab_study)
target_sources(sgdph_lab_reproduce PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/builtin_experiments.cpp)
