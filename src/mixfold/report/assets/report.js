(function () {
  "use strict";
  var root = document.documentElement;
  root.classList.add("js");

  // ---------------------------------------------- light and dark, printing
  var theme = document.getElementById("theme");
  var wantsDark = window.matchMedia("(prefers-color-scheme: dark)");
  function isDark() {
    var chosen = root.getAttribute("data-theme");
    return chosen ? chosen === "dark" : wantsDark.matches;
  }
  function nameTheme() { theme.textContent = isDark() ? "Light" : "Dark"; }
  theme.addEventListener("click", function () {
    root.setAttribute("data-theme", isDark() ? "light" : "dark");
    nameTheme();
  });
  wantsDark.addEventListener("change", nameTheme);
  nameTheme();
  var opened = [];
  window.addEventListener("beforeprint", function () {
    opened = Array.from(document.querySelectorAll("details:not([open])"));
    opened.forEach(function (one) { one.open = true; });
  });
  window.addEventListener("afterprint", function () {
    opened.forEach(function (one) { one.open = false; });
  });

  // ---------------------------------------------- the map
  var holder = document.getElementById("map-data");
  if (!holder) { return; }
  var data = JSON.parse(holder.textContent);
  var box = document.getElementById("map-box");
  var svg = box.querySelector("svg.map");
  var dots = Array.from(svg.querySelectorAll(".points circle"));
  var frame = svg.querySelector(".frame"), words = svg.querySelector(".names");
  var tip = box.querySelector(".tip"), legend = document.getElementById("map-legend");
  var left = data.frame[0], right = data.frame[1], bottom = data.frame[2], top = data.frame[3];
  var RAMP = ["#4b4fc4", "#2f8fb3", "#3fae6d", "#c2b325", "#f0902b"];
  var MOST_NAMES = 20;
  var state = { x: 0, y: 0, colour: 0, view: null, off: {}, text: "", on: -1 };
  var shown = dots.map(function () { return true; });

  function el(id) { return document.getElementById(id); }
  function pick(id, key, then) {
    el(id).addEventListener("change", function () { state[key] = +this.value; then(); });
    state[key] = +el(id).value;
  }
  function label(i) { return data.names ? data.names[i] : "row " + data.rows[i]; }
  function said(v) {
    if (v === null) { return "missing"; }
    return String(v).replace("-", "\u2212");
  }

  // where things are
  function span(values) {
    var known = values.filter(function (v) { return v !== null; });
    if (!known.length) { return [0, 1]; }
    known.sort(function (a, b) { return a - b; });
    function part(p) {
      var at = p * (known.length - 1), i = Math.min(Math.floor(at), known.length - 2);
      return known.length < 2 ? known[0] : known[i] + (at - i) * (known[i + 1] - known[i]);
    }
    var low = part(0.005), high = part(0.995), wide = 1.5 * (high - low) || Infinity;
    known = known.filter(function (v) { return v >= low - wide && v <= high + wide; });
    low = known[0];
    high = known[known.length - 1];
    if (high <= low) { low -= 0.5; high += 0.5; }
    var room = 0.04 * (high - low);
    return [low - room, high + room];
  }
  function reset() {
    state.view = { x: span(data.axes[state.x].values), y: span(data.axes[state.y].values) };
  }
  function atX(v) { return left + (v - state.view.x[0]) / (state.view.x[1] - state.view.x[0]) * (right - left); }
  function atY(v) { return bottom + (v - state.view.y[0]) / (state.view.y[1] - state.view.y[0]) * (top - bottom); }
  function place(event) {
    var m = svg.getScreenCTM().inverse();
    var p = new DOMPoint(event.clientX, event.clientY).matrixTransform(m);
    return [p.x, p.y];
  }

  // axes
  function ticks(low, high, most) {
    var power = Math.pow(10, Math.floor(Math.log10((high - low) / most))), found = [], step, first, last;
    [1, 2, 5, 10, 20].some(function (s) {
      step = s * power;
      first = Math.ceil(low / step - 1e-9);
      last = Math.floor(high / step + 1e-9);
      return last - first < most;
    });
    for (var i = first; i <= last; i++) { found.push(i * step); }
    var places = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    return found.map(function (v) { return [v, v.toFixed(Math.min(places, 12)).replace("-", "\u2212")]; });
  }
  function make(name, attributes, text) {
    var node = document.createElementNS("http://www.w3.org/2000/svg", name);
    Object.keys(attributes).forEach(function (key) { node.setAttribute(key, attributes[key]); });
    if (text !== undefined) { node.textContent = text; }
    return node;
  }
  function drawFrame() {
    frame.replaceChildren();
    ticks(state.view.x[0], state.view.x[1], 9).forEach(function (t) {
      frame.append(make("text", { x: atX(t[0]), y: bottom + 8, "class": "tick middle below" }, t[1]));
    });
    ticks(state.view.y[0], state.view.y[1], 7).forEach(function (t) {
      frame.append(make("line", { x1: left, x2: right, y1: atY(t[0]), y2: atY(t[0]), "class": "grid" }));
      frame.append(make("text", { x: left - 6, y: atY(t[0]) + 4, "class": "tick end" }, t[1]));
    });
    frame.append(make("line", { x1: left, x2: right, y1: bottom, y2: bottom, "class": "axis" }));
    frame.append(make("text", { x: (left + right) / 2, y: bottom + 46, "class": "label middle" }, data.axes[state.x].name));
    frame.append(make("text", { x: left - 4, y: top - 10, "class": "label" }, data.axes[state.y].name));
  }

  // colours
  function groupClass(g) { return g < 0 ? "none" : "g" + (g % 8) + (Math.floor(g / 8) % 2 ? " hollow" : ""); }
  function mixed(part) {
    var at = Math.min(part, 0.9999) * (RAMP.length - 1), i = Math.floor(at), f = at - i;
    var parts = [1, 3, 5].map(function (k) {
      var a = parseInt(RAMP[i].substr(k, 2), 16), b = parseInt(RAMP[i + 1].substr(k, 2), 16);
      return Math.round(a + f * (b - a));
    });
    return "rgb(" + parts.join(",") + ")";
  }
  function ends(values) {
    var known = values.filter(function (v) { return v !== null; }).sort(function (a, b) { return a - b; });
    if (!known.length) { return [0, 1]; }
    var last = known.length - 1;
    var low = known[Math.floor(0.02 * last)], high = known[Math.ceil(0.98 * last)];
    return high > low ? [low, high] : [low - 0.5, low + 0.5];
  }
  function colour() {
    var chosen = data.colours[state.colour];
    if (!chosen) { return; }
    var range = chosen.names ? null : ends(chosen.values);
    dots.forEach(function (dot, i) {
      var v = chosen.values[i];
      dot.setAttribute("class", chosen.names ? groupClass(v) : "none");
      dot.style.fill = chosen.names || v === null ? "" :
        mixed(Math.min(1, Math.max(0, (v - range[0]) / (range[1] - range[0]))));
    });
    drawLegend(chosen, range);
  }
  function swatch(kind) {
    var mark = document.createElement("span");
    mark.className = "swatch " + kind;
    mark.setAttribute("aria-hidden", "true");
    return mark;
  }
  function drawLegend(chosen, range) {
    legend.replaceChildren();
    if (!chosen.names) {
      var item = document.createElement("li");
      item.append(chosen.name + ": " + said(+range[0].toPrecision(3)) + " ");
      RAMP.forEach(function (shade) { var s = swatch("flat"); s.style.background = shade; item.append(s); });
      item.append(" " + said(+range[1].toPrecision(3)));
      legend.append(item);
      var none = chosen.values.reduce(function (sum, v) { return sum + (v === null); }, 0);
      if (none) {
        var lacks = document.createElement("li");
        lacks.append(swatch("none"), "missing (" + none + ")");
        legend.append(lacks);
      }
      return;
    }
    var hidden = chosen.names.length - 40;
    chosen.names.slice(0, 40).forEach(function (name, k) {
      var item = document.createElement("li"), button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-pressed", String(!state.off[k]));
      button.title = "Show or hide " + name;
      var n = chosen.values.reduce(function (sum, v) { return sum + (v === k); }, 0);
      button.append(swatch(groupClass(k)), name + " (" + n + ")");
      button.addEventListener("click", function () {
        state.off[k] = !state.off[k];
        button.setAttribute("aria-pressed", String(!state.off[k]));
        filter();
      });
      item.append(button);
      legend.append(item);
    });
    if (hidden > 0) { legend.append("and " + hidden + " others"); }
  }

  // which rows
  function column(name) {
    var all = data.colours.filter(function (c) { return !c.names; }).concat(data.axes);
    name = name.trim().toLowerCase();
    return all.find(function (c) { return c.name.toLowerCase() === name; }) ||
      all.find(function (c) { return name && c.name.toLowerCase().startsWith(name); });
  }
  function test() {
    var text = state.text.trim().toLowerCase();
    if (!text) { return function () { return true; }; }
    var parts = /^(.+?)\s*(<=|>=|<|>|=)\s*([-\u2212]?[\d.]+(?:e-?\d+)?)$/.exec(text);
    var found = parts && column(parts[1]);
    if (found) {
      var limit = parseFloat(parts[3].replace("\u2212", "-")), sign = parts[2];
      return function (i) {
        var v = found.values[i];
        if (v === null) { return false; }
        return sign === "<" ? v < limit : sign === ">" ? v > limit : sign === "<=" ? v <= limit :
          sign === ">=" ? v >= limit : v === limit;
      };
    }
    if (!data.names && /^(row )?\d+$/.test(text)) {
      var row = +text.replace("row ", "");
      return function (i) { return data.rows[i] === row; };
    }
    return function (i) {
      return label(i).toLowerCase().includes(text) || data.colours.some(function (c) {
        return c.names && c.values[i] >= 0 && c.names[c.values[i]].toLowerCase().includes(text);
      });
    };
  }
  function filter() {
    var keep = test(), chosen = data.colours[state.colour], n = 0;
    dots.forEach(function (dot, i) {
      shown[i] = keep(i) && !(chosen && chosen.names && state.off[chosen.values[i]]);
      dot.classList.toggle("off", !shown[i]);
      n += shown[i];
    });
    el("map-status").textContent = n + " of " + dots.length + " points shown";
    drawNames();
  }

  // points and names
  function drawNames() {
    words.replaceChildren();
    var chosen = data.colours[state.colour];
    if (!chosen || !chosen.names || chosen.names.length < 2 || chosen.names.length > MOST_NAMES) { return; }
    var placed = [];
    chosen.names.forEach(function (name, k) {
      var xs = [], ys = [];
      dots.forEach(function (dot, i) {
        if (shown[i] && chosen.values[i] === k) { xs.push(+dot.getAttribute("cx")); ys.push(+dot.getAttribute("cy")); }
      });
      if (!xs.length) { return; }
      function middle(v) { return v.sort(function (a, b) { return a - b; })[v.length >> 1]; }
      var x = middle(xs), y = middle(ys);
      var size = chosen.brief[k].length;
      var free = placed.every(function (p) { // names that would lie on each other are in the legend
        return Math.abs(p.y - y) >= 14 || Math.abs(p.x - x) >= 9 * (p.size + size) / 2;
      });
      if (free && x > left && x < right && y > top && y < bottom) {
        placed.push({ x: x, y: y, size: size });
        words.append(make("text", { x: x, y: y, "class": "name middle" }, chosen.brief[k]));
      }
    });
  }
  function draw() {
    var xs = data.axes[state.x].values, ys = data.axes[state.y].values;
    dots.forEach(function (dot, i) {
      dot.setAttribute("cx", atX(xs[i]).toFixed(2));
      dot.setAttribute("cy", atY(ys[i]).toFixed(2));
    });
    drawFrame();
    drawNames();
  }
  var waiting = false;
  function soon() {
    if (waiting) { return; }
    waiting = true;
    requestAnimationFrame(function () { waiting = false; draw(); });
  }

  // reading one row
  function picture(i) {
    var all = data.pictures;
    if (!all || i >= all.count) { return; }
    var node = document.createElement("div"), big = Math.max(1, Math.floor(96 / Math.max(all.width, all.height)));
    node.className = "thumb";
    node.setAttribute("role", "img");
    node.setAttribute("aria-label", "picture of " + label(i));
    node.style.width = big * all.width + "px";
    node.style.height = big * all.height + "px";
    node.style.backgroundImage = "url(" + all.uri + ")";
    node.style.backgroundSize = big * all.width * all.across + "px auto";
    node.style.backgroundPosition = -big * all.width * (i % all.across) + "px " + -big * all.height * Math.floor(i / all.across) + "px";
    tip.append(node);
  }
  function point(i) {
    if (state.on >= 0) { dots[state.on].classList.remove("on"); }
    state.on = i;
    tip.hidden = i < 0;
    if (i < 0) { return; }
    dots[i].classList.add("on");
    tip.replaceChildren();
    var head = document.createElement("b");
    head.textContent = label(i);
    tip.append(head);
    picture(i);
    data.colours.slice(0, data.pictures ? 5 : 9).forEach(function (c) {
      var line = document.createElement("div"), v = c.values[i];
      line.textContent = c.names ? (c.name + ": " + (v < 0 ? "none" : c.brief[v])) : (c.name + ": " + said(v));
      tip.append(line);
    });
    var stage = svg.parentNode.getBoundingClientRect(), at = dots[i].getBoundingClientRect();
    var x = at.left - stage.left + 14, y = at.top - stage.top + 14;
    if (x + tip.offsetWidth > stage.width) { x = Math.max(0, x - tip.offsetWidth - 24); }
    if (y + tip.offsetHeight > stage.height) { y = Math.max(0, y - tip.offsetHeight - 24); }
    tip.style.left = x + "px";
    tip.style.top = y + "px";
  }
  function nearest(at) {
    var best = -1, least = 18 * 18;
    dots.forEach(function (dot, i) {
      if (!shown[i]) { return; }
      var dx = dot.getAttribute("cx") - at[0], dy = dot.getAttribute("cy") - at[1], d = dx * dx + dy * dy;
      if (d < least) { least = d; best = i; }
    });
    return best;
  }
  function step(by) {
    var n = dots.length, i = state.on;
    for (var k = 0; k < n; k++) {
      i = (i + by + n) % n;
      if (shown[i]) { point(i); return; }
    }
  }

  // moving
  function zoom(by, at) {
    var v = state.view, px = at ? (at[0] - left) / (right - left) : 0.5, py = at ? (at[1] - bottom) / (top - bottom) : 0.5;
    function scaled(s, p) {
      var c = s[0] + p * (s[1] - s[0]);
      return [c - (c - s[0]) * by, c + (s[1] - c) * by];
    }
    state.view = { x: scaled(v.x, px), y: scaled(v.y, py) };
    point(-1);
    soon();
  }
  function move(dx, dy) {
    var v = state.view, w = v.x[1] - v.x[0], h = v.y[1] - v.y[0];
    state.view = { x: [v.x[0] + dx * w, v.x[1] + dx * w], y: [v.y[0] + dy * h, v.y[1] + dy * h] };
    point(-1);
    soon();
  }
  var held = null;
  svg.addEventListener("pointerdown", function (event) {
    held = place(event);
    if (event.pointerType === "touch") { point(nearest(held)); }
    svg.setPointerCapture(event.pointerId);
  });
  svg.addEventListener("pointerup", function () { held = null; });
  svg.addEventListener("pointercancel", function () { held = null; });
  svg.addEventListener("pointermove", function (event) {
    var at = place(event);
    if (!held) { point(nearest(at)); return; }
    if (event.pointerType === "touch" && Math.hypot(at[0] - held[0], at[1] - held[1]) < 4) { return; }
    move((held[0] - at[0]) / (right - left), (held[1] - at[1]) / (top - bottom));
    held = at;
  });
  // a finger leaves with every tap: what it pointed at stays
  svg.addEventListener("pointerleave", function (event) { if (event.pointerType !== "touch") { point(-1); } });
  svg.addEventListener("wheel", function (event) {
    if (!event.ctrlKey && !event.metaKey && document.activeElement !== svg) { return; }
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.2 : 1 / 1.2, place(event));
  }, { passive: false });
  var keys = {
    ArrowLeft: function () { move(-0.1, 0); }, ArrowRight: function () { move(0.1, 0); },
    ArrowUp: function () { move(0, 0.1); }, ArrowDown: function () { move(0, -0.1); },
    "+": function () { zoom(1 / 1.4); }, "=": function () { zoom(1 / 1.4); }, "-": function () { zoom(1.4); },
    "0": function () { reset(); soon(); }, n: function () { step(1); }, p: function () { step(-1); },
    Escape: function () { point(-1); }
  };
  svg.setAttribute("tabindex", "0");
  svg.addEventListener("keydown", function (event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) { return; }
    event.preventDefault();
    keys[event.key]();
  });
  el("map-in").addEventListener("click", function () { zoom(1 / 1.4); });
  el("map-out").addEventListener("click", function () { zoom(1.4); });
  el("map-reset").addEventListener("click", function () { reset(); soon(); });
  pick("map-x", "x", function () { reset(); soon(); });
  pick("map-y", "y", function () { reset(); soon(); });
  pick("map-colour", "colour", function () { state.off = {}; colour(); filter(); });
  el("map-filter").addEventListener("input", function () { state.text = this.value; filter(); });
  svg.querySelector("title").remove();
  reset();
  colour();
  draw();
  filter();
})();
