sgdph_room(cost
  SOURCES cost.cpp engine.cpp engine_run.cpp measure.cpp memory.cpp picture.cpp published.cpp report.cpp statistics.cpp task.cpp
  LINK sgdph_lab_study)
