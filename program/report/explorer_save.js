/* Saves the view as a file, SVG or PNG, and writes the command line that draws the same.
 * SPDX-License-Identifier: MIT */

/* Turns any colour of a style sheet into six digits, which every program knows. */
const plainColours = new Map();
function plainColour(css) {
    if (!plainColours.has(css)) {
        const context = make('canvas', {width: 1, height: 1}).getContext('2d');
        context.fillStyle = css;
        context.fillRect(0, 0, 1, 1);
        plainColours.set(css, `#${[...context.getImageData(0, 0, 1, 1).data].slice(0, 3).map((v) => v.toString(16).padStart(2, '0')).join('')}`);
    }
    return plainColours.get(css);
}

/* The part of a canvas' context that the drawings use, written as SVG, so that each drawing has one
 * implementation. */
class SvgContext {
    constructor(width, height) {
        this.root = make('svg:svg', {xmlns: 'http://www.w3.org/2000/svg', viewBox: `0 0 ${width} ${height}`, width, height});
        this.measuring = make('canvas').getContext('2d');
        Object.assign(this, {saved: [], transform: '', path: '', dash: [], fillStyle: '#000', strokeStyle: '#000', lineWidth: 1, globalAlpha: 1,
            textAlign: 'left', textBaseline: 'alphabetic'});
    }
    set font(font) { this.measuring.font = font; }
    get font() { return this.measuring.font; }
    measureText(text) { return this.measuring.measureText(text); }
    save() {
        const {transform, font, fillStyle, strokeStyle, lineWidth, globalAlpha, textAlign, textBaseline, dash} = this;
        this.saved.push({transform, font, fillStyle, strokeStyle, lineWidth, globalAlpha, textAlign, textBaseline, dash});
    }
    restore() { Object.assign(this, this.saved.pop()); }
    translate(x, y) { this.transform += ` translate(${x} ${y})`; }
    rotate(angle) { this.transform += ` rotate(${angle * 180 / Math.PI})`; }
    setLineDash(dash) { this.dash = dash; }
    beginPath() { this.path = ''; }
    moveTo(x, y) { this.path += `M${x} ${y}`; }
    lineTo(x, y) { this.path += `L${x} ${y}`; }
    put(name, attributes, ...children) {
        this.root.append(make(`svg:${name}`, {...attributes, transform: this.transform.trim() || null, opacity: this.globalAlpha < 1 ? this.globalAlpha : null}, ...children));
    }
    stroked() { return {fill: 'none', stroke: plainColour(this.strokeStyle), 'stroke-width': this.lineWidth, 'stroke-dasharray': this.dash.join(' ') || null}; }
    stroke() { this.put('path', {d: this.path, ...this.stroked()}); }
    strokeRect(x, y, width, height) { this.put('rect', {x, y, width, height, ...this.stroked()}); }
    fillRect(x, y, width, height) { this.put('rect', {x, y, width, height, fill: plainColour(this.fillStyle)}); }
    fillText(text, x, y) {
        const [, size, family] = /([\d.]+)px (.*)/.exec(this.font), anchor = {left: 'start', center: 'middle', right: 'end'}[this.textAlign];
        const down = {middle: .35, top: .8}[this.textBaseline] ?? 0; // few programs support the baselines of SVG
        this.put('text', {x, y: y + down * size, 'text-anchor': anchor, 'font-size': size, 'font-family': family,
            'font-weight': this.font.startsWith('bold') || this.font.startsWith('600') ? 600 : null,
            fill: plainColour(this.fillStyle)}, text);
    }
    /* Writes rectangles, because many programs blur magnified pictures; larger images stay pictures. */
    drawImage(image, x, y, width, height) {
        const {width: columns, height: rows} = image, copy = make('canvas', {width: columns, height: rows}), context = copy.getContext('2d');
        context.drawImage(image, 0, 0);
        if (columns * rows > 64 * 64) return this.put('image', {x, y, width, height, href: copy.toDataURL(), preserveAspectRatio: 'none', style: 'image-rendering: pixelated'});
        const {data} = context.getImageData(0, 0, columns, rows);
        for (let k = 0; k < columns * rows; k++) {
            if (!data[4 * k + 3]) continue;
            this.put('rect', {x: x + k % columns * width / columns, y: y + Math.floor(k / columns) * height / rows, width: width / columns, height: height / rows,
                'shape-rendering': 'crispEdges', fill: `#${[0, 1, 2].map((c) => data[4 * k + c].toString(16).padStart(2, '0')).join('')}`});
        }
    }
}

