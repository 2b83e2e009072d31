/* Puts the page together: controls, keys, and the order of drawing. SPDX-License-Identifier: MIT */

function fillChoice(id, labels, values = labels.map((_, k) => k)) {
    byId(id).replaceChildren(...labels.map((label, k) => make('option', {value: values[k]}, label)));
}

function buildControls() {
    COMPONENTS.forEach(({key, name, long}, c) => {
        const radio = make('input', {type: 'radio', name: 'component', value: c, id: `component-${key}`});
        radio.addEventListener('change', () => chooseComponent(c));
        byId('component').append(make('label', {title: long, for: `component-${key}`}, radio, name));
    });
    for (const c of TERMS) {
        const box = make('input', {type: 'checkbox', id: `keep-${COMPONENTS[c].key}`});
        box.addEventListener('change', () => keepTerm(c, box.checked, byId('keep-scope').value));
        byId('keep-scope').before(make('label', {}, box, COMPONENTS[c].name));
    }
    byId('keep-scope').addEventListener('change', updateControls);
    byId('keep-all').addEventListener('click', keepAllTerms);
    for (const radio of document.querySelectorAll('[name=view]')) radio.addEventListener('change', () => chooseView(radio.value));
    const bind = (id, event, act) => byId(id).addEventListener(event, ({target}) => act(target));
    bind('text', 'change', ({value}) => chooseText(Number(value)));
    for (const id of ['layer', 'head', 'zoom']) bind(id, 'change', ({value}) => change({[id]: Number(value)}));
    for (const id of ['scale', 'lines']) bind(id, 'change', ({value}) => change({[id]: value}));
    bind('centre', 'change', ({checked}) => change({centre: checked}));
    bind('colours', 'change', ({value}) => change(state.component === PROBS ? {sequential: value} : {signed: value}));
    bind('hold', 'click', hold);
    bind('let-go', 'click', hold);
    bind('keys-button', 'click', toggleKeys);
    byId('matrix-table').addEventListener('toggle', drawMatrixTable);
}

/* Sets the controls to the current choice, however it was made. */
function updateControls() {
    const text = currentText();
    fillChoice('text', page.texts.map(({title, typed: isTyped}, k) => `${isTyped ? 'yours' : k}: ${graphemes(title.slice(0, 240)).slice(0, 60).join('')}`));
    byId('text-choice').hidden = page.texts.length < 2;
    fillChoice('layer', text.heads.map((_, k) => String(k)));
    fillChoice('head', text.heads[0].map((_, k) => String(k)));
    for (const id of ['text', 'layer', 'head', 'scale', 'zoom', 'lines']) byId(id).value = state[id];
    byId('stage').dataset.view = state.view;
    byId(`view-${state.view}`).checked = true;
    byId('lines-choice').hidden = state.view !== 'lines';
    byId('zoom-choice').hidden = state.view === 'heads';
    byId('hold').hidden = state.view === 'heads';
    byId('hold').setAttribute('aria-pressed', state.held !== null);
    COMPONENTS.forEach(({key}, c) => {
        byId(`component-${key}`).checked = c === state.component;
        byId(`component-${key}`).disabled = !hasComponent(text, c);
    });
    byId('centre').checked = state.centre;
    byId('centre').disabled = state.component === PROBS;
    const names = Object.keys(palettes).filter((name) => state.component !== PROBS || !palettes[name].diverging);
    byId('colours').replaceChildren(...names.map((name) => make('option', {value: name}, name)));
    byId('colours').value = state.component === PROBS ? state.sequential : state.signed;
    updateKeptTerms();
}

/* A ticked box means that the term is in the softmax of all its heads, a half-ticked one of some. */
function updateKeptTerms() {
    const text = currentText(), scope = headsInScope(byId('keep-scope').value), list = state.removed.replaceAll(',', ', ');
    const whole = ablatedRun(state.text), hasAnswers = Object.keys(answersOf(text)?.without ?? {}).length > 0, canTakeOut = canRecompute(text) || hasAnswers || (page.live && text.words);
    byId('keep').disabled = !canTakeOut;
    for (const c of TERMS) byId(`keep-${COMPONENTS[c].key}`).parentElement.hidden = !text.has[c];
    for (const c of termsOf(text)) {
        const kept = scope.filter(([layer, head]) => !isOut(c, layer, head)).length, box = byId(`keep-${COMPONENTS[c].key}`);
        box.disabled = scope.every(([layer, head]) => outFromTheStart.has(removalName(c, layer, head)));
        box.checked = kept === scope.length;
        box.indeterminate = kept > 0 && kept < scope.length;
    }
    byId('keep-all').hidden = !state.removed;
    byId('keep-note').classList.toggle('quiet', !state.removed);
    const given = givenOut && `The report itself was made without ${givenOut} (--ablate). `;
    byId('keep-note').textContent = given + (whole ? `Taken out of the whole model, so that layers above change too: --ablate ${list}` : !canTakeOut ? 'The cells of this text are means of many values: a softmax cannot be recomputed from them.' : state.removed && !canRecompute(text)
        ? `Taken out: ${list}. The cells of this text are means of many values and stay; the answer is that of the whole model.` : state.removed
        ? `Taken out: ${list}. Logits and probabilities of these heads are recomputed from their terms; the layers above are not recomputed.${currentQuestion() ? ' The answer is that of the whole model.' : ''}` : '');
}

function toggleKeys() {
    const keys = byId('keys');
    keys.hidden = !keys.hidden;
    byId('keys-button').setAttribute('aria-expanded', !keys.hidden);
}

