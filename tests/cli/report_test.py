"""What `sgdph report` writes, and what it refuses."""

import html.parser
import json
import os
import re
import shutil
import subprocess
import time
import unittest
import xml.etree.ElementTree
from pathlib import Path

import sample_runs
import support


class Page(html.parser.HTMLParser):
    """The page as a reader without scripts has it: text, tables, and every tag."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.tables, self.text, self.inside = [], [], "", None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag in ("script", "style"):
            self.inside = tag
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self.inside = "cell"

    def handle_endtag(self, tag):
        if tag in ("script", "style", "td", "th"):
            self.inside = None

    def handle_data(self, data):
        if self.inside == "cell":
            self.tables[-1][-1][-1] += data
        if self.inside not in ("script", "style"):
            self.text += data


class Report(support.CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.runs = cls.root / "runs"
        sample_runs.write_comparison(cls.runs / "main", seeds=3, epochs=20)
        sample_runs.write_references(cls.runs / "main")
        sample_runs.write_cost(cls.runs / "cost")
        sample_runs.write_inspection(cls.runs / "inspect")

    def page(self, *words):
        output = self.folder / "page.html"
        done = self.succeed("report", *words, "--output", output)
        self.assertEqual(done.stdout.strip(), str(output))
        return output.read_text()

    def test_the_tables_stand_on_the_page_without_scripts(self):
        page = Page(self.page(self.runs))
        self.assertIn("cifar100, resnet18, 20 epochs", page.text)
        results = page.tables[0]
        self.assertEqual(results[0][:4], ["optimizer", "test accuracy %", "paper %", "difference"])
        self.assertEqual([row[0] for row in results[1:]],
                         ["SGDM", "Adam", "AdamW", "AdaBelief", "AdaHessian", "Apollo", "SGD-PH"])
        ours = [json.loads(line) for seed in (1, 2, 3)
                for line in (self.runs / "main" / f"sgd-ph-seed{seed}" / "log.jsonl").read_text().splitlines()]
        finals = [record["test_top1"] for record in ours if record["type"] == "end"]
        mean = sum(finals) / 3
        self.assertTrue(results[7][1].startswith(f"{mean:.2f} +- "), results[7])
        self.assertEqual(results[7][2], "78.51 +- 0.20")
        self.assertEqual(results[7][3], f"{mean - 78.51:+.2f}")
        self.assertIn("pairs swapped (Kendall's tau", page.text)
        for part in ("1.34x", "ended by signal 9", "layer3.bn1.weight", "1.13.1", "2026-01-31T12:00:00Z", "row sum: same sign",
                     "The blocks are not diagonal.", "not finite"):
            self.assertIn(part, page.text)

    def test_nothing_comes_from_outside(self):
        text = self.page(self.runs)
        self.assertNotIn("</script", text.split('id="data">')[1].split("</script>")[0])
        for tag, attributes in Page(text).tags:
            for key in ("src", "href", "action", "data", "srcset"):
                value = attributes.get(key) or "#"
                self.assertTrue(value.startswith(("#", "data:")), (tag, value))
        for part in ("default-src 'none'", "base-uri 'none'", "form-action 'none'"):
            self.assertIn(part, text)

    def test_settings_say_nothing_of_the_machine(self):
        text = self.page(self.runs)
        self.assertNotIn("/home/somebody", text)
        settings = [row[0] for table in Page(text).tables if table[0][0] == "setting" for row in table[1:]]
        for key in ("lr", "batch_size", "epochs"):
            self.assertIn(key, settings)
        for key in ("data_path", "workers", "threads", "seed"):
            self.assertNotIn(key, settings)
        done = self.succeed("report", self.runs, "--format", "markdown", "--output", self.folder / "page.md")
        self.assertNotIn("/home/somebody", Path(done.stdout.strip()).read_text())

    def test_it_shows_what_each_probe_holds(self):
        tables = Page(self.page(self.runs / "inspect")).tables
        table = [t for t in tables if "error, ones" in t[0]][0]
        self.assertEqual(table[0][:5], ["block", "error, ones", "error, hadamard", "error, rademacher", "cosine, ones"])
        self.assertEqual(table[1][:4], ["layer1.bn1.weight", "8.125", "0.4375", "2.125"])
        self.assertEqual(table[5], ["layer5.bn1.weight"] + ["-"] * 9)
        done = self.succeed("report", self.runs / "inspect", "--format", "markdown", "--output", self.folder / "page.md")
        text = Path(done.stdout.strip()).read_text()
        self.assertIn("### What each probe holds", text)
        self.assertRegex(text, r"layer1\.bn1\.weight *\| *8\.125 *\| *0\.4375 *\| *2\.125 *\|")

    @support.slow
    def test_it_shows_a_real_inspection(self):
        output = self.folder / "look"
        self.succeed("inspect", "--data-path", self.data, "--width", "0.5", "-b", "16", "--threads", "1", "--blocks", "2",
                     "--output-dir", output)
        real = json.loads((output / "inspect.json").read_text())
        sample = json.loads((self.runs / "inspect" / "inspect.json").read_text())
        for part in (lambda r: r, lambda r: r["verdict"], lambda r: r["rows"][0], lambda r: r["rows"][0]["row_sum"],
                     lambda r: r["rows"][0]["probes"][0], lambda r: r["rows"][0]["probes"][0]["estimate"]):
            self.assertEqual(sorted(part(real)), sorted(part(sample)))
        page = Page(self.page(output))
        self.assertIn(real["verdict"]["text"], page.text)
        self.assertEqual([tag for tag, _ in page.tags].count("img"), 1)
        blocks = [t for t in page.tables if t[0][0] == "block" and "off diagonal" in t[0]][0]
        probes = [t for t in page.tables if "error, ones" in t[0]][0]
        done = self.succeed("report", output, "--format", "markdown", "--output", self.folder / "page.md")
        markdown = Path(done.stdout.strip()).read_text()
        for i, row in enumerate(real["rows"], 1):
            self.assertEqual(blocks[i][0], row["block"])
            self.assertEqual(blocks[i][blocks[0].index("off diagonal")], f"{row['off_diagonal']:.4g}")
            for probe in row["probes"]:
                for figure in ("error", "cosine"):
                    shown = probes[i][probes[0].index(f"{figure}, {probe['probe']}")]
                    self.assertEqual(shown, f"{probe['estimate'][figure]:.4g}")
                    self.assertIn(shown, markdown)

    def test_the_curves_are_mean_and_deviation_over_seeds(self):
        text = self.page(self.runs / "main")
        data = json.loads(text.split('id="data">')[1].split("</script>")[0])
        series = {s["label"]: s for s in data["tasks"][0]["series"]}
        logs = [support.records(self.runs / "main" / f"adam-seed{seed}") for seed in (1, 2, 3)]
        at = [log[5] for log in logs]
        values = [record["test_top1"] for record in at]
        mean = sum(values) / 3
        deviation = (sum((v - mean) ** 2 for v in values) / 2) ** 0.5
        self.assertEqual(series["Adam"]["epoch"], list(range(1, 21)))
        self.assertAlmostEqual(series["Adam"]["mean"][0][4], mean, delta=1e-4 * mean)
        self.assertAlmostEqual(series["Adam"]["std"][0][4], deviation, delta=1e-4 * deviation)
        seconds = sum(sum(r["cost"]["train_seconds"] for r in log[1:6]) for log in logs) / 3
        self.assertAlmostEqual(series["Adam"]["seconds"][4], seconds, delta=1e-4 * seconds)
        self.assertEqual(series["Adam"]["runs"], [3] * 20)

    def test_runs_are_put_in_tasks_and_series_by_their_settings(self):
        runs = self.folder / "runs"
        sample_runs.write_run(runs / "a", "sgd-ph", 1, lr=0.1, probe="ones")
        sample_runs.write_run(runs / "b", "sgd-ph", 1, lr=0.01, probe="ones")
        sample_runs.write_run(runs / "c", "sgd-ph", 2, lr=0.01, probe="ones", workers=7)
        sample_runs.write_run(runs / "d", "sgdm", 1, lr=0.5)
        sample_runs.write_run(runs / "e", "sgdm", 1, norm="group", width=0.5)
        sample_runs.write_run(runs / "f", "sgdm", 1, future_setting="x")
        data = json.loads(self.page(runs).split('id="data">')[1].split("</script>")[0])
        labels = [[s["label"] for s in task["series"]] for task in data["tasks"]]
        self.assertEqual(labels[0], ["SGDM, future_setting x, lr 0.1", "SGDM, no future_setting, lr 0.5",
                                     "SGD-PH, lr 0.01", "SGD-PH, lr 0.1"])
        self.assertEqual(labels[1], ["SGDM"])
        titles = re.findall("<h2>(.*?)</h2>", self.page(runs))
        self.assertEqual(titles, ["cifar100, resnet18, 20 epochs", "cifar100, resnet18, 20 epochs, norm group, width 0.5"])

    def test_text_from_runs_does_no_harm(self):
        sample_runs.write_hostile(self.folder / "runs")
        text = self.page(self.folder / "runs", "--title", "{{data}}" + sample_runs.HOSTILE)
        page = Page(text)
        self.assertEqual([tag for tag, _ in page.tags].count("script"), 3)
        self.assertEqual([a for tag, a in page.tags if "onerror" in a], [])
        self.assertEqual([a["src"][:10] for tag, a in page.tags if tag == "img"], ["data:image"])
        self.assertIn("{{data}}" + sample_runs.HOSTILE, page.text)
        done = self.succeed("report", self.folder / "runs", "--format", "markdown", "--figures", self.folder / "svg")
        self.assertNotIn("<script", re.sub(r"\\<", "", Path(done.stdout.strip()).read_text()))
        for picture in (self.folder / "svg").iterdir():
            xml.etree.ElementTree.parse(picture)

    def test_damaged_and_repeated_runs_are_left_out_with_a_line(self):
        runs = self.folder / "runs"
        sample_runs.write_run(runs / "good", "sgdm", 1)
        sample_runs.write_run(runs / "again", "sgdm", 1)
        for name, text in (("broken", "no json\n"), ("other", '{"kind": "x"}\n'), ("old", '{"type": "header"}\n')):
            (runs / name).mkdir()
            (runs / name / "log.jsonl").write_text(text)
        for name in ("cost.json", "inspect.json", "reference.json"):
            (runs / name).write_text("[]")
        (runs / "empty").mkdir()
        (runs / "empty" / "log.jsonl").write_text("")
        (runs / "own.json").write_text("no json")
        half = sample_runs.write_run(runs / "half", "adam", 1) / "log.jsonl"
        half.write_text(half.read_text()[:-30])
        done = self.succeed("report", runs, "--output", self.folder / "page.html")
        self.assertEqual(done.stderr.count("Left out: "), 8, done.stderr)
        page = Page((self.folder / "page.html").read_text())
        for name in ("broken", "other", "old", "cost.json", "inspect.json", "reference.json", "same settings and seed",
                     "not one whole line"):
            self.assertIn(name, done.stderr)
            self.assertIn(name, page.text)
        rows = {row[0]: row for row in page.tables[0]}
        self.assertEqual(rows["SGDM"][-1], "1/1")
        self.assertEqual(rows["Adam"][-1], "0/1")

    def test_markdown_has_the_same_tables_and_links_the_figures(self):
        output = self.folder / "docs" / "results.md"
        self.succeed("report", self.runs, "--format", "markdown", "--output", output, "--figures", self.folder / "docs" / "img")
        text = output.read_text()
        self.assertIn("| SGD-PH", text)
        self.assertIn("| 78.51 +- 0.20 |", text)
        self.assertEqual([line for line in text.splitlines() if line.startswith("# ")], text.splitlines()[:1])
        self.assertIn("## Cost of a step: ", text)
        links = re.findall(r"!\[.*?\]\(<(.*?)>\)", text)
        self.assertEqual(len(links), 5)
        self.assertEqual((output.parent / links[4]).read_bytes(), next((self.runs / "inspect").glob("*.svg")).read_bytes())
        for link in links[:4]:
            root = xml.etree.ElementTree.parse(output.parent / link).getroot()
            self.assertEqual(len(root.findall("{http://www.w3.org/2000/svg}polyline")), 7)
            self.assertEqual(len(root.findall("{http://www.w3.org/2000/svg}polygon")), 7)

    def test_a_link_stays_one_and_a_pipe_is_written_to(self):
        (self.folder / "real").write_text("before")
        (self.folder / "link").symlink_to("real")
        self.succeed("report", self.runs, "--output", self.folder / "link")
        self.assertTrue((self.folder / "link").is_symlink())
        self.assertIn("<!doctype html>", (self.folder / "real").read_text())
        os.mkfifo(self.folder / "pipe")
        reader = subprocess.Popen(["cat", self.folder / "pipe"], stdout=subprocess.PIPE, text=True)
        self.succeed("report", self.runs, "--format", "markdown", "--output", self.folder / "pipe")
        text, _ = reader.communicate(timeout=60)
        self.assertIn("| SGD-PH", text)
        self.assertTrue((self.folder / "pipe").is_fifo())

    def test_a_single_run_and_a_run_without_epochs_have_a_page(self):
        sample_runs.write_run(self.folder / "one", "sgdm", 1, 1)
        sample_runs.write_run(self.folder / "none", "sgdm", 2, 0, status="diverged")
        text = self.succeed("report", self.folder / "one").stdout.strip()
        self.assertEqual(Path(text), self.folder / "one" / "report.html")
        self.succeed("report", self.folder / "none", self.folder / "one", "--figures", self.folder / "svg")
        self.assertIn("1 diverged", Page((self.folder / "none" / "report.html").read_text()).text)

    @support.slow
    def test_a_hundred_long_runs_make_a_small_page(self):
        for i in range(100):
            sample_runs.write_run(self.folder / "runs" / f"run{i}", "sgd-ph", 1, 200, lr=0.001 * (i + 1))
        began = time.monotonic()
        size = len(self.page(self.folder / "runs"))
        print(f"100 series x 200 epochs: {size / 1e6:.2f} MB in {time.monotonic() - began:.2f} s")
        self.assertLess(size, 5_000_000)


class Packed(support.CommandTest):
    """Records in one file: `report --pack`."""

    def setUp(self):
        super().setUp()
        self.study = self.folder / "study"
        sample_runs.write_comparison(self.study / "main", seeds=2, epochs=6)
        sample_runs.write_references(self.study / "main", seeds=2)
        sample_runs.write_experiment(self.study / "experiment")
        sample_runs.write_cost(self.study / "cost")
        sample_runs.write_inspection(self.study / "inspect")
        sample_runs.write_run(self.study / "under way", "sgdm", 1, 3, status="unfinished", model="vgg11")
        sample_runs.write_run(self.study / "just begun", "sgdm", 2, 0, status="unfinished", model="vgg11")
        self.packed = self.folder / "kept" / "study.jsonl"
        self.packed.parent.mkdir()

    def pack(self, *words):
        self.assertEqual(self.succeed("report", "--pack", self.packed, *words).stdout, f"{self.packed}\n")
        return self.packed

    def report(self, *words):
        """What the page, the Markdown and the figures hold, but for the time of writing."""
        out = self.folder / "out"
        stderr = self.succeed("report", *words, "--title", "T", "--output", out / "page.html").stderr
        self.succeed("report", *words, "--title", "T", "--format", "markdown", "--output", out / "page.md", "--figures", out / "svg")
        return {path.name: re.sub(rb"on \d{4}-\d\d-\d\dT[\d:]+Z\.", b"", path.read_bytes())
                for path in out.rglob("*") if path.is_file()}, stderr

    def test_a_packed_study_reports_as_its_folders_byte_for_byte(self):
        wanted, _ = self.report(self.study)
        self.assertGreater(len(wanted), 10)
        self.pack(self.study)
        shutil.rmtree(self.study)
        for path in (self.folder / "out").rglob("*.*"):
            path.unlink()
        made, stderr = self.report(self.packed)
        self.assertEqual(stderr, "")
        self.assertEqual(sorted(made), sorted(wanted))
        for name, content in wanted.items():
            self.assertEqual(made[name], content, name)

    def test_packed_once_more_it_is_the_same_file(self):
        first = self.pack(self.study).read_bytes()
        self.assertEqual(first.count(b"\n"), 1 + 14 + 6 + 2 + 5)  # its beginning, runs, and files beside them
        again = self.folder / "again.jsonl"
        self.succeed("report", "--pack", again, self.packed)
        self.assertEqual(again.read_bytes(), first)

    @support.slow
    def test_it_stands_beside_folders(self):
        self.pack(self.study / "main")
        made, stderr = self.report(self.packed, self.study / "cost")
        self.assertEqual(stderr, "")
        self.assertIn(b"14 runs of 1 task, 1 measurement of cost", made["page.md"])
        self.assertEqual(self.report(self.study / "main", self.study / "cost")[0], made)
        _, stderr = self.report(self.packed, self.study / "main")
        self.assertEqual(stderr.count("the same settings and seed"), 14)

    def test_without_an_output_the_report_lies_beside_it(self):
        self.pack(self.study)
        self.assertEqual(self.succeed("report", self.packed).stdout, f"{self.packed.parent / 'report.html'}\n")

    @support.slow
    def test_damaged_files_are_one_line_with_file_and_line(self):
        lines = self.pack(self.study).read_text().splitlines(keepends=True)
        half = self.folder / "half.jsonl"
        for text, says in (("".join(lines)[:-20], f"half.jsonl:{len(lines)}: cut off"),
                           ("".join(lines[:-1]), f"half.jsonl:{len(lines) - 1}: the last line of {len(lines)}"),
                           (lines[0].replace('"sgdph_records":1', '"sgdph_records":9') + "".join(lines[1:]), "half.jsonl:1: packed records of version 9"),
                           (lines[0] + "no json\n" + "".join(lines[2:]), "half.jsonl:2: damaged"),
                           ("", "half.jsonl:1: cut off")):
            half.write_text(text)
            self.refuse("report", half, "--output", self.folder / "page.html", says=[says])
            self.refuse("report", half, self.study, "--output", self.folder / "page.html", says=[says])
        self.refuse("report", self.study / "main" / "adam-seed1" / "log.jsonl", says=["log.jsonl:1: not records packed"])
        self.refuse("report", self.folder / "none.jsonl", says=["there is no file", "none.jsonl"])
        self.refuse("report", "--pack", half, self.study, "--title", "T", says=["--pack", "--title"])

    def test_two_of_one_name_are_refused(self):
        for part in ("a", "b"):
            sample_runs.write_run(self.folder / part / "run", "sgdm", 1, lr=0.1 if part == "a" else 0.2)
        self.refuse("report", "--pack", self.packed, self.folder / "a" / "run", self.folder / "b" / "run", says=["two records are called run"])
        self.pack(self.folder / "a", self.folder / "b")


class Results(support.CommandTest):
    """The study in docs/results.md, from the records in experiments/."""

    ROOT = Path(__file__).resolve().parents[2]
    NETWORKS = ("resnet18", "vgg11")

    def cells(self, experiment, *axes):
        """The cells of an experiment by row and by their values on these axes, and the rows in their order."""
        done = self.succeed("reproduce", experiment, "--records", self.ROOT / "experiments" / "records.jsonl", "--format", "json")
        cells = json.loads(done.stdout)["cells"]
        return ({(cell["row"], *(cell["values"][axis] for axis in axes)): cell for cell in cells},
                list(dict.fromkeys(cell["row"] for cell in cells)))

    @staticmethod
    def accuracy(cell):
        if cell is None:
            return "-"
        text = f"{cell['ours']['mean']:.2f}" + (f" +- {cell['ours']['std']:.2f}" if cell["ours"]["n"] > 1 else "")
        return f"**{text}**" if cell["rank"] == 1 else text

    def with_ranks(self, cells, row, paper=False):
        cells = [cells.get((row, network)) for network in self.NETWORKS]
        figures = [row]
        for cell in cells:
            figures += [self.accuracy(cell), str(cell["rank"]) if cell else "-"]
            figures += [f"{cell['paper']['value']:.2f}", str(cell["paper_rank"])] if paper else []
        return figures

    def test_every_figure_of_its_tables_is_what_the_records_give(self):
        tables = []
        for line in (self.ROOT / "docs" / "results.md").read_text().splitlines():
            if line.startswith("|---"):
                tables.append([])
            elif line.startswith("|") and tables and tables[-1] is not None:
                tables[-1].append([cell.strip() for cell in line.strip("|").split("|")])
        tables = [[row for row in table if row[0] not in ("optimizer", "variant of SGD-PH")] for table in tables]
        cells, rows = self.cells("cifar", "model")
        wanted = [[self.with_ranks(cells, row, paper=True) for row in rows]]
        cells, rows = self.cells("best-rates", "model")
        wanted.append([self.with_ranks(cells, row) for row in rows])
        cells, rows = self.cells("rates", "model", "rate")
        wanted.append([[row] + [self.accuracy(cells[row, network, rate]) for network in self.NETWORKS for rate in ("x0.3", "x1", "x3")]
                       for row in rows])
        cells, rows = self.cells("curvature", "model")
        wanted.append([self.with_ranks(cells, row) for row in rows])
        self.assertEqual([len(table) for table in wanted], [7, 7, 7, 13])
        self.assertEqual(tables, wanted)

    @support.slow
    def test_the_long_form_has_all_runs_and_is_made_outside_the_tree(self):
        out = self.folder / "long"
        done = subprocess.run([self.ROOT / "scripts" / "results.sh", os.environ["SGDPH"], out], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, f"{out / 'results.html'}\n{out / 'results.md'}\n")
        text = (out / "results.md").read_text()
        self.assertIn("129 runs of 12 tasks, 1 inspection.", text)
        self.assertIn("**The curvature contributes nothing that can be seen.**", text)
        self.assertNotIn("Missing", text)
        self.assertEqual(len(list((out / "figures").iterdir())), 49)
        names = re.findall(r"^\| (cifar100-\S+-seed\d) ", text, re.M)
        self.assertEqual(len(set(names)), 129)


if __name__ == "__main__":
    support.main()
