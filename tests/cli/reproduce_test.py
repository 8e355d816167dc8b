"""sgdph reproduce, with a small experiment of its own and with those that come with it."""

import csv
import fcntl
import json
import shutil
import subprocess
import unittest

import support

EXPERIMENT = support.experiment(widths=[0.25, 0.5], lr_scheduler="constant")

FIGURES = """[published]
figures = '''
width,opt,value,std,table,section,note
0.25,sgdm,80,0.5,Table 9,4,
0.25,sgd-ph,90,0.5,Table 9,4,
0.5,sgdm,85,,Table 9,4,one run
0.5,sgd-ph,,,,,the paper gives no figure
'''
"""

NAMES = ["cifar", "mini-imagenet", "imagenet", "weight-norm", "lr-wd", "tau-so", "alpha", "batch-size", "cost", "rates",
         "best-rates", "curvature"]


class Own(support.CommandTest):
    def setUp(self):
        super().setUp()
        (self.folder / "mine.toml").write_text(EXPERIMENT + FIGURES)
        self.out = self.folder / "out"

    def words(self, *extra):
        return ["reproduce", "mine.toml", "--data-path", self.data, "--threads", "1", "--output-dir", "out", *extra]

    ONE = ["--only", "width=0.25", "--only", "opt=sgdm"]

    def begin_with_one(self):
        """The folder with the run of one cell, trained once for all tests; gives its log."""
        kept = self.root / "kept"
        if not kept.exists():
            self.succeed(*self.words(*self.ONE))
            shutil.copytree(self.out, kept)
        elif not self.out.exists():
            shutil.copytree(kept, self.out)
        (log,) = self.logs()
        return log

    def logs(self):
        return {path: path.stat().st_mtime_ns for path in self.out.glob("*/log.jsonl")}

    def test_the_plan_is_shown_and_nothing_written(self):
        before = sorted(self.folder.rglob("*"))
        text = self.succeed(*self.words("--dry-run", "--seeds", "3")).stdout
        for part in ("4 cells x 3 seeds; 12 runs, 0 done, 12 to do, about", "epochs 10 -> 2", "A test must be quick.",
                     "0.5, SGD-PH"):
            self.assertIn(part, text)
        self.assertEqual(before, sorted(self.folder.rglob("*")))

    def test_ours_stands_beside_the_papers(self):
        words = self.words("--only", "width=0.25")
        done = self.succeed(*words)
        self.assertIn("2 runs, 0 done, 2 to do", done.stderr)
        for part in ("80.00 +- 0.50", "Table 9", "ranking"):
            self.assertIn(part, done.stdout)
        before = self.logs()
        self.assertIn("2 runs, 2 done, 0 to do", self.succeed(*words).stderr)
        self.assertEqual(before, self.logs())
        cells = json.loads((self.out / "mine.json").read_text())["cells"]
        for cell in cells:
            top1 = [r for r in support.records(self.out / cell["runs"][0]) if r["type"] == "epoch"][-1]["test_top1"]
            self.assertAlmostEqual(cell["difference"], top1 - cell["paper"]["value"])
        self.assertEqual(len(cells), 2)

    @support.slow
    def test_ours_stands_beside_the_papers_and_no_finished_run_is_repeated(self):
        done = self.succeed(*self.words())
        self.assertIn("4 runs, 0 done, 4 to do", done.stderr)
        for part in ("80.00 +- 0.50", "none", "Table 9", "ranking", "the paper gives no figure"):
            self.assertIn(part, done.stdout)
        before = self.logs()
        self.assertEqual(len(before), 4)
        again = self.succeed(*self.words("--format", "json"))
        self.assertIn("4 runs, 4 done, 0 to do", again.stderr)
        self.assertEqual(before, self.logs())
        result = json.loads(again.stdout)
        self.assertEqual(result, json.loads((self.out / "mine.json").read_text()))
        for cell in result["cells"]:
            (run,) = cell["runs"]
            top1 = [r for r in support.records(self.out / run) if r["type"] == "epoch"][-1]["test_top1"]
            self.assertAlmostEqual(cell["ours"]["mean"], top1)
            self.assertEqual(cell["curve"][-1], top1)
            if cell["paper"]["value"] is not None:
                self.assertAlmostEqual(cell["difference"], top1 - cell["paper"]["value"])
        with open(self.out / "mine.csv") as file:
            self.assertEqual([row["opt"] for row in csv.DictReader(file)], ["sgdm", "sgd-ph"] * 2)
        with open(self.out / "mine-curves.csv") as file:
            self.assertEqual(len(list(csv.DictReader(file))), 8)
        self.assertIn("| SGD-PH", (self.out / "mine.md").read_text())
        self.assertEqual(list(self.out.glob("*.toml")), [])
        # One seed more adds its runs alone.
        self.succeed(*self.words("--seeds", "2"))
        self.assertEqual(len(self.logs()), 8)
        # A report lays the runs out as the experiment does, with the paper's figures.
        self.succeed("report", self.out, "--format", "markdown")
        text = (self.out / "report.md").read_text()
        for part in ("## Two optimizers, two widths - 0.25", "Table 9, desk scale. Reductions: ", "80.00 +- 0.50"):
            self.assertIn(part, text)
        self.assertEqual(before, {path: time for path, time in self.logs().items() if path in before})

    @support.slow
    def test_a_part_of_the_grid(self):
        self.begin_with_one()
        # The files have what other parts gave before, also of other seeds.
        done = self.succeed(*self.words("--only", "opt=sgd-ph", "--only", "width=0.25", "--seeds", "2,7"))
        self.assertNotIn("SGDM", done.stdout)
        cells = json.loads((self.out / "mine.json").read_text())["cells"]
        self.assertEqual([(c["values"]["opt"], c["ours"]["n"], c["planned"]) for c in cells],
                         [("sgdm", 1, 1), ("sgd-ph", 2, 2)])
        self.assertIn("runs 4 -> 1 to 2", json.loads((self.out / "mine.json").read_text())["reductions"])
        self.assertIn("2 of the experiment's 4 cells are not here", (self.out / "mine.md").read_text())
        # Folders of others do not count.
        (self.out / "backup-seed77").mkdir()
        self.succeed(*self.words("--only", "opt=sgdm", "--only", "width=0.25"))
        cells = json.loads((self.out / "mine.json").read_text())["cells"]
        self.assertEqual([c["planned"] for c in cells], [1, 2])
        self.refuse(*self.words("--only", "opts=sgdm"), says=["opts", "did you mean 'opt'?"])
        self.refuse(*self.words("--only", "opt"), says=["--only"])

    @support.slow
    def test_cells_that_share_a_run_are_counted_once(self):
        text = EXPERIMENT.replace("values = [0.25, 0.5]", '[[axis.value]]\nname = "a"\nwidth = 0.25\n[[axis.value]]\nname = "b"\n'
                                  'width = 0.25\n[[axis.value]]\nname = "c"\nwidth = 0.5')
        (self.folder / "mine.toml").write_text(text)
        self.succeed(*self.words("--only", "opt=sgdm", "--only", "width=a"))
        self.assertIn("2 runs, 1 done, 1 to do", self.succeed(*self.words("--only", "opt=sgdm", "--dry-run")).stdout)

    def test_a_half_written_record_is_continued(self):
        only = ["--only", "opt=sgd-ph", "--only", "width=0.25"]
        self.succeed(*self.words(*only))
        (folder,) = (path.parent for path in self.logs())
        whole = support.figures(folder)
        model = (folder / "model.pt").read_bytes()
        # As if the machine had stopped in the middle of the second epoch's line.
        max(folder.glob("*.ckpt")).unlink()
        (folder / "model.pt").unlink()
        lines = (folder / "log.jsonl").read_bytes().splitlines(keepends=True)
        (folder / "log.jsonl").write_bytes(lines[0] + lines[1] + lines[2][:20])
        done = self.succeed(*self.words(*only))
        self.assertIn("1 to do", done.stderr)
        self.assertEqual(whole, support.figures(folder))
        self.assertEqual(model, (folder / "model.pt").read_bytes())

    @support.slow
    def test_a_damaged_record_is_named_and_left_alone_and_the_others_run(self):
        only = ["--only", "width=0.25"]
        log = self.begin_with_one()
        for content in (b"no record\n", b'{"type": "header"}\n{"type": "epoch", "top": 1}\n'):
            log.write_bytes(content)
            done = self.run_sgdph(*self.words(*only))
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("left as it is", done.stderr)
            self.assertIn("log.jsonl", done.stderr)
            self.assertEqual(log.read_bytes(), content)
            self.assertEqual(len(self.logs()), 2)
            self.assertIn("left out", done.stdout)

    @support.slow
    def test_a_record_without_its_settings_is_not_written_over(self):
        only = self.ONE
        log = self.begin_with_one()
        (log.parent / "settings.toml").unlink()
        self.succeed(*self.words(*only))  # a finished one is enough for the table
        lines = log.read_bytes().splitlines(keepends=True)
        log.write_bytes(b"".join(lines[:2]))
        done = self.run_sgdph(*self.words(*only))
        self.assertEqual(done.returncode, 1)
        self.assertIn("no settings.toml", done.stderr)
        self.assertEqual(log.read_bytes(), b"".join(lines[:2]))

    @support.slow
    def test_records_of_another_version_count_and_are_said(self):
        only = self.ONE
        log = self.begin_with_one()
        records = support.records(log.parent)
        records[0]["version"] = "0.0.1"
        log.write_text("".join(json.dumps(record) + "\n" for record in records))
        before = self.logs()
        self.assertIn("made by version 0.0.1", self.succeed(*self.words(*only)).stdout)
        self.assertEqual(before, self.logs())

    @support.slow
    def test_other_settings_in_a_runs_folder_are_left_alone(self):
        only = self.ONE
        log = self.begin_with_one()
        file = log.parent / "settings.toml"
        file.write_text(file.read_text().replace("batch_size = 32", "batch_size = 16"))
        done = self.run_sgdph(*self.words(*only))
        self.assertEqual(done.returncode, 1)
        self.assertIn("batch_size is 16", done.stderr)

    def test_without_data_the_plan_is_shown_all_the_same(self):
        words = ["reproduce", "mine.toml", "--output-dir", "out", "--data-path", self.folder / "nowhere"]
        text = self.succeed(*words, "--dry-run").stdout
        self.assertIn("4 runs, 0 done, 4 to do", text)
        self.assertIn("time unknown", text)
        self.assertIn("nowhere", text)

    @support.slow
    def test_it_goes_on_where_it_was_stopped(self):
        text = EXPERIMENT.replace("epochs = 2", "epochs = 6\ncheckpoint_every = 1")
        (self.folder / "mine.toml").write_text(text)
        words = self.words("--only", "width=0.5")
        self.assertIn("the same command continues", self.stop_at_a_checkpoint(words, self.out))
        self.succeed(*words)
        calm = [*words]
        calm[calm.index("out")] = "calm"
        self.succeed(*calm)
        folders = [path.parent for path in self.logs()]
        self.assertEqual(len(folders), 2)
        for folder in folders:
            self.assert_same_run(folder, self.folder / "calm" / folder.name)

    @support.slow
    def test_a_run_that_another_process_works_on_is_left_to_it_and_taken_when_it_is_free(self):
        log = self.begin_with_one()
        lines = log.read_bytes().splitlines(keepends=True)
        log.write_bytes(b"".join(lines[:-1]))  # not finished
        with open(log.parent / ".lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            child = subprocess.Popen(self.command(*self.words("--only", "width=0.25")), stdout=subprocess.DEVNULL,
                                     stderr=subprocess.PIPE, text=True, cwd=self.folder)
            said = ""
            while "another process is working on it" not in said:
                line = child.stderr.readline()
                self.assertNotEqual(line, "", said)
                said += line
        child.communicate(timeout=120)
        self.assertEqual(child.returncode, 0, said)
        self.assertEqual([support.records(log.parent)[-1]["type"] for log in self.logs()], 2 * ["end"])

    @support.slow
    def test_event_files_come_with_every_run_on_request(self):
        self.succeed(*self.words("--only", "width=0.25", "--tensorboard"))
        self.assertEqual(len(list(self.out.glob("*/events.out.tfevents.*"))), 2)