/* ------------------------------------------------------------------------------------------------------- the figure */

const FIGURE = {margin: 14, title: 26, legend: 34, line: 15};

/* Returns {width, height, draw(context)} of the view on the screen, without marks that follow the pointer. */
function describeFigure() {
    const {margin, title} = FIGURE, map = byId('heads').style, mapped = state.map === 'picture' ? COMPONENTS[state.component].name : byId('heads-show').selectedOptions[0].textContent;
    const parts = state.view === 'heads' ? [{words: `${mapped} of every head`, width: parseFloat(map.width), height: parseFloat(map.height)}]
        : panes.map((pane) => ({words: paneTitle(pane), width: pane.grid.width, height: pane.grid.height, pane}));
    const width = Math.max(360, parts.reduce((sum, part) => sum + part.width + margin, margin)), top = title + 2 * margin + Math.max(...parts.map((part) => part.height));
    const foot = describeFoot(width - 2 * margin);
    return {width, height: top + foot.height + margin, draw: (context) => {
        context.fillStyle = colour('paper');
        context.fillRect(0, 0, width, top + foot.height + margin);
        context.save();
        context.translate(margin, margin);
        for (const part of parts) {
            drawFigurePart(context, part);
            context.translate(part.width + margin, 0);
        }
        context.restore();
        context.translate(margin, top);
        foot.draw(context);
    }};
}

function drawFigurePart(context, {words, width, pane}) {
    context.save();
    context.font = `600 13px ${pageFont()}`;
    context.fillStyle = colour('ink');
    context.textBaseline = 'top';
    context.fillText(fitLabel(context, words, Math.max(width, 300)), 0, 0);
    context.translate(0, FIGURE.title);
    context.font = `12px ${pageFont()}`;
    if (pane) currentDrawing().draw(context, pane);
    else drawHeadMap(context, state.map === 'picture' ? drawPicture : drawHeadNumber);
    context.restore();
}

/* Describes the colour bar, the heads' colours, and the notes in as many lines as they need. */
function describeFoot(width) {
    const {legend, line} = FIGURE, heads = state.view === 'lines' && state.lines === 'layer' ? lineHeads(panes[0]) : [], bar = state.view === 'matrix';
    const measuring = make('canvas').getContext('2d');
    measuring.font = `11px ${pageFont()}`;
    const notes = breakLines(measuring, byId(state.view === 'heads' ? 'heads-note' : 'legend-note').textContent, width);
    const top = (bar ? legend : 0) + (heads.length ? line + 6 : 0);
    return {height: top + line * notes.length, draw: (context) => {
        context.font = `12px ${pageFont()}`;
        if (bar) drawLegend(context, panes[0].grid.left, Math.min(420, Math.max(200, panes[0].grid.size)));
        context.font = measuring.font;
        context.textAlign = 'left';
        context.textBaseline = 'top';
        heads.forEach((head, k) => {
            context.fillStyle = lineColour(head, heads.length);
            context.fillText(`head ${head}`, k * Math.min(60, width / heads.length), 0);
        });
        context.fillStyle = colour('quiet');
        notes.forEach((words, k) => context.fillText(words, 0, top + k * line));
    }};
}

function breakLines(context, text, width) {
    const lines = [''];
    for (const word of text.split(' ')) {
        const longer = `${lines[lines.length - 1]} ${word}`.trim();
        if (context.measureText(longer).width > width && lines[lines.length - 1]) lines.push(word);
        else lines[lines.length - 1] = longer;
    }
    return lines;
}

