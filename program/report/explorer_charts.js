/* Draws latency sweeps as charts, with numbers under the pointer, or under a point chosen with the arrow keys.
 * SPDX-License-Identifier: MIT */

function showTip(event, text) {
    const tip = byId('tip');
    tip.textContent = text;
    tip.hidden = false;
    const box = tip.getBoundingClientRect(), at = event.getBoundingClientRect ? event.getBoundingClientRect() : {left: event.clientX, top: event.clientY};
    tip.style.left = `${Math.max(4, Math.min(at.left + 14, window.innerWidth - box.width - 8))}px`;
    tip.style.top = `${at.top + box.height + 24 > window.innerHeight ? at.top - box.height - 12 : at.top + 16}px`;
}
const hideTip = () => { byId('tip').hidden = true; };

const CHART = {width: 560, height: 300, left: 58, right: 16, top: 54, bottom: 42};

/* Returns four labels or more, from below the least value to above the greatest: round numbers that are denser where
 * the values are close. */
function logarithmicTicks(low, high) {
    if (high / low < 1.05) [low, high] = [low / 1.2, high * 1.2];
    if (high / low < 3) {
        const step = niceTicks(low, high, 8).reduce((before, tick, k, all) => k ? tick - all[k - 1] : before, 0);
        return Array.from({length: Math.ceil(high / step - 1e-9) - Math.floor(low / step + 1e-9) + 1}, (_, k) => Number(((Math.floor(low / step + 1e-9) + k) * step).toPrecision(6)));
    }
    const digits = high / low < 10 ? [1, 1.5, 2, 3, 5, 7] : high / low < 1e4 ? [1, 2, 5] : [1], steps = [];
    for (let power = 10 ** Math.floor(Math.log10(low)); power <= high * 10; power *= 10) steps.push(...digits.map((k) => Number((k * power).toPrecision(2))));
    return steps.slice(steps.findLastIndex((s) => s <= low), steps.findIndex((s) => s >= high) + 1);
}

/* Returns an axis: place(value) in [from, to], and its ticks. `marked`: ticks at the values themselves, where they
 * are few. */
function makeAxis(values, from, to, logarithmic, marked) {
    let low = Math.min(...values), high = Math.max(...values), ticks;
    if (logarithmic) {
        const own = [...new Set(values)].sort((a, b) => a - b);
        ticks = marked && own.length > 1 && own.length <= 9 ? own : logarithmicTicks(low, high);
        [low, high] = [Math.min(low, ticks[0]), Math.max(high, ticks[ticks.length - 1])];
        return {place: (v) => from + Math.log(v / low) / Math.log(high / low) * (to - from), ticks};
    }
    low = Math.min(0, low);
    if (high === low) high = low + 1;
    ticks = niceTicks(low, high, 6);
    if (!marked && ticks[ticks.length - 1] < high) ticks.push(Number((2 * ticks[ticks.length - 1] - ticks[ticks.length - 2]).toPrecision(12))); // adds a label at the top
    high = Math.max(high, ticks[ticks.length - 1]);
    return {place: (v) => from + (v - low) / (high - low) * (to - from), ticks};
}