const SHORTCUTS = {
    h: () => stepHead(-1), l: () => stepHead(1), k: () => stepLayer(-1), j: () => stepLayer(1),
    c: () => change({centre: !state.centre}),
    v: () => chooseView({matrix: 'lines', lines: 'heads', heads: 'matrix'}[state.view]),
    n: () => chooseStep((state.step + 1) % GUIDE.length),
    b: hold,
    '+': () => change({zoom: ZOOMS[clamp(ZOOMS.indexOf(state.zoom) + 1, ZOOMS.length)]}),
    '-': () => change({zoom: ZOOMS[clamp(ZOOMS.indexOf(state.zoom) - 1, ZOOMS.length)]}),
    s: () => change({scale: state.scale === 'head' ? 'text' : 'head'}),
    '?': toggleKeys,
    Escape: () => change(currentCell() ? {pinned: null, hover: null} : {token: null}),
};

function bindKeys() {
    document.addEventListener('keydown', (event) => {
        if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest('select, textarea, input[type=text]')) return;
        const component = ['1', '2', '3', '4', '5'].indexOf(event.key);
        if (component >= 0) chooseComponent(component);
        else if (SHORTCUTS[event.key]) SHORTCUTS[event.key]();
    });
}

function buildFacts(model = readJson('info')?.model) {
    const facts = [];
    if (model) facts.push(model.version === 1 ? 'DeBERTa v1' : 'DeBERTa v2/v3', `${model.layers} layers × ${model.heads} heads of ${model.head_size}`, `hidden ${model.hidden_size}`,
        `${formatNumber(model.parameters / 1e6, 3)} M parameters`, (model.position_terms ?? [model.has_c2p && 'c2p', model.has_p2c && 'p2c'].filter(Boolean).join('|')) ? `positions ${(model.position_terms ?? [model.has_c2p && 'c2p', model.has_p2c && 'p2c'].filter(Boolean).join('|')).replace('|', ', ')}` : 'no relative positions');
    if (lowPrecision) facts.push(`${lowPrecision} linear layers`);
    if (givenOut) facts.unshift(`without ${givenOut}`);
    byId('facts').textContent = [...facts, `deberta ${page.version}`].join(' · ');
}

/* Draws again when the surroundings change: paper is white whatever the screen is, and pictures get their colours
 * when drawn. */
function bindSurroundings() {
    let timer = 0;
    const forPaper = (on) => {
        document.documentElement.classList.toggle('printing', on);
        drawAgain();
    };
    window.addEventListener('beforeprint', () => forPaper(true));
    window.addEventListener('afterprint', () => forPaper(false));
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawAgain);
    window.addEventListener('resize', () => {
        clearTimeout(timer);
        timer = setTimeout(drawAgain, 80);
        growBox();
    });
}

function drawAgain() {
    drawHeads();
    for (const draw of [drawPanes, drawReadout, drawHeadFacts, drawProfiles]) draw();
}

/* Builds the formula from the terms of this model, in the colours of the charts. */
function buildFormula() {
    const terms = termsOf(currentText());
    for (const c of TERMS) {
        document.documentElement.style.setProperty(`--term-${c}`, `color-mix(in srgb, ${page.series[c]}, white var(--lift))`);
        for (const element of document.querySelectorAll(`.term-${c}`)) element.toggleAttribute('hidden', !terms.includes(c)); // MathML elements have no property `hidden`
    }
    byId('terms-count').textContent = terms.length > 1 ? String(terms.length) : '';
    byId('formula').setAttribute('aria-label', `The logit S of query i and key j is ${terms.length > 1 ? 'the sum of ' : ''}${termNames(currentText(), 'and')} over a root; its softmax over the keys is the probability P`);
}

function start() {
    readTerms(page.ablated ?? '', outFromTheStart);
    readAddress();
    if (!hasComponent(currentText(), state.component)) state.component = SUM;
    buildFormula();
    buildFacts();
    fillChoice('zoom', ZOOMS.map((zoom) => `${100 * zoom} %`), ZOOMS);
    buildControls();
    buildGuide();
    onChange(VIEW, updateControls);
    onChange(['text', 'run'], buildTokens);
    onChange(['text', 'run'], buildFigures);
    onChange(['text', 'run', 'removed', 'question'], drawAnswers);
    onChange(['text', 'run', 'removed', 'question', 'signed'], drawAttribution);
    onChange(['text', 'run', 'removed', 'question'], drawWay);
    onChange(['layer'], markWay);
    onChange([...VIEW, 'map'], moveMark); // first, since the matrix takes the room that is left
    onChange(VIEW, drawPanes);
    onChange([...VIEW, 'step', 'token', 'pinned'], drawGuide);
    onChange(['text', 'run'], drawHabits);
    onChange(['text'], showWords);
    onChange(['text', 'removed', 'run'], drawLive);
    onChange(['text', 'layer', 'head', 'view'], hideTip);
    onChange(['hover', 'pinned', 'token'], drawCursors);
    onChange([...VIEW, 'hover', 'pinned'], drawReadout);
    onChange(VIEW, drawHeadFacts);
    onChange([...VIEW, 'token', 'pinned'], drawProfiles);
    onChange([...VIEW, 'token', 'pinned'], drawMatrixTable);
    onChange(['layer', 'head', 'token', 'pinned', 'removed'], shadeTokens);
    onChange([...VIEW, 'token', 'map'], drawCommand);
    redrawAll();
    PANES.forEach((_, index) => bindPane(index));
    for (const bind of [bindNudges, bindTokens, bindProfiles, bindHeads, bindAnswers, bindAttribution, bindSave, bindKeys, bindSurroundings, bindLive]) bind();
    for (const build of [buildLatency, buildVerification, buildReceptiveField, buildTraining, buildEnvironment, buildCommands]) build();
    onChange(['text', 'removed'], askForView); // after all other listeners
    document.documentElement.dataset.ready = 'yes';
    drawLive();
}

if (page.live?.files.length) startWithPage();
start();
