/* Shows which words, distances and positions the answer comes from, as `deberta attribute` says: shaded tokens, bars
 * over distance, and the numbers as tables.
 * SPDX-License-Identifier: MIT */

const HEAD_OF_COMMAND = {'fill-mask': 'mlm', classify: 'sequence'}; // --head of `attribute` for the answers of a command
const BARS = {width: 300, height: 170, left: 38, right: 4, top: 30, bottom: 32};

page.texts.forEach((text, t) => { text.attribution = readJson(`attribution-${t}`); });

const isOfQuestion = (attribution, question) => question && attribution.head.startsWith(HEAD_OF_COMMAND[question.command]);
const positionOf = ({position, token_type}) => position + token_type;
const sumOf = (list, of) => list.reduce((sum, item) => sum + of(item), 0);
const attributionOfDistance = ({c2p, p2c}) => c2p + p2c;
const distanceName = ({first, last}) => first === last ? withSign(first) : `${withSign(first)} to ${withSign(last)}`;

function wordsOfAttribution({answer, of, value, baseline_value, sum, gap, steps, tokens, distances}) {
    return [`Attribution of the answer `, make('b', {dir: 'auto'}, `“${candidateName(answer.name)}”`), ` (${of}) to words, distances and positions, by integrated gradients. `
        + `They add up to ${formatNumber(sum)} of ${formatNumber(value - baseline_value)}, the difference to the text with [MASK] for every word; gap ${inPercent(gap ?? NaN)} after ${steps} points. `
        + `Words ${withSign(sumOf(tokens, ({word}) => word))}, distances ${withSign(sumOf(distances, attributionOfDistance))}, positions ${withSign(sumOf(tokens, positionOf))}.`
        + (state.removed ? ' With all terms.' : '')];
}

/* Shades a token by its attribution; a special token, which the baseline keeps, has none of its word. */
function attributedToken(label, token, limit) {
    const value = token.word + positionOf(token), name = label.replace(/^▁/, '') || '␣', said = `${withSign(token.word)}${positionOf(token) ? `, position ${withSign(positionOf(token))}` : ''}`;
    const button = make('button', {type: 'button', dir: 'auto', class: token.special ? 'special' : null, 'data-token': token.index, 'data-value': token.word, 'data-text': `${name}: ${said}`, 'aria-label': `${name}: ${said}`}, name);
    if (value && limit) {
        const rgb = colourOf(palettes[state.signed], .5 + value / limit / 2);
        button.style.background = `rgb(${rgb.join(',')})`;
        button.style.color = inkOn(rgb);
    }
    return button;
}

/* Draws c2p and p2c of every distance on top of each other, those above and below zero apart. */
function distanceBars(text, distances) {
    const {width, height, left, right, top, bottom} = BARS, parts = [['c2p', C2P], ['p2c', P2C]].filter(([, c]) => text.has[c]);
    const side = (d, sign) => sumOf(parts, ([name]) => Math.max(0, sign * d[name]));
    const high = Math.max(...distances.map((d) => side(d, 1)), 0), low = -Math.max(...distances.map((d) => side(d, -1)), 0), span = high - low || 1;
    const y = (value) => top + (high - value) / span * (height - top - bottom), cell = (width - left - right) / distances.length, x = (k) => left + k * cell;
    const chart = make('svg:svg', {viewBox: `0 0 ${width} ${height}`, class: 'chart', tabindex: 0, role: 'application', 'aria-label': 'Attribution over distance, query minus key; arrows move from distance to distance'});
    const write = (said, attributes) => chart.append(make('svg:text', attributes, said));
    for (const tick of niceTicks(low, high, 4)) {
        chart.append(make('svg:line', {class: tick === 0 ? 'axis' : 'grid', x1: left, x2: width - right, y1: y(tick), y2: y(tick)}));
        write(formatTick(tick), {x: left - 5, y: y(tick) + 4, 'text-anchor': 'end'});
    }
    distances.forEach((d, k) => {
        const bar = make('svg:g', {class: 'point', 'data-text': `distance ${distanceName(d)}\n${parts.map(([name]) => `${name} ${withSign(d[name])}`).join('\n')}`});
        const end = {1: 0, '-1': 0};
        for (const [name, c] of parts) {
            const sign = d[name] < 0 ? -1 : 1, from = end[sign], to = end[sign] = from + d[name];
            bar.append(make('svg:rect', {x: x(k) + cell * .08, y: y(Math.max(from, to)), width: cell * .84, height: Math.max(.4, Math.abs(y(to) - y(from))), style: `fill: var(--term-${c})`}));
        }
        chart.append(bar);
    });
    const zero = distances.findIndex(({first, last}) => first <= 0 && last >= 0);
    for (const k of new Set([0, zero, distances.length - 1])) if (k >= 0) write(formatTick(k === zero ? 0 : k ? distances[k].last : distances[k].first), {x: x(k + .5), y: height - 18, 'text-anchor': k === 0 && zero > 0 ? 'start' : k > zero ? 'end' : 'middle'});
    write('distance, query minus key', {x: (left + width - right) / 2, y: height - 4, 'text-anchor': 'middle'});
    parts.forEach(([name, c], k) => {
        chart.append(make('svg:circle', {cx: left + 4 + 50 * k, cy: 12, r: 4, style: `fill: var(--term-${c})`}));
        write(name, {x: left + 12 + 50 * k, y: 16});
    });
    bindChart(chart);
    return chart;
}

