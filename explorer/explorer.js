/* Puts the page together: controls, keys, what is drawn when. SPDX-License-Identifier: MIT */

function fillChoice(id, labels) {
    byId(id).replaceChildren(...labels.map((label, k) => make('option', {value: k}, label)));
}

function buildControls() {
    fillChoice('text', page.texts.map((text, k) => `${k}: ${graphemes(text.title).slice(0, 60).join('')}`));
    byId('text-choice').hidden = page.texts.length < 2;
    COMPONENTS.forEach(({key, name, long}, c) => {
        const radio = make('input', {type: 'radio', name: 'component', value: c, id: `component-${key}`});
        radio.addEventListener('change', () => chooseComponent(c));
        byId('component').append(make('label', {title: long, for: `component-${key}`}, radio, name));
    });
    byId('text').addEventListener('change', (event) => chooseText(Number(event.target.value)));
    byId('layer').addEventListener('change', (event) => change({layer: Number(event.target.value)}));
    byId('head').addEventListener('change', (event) => change({head: Number(event.target.value)}));
    byId('centre').addEventListener('change', (event) => change({centre: event.target.checked}));
    byId('scale').addEventListener('change', (event) => change({scale: event.target.value}));
    byId('colours').addEventListener('change', (event) => change(state.component === PROBS ? {sequential: event.target.value} : {signed: event.target.value}));
    byId('keys-button').addEventListener('click', toggleKeys);
}

/* The controls say what is chosen, however it was chosen. */
function updateControls() {
    const text = currentText();
    fillChoice('layer', text.heads.map((_, k) => String(k)));
    fillChoice('head', text.heads[0].map((_, k) => String(k)));
    for (const id of ['text', 'layer', 'head', 'scale']) byId(id).value = state[id];
    COMPONENTS.forEach(({key}, c) => {
        byId(`component-${key}`).checked = c === state.component;
        byId(`component-${key}`).disabled = !hasComponent(text, c);
    });
    byId('centre').checked = state.centre;
    byId('centre').disabled = state.component === PROBS;
    const names = Object.keys(palettes).filter((name) => state.component !== PROBS || !palettes[name].diverging);
    byId('colours').replaceChildren(...names.map((name) => make('option', {value: name}, name)));
    byId('colours').value = state.component === PROBS ? state.sequential : state.signed;
}

function toggleKeys() {
    const keys = byId('keys');
    keys.hidden = !keys.hidden;
    byId('keys-button').setAttribute('aria-expanded', !keys.hidden);
}

const SHORTCUTS = {
    h: () => stepHead(-1), l: () => stepHead(1), k: () => stepLayer(-1), j: () => stepLayer(1),
    c: () => change({centre: !state.centre}),
    s: () => change({scale: state.scale === 'head' ? 'text' : 'head'}),
    '?': toggleKeys,
    Escape: () => change(currentCell() ? {pinned: null, hover: null} : {token: null}),
};

function bindKeys() {
    document.addEventListener('keydown', (event) => {
        if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest('select, input[type=text]')) return;
        const component = ['1', '2', '3', '4', '5'].indexOf(event.key);
        if (component >= 0) chooseComponent(component);
        else if (SHORTCUTS[event.key]) SHORTCUTS[event.key]();
    });
}

function buildFacts() {
    const model = readJson('info')?.model, facts = [];
    if (model) facts.push(model.version === 1 ? 'DeBERTa v1' : 'DeBERTa v2/v3', `${model.layers} layers × ${model.heads} heads of ${model.head_size}`, `hidden ${model.hidden_size}`,
        `${formatNumber(model.parameters / 1e6, 3)} M parameters`, model.position_terms ? `positions ${model.position_terms.replace('|', ', ')}` : 'no relative positions');
    byId('facts').textContent = [...facts, `deberta ${page.version}`].join(' · ');
}

/* Paper is white whatever the screen is, and pictures know their colours only when they are drawn. */
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
    });
}

function drawAgain() {
    drawHeads();
    drawMatrix();
    drawReadout();
    drawHeadFacts();
    drawProfiles();
}

function start() {
    readAddress();
    if (!hasComponent(currentText(), state.component)) state.component = SUM;
    buildFacts();
    buildControls();
    onChange(VIEW, updateControls);
    onChange(['text'], buildTokens);
    onChange(['text'], buildFigures);
    onChange([...VIEW, 'map'], moveMark); // first: the matrix takes the room that is left
    onChange(VIEW, drawMatrix);
    onChange(['hover', 'pinned', 'token'], drawCursor);
    onChange([...VIEW, 'hover', 'pinned'], drawReadout);
    onChange(VIEW, drawHeadFacts);
    onChange([...VIEW, 'token'], drawProfiles);
    onChange(['layer', 'head', 'token'], shadeTokens);
    redrawAll();
    bindMatrix();
    bindTokens();
    bindProfiles();
    bindHeads();
    bindKeys();
    bindSurroundings();
    buildLatency();
    buildVerification();
    buildReceptiveField();
    buildEnvironment();
    buildCommands();
    document.documentElement.dataset.ready = 'yes';
}

start();