/* Draws a chart. series: [{name, colour, points: [{x, y, low, high, text}], fit: {intercept, slope} or none}] */
function lineChart({title, xLabel, yLabel, logarithmic, series}) {
    const {width, height, left, right, top, bottom} = CHART, all = series.flatMap((s) => s.points);
    const x = makeAxis(all.map((p) => p.x), left + 8, width - right - 8, logarithmic, true);
    const y = makeAxis(all.flatMap((p) => [p.low, p.high]), height - bottom, top, logarithmic, false);
    const chart = make('svg:svg', {viewBox: `0 0 ${width} ${height}`, class: 'chart', tabindex: 0, role: 'application', 'aria-label': `${title}; arrows move from point to point`});
    const write = (text, attributes) => chart.append(make('svg:text', attributes, text));
    write(title, {x: 0, y: 14, class: 'title'});
    for (const tick of x.ticks) {
        chart.append(make('svg:line', {class: 'grid', x1: x.place(tick), x2: x.place(tick), y1: top, y2: height - bottom}));
        write(formatTick(tick), {x: x.place(tick), y: height - bottom + 15, 'text-anchor': 'middle'});
    }
    for (const tick of y.ticks) {
        chart.append(make('svg:line', {class: 'grid', x1: left, x2: width - right, y1: y.place(tick), y2: y.place(tick)}));
        write(formatTick(tick), {x: left - 6, y: y.place(tick) + 4, 'text-anchor': 'end'});
    }
    chart.append(make('svg:line', {class: 'axis', x1: left, x2: width - right, y1: height - bottom, y2: height - bottom}));
    write(xLabel, {x: (left + width - right) / 2, y: height - 8, 'text-anchor': 'middle'});
    write(yLabel, {x: 12, y: (top + height - bottom) / 2, 'text-anchor': 'middle', transform: `rotate(-90 12 ${(top + height - bottom) / 2})`});
    let legend = left;
    for (const s of series) {
        drawSeries(chart, s, x, y);
        chart.append(make('svg:circle', {cx: legend + 4, cy: 34, r: 4, style: `fill: ${s.colour}`}));
        write(s.name, {x: legend + 12, y: 38});
        legend += 30 + 6.6 * s.name.length;
    }
    bindChart(chart);
    return chart;
}

function drawSeries(chart, series, x, y) {
    const {points, fit} = series, path = points.map((p, k) => `${k ? 'L' : 'M'}${x.place(p.x)} ${y.place(p.y)}`).join('');
    if (fit) {
        const zero = fit.slope > 0 ? -fit.intercept / fit.slope : -Infinity; // the fit is cut where it would go below zero time
        const ends = [Math.max(points[0].x, zero), points[points.length - 1].x];
        chart.append(make('svg:path', {d: ends.map((v, k) => `${k ? 'L' : 'M'}${x.place(v)} ${y.place(fit.intercept + fit.slope * v)}`).join(''), style: `fill: none; stroke: ${series.colour}`}));
    } else chart.append(make('svg:path', {d: path, style: `fill: none; stroke: ${series.colour}; stroke-width: 1.5`}));
    for (const p of points) {
        chart.append(make('svg:line', {x1: x.place(p.x), x2: x.place(p.x), y1: y.place(p.low), y2: y.place(p.high), style: `stroke: ${series.colour}; stroke-width: 1.5`}));
        chart.append(make('svg:circle', {class: 'point', cx: x.place(p.x), cy: y.place(p.y), r: 4.5, style: `fill: ${series.colour}`, 'data-text': p.text}));
    }
}

function bindChart(chart) {
    const points = [...chart.querySelectorAll('.point')];
    let chosen = -1;
    const choose = (k) => {
        points[chosen]?.classList.remove('chosen');
        chosen = k;
        if (k < 0) return hideTip();
        points[k].classList.add('chosen');
        showTip(points[k], points[k].dataset.text);
    };
    /* finds the nearest point within reach, since points are only four pixels wide */
    chart.addEventListener('pointermove', (event) => {
        const distances = points.map((p) => {
            const box = p.getBoundingClientRect();
            return Math.hypot(event.clientX - box.left - box.width / 2, event.clientY - box.top - box.height / 2);
        });
        const nearest = distances.indexOf(Math.min(...distances));
        choose(distances[nearest] < 24 ? nearest : -1);
    });
    chart.addEventListener('pointerleave', () => choose(-1));
    chart.addEventListener('blur', () => choose(-1));
    chart.addEventListener('keydown', (event) => {
        const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
        if (!step) return;
        choose(clamp(chosen + step, points.length));
        event.preventDefault();
    });
}

/* ---------------------------------------------------------------------------------------------------------- latency */

const milliseconds = (seconds) => `${formatNumber(1e3 * seconds, 4)} ms`;

