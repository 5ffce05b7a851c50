// Tooltips. The page tells all of it without them: titles of shapes, legends, tables.
(() => {
  const tip = document.body.appendChild(document.createElement("div"));
  tip.className = "tip";
  const points = new Map();
  const read = (path) => {
    if (!points.has(path)) {
      const numbers = path.getAttribute("d").match(/-?[\d.]+/g).map(Number);
      const pairs = numbers.length / 2;
      points.set(path, { numbers, upper: path.classList.contains("area") ? pairs / 2 : pairs, pairs });
    }
    return points.get(path);
  };
  const value = (path, x, plot, height) => {
    const { numbers, upper, pairs } = read(path);
    let best = 0;
    for (let i = 1; i < upper; i += 1) if (Math.abs(numbers[2 * i] - x) < Math.abs(numbers[2 * best] - x)) best = i;
    const below = upper < pairs ? numbers[2 * (pairs - 1 - best) + 1] : height;
    const shown = ((below - numbers[2 * best + 1]) / height) * plot.dataset.top * (plot.dataset.unit === "%" ? 100 : 1);
    return shown >= 99.5 ? Math.round(shown).toLocaleString("en") : shown.toFixed(1);
  };
  const series = (plot, share) => {
    const box = plot.querySelector("svg");
    const paths = [...plot.querySelectorAll("[data-name]")];
    if (!paths.length || /B$/.test(plot.dataset.unit)) return "";
    const seconds = Math.round(share * plot.dataset.seconds);
    const clock = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
    const height = box.viewBox.baseVal.height;
    return [clock, ...paths.map((p) => `${p.dataset.name}: ${value(p, share * 1000, plot, height)} ${plot.dataset.unit}`)].join("\n");
  };
  document.addEventListener("pointermove", (event) => {
    const plot = event.target.closest && event.target.closest("svg.plot");
    const area = plot && plot.getBoundingClientRect();
    const share = area ? (event.clientX - area.left) / area.width : -1;
    const shape = plot && (event.target.closest("svg.part") || event.target);
    const title = plot && shape !== plot && shape.querySelector(":scope > title");
    const text = plot && share >= 0 && share <= 1 ? (title ? title.textContent : series(plot, share)) : "";
    tip.textContent = text;
    tip.hidden = !text;
    tip.style.left = `${Math.max(4, Math.min(event.pageX + 14, scrollX + innerWidth - tip.offsetWidth - 16))}px`;
    tip.style.top = `${event.pageY + 16}px`;
  });
})();