function numbersOfAttribution(text, {tokens, distances}) {
    const parts = ['c2p', 'p2c'].filter((_, k) => text.has[[C2P, P2C][k]]), hasPositions = tokens.some(positionOf);
    return [table(['token', 'word', ...hasPositions ? ['position'] : []], tokens.map((token) => [text.tokens[token.index], token.word, ...hasPositions ? [positionOf(token)] : []]), 'Words'),
        ...distances.length ? [table(['distance', ...parts], distances.map((d) => [distanceName(d), ...parts.map((name) => d[name])]), 'Distances, query minus key')] : []];
}

/* Returns the sentence in the place of attributions, and the command that has them; NULL: there is nothing to say. */
function insteadOfAttribution(text, question) {
    const head = question && HEAD_OF_COMMAND[question.command];
    if (text.attribution && head) return ['The page has the attribution of its other answer; the program has this one:', head];
    if (text.no_attribution) return [`There are no attributions here: ${text.no_attribution}.`, null];
    if (text.typed && head && !lowPrecision) return ['The page does not compute attributions; the program does:', head];
    return null;
}

function drawAttribution() {
    const text = currentText(), question = currentQuestion(), attribution = text.attribution && isOfQuestion(text.attribution, question) ? text.attribution : null;
    const instead = attribution ? null : insteadOfAttribution(text, question), pane = byId('attribution-pane'), strip = byId('attribution-tokens');
    pane.hidden = !attribution && !instead;
    strip.hidden = byId('attribution-distances').hidden = byId('attribution-numbers').hidden = !attribution;
    byId('attribution-words').replaceChildren(...attribution ? wordsOfAttribution(attribution) : instead ? [instead[0]] : []);
    byId('attribution-command').replaceChildren();
    if (instead?.[1]) {
        const [input, rest] = textOptions(state.text);
        byId('attribution-command').append(commandLine(`deberta attribute${input} --head ${instead[1]}${rest}`, 'the attributions of this answer'));
    }
    if (!attribution) return;
    const {tokens, distances} = attribution, limit = Math.max(...tokens.map((token) => Math.abs(token.word + positionOf(token))));
    strip.replaceChildren(...tokens.map((token) => attributedToken(text.tokens[token.index], token, limit)));
    [...strip.children].forEach((button, k) => { button.tabIndex = k ? -1 : 0; });
    byId('attribution-distances').replaceChildren(...distances.length ? [distanceBars(text, distances)] : []);
    byId('attribution-numbers').lastElementChild.replaceChildren(...numbersOfAttribution(text, attribution));
}

/* Says a token's numbers under the pointer and at the focus; arrows move, a click chooses the token. */
function bindAttribution() {
    const strip = byId('attribution-tokens'), buttonOf = ({target}) => target.closest('button');
    const tell = (event) => buttonOf(event) && showTip(buttonOf(event), buttonOf(event).dataset.text);
    for (const kind of ['pointerover', 'focusin']) strip.addEventListener(kind, tell);
    for (const kind of ['pointerout', 'focusout']) strip.addEventListener(kind, hideTip);
    strip.addEventListener('click', (event) => buttonOf(event) && change({token: Number(buttonOf(event).dataset.token), pinned: null}));
    strip.addEventListener('keydown', (event) => {
        const by = {ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity}[event.key], all = [...strip.children];
        if (!by || !buttonOf(event)) return;
        all[clamp(all.indexOf(buttonOf(event)) + by, all.length)].focus();
        all.forEach((button) => { button.tabIndex = button === document.activeElement ? 0 : -1; });
        event.preventDefault();
    });
}
