find_package(spdlog REQUIRED)
sgdph_room(train
  SOURCES curvature_control.cpp evaluate.cpp event_log.cpp machine.cpp optimizers.cpp progress.cpp run_folder.cpp run_log.cpp setup.cpp trainer.cpp trainer_checkpoint.cpp
    training_step.cpp
  LINK sgdph_lab_config sgdph_lab_data sgdph_lab_formats sgdph_lab_models spdlog::spdlog)
