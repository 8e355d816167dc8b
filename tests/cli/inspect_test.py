"""sgdph inspect, driven as a user would."""

import csv
import json
import signal
import subprocess
import unittest
import xml.etree.ElementTree

import support


class Inspect(support.CommandTest):
    def words(self, *extra):
        return ["inspect", "--data-path", self.data, "--width", "0.5", "-b", "16", "--threads", "1", *extra]

    def report(self, *extra):
        return json.loads(self.succeed(*self.words("--format", "json", *extra)).stdout)

    def test_it_makes_tables_json_and_a_picture_and_says_what_they_show(self):
        output = self.folder / "out"
        done = self.succeed(*self.words("--output-dir", output))
        for part in ("bn1.weight", "does not hold", "Frobenius", "rademacher"):
            self.assertIn(part, done.stdout)
        report = json.loads((output / "inspect.json").read_text())
        names = [row["block"] for row in report["rows"]]
        self.assertEqual(names[:2], ["bn1.weight", "bn1.bias"])
        self.assertEqual(report["planned"], len(names))
        self.assertEqual(report["products"], sum(row["channels"] + 2 for row in report["rows"]))
        self.assertIn(f"{len(names)} blocks, {report['products']} Hessian-vector products, about ", done.stderr)
        for row in report["rows"]:
            self.assertEqual(len(row["diagonal"]), row["channels"])
            self.assertLess(row["asymmetry"], 1e-3)
            self.assertLess(row["product_error"], 1e-2)
            self.assertGreater(row["off_diagonal"], 0)
            self.assertGreater(row["over_shards"], 0)
            self.assertLess(row["smallest_eigenvalue"], row["largest_eigenvalue"])
            self.assertEqual([probe["probe"] for probe in row["probes"]], ["ones", "rademacher", "hadamard"])
            for value, row_sum in zip(row["probes"][0]["values"], row["row_sums"]):
                self.assertAlmostEqual(value, row_sum, delta=1e-4 * max(map(abs, row["row_sums"])))
        self.assertEqual(report["verdict"]["blocks"], len(names))
        self.assertIn("does not hold", report["verdict"]["text"])
        with open(output / "inspect.csv") as file:
            self.assertEqual([row["block"] for row in csv.DictReader(file)], names)
        self.assertIn("| bn1.weight", (output / "inspect.md").read_text())
        root = xml.etree.ElementTree.parse(output / "inspect.svg").getroot()
        self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
        self.assertIn("Hessian block of ", root[0].text)

    @support.slow
    def test_the_same_question_has_the_same_answer_in_both_precisions(self):
        one = self.report("--blocks", "bn1.weight")["rows"][0]
        self.assertEqual(one, self.report("--blocks", "bn1.weight")["rows"][0])
        fine = self.report("--blocks", "bn1.weight", "--float64")["rows"][0]
        self.assertLess(fine["asymmetry"], 1e-9)
        for a, b in zip(one["diagonal"], fine["diagonal"]):
            self.assertAlmostEqual(a, b, delta=1e-3 * max(map(abs, fine["diagonal"])))
        stock = self.report("--blocks", "bn1.weight", "--float64", "--kernels", "stock")["rows"][0]
        for a, b in zip(stock["diagonal"], fine["diagonal"]):
            self.assertAlmostEqual(a, b, delta=1e-9 * max(map(abs, fine["diagonal"])))

    @support.slow
    def test_blocks_and_channels_can_be_limited(self):
        rows = self.report("--blocks", "3")["rows"]
        self.assertEqual(len(rows), 3)
        whole = self.report("--blocks", "bn1.bias,bn1.weight")["rows"]
        part = self.report("--blocks", "bn1.bias,bn1.weight", "--max-channels", "2")["rows"]
        self.assertEqual([row["block"] for row in part], ["bn1.weight", "bn1.bias"])
        for a, b in zip(part, whole):
            self.assertEqual(a["measured"], 2)
            self.assertEqual(a["diagonal"], [b["diagonal"][i] for i in a["rows"]])
            self.assertEqual(a["row_sums"], [b["row_sums"][i] for i in a["rows"]])
            self.assertEqual(a["probes"][1]["divisors"], [])

    @support.slow
    def test_shards_are_parts_of_the_batch(self):
        four = self.report("--blocks", "bn1.weight")
        self.assertEqual(four["shards"], 4)
        none = self.report("--blocks", "bn1.weight", "--shards", "0")
        self.assertEqual(none["shards"], 0)
        self.assertIsNone(none["rows"][0]["over_shards"])
        self.assertEqual(none["rows"][0]["diagonal"], four["rows"][0]["diagonal"])
        # Smaller parts differ more; a part has two images at least.
        most = self.report("--blocks", "bn1.weight", "--shards", "100")
        self.assertEqual(most["shards"], 8)
        self.assertGreater(most["rows"][0]["over_shards"], four["rows"][0]["over_shards"])
        self.assertNotIn("over shards", self.succeed(*self.words("--blocks", "1", "--shards", "0")).stdout)

    def test_it_names_shift_invariant_blocks(self):
        done = self.succeed(*self.words("--every-1d", "--blocks", "fc.bias,bn1.weight"))
        self.assertIn("shift-invariant", done.stdout)
        self.assertIn("first-order: fc.bias.", done.stdout)
        self.assertNotIn("warning", done.stderr)

    @support.slow
    def test_a_run_a_checkpoint_and_weights_give_the_same_figures(self):
        output = self.folder / "run"
        self.succeed(*self.small("sgdm", 2, output))
        limit = ["--blocks", "2", "--format", "json"]
        weights = ["--data-path", self.data, "--width", "0.5", "-b", "32", "--threads", "1"]
        found = []
        for words in ([output], [max(output.glob("*.ckpt"))], [output / "model.pt", *weights],
                      ["--init", output / "model.pt", *weights]):
            found.append(json.loads(self.succeed("inspect", *words, *limit).stdout))
            self.assertEqual(found[-1]["rows"], found[0]["rows"])
            self.assertIn("run", found[-1]["source"])
        self.assertEqual(found[0]["batch_size"], 32)
        begin = json.loads(self.succeed("inspect", *weights, *limit).stdout)
        self.assertNotEqual(begin["rows"], found[0]["rows"])
        self.assertLess(found[0]["loss"], begin["loss"])

    @support.slow
    def test_it_leaves_a_runs_folder_as_it_was(self):
        output = self.folder / "run"
        self.succeed(*self.small("sgd-ph", 1, output))
        before = {p: p.read_bytes() for p in output.iterdir()}
        self.succeed("inspect", output, "--blocks", "1", "--rule", "paper")
        self.assertEqual(before, {p: p.read_bytes() for p in output.iterdir()})

    def test_every_format_is_printed_and_nothing_is_written_unasked(self):
        words = self.words("--blocks", "1", "--format")
        self.assertTrue(self.succeed(*words, "csv").stdout.startswith("block,kind,channels,"))
        self.assertIn("|---|", self.succeed(*words, "markdown").stdout)
        self.assertEqual(list(self.folder.iterdir()), [])

    @support.slow
    def test_every_norm_can_be_looked_at(self):
        for norm in ("layer", "group", "instance", "none", "weight"):
            report = self.report("--norm", norm, "--blocks", "3")
            self.assertEqual(len(report["rows"]), 3, norm)
            for row in report["rows"]:
                self.assertEqual(row["note"], "", norm)

    @support.slow
    def test_a_signal_ends_it_with_what_was_measured(self):
        output = self.folder / "out"
        words = ["inspect", "--data-path", self.data, "--model", "resnet20", "-b", "96", "--threads", "1",
                 "--output-dir", output, "--format", "json"]
        child = subprocess.Popen(self.command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        lines = []
        while "[2/" not in "".join(lines):
            lines.append(child.stderr.readline())
            self.assertIsNone(child.poll(), lines)
        # So long a wait is announced before it begins, with the ways to shorten it.
        self.assertIn("--blocks and --max-channels limit it", lines[0])
        child.send_signal(signal.SIGINT)
        text, errors = child.communicate(timeout=120)
        self.assertEqual(child.returncode, 130, errors)
        self.assertIn("stopped", errors)
        report = json.loads(text)
        self.assertIn(len(report["rows"]), (1, 2, 3))
        self.assertGreater(report["planned"], 3)
        self.assertEqual(json.loads((output / "inspect.json").read_text()), report)
        self.assertTrue((output / "inspect.svg").exists())

    @support.slow
    def test_on_a_terminal_there_is_a_bar(self):
        code, _, shown = self.on_terminal(self.words("-b", "64", "--refreshes", "1"))
        self.assertEqual(code, 0)
        self.assertIn(b"Hessian-vector products", shown)
        self.assertRegex(shown, rb"\r\x1b\[K\[#*\.+\] +[0-9]+ %  about [^\r]* left  \[[0-9]+/")
        self.assertTrue(shown.endswith(b"\r\x1b[K"), shown[-80:])


if __name__ == "__main__":
    support.main()
