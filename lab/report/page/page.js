// Draws the curves of the report. All text goes in as text, never as markup.
(function () {
  "use strict";

  const kMostInTooltip = 12;
  const kPrinted = { ink: "#000000", line: "#bbbbbb", paper: "#ffffff" };
  const kUnits = [["hours", 3600, 7200], ["minutes", 60, 180], ["seconds", 1, 0]];  // name, seconds, from this length on

  const data = JSON.parse(document.getElementById("data").textContent);
  let printing = false;

  function theme() {
    if (printing) return kPrinted;
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(name).trim();
    return { ink: read("--ink"), line: read("--line"), paper: read("--paper") };
  }

  /// Deviation to each side of the mean, behind the lines.
  const band = {
    id: "band",
    beforeDatasetsDraw(chart) {
      const { ctx, chartArea: area, scales: { x, y } } = chart;
      const place = (value) => y.getPixelForValue(y.type === "logarithmic" ? Math.max(value, y.min) : value);
      ctx.save();
      ctx.beginPath();
      ctx.rect(area.left, area.top, area.width, area.height);
      ctx.clip();
      chart.data.datasets.forEach((set, index) => {
        if (!chart.isDatasetVisible(index) || !set.spread.some((s) => s > 0)) return;
        const points = set.data.map((p, i) => [p.x, p.y, set.spread[i]]).filter((p) => Number.isFinite(p[1]));
        ctx.beginPath();
        points.forEach((p) => ctx.lineTo(x.getPixelForValue(p[0]), place(p[1] + p[2])));
        points.reverse().forEach((p) => ctx.lineTo(x.getPixelForValue(p[0]), place(p[1] - p[2])));
        ctx.closePath();
        ctx.globalAlpha = 0.18;
        ctx.fillStyle = set.borderColor;
        ctx.fill();
      });
      ctx.restore();
    },
  };

  /// The points at the nearest epoch or time; of many, those nearest to the pointer.
  Chart.Interaction.modes.close = function (chart, event, options, final) {
    const found = Chart.Interaction.modes.nearest(chart, event, { axis: "x", intersect: false }, final);
    const far = (item) => Math.abs(item.element.y - event.y);
    return found.sort((a, b) => far(a) - far(b)).slice(0, kMostInTooltip);
  };

  function short(value, unit) {
    return unit === "%" ? value.toFixed(2) : String(Number(value.toPrecision(4)));
  }

  /// Round values inside the axis, about six; on a logarithmic axis those that begin with 1, 2 or 5.
  function placeTicks(axis) {
    const values = [];
    if (axis.type === "logarithmic") {
      for (let power = Math.floor(Math.log10(axis.min)); power <= Math.log10(axis.max); ++power) {
        [1, 2, 5].forEach((digit) => values.push(digit * 10 ** power));
      }
    } else {
      const rough = (axis.max - axis.min) / 6 || 1;
      const power = 10 ** Math.floor(Math.log10(rough));
      const step = Math.max(power * [1, 2, 5, 10].find((factor) => factor * power >= rough), axis.options.least);
      for (let i = Math.ceil(axis.min / step); i * step <= axis.max; ++i) values.push(i * step);
    }
    axis.ticks = values.filter((value) => value >= axis.min && value <= axis.max).map((value) => ({ value }));
  }

  class TaskView {
    constructor(section) {
      this.section = section;
      const { series, metrics } = data.tasks[Number(section.dataset.task)];
      this.series = series;
      this.metrics = metrics;
      this.x = "epoch";
      this.y = "linear";
      this.shown = this.series.map(() => true);
      this.charts = [];
      const last = this.series.map((s) => s.seconds[s.seconds.length - 1] || 0);
      this.unit = kUnits.find((unit) => Math.max(0, ...last) >= unit[2]);
      if (!this.series.some((s) => s.epoch.length > 0)) return;
      section.querySelector(".charts").hidden = false;
      this.addControls();
      this.addLegend();
      this.addPanels();
    }

    addControls() {
      for (const axis of ["x", "y"]) {
        const buttons = this.section.querySelectorAll(`button[data-${axis}]`);
        buttons.forEach((button) => button.addEventListener("click", () => {
          this[axis] = button.dataset[axis];
          buttons.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
          this.refresh();
        }));
      }
      this.section.querySelectorAll("button[data-all]").forEach((button) => button.addEventListener("click", () => {
        this.shown.fill(button.dataset.all === "show");
        this.refresh();
      }));
    }

    addLegend() {
      const legend = this.section.querySelector(".legend");
      this.toggles = this.series.map((series, index) => {
        const button = document.createElement("button");
        button.type = "button";
        const swatch = document.createElement("span");
        swatch.className = "swatch";
        swatch.style.borderTopColor = series.color;
        if (series.dash.length > 0) swatch.style.borderTopStyle = "dashed";
        button.append(swatch, series.label);
        button.setAttribute("aria-pressed", "true");
        button.addEventListener("click", () => {
          this.shown[index] = !this.shown[index];
          this.refresh();
        });
        legend.append(button);
        return button;
      });
    }

    /// Charts are made when they come near the window: there may be a hundred.
    addPanels() {
      const near = new IntersectionObserver((entries) => entries.forEach((entry) => {
        if (entry.isIntersecting) entry.target.draw();
      }), { rootMargin: "400px" });
      this.panels = this.metrics.map((metric, index) => {
        const panel = document.createElement("div");
        panel.className = "panel";
        const canvas = document.createElement("canvas");
        canvas.setAttribute("role", "img");
        canvas.setAttribute("aria-label", metric.title);
        panel.append(canvas);
        panel.draw = () => {
          near.unobserve(panel);
          if (!this.charts[index]) this.charts[index] = new Chart(canvas, this.config(index));
        };
        this.section.querySelector(".panels").append(panel);
        near.observe(panel);
        return panel;
      });
    }

    datasets(metric) {
      const scale = this.x === "seconds" ? this.unit[1] : 1;
      return this.series.map((series, index) => ({
        label: series.label,
        data: series.epoch.map((_, i) => ({ x: series[this.x][i] / scale, y: series.mean[metric][i] ?? NaN })),
        spread: series.std[metric],
        borderColor: series.color,
        backgroundColor: series.color,
        borderDash: series.dash,
        borderWidth: 2,
        spanGaps: true,  // tests within an epoch have no figures of training
        pointRadius: series.epoch.length === 1 ? 3 : 0,
        pointHoverRadius: 4,
        hidden: !this.shown[index],
      }));
    }

    config(metric) {
      const { title } = this.metrics[metric];
      return {
        type: "line",
        data: { datasets: this.datasets(metric) },
        plugins: [band],
        options: {
          animation: false,
          parsing: false,
          normalized: true,
          responsive: true,
          maintainAspectRatio: false,
          interaction: { mode: "close" },
          scales: this.scales(metric),
          plugins: {
            legend: { display: false },
            title: { display: true, text: title, align: "start", color: theme().ink, font: { size: 14 } },
            tooltip: {
              itemSort: (a, b) => b.parsed.y - a.parsed.y,
              callbacks: {
                title: (items) => this.placeText(items[0]),
                label: (item) => this.figureText(item, metric),
                labelColor: (item) => ({ borderColor: item.dataset.borderColor, backgroundColor: item.dataset.borderColor }),
              },
            },
          },
        },
      };
    }

    scales(metric) {
      const { ink, line } = theme();
      const { unit } = this.metrics[metric];
      const ticks = { color: ink, maxRotation: 0 };
      const own = { bounds: "data", afterBuildTicks: placeTicks, ticks: { ...ticks, callback: (value) => short(value) } };
      const name = this.x === "epoch" ? "epoch" : `training time, ${this.unit[0]}`;
      return {
        x: { ...own, least: this.x === "epoch" ? 1 : 0, type: "linear", grid: { color: line }, title: { display: true, text: name, color: ink } },
        y: { ...(this.y === "linear" ? { ticks } : own), type: this.y, grid: { color: line }, title: { display: unit !== "", text: unit, color: ink } },
      };
    }

    placeText(item) {
      if (!item) return "";
      const series = this.series[item.datasetIndex];
      const epoch = `epoch ${series.epoch[item.dataIndex]}`;
      return this.x === "epoch" ? epoch : `${short(item.parsed.x)} ${this.unit[0]}, ${epoch}`;
    }

    figureText(item, metric) {
      const series = this.series[item.datasetIndex];
      const runs = series.runs[item.dataIndex];
      const spread = series.std[metric][item.dataIndex];
      const { unit } = this.metrics[metric];
      const deviation = runs > 1 ? ` ± ${short(spread, unit)}` : "";
      return `${series.label}: ${short(item.parsed.y, unit)}${deviation}${unit ? " " + unit : ""} (${runs} run${runs === 1 ? "" : "s"})`;
    }

    refresh() {
      this.toggles.forEach((button, i) => button.setAttribute("aria-pressed", String(this.shown[i])));
      this.charts.forEach((chart, metric) => {
        chart.data.datasets = this.datasets(metric);
        chart.options.scales = this.scales(metric);
        chart.options.plugins.title.color = theme().ink;
        chart.update("none");
      });
    }

    drawAll() {
      if (this.panels) this.panels.forEach((panel) => panel.draw());
    }
  }

  const views = [...document.querySelectorAll(".task")].map((section) => new TaskView(section));
  const recolour = () => views.filter((view) => view.toggles).forEach((view) => view.refresh());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);

  // On paper everything is open, drawn and light.
  let closed = [];
  addEventListener("beforeprint", () => {
    printing = true;
    closed = [...document.querySelectorAll("details:not([open])")];
    closed.forEach((details) => { details.open = true; });
    views.forEach((view) => view.drawAll());
    recolour();
  });
  addEventListener("afterprint", () => {
    printing = false;
    closed.forEach((details) => { details.open = false; });
    recolour();
  });
})();