class Cost(support.CommandTest):
    @support.slow
    def test_it_is_measured_once_and_set_beside_the_papers(self):
        (self.folder / "cost.toml").write_text(
            'title = "T"\nkind = "cost"\nranked = "opt"\n[[axis]]\nname = "quantity"\nvalues = ["time", "memory"]\n'
            '[[axis]]\nname = "opt"\nvalues = ["sgdm", "sgd-ph"]\n[full.run]\ndataset = "fashion-mnist"\n'
            "[desk]\nseconds = 1\n[desk.run]\nmodel = \"resnet8\"\nbatch_size = 4\n[published]\nfigures = '''\n"
            "quantity,opt,value,std,table,section,note\ntime,sgdm,1,,text,4,by definition\ntime,sgd-ph,2.22,,text,4,\n"
            "memory,sgdm,1,,text,4,by definition\nmemory,sgd-ph,1.23,,text,4,\n'''\n")
        words = ["reproduce", "cost.toml", "--threads", "1", "--output-dir", "out", "--format", "json"]
        self.assertIn("memory of each optimizer", self.succeed(*words, "--dry-run").stdout)
        result = json.loads(self.succeed(*words).stdout)
        cells = {(c["values"]["quantity"], c["values"]["opt"]): c for c in result["cells"]}
        self.assertEqual(cells["time", "sgdm"]["ours"]["mean"], 1)
        self.assertGreater(cells["memory", "sgd-ph"]["ours"]["mean"], 1)
        self.assertAlmostEqual(cells["time", "sgd-ph"]["difference"], cells["time", "sgd-ph"]["ours"]["mean"] - 2.22)
        self.assertEqual(result["groups"][1]["best"], "SGDM")
        (report,) = (self.folder / "out").glob("cost-*/cost.json")
        before = report.stat().st_mtime_ns
        self.assertEqual(json.loads(self.succeed(*words).stdout), result)
        self.assertEqual(report.stat().st_mtime_ns, before)
        self.succeed("report", "out", "--format", "markdown")
        text = (self.folder / "out" / "report.md").read_text()
        self.assertIn("2.22x", text)
        self.assertNotIn("Left out", text)
        report.write_text(report.read_text()[:100])
        self.refuse(*words, says=["cost.json", "move it away"])
        self.refuse(*words, "--seeds", "2", says=["--seeds"])


class Builtin(support.CommandTest):
    def test_they_are_listed_and_known_by_table_and_figure(self):
        lines = self.succeed("list", "experiments").stdout.splitlines()
        self.assertEqual([line.split()[0] for line in lines], NAMES)
        text = self.succeed("reproduce", "table1", "--dry-run").stdout
        self.assertIn("56 cells x 1 seed", text)
        self.assertIn("sgdph data fetch cifar10", text)
        self.assertIn("56 cells x 4 seeds", self.succeed("reproduce", "figure3", "--scale", "full", "--dry-run").stdout)


if __name__ == "__main__":
    support.main()
