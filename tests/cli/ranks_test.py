"""Runs of several processes on loopback: what they compute, and how they end when one of them fails.

Everything here is bounded in time. Without Gloo's headers the program says what is missing; then the rest is skipped."""

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import tarfile
import threading
import time
import unittest
from pathlib import Path

import support

HOST = socket.gethostname()
LOST = 75


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class RankTest(support.CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        done = subprocess.run([support.SGDPH, "train", "--dry-run", "--data-path", cls.data, "--dist-timeout", "1"],
                              env=cls.variables(0, 2, 1), capture_output=True, text=True)
        if "built without Gloo" in done.stderr:
            cls.tearDownClass()
            raise unittest.SkipTest("this build has no Gloo: install libgloo-dev")

    def small(self, opt="sgdm", epochs=2, output=None, *extra):
        """What is given here takes the place of the usual."""
        usual = {"--dataset": "fashion-mnist", "--data-path": self.data, "--width": 0.5, "-b": 32, "--opt": opt,
                 "--epochs": epochs, "--threads": 1}
        words = ["train"]
        for option, value in usual.items():
            if option not in extra:
                words += [option, value]
        return words + list(extra) + (["--output-dir", output] if output else [])

    @staticmethod
    def variables(rank, size, port, **more):
        mine = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
        mine.update(RANK=str(rank), WORLD_SIZE=str(size), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        mine.update({k: str(v) for k, v in more.items()})
        return mine

    def start(self, size, words, ranks=None, port=None, of_rank=None, more=None, command=None):
        """The processes by rank; `of_rank(rank)` gives words of one rank, `more(rank)` its variables."""
        port = port or free_port()
        started = {}
        for rank in ranks or range(size):
            extra = of_rank(rank) if of_rank else []
            started[rank] = subprocess.Popen(
                self.command(*words, *extra), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder,
                env=self.variables(rank, size, port, **(more(rank) if more else {})))
        return started

    def finish(self, processes, timeout=120):
        """Exit code, output and errors of each; those that do not end are killed, and fail the test."""
        ends = {}
        deadline = time.monotonic() + timeout
        try:
            for rank, process in processes.items():
                out, err = process.communicate(timeout=max(0.1, deadline - time.monotonic()))
                ends[rank] = (process.returncode, out, err)
        finally:
            for process in processes.values():
                if process.poll() is None:
                    process.kill()
        return ends

    def together(self, size, *words, patience=120, **options):
        """All ranks succeed; what rank 0 said. The others say nothing."""
        ends = self.finish(self.start(size, words, **options), patience)
        for rank, (code, out, err) in ends.items():
            self.assertEqual(code, 0, f"rank {rank}: {err}")
            if rank > 0:
                self.assertEqual(out + err, "")
        return ends[0][1]

    def expect_lost(self, ends, *says):
        """Each ended with one line that names itself, its host and these words, and the code of lost peers."""
        for rank, (code, _, err) in ends.items():
            self.assertEqual(code, LOST, f"rank {rank}: {err}")
            lines = [line for line in err.splitlines() if line.startswith("sgdph: rank")]
            self.assertEqual(len(lines), 1, err)
            self.assertIn(f"rank {rank} of ", lines[0])
            self.assertIn(f"on {HOST}", lines[0])
            for word in says:
                self.assertIn(word, lines[0])

    def wait_for_checkpoint(self, folder, count=1, timeout=60):
        deadline = time.monotonic() + timeout
        while len(list(folder.glob("*.ckpt"))) < count:
            self.assertLess(time.monotonic(), deadline, "no checkpoint came")
            time.sleep(0.02)

    def losses(self, folder):
        return [record["train_loss"] for record in support.records(folder) if record["type"] == "epoch"]

    def stop_in_the_middle(self, size, words, run, count=1):
        """Kills the last rank when the run has a checkpoint, and waits for the end of the others."""
        processes = self.start(size, words)
        self.wait_for_checkpoint(run, count)
        hurt = processes.pop(size - 1)
        hurt.kill()
        hurt.communicate()
        self.expect_lost(self.finish(processes, 40))
        self.assertFalse((run / "model.pt").exists(), "the run was over too soon")


class Results(RankTest):
    PLAIN = ["--norm", "layer", "-b", 16]  # no running statistics, which one process advances more often

    def equal_to_one_process(self, *opts):
        one, two = self.folder / "one", self.folder / "two"
        for opt in opts:
            self.succeed(*self.small(opt, 2, one, *self.PLAIN, "--accumulate", 2, "--train-limit", 250))
            self.together(2, *self.small(opt, 2, two, *self.PLAIN, "--train-limit", 250))
            self.assertEqual((one / "model.pt").read_bytes(), (two / "model.pt").read_bytes(), opt)
            self.assertEqual(self.losses(one), self.losses(two))
            shutil.rmtree(one)
            shutil.rmtree(two)

    def test_two_ranks_end_with_the_bits_of_one_process(self):
        self.equal_to_one_process("sgd-ph")

    @support.slow
    def test_two_ranks_end_with_the_bits_of_one_process_that_accumulates_two_batches(self):
        self.equal_to_one_process("sgd-ph", "adahessian", "sgdm")

    @support.slow
    def test_settings_mean_on_ranks_what_they_mean_to_one_process_that_accumulates(self):
        one, two = self.folder / "one", self.folder / "two"
        # With a validation split one rank has no batch in the last step of an epoch. Not every LibTorch's layer norm works with autocast.
        for words in (["--val-split", 0.2], ["--curvature-batch", 0.5], ["--amp", "bf16", "--norm", "instance"],
                      ["--clip-grad-norm", 0.5], ["--label-smoothing", 0.1, "--eval-every", 0.5]):
            plain = self.PLAIN if "--norm" not in words else self.PLAIN[2:]
            with self.subTest(words=words):
                self.succeed(*self.small("sgd-ph", 2, one, *plain, *words, "--accumulate", 2))
                self.together(2, *self.small("sgd-ph", 2, two, *plain, *words))
                for weights in {path.name for path in one.glob("*.pt")}:
                    self.assertEqual((one / weights).read_bytes(), (two / weights).read_bytes(), weights)
                self.assertEqual(self.losses(one), self.losses(two))
            shutil.rmtree(one, ignore_errors=True)
            shutil.rmtree(two, ignore_errors=True)

    @support.slow
    def test_a_run_goes_on_with_another_number_of_ranks_and_the_same_steps(self):
        calm, moved = self.folder / "calm", self.folder / "moved"
        self.succeed(*self.small("sgd-ph", 3, calm, *self.PLAIN, "--accumulate", 6))
        self.together(2, *self.small("sgd-ph", 1, moved, *self.PLAIN, "--accumulate", 3))
        self.succeed("train", "--resume", moved, "--epochs", 2)
        said = self.together(3, "train", "--resume", moved, "--epochs", 3)
        self.assertIn("a step has 96 images, 32 of each rank", said)
        for here, there in zip(self.losses(calm), self.losses(moved)):
            self.assertAlmostEqual(here, there, delta=1e-4 * here)
        steps = [[r["step"] for r in support.records(run) if r["type"] == "epoch"] for run in (calm, moved)]
        self.assertEqual(*steps)
        # Batches of another size may be chosen, as long as a step keeps its images.
        self.together(2, "train", "--resume", moved, "--epochs", 4, "--batch-size", 48, "--accumulate", 1)
        self.refuse("train", "--resume", moved, "--epochs", 5, "--batch-size", 50, "--accumulate", 1,
                    says="a step of this run has 96 images", writes_nothing=False)
        ends = self.finish(self.start(4, ["train", "--resume", moved, "--epochs", 5]))
        self.assertIn(2, [code for code, _, _ in ends.values()])
        self.assertIn("4 ranks cannot share", "".join(err for _, _, err in ends.values()))

    def test_the_same_command_goes_on_with_another_number_of_ranks(self):
        run = self.folder / "run"
        words = self.small("sgdm", 1, run, *self.PLAIN, "--auto-resume")
        self.together(2, *words)
        words[words.index("--epochs") + 1] = 2
        self.succeed(*words)
        words[words.index("--epochs") + 1] = 3
        said = self.together(2, *words)
        self.assertIn("a step has 32 images, 16 of each rank", said)
        self.assertEqual([r["step"] for r in support.records(run) if r["type"] == "epoch"], [8, 16, 24])

    def test_ranks_meet_whose_torchruns_counted_restarts_each_for_itself(self):
        counts = {0: {"TORCHELASTIC_RESTART_COUNT": 1}, 1: {"TORCHELASTIC_RESTART_COUNT": 2}}
        self.together(2, *self.small("sgdm", 1, self.folder / "run", "--dist-timeout", 10),
                      more=lambda rank: {"TORCHELASTIC_RUN_ID": "job", "TORCHELASTIC_USE_AGENT_STORE": "False", **counts[rank]})

    def test_torchrun_that_lost_all_hosts_but_one_goes_on_alone(self):
        run, agent = self.folder / "run", {"TORCHELASTIC_RUN_ID": "job"}
        self.together(2, *self.small("sgdm", 1, run, *self.PLAIN), more=lambda rank: agent)
        said = self.succeed(*self.small("sgdm", 2, run, *self.PLAIN), env={**self.variables(0, 1, 1), **agent}).stdout
        self.assertIn("continuing", said)
        self.assertEqual([r["step"] for r in support.records(run) if r["type"] == "epoch"], [8, 16])

    @support.slow
    def test_averaged_weights_of_two_ranks_are_those_of_one_process_that_accumulates(self):
        one, two = self.folder / "one", self.folder / "two"
        words = [*self.PLAIN, "--model-ema", "--model-ema-steps", 2, "--model-ema-decay", 0.999]
        self.succeed(*self.small("sgdm", 2, one, *words, "--accumulate", 2))
        self.together(2, *self.small("sgdm", 2, two, *words))
        self.assertEqual((one / "ema.pt").read_bytes(), (two / "ema.pt").read_bytes())

    def dropout(self, output, *extra):
        data = self.root / "cifar"
        if not data.exists():
            data.mkdir()
            with tarfile.open(support.write_cifar100(data / "all.tar.gz", 64, 20)) as archive:
                archive.extractall(data)
        return self.small("sgdm", 2, output, "--dataset", "cifar100", "--data-path", data, "--model", "vgg11", "--form", "imagenet",
                          "--width", 0.03, "--norm", "layer", "-b", 8, "--checkpoint-every", 1, *extra)

    @support.slow
    def test_dropout_of_two_ranks_is_that_of_one_process_that_accumulates(self):
        one, two = self.folder / "one", self.folder / "two"
        self.succeed(*self.dropout(one, "--accumulate", 2))
        self.together(2, *self.dropout(two))
        self.assertEqual(self.losses(one), self.losses(two))
        self.assertEqual((one / "model.pt").read_bytes(), (two / "model.pt").read_bytes())

    @support.slow
    def test_a_restart_draws_the_dropout_of_a_calm_run(self):
        calm, run = self.folder / "calm", self.folder / "run"
        words = ["--epochs", 40, "--dist-timeout", 10]
        self.together(2, *self.dropout(calm, *words))
        self.stop_in_the_middle(2, self.dropout(run, *words), run)
        self.together(2, "train", "--resume", run)
        self.assertEqual(self.losses(calm), self.losses(run))
        self.assertEqual((calm / "model.pt").read_bytes(), (run / "model.pt").read_bytes())

    @support.slow
    def test_spread_measurements_continue_with_the_same_bits(self):
        calm, run = self.folder / "calm", self.folder / "run"
        words = ["-b", 16, "--refresh", "spread", "--probe", "rademacher", "--checkpoint-every", 1, "--dist-timeout", 10]
        self.together(2, *self.small("sgd-ph", 12, calm, *words))
        self.stop_in_the_middle(2, self.small("sgd-ph", 12, run, *words), run)
        self.together(2, "train", "--resume", run)
        self.assertEqual(self.losses(calm), self.losses(run))
        self.assertEqual((calm / "model.pt").read_bytes(), (run / "model.pt").read_bytes())

    def test_there_is_one_log_one_checkpoint_and_a_waiting_time_for_each_rank(self):
        run = self.folder / "run"
        out = self.together(3, *self.small("sgd-ph", 2, run, "-b", 16))
        self.assertIn("epoch 2/2", out)
        records = support.records(run)
        self.assertEqual(records[0]["ranks"], 3)
        self.assertEqual(records[0]["hosts"], [HOST] * 3)
        self.assertEqual([r["type"] for r in records], ["header", "epoch", "epoch", "end"])
        costs = records[1]["cost"]["ranks"]
        self.assertEqual([c["rank"] for c in costs], [0, 1, 2])
        self.assertTrue(all(c["waiting_seconds"] >= 0 and c["host"] == HOST for c in costs))
        self.assertEqual(sorted(p.name for p in run.iterdir() if p.suffix in (".ckpt", ".pt", ".jsonl", ".toml")),
                         ["checkpoint-000000006.ckpt", "checkpoint-000000012.ckpt", "log.jsonl", "model.pt", "settings.toml"])

    def evaluation_counts(self, *limits):
        run = self.folder / "run"
        self.succeed(*self.small("sgdm", 1, run))
        for limit in limits:
            words = ["eval", run, "--json", "--test-limit", limit, "-b", 8]
            one = json.loads(self.succeed(*words).stdout)
            three = json.loads(self.together(3, *words))
            self.assertEqual(one["images"], limit)
            self.assertAlmostEqual(one.pop("loss"), three.pop("loss"), places=6)
            self.assertEqual(one, three)

    def test_evaluation_counts_images_that_cannot_be_shared_evenly_once(self):
        self.evaluation_counts(61)

    @support.slow
    def test_evaluation_counts_every_image_once(self):
        self.evaluation_counts(61, 64, 7)

    def test_sigterm_to_one_rank_stops_all_at_the_same_step_with_one_checkpoint(self):
        calm, run = self.folder / "calm", self.folder / "run"
        words = ["-b", 16, "--checkpoint-every", 2]
        self.together(2, *self.small("sgd-ph", 12, calm, *words))
        processes = self.start(2, self.small("sgd-ph", 12, run, *words))
        self.wait_for_checkpoint(run)
        processes[1].send_signal(signal.SIGTERM)
        ends = self.finish(processes, 60)
        self.assertEqual([ends[0][0], ends[1][0]], [130, 130], ends)
        self.assertIn("stopped at step", ends[0][2])
        self.assertEqual(ends[1][2], "")
        self.together(2, "train", "--resume", run)
        self.assertEqual((calm / "model.pt").read_bytes(), (run / "model.pt").read_bytes())

    @support.slow
    def test_checkpoints_by_time(self):
        run = self.folder / "run"
        self.together(2, *self.small("sgdm", 2, run, "-b", 16, "--checkpoint-minutes", 1e-6, "--keep-checkpoints", 50))
        self.assertEqual(len(list(run.glob("*.ckpt"))), 16)

    @support.slow
    def test_a_comparison_is_shared_by_ranks(self):
        words = ["compare", "--dataset", "fashion-mnist", "--data-path", self.data, "--width", "0.5", "-b", 16, "--opts",
                 "sgdm,sgd-ph", "--epochs", 1, "--threads", 1, "--output-dir", self.folder / "study"]
        out = self.together(2, *words)
        self.assertIn("SGD-PH", out)
        for opt in ("sgdm", "sgd-ph"):
            self.assertEqual(support.records(self.folder / "study" / f"{opt}-seed1")[0]["ranks"], 2)

    @support.slow
    def test_sigterm_to_a_follower_stops_a_comparison(self):
        study = self.folder / "study"
        words = ["compare", "--dataset", "fashion-mnist", "--data-path", self.data, "--width", "0.5", "-b", 16, "--opts",
                 "sgdm,sgd-ph", "--epochs", 60, "--threads", 1, "--output-dir", study, "--checkpoint-every", 1, "--dist-timeout", 20]
        processes = self.start(2, words)
        self.wait_for_checkpoint(study / "sgdm-seed1")
        processes[1].send_signal(signal.SIGTERM)
        ends = self.finish(processes, 60)
        self.assertEqual([ends[0][0], ends[1][0]], [130, 130], ends)
        self.assertIn("stopped; the same command continues", ends[0][2])
        self.assertFalse((study / "sgd-ph-seed1").exists())

    @support.slow
    def test_a_lost_rank_of_a_comparison_is_named(self):
        study = self.folder / "study"
        words = ["compare", "--dataset", "fashion-mnist", "--data-path", self.data, "--width", "0.5", "-b", 16, "--opts",
                 "sgdm,sgd-ph", "--epochs", 500, "--threads", 1, "--output-dir", study, "--checkpoint-every", 1, "--dist-timeout", 10]
        processes = self.start(2, words)
        self.wait_for_checkpoint(study / "sgdm-seed1")
        of_rank_1 = subprocess.run(["pgrep", "-P", str(processes[1].pid)], capture_output=True, text=True).stdout.split()
        os.kill(int(of_rank_1[0]), signal.SIGKILL)
        ends = self.finish(processes, 60)
        self.expect_lost(ends, f"rank 1 on {HOST} is gone or stopped")
        self.assertNotIn("ended", ends[1][2])

    @support.slow
    def test_an_experiment_is_shared_by_ranks(self):
        experiment = self.folder / "tiny.toml"
        experiment.write_text(support.experiment(width=0.25, epochs=1))
        self.together(2, "reproduce", experiment, "--seeds", 1, "--threads", 1, "--data-path", self.data, "--output-dir", self.folder / "out")
        logs = sorted((self.folder / "out").rglob("log.jsonl"))
        self.assertEqual(len(logs), 2)
        for log in logs:
            self.assertEqual(support.records(log.parent)[0]["ranks"], 2)
            self.assertEqual(support.records(log.parent)[-1]["status"], "finished")


class Faults(RankTest):
    def long_run(self, output, *extra):
        return self.small("sgd-ph", 500, output, "-b", 16, "--checkpoint-every", 4, "--dist-timeout", 6, *extra)

    def after_fault(self, victim, fault, size=3):
        """The ends of the others, and how long they took."""
        run = self.folder / "run"
        processes = self.start(size, self.long_run(run))
        self.wait_for_checkpoint(run)
        hurt = processes.pop(victim)
        hurt.send_signal(fault)
        begun = time.monotonic()
        try:
            ends = self.finish(processes, 40)
        finally:
            hurt.kill()
            hurt.communicate()
        took = time.monotonic() - begun
        self.assertEqual(list(run.glob("*.new")), [])
        return ends, took

    def test_a_killed_rank_is_named_by_the_others(self):
        ends, took = self.after_fault(1, signal.SIGKILL)
        self.expect_lost(ends, f"rank 1 on {HOST} is gone or stopped")
        self.assertLess(took, 20)

    @support.slow
    def test_a_killed_first_rank_is_named_by_the_others(self):
        ends, took = self.after_fault(0, signal.SIGKILL)
        self.expect_lost(ends, f"rank 0 on {HOST}", "gone or stopped")
        self.assertLess(took, 20)

    def test_a_stopped_rank_is_given_up_within_the_timeout(self):
        ends, took = self.after_fault(2, signal.SIGSTOP)
        self.expect_lost(ends, f"rank 2 on {HOST} is gone or stopped")
        self.assertLess(took, 20)

    @support.slow
    def test_a_stopped_first_rank_is_given_up_within_the_timeout(self):
        ends, took = self.after_fault(0, signal.SIGSTOP)
        self.expect_lost(ends, f"rank 0 on {HOST}", "gone or stopped")
        self.assertLess(took, 20)

    def end_while_writing_weights(self, how):
        """What rank 1 says when rank 0 is killed or stopped as it writes the weights of a finished run."""
        run = self.folder / "run"
        fault = support.with_faults(run / "model.pt", self.folder / "count", call="rename", at=1, error=how)
        chosen = {key: value for key, value in fault.items() if os.environ.get(key) != value}
        begun = time.monotonic()
        processes = self.start(2, self.small("sgdm", 1, run, "-b", 16, "--dist-timeout", 3), more=lambda rank: {} if rank else chosen)
        first = processes.pop(0)
        try:
            ends = self.finish(processes, 40)
        finally:
            first.kill()
            first.communicate()
        self.assertLess(time.monotonic() - begun, 30)
        self.assertEqual(len(list(run.glob("*.ckpt"))), 1)
        self.assertFalse((run / "model.pt").exists())
        self.expect_lost(ends, f"rank 0 on {HOST}", "gone or stopped")

    @support.slow
    def test_a_first_rank_killed_at_the_very_end_is_not_taken_for_a_success(self):
        self.end_while_writing_weights("kill")

    @support.slow
    def test_a_first_rank_stopped_at_the_very_end_is_given_up_within_the_timeout(self):
        self.end_while_writing_weights("stop")

    def test_a_rank_lost_before_ranks_connect_is_named(self):
        # That rank stops where it opens its data, after ranks have come together and before they connect.
        fault = support.with_faults(self.data, self.folder / "count", call="open", at=1, error="stop", reads=1)
        chosen = {key: value for key, value in fault.items() if os.environ.get(key) != value}
        words = self.small("sgdm", 1, self.folder / "run", "--dist-timeout", 3)
        processes = self.start(2, words, more=lambda rank: chosen if rank == 1 else {})
        hurt = processes.pop(1)
        deadline = time.monotonic() + 30
        while Path(f"/proc/{hurt.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
            self.assertLess(time.monotonic(), deadline, "the rank did not come to its data")
            time.sleep(0.02)
        hurt.kill()
        hurt.communicate()
        self.expect_lost(self.finish(processes, 40), f"rank 1 on {HOST} is gone or stopped")

    def failing_start(self, *words, size=2, **options):
        run = self.folder / "run"
        begun = time.monotonic()
        ends = self.finish(self.start(size, self.small("sgdm", 1, run, "--dist-timeout", 5, *words), **options), 60)
        self.assertLess(time.monotonic() - begun, 40)
        self.assertFalse(run.exists(), "a run that could not begin left something behind")
        return ends

    def test_a_rank_that_does_not_come_is_named(self):
        self.expect_lost(self.failing_start(size=3, ranks=[0, 2]), "rank 1 of 3 did not come")

    @support.slow
    def test_a_store_of_another_torchrun_is_told_the_remedy(self):
        with socket.socket() as silent:
            silent.bind(("", 0))
            silent.listen()
            agent = {"TORCHELASTIC_RUN_ID": "x", "TORCHELASTIC_USE_AGENT_STORE": "True"}
            ends = self.failing_start("--dist-timeout", 2, port=silent.getsockname()[1], more=lambda rank: agent)
        self.expect_lost(ends, "is not the store of torchrun", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1")

    @support.slow
    def test_an_empty_list_of_interfaces_means_none(self):
        self.together(2, *self.small("sgdm", 1, self.folder / "run"), more=lambda rank: {"GLOO_SOCKET_IFNAME": ""})

    def expect_taken(self, port, ends):
        self.expect_lost({0: ends[0]}, f"port {port} is taken", "MASTER_PORT")
        self.assertEqual(ends[0][2].count("\n"), 1, ends[0][2])
        self.expect_lost({1: ends[1]}, f"what listens at 127.0.0.1:{port} is not the store of rank 0")

    def test_a_port_where_another_program_answers_is_named_at_once(self):
        for answer in (b"", b"SSH-2.0-OpenSSH_9.2p1\r\n", b"HTTP/1.0 400 Bad request\r\n\r\n", b"\0" * 4096):
            with socket.socket() as taken:
                taken.bind(("", 0))
                taken.listen()

                def serve():
                    while True:
                        try:
                            with taken.accept()[0] as visitor:
                                visitor.sendall(answer)
                        except ConnectionError:
                            continue
                        except OSError:  # closed
                            return

                threading.Thread(target=serve, daemon=True).start()
                port = taken.getsockname()[1]
                begun = time.monotonic()
                self.expect_taken(port, self.failing_start("--dist-timeout", 300, port=port))
                self.assertLess(time.monotonic() - begun, 15)
                taken.shutdown(socket.SHUT_RDWR)

    @support.slow
    def test_a_port_where_another_program_says_nothing_is_named_long_before_the_timeout(self):
        with socket.socket() as taken:
            taken.bind(("", 0))
            taken.listen()
            port = taken.getsockname()[1]
            self.expect_taken(port, self.failing_start("--dist-timeout", 300, port=port))

    def test_a_second_run_at_the_same_port_ends_and_leaves_the_first_alone(self):
        first, port = self.folder / "first", free_port()
        processes = self.start(2, self.small("sgdm", 30, first, "-b", 16, "--checkpoint-every", 1, "--dist-timeout", 20), port=port)
        self.wait_for_checkpoint(first)
        ends = self.failing_start(size=3, port=port)
        self.expect_lost({0: ends[0]}, f"port {port} is taken")
        self.expect_lost({rank: ends[rank] for rank in (1, 2)}, f"another run is under way at 127.0.0.1:{port}")
        self.assertIsNone(processes[0].poll(), "the first run was over too soon")
        self.assertEqual([code for code, _, _ in self.finish(processes).values()], [0, 0])

    def test_a_first_rank_that_does_not_come_is_named(self):
        self.expect_lost(self.failing_start("--dist-timeout", 2, ranks=[1]), "rank 0 did not come: nobody listens at 127.0.0.1:")

    @support.slow
    def test_a_wrong_interface_is_named_by_all(self):
        ends = self.failing_start(more=lambda rank: {"GLOO_SOCKET_IFNAME": "nosuch7"} if rank == 1 else {})
        self.expect_lost(ends, "GLOO_SOCKET_IFNAME", "'nosuch7'")

    def test_an_address_of_another_host_is_named(self):
        ends = self.failing_start("--dist-timeout", 3, more=lambda rank: {"MASTER_ADDR": "192.0.2.1"})  # of documents
        self.expect_lost({0: ends[0]}, "MASTER_ADDR is 192.0.2.1, which is not this host")
        self.expect_lost({1: ends[1]}, "rank 0 did not come: nobody listens at 192.0.2.1:")
        for _, _, err in ends.values():
            self.assertEqual(err.count("\n"), 1, err)

    def test_torchrun_finds_the_reason_of_an_end(self):
        files = [self.folder / "0.json", self.folder / "1.json"]
        begun = int(time.time())
        ends = self.failing_start(of_rank=lambda rank: ["--lr", "0.5"] if rank == 1 else [],
                                  more=lambda rank: {"TORCHELASTIC_ERROR_FILE": files[rank]})
        for rank, (_, _, err) in ends.items():
            found = json.loads(files[rank].read_text())
            self.assertEqual(found["message"] + "\n", err)
            self.assertLessEqual(begun, found["timestamp"])
            self.assertLessEqual(found["timestamp"], time.time())
        self.run_sgdph("train", "--lr", "-1", env={**os.environ, "TORCHELASTIC_ERROR_FILE": str(files[0])})
        self.assertIn("sgdph: --lr: lr takes a finite number", json.loads(files[0].read_text())["message"])
        # A name need not be text.
        done = self.run_sgdph("train", "--config", "nowhere\udcff.toml", env={**os.environ, "TORCHELASTIC_ERROR_FILE": str(files[0])})
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("nowhere\ufffd.toml", json.loads(files[0].read_text())["message"])
        diverging = self.small("sgdm", 1, self.folder / "far", "--lr", "1e30")
        self.assertEqual(self.run_sgdph(*diverging, env={**os.environ, "TORCHELASTIC_ERROR_FILE": str(files[0])}).returncode, 1)
        self.assertIn("the loss became", json.loads(files[0].read_text())["message"])

    @support.slow
    def test_a_name_that_does_not_resolve_is_named(self):
        ends = self.failing_start(more=lambda rank: {"MASTER_ADDR": "no.such.host.invalid"})
        self.expect_lost(ends, "'no.such.host.invalid' does not resolve")

    def test_ranks_with_other_options_are_told_which(self):
        ends = self.failing_start(of_rank=lambda rank: ["--lr", "0.5"] if rank == 1 else [])
        self.expect_lost(ends, "--lr is", f"rank 0 on {HOST}", f"rank 1 on {HOST}")

    def test_of_many_differences_the_one_that_others_follow_from_is_told(self):
        ends = self.failing_start(of_rank=lambda rank: ["--opt", "adam"] if rank == 1 else [])
        self.expect_lost(ends, f'--opt is "sgdm" on rank 0 on {HOST} and "adam" on rank 1 on {HOST}')

    @support.slow
    def test_ranks_with_other_commands_are_told_which(self):
        compare = ["compare", "--dataset", "fashion-mnist", "--data-path", self.data, "--dist-timeout", 5, "--output-dir", self.folder / "run"]
        config = self.folder / "patience.toml"
        config.write_text("[run]\ndist_timeout = 4\n")
        for words, other, says in ((self.small("sgdm", 1, None, "--dist-timeout", 5), ["eval", "x", "--dist-timeout", 5], "the command is"),
                                   ([*compare, "--opts", "sgdm"], [*compare, "--opts", "adam"], "--opts is"),
                                   ([*compare, "--seeds", "1"], [*compare, "--seeds", "2"], "--seeds is"),
                                   ([*compare[:5], "--config", config], None, "rank 1 of 2 did not come to")):
            port = free_port()
            processes = self.start(2, words, ranks=[0], port=port)
            if other:
                processes.update(self.start(2, other, ranks=[1], port=port))
            self.expect_lost(self.finish(processes, 30), says)
            self.assertFalse((self.folder / "run").exists())

    @support.slow
    def test_what_decides_when_ranks_meet_is_compared_too(self):
        for option, value in (("--eval-every", "0.5"), ("--eval-limit", "10")):
            ends = self.failing_start(of_rank=lambda rank: [option, value] if rank == 1 else [])
            self.expect_lost(ends, f"{option} is", f"rank 0 on {HOST}", f"rank 1 on {HOST}")

    @support.slow
    def test_another_number_of_ranks_is_told_at_once(self):
        for sizes in ({"0": 2, "1": 3}, {"0": 3, "1": 2}):
            begun = time.monotonic()
            ends = self.failing_start("--dist-timeout", 30, more=lambda rank: {"WORLD_SIZE": sizes[str(rank)]})
            for rank, (code, _, err) in ends.items():
                self.assertEqual(code, LOST, err)
                self.assertIn(f"the number of ranks is {sizes['0']} on rank 0 on {HOST} and {sizes['1']} on rank 1 on {HOST}", err)
            self.assertLess(time.monotonic() - begun, 25)

    @support.slow
    def test_ranks_with_other_data_are_told_which(self):
        data = self.folder / "other"
        support.write_samples("fashion-mnist", data, 240, 50, 1)
        words = self.small("sgdm", 1, self.folder / "run", "--data-path", self.data, "--dist-timeout", 10)
        ends = self.finish(self.start(2, words, of_rank=lambda rank: ["--data-path", data] if rank == 1 else []), 60)
        self.expect_lost(ends, "the number of the", f"rank 0 on {HOST}", f"rank 1 on {HOST}")
        run = self.folder / "whole"
        self.succeed(*self.small("sgdm", 1, run))
        words = ["eval", run, "--dist-timeout", 10]
        ends = self.finish(self.start(2, words, of_rank=lambda rank: ["--data-path", data] if rank == 1 else []), 60)
        self.expect_lost(ends, "the number of the test images is 64 on", "and 50 on")

    @support.slow
    def test_an_evaluation_of_nothing_on_one_rank_ends_all_at_once(self):
        run = self.folder / "run"
        self.succeed(*self.small("sgdm", 1, run))
        begun = time.monotonic()
        ends = self.finish(self.start(2, ["eval", "--dist-timeout", 30], of_rank=lambda rank: [self.folder / "none" if rank else run]), 60)
        self.assertEqual(ends[1][0], 2, ends)
        self.expect_lost({0: ends[0]}, f"rank 1 on {HOST} ended: ", "none does not exist")
        self.assertLess(time.monotonic() - begun, 25)

    @support.slow
    def test_the_timeout_of_a_continued_run_is_its_own_or_that_of_a_file(self):
        run = self.folder / "run"
        self.succeed(*self.small("sgdm", 1, run, "--dist-timeout", 2))
        config = self.folder / "more.toml"
        config.write_text("[run]\ndist_timeout = 3\n")
        for words, seconds in ((["--epochs", 2], 2), (["--epochs", 2, "--config", config], 3)):
            ends = self.finish(self.start(2, ["train", "--resume", run, *words], ranks=[0]), 30)
            self.expect_lost(ends, "rank 1 of 2 did not come to", f"within {seconds} s")

    def test_a_mistake_of_one_rank_ends_all_with_its_words(self):
        run = self.folder / "run"
        nowhere = self.folder / "no\x1b]0;where\x07"
        words = self.small("sgdm", 1, run, "--dist-timeout", 20)
        words[words.index("--data-path"):words.index("--data-path") + 2] = []
        ends = self.finish(self.start(2, words, of_rank=lambda rank: ["--data-path", nowhere if rank == 1 else self.data]), 60)
        self.assertEqual(ends[1][0], 2, ends)
        self.expect_lost({0: ends[0]}, f"rank 1 on {HOST} ended: ", "where")
        for _, _, err in ends.values():  # nor does one rank write to the other's terminal
            self.assertIn("\\x1b]0;where\\x07", err)
            self.assertNotIn("\x1b]0", err)
        self.assertFalse((run / "model.pt").exists())

    def test_variables_that_do_not_add_up_are_refused(self):
        for variables, says in (({"RANK": "0"}, "RANK is set and WORLD_SIZE is not"),
                                ({"RANK": "2", "WORLD_SIZE": "2"}, "RANK is 2"),
                                ({"RANK": "0", "WORLD_SIZE": "2"}, "MASTER_ADDR is not set")):
            self.refuse(*self.small("sgdm", 1, self.folder / "run"), says=says, env={**os.environ, **variables})
        self.refuse(*self.small("sgdm", 1, self.folder / "run", "--ranks", 4), says="--ranks: 4 are asked for")

    def random_faults(self, faults, epochs):
        """Rank after rank is killed or stopped at random moments; every time the others end, and the run goes on. As many
        runs, one after the other, as it takes until all faults have struck."""
        calm, wild = self.folder / "calm", self.folder / "wild"
        words = ["-b", 16, "--checkpoint-every", 1, "--dist-timeout", 4]
        patience = 120 + 10 * epochs  # with a checkpoint at each step, on a machine that may have other work
        self.together(2, *self.small("sgd-ph", epochs, calm, *words), patience=patience)

        def expect_the_calm_run():
            self.assertEqual((calm / "model.pt").read_bytes(), (wild / "model.pt").read_bytes())
            self.assertEqual(self.losses(calm), self.losses(wild))

        def is_over():
            return (wild / "log.jsonl").exists() and support.records(wild)[-1]["type"] == "end"

        rng = random.Random(7)
        struck = runs = 0
        for attempt in range(3 * faults):
            processes = self.start(2, self.small("sgd-ph", epochs, wild, *words, "--auto-resume"))
            before = sorted(wild.glob("*.ckpt"))
            deadline = time.monotonic() + 60
            if attempt % 4 != 3:  # else while they start
                while sorted(wild.glob("*.ckpt")) == before and time.monotonic() < deadline and processes[0].poll() is None:
                    time.sleep(0.005)
            time.sleep(rng.uniform(0, 0.3))
            hurt = processes.pop(rng.randrange(2))
            if hurt.poll() is None:
                hurt.send_signal(rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP]))
                struck += 1
            try:
                ends = self.finish(processes, 60)
            finally:
                hurt.kill()
                hurt.communicate()
            for code, _, err in ends.values():
                self.assertIn(code, (0, LOST), err)
            if struck == faults:
                break
            if is_over():
                expect_the_calm_run()
                shutil.rmtree(wild)
                runs += 1
        self.assertEqual(struck, faults)
        self.together(2, *self.small("sgd-ph", epochs, wild, *words, "--auto-resume"), patience=patience)
        expect_the_calm_run()
        print(f"{struck} faults struck {runs + 1} runs; the weights of each are those of a calm run", flush=True)

    def test_two_random_faults_lose_nothing(self):
        self.random_faults(2, epochs=6)

    @support.slow
    def test_five_random_faults_lose_nothing(self):
        self.random_faults(5, epochs=24)

    @support.long
    def test_fifty_random_faults_lose_nothing(self):
        self.random_faults(50, epochs=60)


def alone():
    """What tells torchrun that there is no other host: it wants to find localhost, which a bare system without /etc/hosts may not."""
    try:
        socket.gethostbyname("localhost")
        return ["--standalone"]
    except OSError:
        return ["--rdzv_backend=c10d", "--rdzv_endpoint=127.0.0.1:0", "--rdzv_id=alone", "--local_addr=127.0.0.1"]


class Launchers(RankTest):
    def torchrun(self, *words, **options):
        wheel = Path(__file__).resolve().parents[2] / "build/wheel/venv/bin/torchrun"
        program = os.environ.get("SGDPH_TORCHRUN") or (str(wheel) if wheel.exists() else shutil.which("torchrun"))
        if not program:
            support.skip("torchrun is not installed", may_lack=True)
        # Debian 12's own fails with Python 3.11 before it has started anything.
        tried = subprocess.run([program, *alone(), "--nproc_per_node=1", "--no_python", "true"], capture_output=True, text=True,
                               cwd=self.folder, timeout=120)
        if tried.returncode != 0:
            support.skip(f"{program} starts no program: {tried.stderr.strip().splitlines()[-1:]}", may_lack=True)
        environment = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
        environment["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
        return subprocess.Popen([program, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                cwd=self.folder, env=environment, start_new_session=True, **options)

    def ranks_of(self, launcher):
        children = subprocess.run(["pgrep", "-P", str(launcher.pid)], capture_output=True, text=True).stdout.split()
        return [int(p) for p in children if os.readlink(f"/proc/{p}/exe") == os.path.realpath(support.SGDPH)]

    @support.slow
    def test_torchrun_restarts_a_run_that_lost_a_rank_and_it_ends_with_the_same_bits(self):
        calm, run = self.folder / "calm", self.folder / "run"
        words = ["-b", 16, "--checkpoint-every", 1, "--dist-timeout", 20]
        self.together(2, *self.small("sgd-ph", 16, calm, *words))
        launcher = self.torchrun(*alone(), "--nnodes=1", "--nproc_per_node=2", "--max_restarts=3", "--monitor_interval=0.5",
                                 "--no_python", *self.command(*self.small("sgd-ph", 16, run, *words)))
        try:
            self.wait_for_checkpoint(run, 2, 90)
            ranks = self.ranks_of(launcher)
            self.assertEqual(len(ranks), 2)
            os.kill(ranks[1], signal.SIGKILL)
            out, err = launcher.communicate(timeout=200)
        finally:
            if launcher.poll() is None:
                os.killpg(launcher.pid, signal.SIGKILL)
        self.assertEqual(launcher.returncode, 0, err)
        self.assertIn("continuing", out)
        self.assertEqual((calm / "model.pt").read_bytes(), (run / "model.pt").read_bytes())

    @support.slow
    def test_torchruns_of_two_hosts_restart_a_run_that_lost_a_rank(self):
        calm, run = self.folder / "calm", self.folder / "run"
        words = ["-b", 16, "--checkpoint-every", 1, "--dist-timeout", 20]
        self.together(2, *self.small("sgd-ph", 40, calm, *words))
        meet = ["--nnodes=2", "--nproc_per_node=1", "--rdzv_backend=c10d", f"--rdzv_endpoint=127.0.0.1:{free_port()}", "--rdzv_id=job",
                "--local_addr=127.0.0.1", "--max_restarts=4", "--monitor_interval=0.5", "--no_python"]
        agents = [self.torchrun(f"--rdzv_conf=is_host={int(first)}", *meet, *self.command(*self.small("sgd-ph", 40, run, *words)))
                  for first in (True, False)]

        def lines():
            return len(support.records(run)) if (run / "log.jsonl").exists() else 0

        try:
            for lost in (1, 0):  # the agent of the lost rank counts a restart, the other one may not
                before = lines()
                self.wait_for_checkpoint(run, 2, 90)
                deadline = time.monotonic() + 90
                while lines() <= before + 1 or not self.ranks_of(agents[lost]):
                    self.assertIsNone(agents[0].poll(), "the run ended too soon")
                    self.assertLess(time.monotonic(), deadline, "the run does not go on")
                    time.sleep(0.02)
                os.kill(self.ranks_of(agents[lost])[0], signal.SIGKILL)
            ends = [agent.communicate(timeout=200) for agent in agents]
        finally:
            for agent in agents:
                if agent.poll() is None:
                    os.killpg(agent.pid, signal.SIGKILL)
        self.assertEqual([agent.returncode for agent in agents], [0, 0], ends)
        self.assertEqual("".join(out for out, _ in ends).count("continuing"), 2)
        self.assertEqual((calm / "model.pt").read_bytes(), (run / "model.pt").read_bytes())

    @support.slow
    def test_open_mpi_starts_ranks(self):
        if not shutil.which("mpirun"):
            support.skip("mpirun is not installed")
        run = self.folder / "run"
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        done = subprocess.run(
            ["mpirun", *root, "--oversubscribe", "--bind-to", "none", "-n", "2", "-x", "MASTER_ADDR=127.0.0.1", "-x",
             f"MASTER_PORT={free_port()}", *self.command(*self.small("sgdm", 1, run, "-b", 16))],
            capture_output=True, text=True, timeout=120, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(support.records(run)[0]["ranks"], 2)


class Hosts(RankTest):
    """Hosts are network namespaces, joined by a bridge."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.names = [f"sgdph{os.getpid() % 10000}{c}" for c in "abc"]
        cls.bridge = f"sgb{os.getpid() % 10000}"
        try:
            cls.make_hosts()
        except (OSError, subprocess.CalledProcessError) as error:
            cls.tearDownClass()
            # Many a container cannot make or enter them, even for root.
            support.skip(f"network namespaces cannot be made and entered here ({error}): a link that goes down", may_lack=True)

    @classmethod
    def make_hosts(cls):
        def ip(*words):
            subprocess.run(["ip", *words], check=True)
        for i, name in enumerate(cls.names):
            ip("netns", "add", name)
            if i == 0:
                ip("link", "add", cls.bridge, "type", "bridge")
                ip("link", "set", cls.bridge, "up")
            ip("link", "add", f"{name}p", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("link", "set", f"{name}p", "master", cls.bridge, "up")
            ip("-n", name, "addr", "add", f"10.93.7.{i + 10}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")

    @classmethod
    def tearDownClass(cls):
        if shutil.which("ip"):
            for name in getattr(cls, "names", []):
                subprocess.run(["ip", "netns", "del", name], capture_output=True)
            subprocess.run(["ip", "link", "del", getattr(cls, "bridge", "none")], capture_output=True)
        super().tearDownClass()

    def command_on(self, rank, words):
        return ["ip", "netns", "exec", self.names[rank], *self.command(*words)]

    def start(self, size, words, **more):
        port = 29500
        return {rank: subprocess.Popen(
            self.command_on(rank, words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder,
            env=self.variables(rank, size, port, MASTER_ADDR="10.93.7.10", **more)) for rank in range(size)}

    @support.slow
    def test_hosts_find_each_other_without_further_settings(self):
        run = self.folder / "run"
        self.together(3, *self.small("sgd-ph", 1, run, "-b", 16))
        self.assertEqual(support.records(run)[0]["ranks"], 3)

    @support.slow
    def test_an_interface_by_which_ranks_do_not_reach_each_other_is_named(self):
        words = self.small("sgdm", 1, self.folder / "run", "--dist-timeout", 6)
        ends = self.finish(self.start(3, words, GLOO_SOCKET_IFNAME="lo"), 40)
        self.expect_lost(ends, "the ranks at interface lo, interface lo, interface lo could not connect with each other",
                         "set GLOO_SOCKET_IFNAME")

    @support.slow
    def test_a_link_that_goes_down_ends_all_ranks_within_the_timeout(self):
        run = self.folder / "run"
        processes = self.start(3, self.small("sgd-ph", 500, run, "-b", 16, "--checkpoint-every", 4, "--dist-timeout", 6))
        self.wait_for_checkpoint(run)
        subprocess.run(["ip", "link", "set", f"{self.names[1]}p", "down"], check=True)
        begun = time.monotonic()
        try:
            ends = self.finish(processes, 40)
        finally:
            subprocess.run(["ip", "link", "set", f"{self.names[1]}p", "up"])
        self.assertLess(time.monotonic() - begun, 20)
        self.expect_lost({rank: ends[rank] for rank in (0, 2)}, f"rank 1 on {HOST} is gone or stopped")
        self.expect_lost({1: ends[1]}, f"rank 0 on {HOST}")
        self.assertEqual(list(run.glob("*.new")), [])


if __name__ == "__main__":
    support.main()
