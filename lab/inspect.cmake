sgdph_room(inspect
  SOURCES blocks.cpp estimates.cpp figures.cpp guard.cpp hessian_block.cpp inspect.cpp picture.cpp report.cpp subject.cpp verdict.cpp
  LINK sgdph_lab_study)