function saveBlob(blob, kind) {
    const link = make('a', {href: URL.createObjectURL(blob), download: `${viewName(paneHeads()[0])}.${kind}`});
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/* Returns a file name such as layer2-head1-c2p, with further facets of the view. */
function viewName([t, layer, head]) {
    const {view, lines, map} = state, text = page.texts.length > 1 ? `text${t}` : '', {key} = COMPONENTS[state.component];
    const parts = view === 'heads' ? ['heads', map === 'picture' ? key : map]
        : [`layer${layer}`, view === 'lines' && lines === 'layer' ? '' : `head${head}`, view === 'lines' ? 'lines' : '', key];
    return [text, ...parts].filter(Boolean).join('-');
}

/* Saves the view in paper colours, whatever the screen has, with three dots per pixel for print, or fewer if the
 * browser would refuse so large a picture. */
async function saveView(kind) {
    const light = document.documentElement.classList, {width, height, draw} = describeFigure();
    light.add('printing');
    let blob;
    if (kind === 'svg') {
        const context = new SvgContext(width, height);
        draw(context);
        blob = new Blob([new XMLSerializer().serializeToString(context.root)], {type: 'image/svg+xml'});
    } else {
        const dots = Math.min(3, Math.sqrt(16e6 / width / height)), canvas = make('canvas', {width: Math.round(dots * width), height: Math.round(dots * height)});
        const context = canvas.getContext('2d');
        context.scale(dots, dots);
        draw(context);
        blob = await new Promise((done) => canvas.toBlob(done));
    }
    light.remove('printing');
    saveBlob(blob, kind);
}

/* ------------------------------------------------------------------------------------------------------ the command */

/* Returns [options that read the text, other options that change results], from the command line that wrote the
 * text's data. */
function textOptions(t) {
    const {typed: isTyped, words} = page.texts[t], quote = (word) => `'${word.replaceAll("'", "'\\''")}'`;
    if (isTyped) return [` ${quote(page.model)} --text ${quote(words[0])}${words.length > 1 ? ` --pair ${quote(words[1])}` : ''}`, lowPrecision ? ` --precision ${lowPrecision}` : ''];
    const line = page.steps.filter((step) => step.command?.startsWith('deberta encode '))[t].command, asked = ' --component-layers all --attention-layers all', at = line.lastIndexOf(asked);
    return [line.slice('deberta encode'.length, at), line.slice(at + asked.length).replace(/ --out ('[^']*'|\\'|[^\s'\\])+$/, '')];
}

/* Returns --scale, rounded outwards so that no cell exceeds it; a limit of means would be no limit of the values. */
const scaleOption = (limit) => `--scale ${state.component === PROBS ? 0 : -roundUp(limit)},${roundUp(limit)}`;
const roundUp = (value) => Number((value * 1.0005).toPrecision(4));

/* Returns the kind of figure, and the options for its colours and its scale. */
function figureOptions([t, layer, head]) {
    const {component, view} = state, name = component === SUM ? 'logits' : COMPONENTS[component].key;
    if (view === 'heads' && state.map !== 'picture') return [state.map === 'position' ? 'shares' : 'entropy'];
    if (view === 'lines')
        return ['lines', `--layers ${layer} --heads ${state.lines === 'layer' ? 'all' : head}`, component === PROBS ? '' : `--components ${name}`,
            component === PROBS || state.centre ? '' : '--center none', state.token === null ? '' : `--query ${state.token}`];
    const [kind, what] = view === 'heads' ? ['grid', `--components ${name}`] : ['components', `--layers ${layer} --heads ${head} --components ${name}`];
    const palette = component === PROBS ? [state.sequential === DEFAULT_PALETTES.sequential ? '' : `--palette ${state.sequential}`]
        : [state.centre ? '' : '--center none', state.signed === DEFAULT_PALETTES.signed ? '' : `--signed-palette ${state.signed}`];
    return [kind, what, ...palette, view === 'matrix' && page.texts[t].pool === 1 ? scaleOption(currentLimit(component)) : ''];
}

function commandOf(place) {
    const [input, rest] = textOptions(place[0]), ablation = state.removed ? `--ablate ${state.removed}` : '';
    const [kind, ...options] = figureOptions(place);
    return [`deberta attention ${kind}${input}${rest}`, ablation, ...options, `--out ${viewName(place)}.pdf`].filter(Boolean).join(' ');
}

/* Returns the command that draws the view; a program without figures has none. */
function drawCommand() {
    if (!page.figures) {
        byId('view-command').hidden = byId('copy-command').hidden = true;
        return;
    }
    byId('view-command').textContent = (state.view === 'heads' ? paneHeads().slice(0, 1) : paneHeads()).map(commandOf).join('\n');
    const notes = [];
    if (state.removed && !ablatedRun(state.text)) notes.push('The command takes the terms out of the model itself, so that layers above the first change too.');
    if (state.view === 'lines' && (state.held || state.scale === 'text')) notes.push('The command scales the lines by the strongest that it draws.');
    byId('command-note').textContent = notes.join(' ');
}

function bindSave() {
    for (const kind of ['svg', 'png']) byId(`save-${kind}`).addEventListener('click', () => saveView(kind));
    byId('save-csv').addEventListener('click', () => saveBlob(new Blob([csvOfView()], {type: 'text/csv'}), 'csv'));
    byId('copy-command').addEventListener('click', (event) => copyText(byId('view-command'), event.target));
}
