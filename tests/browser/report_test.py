"""The page of `sgdph report` in a browser: series, axes, tooltips, and that it keeps to itself.

Screenshots go to the folder SGDPH_SCREENSHOTS, if it is set."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cli"))

import chromium
import sample_runs

SGDPH = os.environ["SGDPH"]
SCREENSHOTS = os.environ.get("SGDPH_SCREENSHOTS")

def task(title):
    return f"[...document.querySelectorAll('.task')].find((t) => t.querySelector('h2').textContent === '{title}')"


TASK = task("cifar100, resnet18, 60 epochs")
CANVAS = f"{TASK}.querySelector('canvas')"
CHART = f"Chart.getChart({CANVAS})"
EXPERIMENT = task("Table <9> once more")


def button(text, section=TASK):
    return f"[...{section}.querySelectorAll('button')].find((b) => b.textContent === '{text}')"


class ReportPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="sgdph-page-")
        root = Path(cls.folder.name)
        sample_runs.write_comparison(root / "study" / "main", seeds=3, epochs=60)
        sample_runs.write_references(root / "study" / "main")
        sample_runs.write_comparison(root / "study" / "vgg", seeds=2, epochs=30, model="vgg11")
        for lr in (0.003, 0.01, 0.03):
            for seed in (1, 2):
                sample_runs.write_run(root / "study" / "scan" / f"lr{lr}-{seed}", "sgd-ph", seed, 40, lr=lr, width=0.5,
                                      top1=70 + 100 * lr)
        sample_runs.write_cost(root / "study" / "cost")
        sample_runs.write_inspection(root / "study" / "inspect")
        sample_runs.write_experiment(root / "study" / "experiment")
        sample_runs.write_hostile(root / "hostile")
        cls.page, cls.hostile = root / "page.html", root / "hostile.html"
        for runs, page in (("study", cls.page), ("hostile", cls.hostile)):
            words = [SGDPH, "report", root / runs, "--output", page, "--title", "A study of optimizers"]
            subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        cls.browser = chromium.Chromium()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.folder.cleanup()

    def tearDown(self):
        self.assertEqual(self.browser.errors, [])
        self.assertEqual(self.browser.outside, [])

    def keep(self, name, whole=True):
        if SCREENSHOTS:
            Path(SCREENSHOTS).mkdir(parents=True, exist_ok=True)
            self.browser.screenshot(Path(SCREENSHOTS) / f"{name}.png", whole)

    def draw_all(self):
        """Scrolls through the page, so that every chart is made."""
        self.browser.run("(async () => { for (let y = 0; y < document.body.scrollHeight; y += 400) {"
                         " scrollTo(0, y); await new Promise((done) => setTimeout(done, 60)); } scrollTo(0, 0); })()")
        self.browser.frame()

    def show(self, canvas):
        """Scrolls to a chart, which is made and then drawn when it comes near the window."""
        self.browser.place(canvas)
        self.browser.run(f"(async () => {{ while (!Chart.getChart({canvas})) await new Promise((done) => setTimeout(done, 20)); }})()")
        self.browser.frame()
        return self.browser.place(canvas)

    def painted(self, canvas, colour):
        """How many pixels of a canvas have nearly this colour."""
        return self.browser.run(
            f"(() => {{ const c = {canvas}, copy = new OffscreenCanvas(c.width, c.height).getContext('2d', {{willReadFrequently: true}});"
            " copy.drawImage(c, 0, 0); const d = copy.getImageData(0, 0, c.width, c.height).data;"
            f" const w = [{', '.join(str(int(colour[i:i + 2], 16)) for i in (1, 3, 5))}]; let n = 0;"
            " for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 200 && w.every((v, k) => Math.abs(v - d[i + k]) < 12)) ++n;"
            " return n; })()")

    def test_a_series_is_hidden_and_comes_back(self):
        self.browser.open(self.page)
        red = "#e03131"  # SGD-PH
        self.show(CANVAS)
        self.assertGreater(self.painted(CANVAS, red), 100)
        self.browser.click(button("SGD-PH"))
        self.assertEqual(self.browser.run(f"{button('SGD-PH')}.getAttribute('aria-pressed')"), "false")
        self.assertEqual(self.painted(CANVAS, red), 0)
        self.assertEqual(self.browser.run(f"{CHART}.getVisibleDatasetCount()"), 6)
        self.browser.click(button("SGD-PH"))
        self.assertGreater(self.painted(CANVAS, red), 100)
        self.browser.click(button("None"))
        self.assertEqual(self.browser.run(f"{CHART}.getVisibleDatasetCount()"), 0)
        self.browser.click(button("All"))
        self.assertEqual(self.browser.run(f"{CHART}.getVisibleDatasetCount()"), 7)

    def test_training_has_a_line_where_tests_within_epochs_say_nothing_of_it(self):
        run = sample_runs.write_run(Path(self.folder.name) / "often", "sgd-ph", 1, 4)
        lines = (run / "log.jsonl").read_text().splitlines()
        evals = ['{"type": "eval", "epoch": %s.5, "step": 1, "test_top1": 50, "test_loss": 1, "cost": {"train_seconds": 1}}' % i
                 for i in range(4)]
        (run / "log.jsonl").write_text("\n".join(lines[:1] + evals + lines[1:]) + "\n")
        subprocess.run([SGDPH, "report", run], check=True, stdout=subprocess.DEVNULL)
        self.browser.open(run / "report.html")
        for panel in range(4):
            canvas = f"document.querySelectorAll('canvas')[{panel}]"
            self.show(canvas)
            self.assertGreater(self.painted(canvas, "#e03131"), 100, panel)

    def test_the_axes_switch_to_time_and_to_logarithms(self):
        self.browser.open(self.page)
        self.show(CANVAS)
        self.assertEqual(self.browser.run(f"{CHART}.scales.x.max"), 60)
        self.browser.click(button("Time"))
        self.assertGreater(self.browser.run(f"{CHART}.scales.x.max"), 1.9)  # 60 epochs of two minutes: hours
        self.assertLess(self.browser.run(f"{CHART}.scales.x.max"), 3)
        self.assertIn("hours", self.browser.run(f"{CHART}.options.scales.x.title.text"))
        self.browser.click(button("Log"))
        self.assertEqual(self.browser.run(f"{CHART}.scales.y.type"), "logarithmic")
        self.show(CANVAS)
        self.keep("log-time", whole=False)
        self.browser.click(button("Epoch"))
        self.browser.click(button("Linear"))
        self.assertEqual(self.browser.run(f"[{CHART}.scales.x.max, {CHART}.scales.y.type]"), [60, "linear"])

    def test_an_accuracy_of_zero_has_its_place_on_both_axes(self):
        canvas = f"{EXPERIMENT}.querySelector('canvas')"
        chart = f"Chart.getChart({canvas})"
        self.browser.open(self.page)
        self.show(canvas)
        zeros = self.browser.run(f"{chart}.data.datasets.map((set) => set.data.filter((p) => p.y === 0).length)")
        self.assertEqual(sorted(zeros), [0, 0, 1])
        self.assertLessEqual(self.browser.run(f"{chart}.scales.y.min"), 0)
        self.browser.click(button("Log", EXPERIMENT))
        self.browser.place(canvas)
        least, most, ticks = self.browser.run(f"(({{min, max, ticks}}) => [min, max, ticks.map((t) => t.value)])({chart}.scales.y)")
        self.assertGreater(least, 0)
        self.assertLess(least, most)
        self.assertGreater(len(ticks), 2)
        # At the bottom, and the rest of its line above it.
        index = zeros.index(1)
        places = self.browser.run(f"{chart}.getDatasetMeta({index}).data.map((p) => p.y)")
        bottom = self.browser.run(f"{chart}.chartArea.bottom")
        self.assertAlmostEqual(places[0], bottom, delta=1)
        self.assertLess(max(places[1:]), bottom)
        self.assertGreater(self.painted(canvas, self.browser.run(f"{chart}.data.datasets[{index}].borderColor")), 100)
        self.keep("log-zero", whole=False)

    def test_an_experiment_and_an_inspection_are_on_the_page(self):
        self.browser.open(self.page)
        text = self.browser.run(f"{EXPERIMENT}.innerText")
        for part in ("Table 9, desk scale.", "epochs 200 -> 10", "Adam & co", "95.10"):
            self.assertIn(part, text)
        text = self.browser.run("document.getElementById('inspection-0').innerText")
        for part in ("The blocks are not diagonal.", "What each probe holds", "error, hadamard", "8.125", "not finite"):
            self.assertIn(part, text)

    def test_a_tooltip_has_the_figures_at_the_pointer(self):
        self.browser.open(self.page)
        at = self.show(CANVAS)
        point = self.browser.run(f"(() => {{ const c = {CHART}, p = c.getDatasetMeta(6).data[29]; return {{x: p.x, y: p.y}}; }})()")
        self.browser.mouse("mouseMoved", at["left"] + point["x"], at["top"] + point["y"])
        self.browser.frame()
        title, lines = self.browser.run(f"[{CHART}.tooltip.title.join(), {CHART}.tooltip.body.flatMap((b) => b.lines)]")
        self.assertEqual(title, "epoch 30")
        self.assertEqual(len(lines), 7)
        logged = self.browser.run(f"JSON.parse(document.getElementById('data').textContent).tasks[Number({TASK}.dataset.task)].series"
                                  ".filter((s) => s.label === 'SGD-PH').map((s) => [s.mean[0][29], s.std[0][29]])[0]")
        index = [i for i, line in enumerate(lines) if line.startswith("SGD-PH")]
        self.assertRegex(lines[index[0]], rf"^SGD-PH: {logged[0]:.2f} ± [\d.]+ % \(3 runs\)$")
        self.assertEqual(self.browser.run(f"{CHART}.tooltip.opacity"), 1)
        self.keep("tooltip", whole=False)

    def test_it_is_readable_on_desktop_phone_and_in_the_dark(self):
        for name, options in (("desktop", {}), ("dark", {"dark": True}),
                              ("phone", {"width": 390, "height": 844, "phone": True}),
                              ("phone-dark", {"width": 390, "height": 844, "phone": True, "dark": True})):
            self.browser.open(self.page, **options)
            self.draw_all()
            self.assertEqual(self.browser.run("document.querySelectorAll('canvas').length"), 16, name)
            drawn = self.browser.run("[...document.querySelectorAll('canvas')].filter((c) => Chart.getChart(c)).length")
            self.assertEqual(drawn, 16, name)
            # Nothing is wider than the window; wide tables scroll inside their frames.
            self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), options.get("width", 1280), name)
            light = self.browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
            self.assertEqual(light, "dark" not in options, name)
            ink = self.browser.run(f"{CHART}.options.scales.x.ticks.color")
            self.assertEqual(ink, "#e6edf3" if "dark" in options else "#1f2328", name)
            self.keep(name)

    def test_on_paper_it_is_light_open_and_drawn(self):
        self.browser.open(self.page, dark=True)
        folded = self.browser.run("document.querySelectorAll('details').length")
        self.assertEqual(folded, 8)
        look = ("({open: document.querySelectorAll('details[open]').length,"
                " drawn: [...document.querySelectorAll('canvas')].filter((c) => Chart.getChart(c)).length,"
                f" ink: [{CHART}.options.scales.x.ticks.color, {CHART}.options.plugins.title.color]}})")
        # As it looks on paper, page still open.
        self.browser.call("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        self.browser.run("dispatchEvent(new Event('beforeprint'))")
        self.browser.frame()
        self.assertEqual(self.browser.run(look), {"open": folded, "drawn": 16, "ink": ["#000000", "#000000"]})
        colours = "(({backgroundColor, color}) => [backgroundColor, color])(getComputedStyle(document.body))"
        self.assertEqual(self.browser.run(colours), ["rgb(255, 255, 255)", "rgb(0, 0, 0)"])
        self.assertGreater(self.painted(CANVAS, "#000000"), 50)
        self.assertEqual(self.painted(CANVAS, "#e6edf3"), 0)
        self.assertNotEqual(self.browser.run("getComputedStyle(document.querySelector('.runs')).display"), "none")
        self.keep("paper")
        self.browser.call("Emulation.setEmulatedMedia", media="", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        self.browser.run("dispatchEvent(new Event('afterprint'))")
        self.browser.frame()
        self.assertEqual(self.browser.run(look)["open"], 0)
        self.assertEqual(self.browser.run(look)["ink"], ["#e6edf3", "#e6edf3"])
        # Printing itself says so to the page.
        self.browser.run(f"addEventListener('beforeprint', () => {{ window.printed = {look}; }})")
        with tempfile.TemporaryDirectory() as folder:
            pdf = Path(SCREENSHOTS or folder) / "printed.pdf"
            self.browser.pdf(pdf)
            self.assertGreater(pdf.stat().st_size, 20000)
        self.assertEqual(self.browser.run("window.printed"), {"open": folded, "drawn": 16, "ink": ["#000000", "#000000"]})
        self.assertEqual(self.browser.run(look)["open"], 0)

    def test_colours_follow_the_system_while_the_page_is_open(self):
        self.browser.open(self.page)
        self.show(CANVAS)
        self.browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        self.browser.frame()
        self.assertEqual(self.browser.run(f"{CHART}.options.scales.x.ticks.color"), "#e6edf3")

    def test_without_scripts_tables_and_a_picture_are_there(self):
        self.browser.open(self.page, scripts=False)
        self.keep("no-scripts")
        self.browser.call("Emulation.setScriptExecutionDisabled", value=False)
        text = self.browser.run("document.body.innerText")
        for part in ("SGD-PH", "78.51 +- 0.20", "1.34x", "layer3.bn1.weight"):
            self.assertIn(part, text)
        self.assertEqual(self.browser.run("getComputedStyle(document.querySelector('.charts')).display"), "none")
        self.assertGreater(self.browser.run("document.querySelector('noscript img').naturalWidth"), 300)
        # On paper nothing unfolds then, so that the headings of what is folded have to stay.
        self.browser.call("Emulation.setEmulatedMedia", media="print")
        shown = "[...document.querySelectorAll('summary')].filter((s) => s.checkVisibility()).length"
        self.assertEqual(self.browser.run(shown), self.browser.run("document.querySelectorAll('details:not([open])').length"))
        self.assertIn("folded", self.browser.run("getComputedStyle(document.querySelector('summary'), '::after').content"))

    def test_text_from_runs_does_no_harm(self):
        self.browser.open(self.hostile)
        self.draw_all()
        self.assertIsNone(self.browser.run("window.harm"))
        self.assertEqual(self.browser.run("document.querySelectorAll('img[onerror], main script').length"), 0)
        self.assertIn("window.harm = 1", self.browser.run("document.querySelector('.legend').textContent"))
        self.assertIn("onerror", self.browser.run("document.querySelector('h2').textContent"))
        self.keep("hostile")
        self.browser.open(self.page)
        self.draw_all()
        self.assertIsNone(self.browser.run("window.harm"))  # the picture of a block has a script


if __name__ == "__main__":
    unittest.main(verbosity=2)