function sweepPoint(result, x) {
    const low = result.min_s, high = result.p95_s ?? result.median_s;
    return {x, y: 1e3 * result.median_s, low: 1e3 * low, high: 1e3 * high, text: [
        `${result.isa}, ${result.threads} thread${result.threads === 1 ? '' : 's'}, ${result.layers} layers, ${result.n} tokens`,
        `median ${milliseconds(result.median_s)}`, `from ${milliseconds(low)} to ${milliseconds(high)} (95th percentile)`, `${result.repetitions} samples`,
        `${formatNumber(result.gflops, 3)} GFLOP/s${result.peak_fraction ? `, ${formatNumber(100 * result.peak_fraction, 3)} % of the peak` : ''}`].join('\n')};
}

function sweepSeries(results, xOf) {
    const groups = new Map(), several = new Set(results.map((r) => r.threads)).size > 1;
    for (const r of results) {
        const name = several ? `${r.isa}, ${r.threads} threads` : r.isa;
        if (!groups.has(name)) groups.set(name, []);
        groups.get(name).push(sweepPoint(r, xOf(r)));
    }
    return [...groups].map(([name, points], k) => ({name, colour: `color-mix(in srgb, ${page.series[k % page.series.length]}, white var(--lift))`, points: points.sort((a, b) => a.x - b.x)}));
}

function fitLine(points) {
    const n = points.length, mx = points.reduce((s, p) => s + p.x, 0) / n, my = points.reduce((s, p) => s + p.y, 0) / n;
    const slope = points.reduce((s, p) => s + (p.x - mx) * (p.y - my), 0) / points.reduce((s, p) => s + (p.x - mx) ** 2, 0);
    return {slope, intercept: my - slope * mx};
}

function buildLatency() {
    const lengths = readJson('lengths'), layers = readJson('layers'), section = byId('latency');
    if (!lengths) return notAskedFor(section, 'Not measured, as the sweeps take ten seconds or more. This command adds them:', 'latency');
    const charts = make('div', {class: 'pairs'}), about = lengths.environment;
    if (givenOut) absent(section, 'Of the model with all its terms: an ablation changes no latency.');
    charts.append(lineChart({title: 'Latency against length', xLabel: 'tokens', yLabel: 'milliseconds', logarithmic: true, series: sweepSeries(lengths.results, (r) => r.n)}));
    if (layers && new Set(layers.results.map((r) => r.layers)).size > 1) {
        const series = sweepSeries(layers.results, (r) => r.layers);
        for (const s of series) {
            s.fit = fitLine(s.points);
            s.name += `: ${formatNumber(s.fit.slope, 3)} ms a layer ${s.fit.intercept < 0 ? '−' : '+'} ${formatNumber(Math.abs(s.fit.intercept), 3)} ms`;
        }
        charts.append(lineChart({title: `Latency against layers, ${layers.results[0].n} tokens`, xLabel: 'layers', yLabel: 'milliseconds', series}));
    }
    section.append(make('p', {class: 'quiet'}, `${about.cpu}, ${about.compiler}. Points are medians; strokes reach from the fastest sample to the 95th percentile.`),
        charts, ...(about.notes ?? []).map((note) => make('p', {class: 'quiet small'}, `Not quiet: ${note}.`)));
    const rows = [...lengths.results, ...(layers?.results ?? [])].map((r) => [r.isa, r.threads, r.layers, r.n, milliseconds(r.median_s), milliseconds(r.min_s),
        formatNumber(r.gflops, 3), r.peak_fraction ? formatNumber(100 * r.peak_fraction, 3) : '–', formatNumber(r.tokens_per_s), formatNumber(r.peak_rss_bytes / 1e6, 3)]);
    section.append(folded('All points', table(['isa', 'threads', 'layers', 'tokens', 'median', 'fastest', 'GFLOP/s', '% of peak', 'tokens/s', 'peak memory, MB'], rows)));
}
