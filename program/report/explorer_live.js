/* Handles sentences that the reader types: the worker computes them (live_worker.js), and they become texts of the
 * page like those it came with. One request is computed at a time; newer input replaces a waiting request. Stopping a
 * request ends its worker, and a new worker opens the model again.
 * SPDX-License-Identifier: MIT */

const WAIT_MS = 350; // milliseconds after the last key
const SLOW_MS = 1500; // a text that took longer is computed on request, not while it is typed
const LENS_MS = 1000; // time within which an answer by layer is computed without a request
const NOTHING_TYPED = 'There is no sentence yet: type one, then Compute.';
const OPENING = 'Opening the model …';
const live = {worker: null, file: 0, piece: 0, sent: false, opened: null, tier: '', queue: [], running: null, number: 0, files: null, good: undefined, picked: '', message: '', wrong: false, timer: 0, slow: false};

/* Shows a message. wrong: a failure, which the reader should not overlook. */
const tell = (message, wrong = false) => Object.assign(live, {message, wrong});

/* ------------------------------------------------------------------------------------------------------- the worker */

function startWorker(message = OPENING, wrong = false) {
    live.worker?.terminate();
    Object.assign(live, {opened: null, running: null});
    tell(message, wrong);
    const modules = {}, modelBytes = (live.files ?? page.live.files).reduce((sum, {bytes}) => sum + bytes, 0);
    for (const {id, name, bytes} of page.live.modules) modules[name] = {pieces: [...document.getElementsByClassName(id)].map((element) => element.textContent), bytes};
    const code = new Blob([document.getElementById('live-worker').textContent], {type: 'text/javascript'});
    live.worker = new Worker(URL.createObjectURL(code));
    live.worker.onmessage = ({data}) => {
        if (data.ready) takeReady(data.ready);
        else if (data.progress) drawProgress(data.progress);
        else if (data.answer) takeAnswer(data.answer);
        else takeFailure(data.failed);
        drawLive();
    };
    live.worker.onerror = (event) => takeFailure({number: null, message: event.message || 'the browser starts no worker'});
    live.worker.postMessage({load: {modules, tier: live.tier, modelBytes}});
    Object.assign(live, {file: 0, piece: 0, sent: false});
    sendFiles();
    delete document.documentElement.dataset.live;
    next();
}

/* Sends pieces of the files, which are at the end of the page, while the browser reads it. The last piece present is
 * held back, as it may be incomplete. */
function sendFiles() {
    const isWhole = document.readyState !== 'loading', files = live.files ? [] : page.live.files;
    for (; live.file < files.length; Object.assign(live, {file: live.file + 1, piece: 0})) {
        const {id, name, bytes} = files[live.file], pieces = document.getElementsByClassName(id);
        const isEnded = isWhole || document.getElementsByClassName(files[live.file + 1]?.id).length > 0;
        for (const end = pieces.length - !isEnded; live.piece < end; live.piece++)
            live.worker.postMessage({piece: {name, bytes, text: pieces[live.piece].textContent}});
        if (!isEnded) return;
    }
    if (!isWhole || live.sent) return;
    live.sent = true;
    for (const file of live.files ?? []) live.worker.postMessage({file});
    live.worker.postMessage({open: {precision: page.live.precision}});
}

/* Starts when the script runs, and sends what the browser reads afterwards as it comes. */
function startWithPage() {
    const watch = new MutationObserver(sendFiles);
    startWorker();
    watch.observe(document.body, {childList: true});
    document.addEventListener('DOMContentLoaded', () => {
        watch.disconnect();
        sendFiles();
    });
}

function takeReady(ready) {
    live.opened = ready;
    if (live.message === OPENING) tell('');
    if (!live.picked) live.good = live.files;
    fillChoice('tier', ready.tiers, ready.tiers);
    byId('tier').value = ready.tier;
    document.documentElement.dataset.live = 'ready';
    next();
}

/* Returns to the earlier model after a folder could not be used. The typed text stays in the box and is not computed,
 * so that the message below it stays. */
function goBack(message) {
    Object.assign(live, {files: live.good, picked: '', queue: []});
    startWorker(`${message}. The model from before is open again.`, true);
}

/* Handles a failure; a worker whose module ended is useless, so a new one is started for the next request. */
function takeFailure({number, message, broken}) {
    if (live.picked && live.good !== undefined) return goBack(`${live.picked} cannot be used: ${message}`);
    tell(number === null ? `Nothing can be computed here: ${message}. The texts of the page are as the program computed them.`
        : `This could not be computed: ${message}.`, true);
    live.running = null;
    if (number === null || broken) live.opened = null;
    if (number === null) {
        live.queue = typedRequests(live.queue); // another folder may hold a model
        document.documentElement.dataset.live = 'failed';
    }
    if (number !== null && broken) startWorker(live.message, true);
    else next();
}

/* ------------------------------------------------------------------------------------------------------- requests */

/* A request is {text: of the page, or null for a new one; words; removed; byLayer: the answers by layer alone}. At
 * most one of a kind waits. */
const kindOf = ({text, removed, byLayer}) => text === null ? 'typed' : byLayer ? 'layers' : removed ? 'ablation' : 'again';
const typedRequests = (requests) => requests.filter((request) => request && kindOf(request) === 'typed');

function ask(request) {
    live.queue = live.queue.filter((other) => kindOf(other) !== kindOf(request));
    live.queue.push(request);
    next();
}

function next() {
    if (live.opened && !live.running && live.queue.length) {
        const {words: [text, pair = null], removed, byLayer = false} = live.running = live.queue.shift();
        tell('');
        byId('live-progress').value = 0;
        live.running.number = ++live.number;
        live.worker.postMessage({run: {number: live.number, text, pair, removed, byLayer}});
    }
    const about = document.documentElement.dataset;
    about.computing = live.running || (live.worker && !live.opened && about.live !== 'failed') ? 'yes' : 'no';
    drawLive();
}

function stop() {
    live.queue = [];
    if (live.picked && live.good !== undefined) return goBack('Stopped');
    startWorker('Stopped. The text is still there; Compute starts again.');
}

function takeAnswer({number, about, cells, answer, layers, sha256, milliseconds}) {
    if (number !== live.running?.number) return;
    const {text, words, removed} = live.running, computed = {...about, bytes: cells, answers: {full: answer}, digest: sha256, milliseconds};
    live.running = null;
    if (layers) return takeLayers(number, text, removed, layers);
    live.slow = milliseconds > SLOW_MS;
    keptHeads.clear();
    if (text === null && live.picked) adoptModel(words, computed);
    else if (text === null) showTyped(words, computed);
    else if (removed) takeAblated(text, removed, computed);
    else takeAgain(text, computed);
    live.good = live.files;
    change({run: number});
    askForView();
    next();
}

/* Keeps an answer that was computed without some terms, together with those that came with the page. */
function takeAblated(text, removed, computed) {
    text.ablated = {...computed, removed};
    text.answers = {...text.answers, without: {...text.answers?.without, [removed]: computed.answers.full}};
}

function takeLayers(number, text, removed, layers) {
    text.answers = {...text.answers, ...removed ? {layersWithout: {...text.answers.layersWithout, [removed]: layers}} : {layers}};
    change({run: number});
    next();
}

/* Takes a text of the page that was computed again here. */
function takeAgain(text, computed) {
    const alike = computed.n === text.n && computed.ids.every((id, k) => id === text.ids[k]);
    const {digest, milliseconds, answers} = computed;
    if (live.picked && !(alike && digest === text.sha256)) return adoptModel(text.words, computed);
    if (alike) Object.assign(text, {digest, milliseconds, answers: {...text.answers, full: answers.full}});
    else text.words = null; // the page has more of its tokens than are computed here
    live.picked = '';
}

function textOfWords(words, computed) {
    return {...computed, title: words.join(' | '), words, typed: true, data: null, sha256: ''};
}

function showTyped(words, computed) {
    const before = page.texts.findIndex((text) => text.typed), at = before < 0 ? page.texts.length : before;
    page.texts[at] = textOfWords(words, computed);
    change({text: at, pinned: null, hover: null, ...state.held?.[0] === at ? {held: null} : {},
        token: telling(page.texts[at], sharesOf(page.texts[at], headCells(at, state.layer, state.head)))});
}

/* Adopts another model from a folder: the page's texts and their measurements are dropped. */
function adoptModel(words, computed) {
    for (const name of ['info', 'verify', 'receptive-field', 'lengths', 'layers', 'training']) document.getElementById(`json-${name}`)?.remove();
    for (const id of ['latency', 'verification', 'receptive-field', 'training', 'environment', 'commands']) {
        byId(id).hidden = true;
        document.querySelector(`nav a[href="#${id}"]`).hidden = true;
    }
    page.texts = [textOfWords(words, computed)];
    page.model = live.picked;
    page.no_labels = null;
    page.steps = [];
    page.files = [];
    document.querySelector('h1').firstChild.textContent = `${live.picked} `;
    live.picked = '';
    removedTerms.clear();
    Object.assign(state, {text: 0, held: null, pinned: null, hover: null, removed: '', step: 0, question: 0, component: PROBS, map: 'picture'});
    openOnAnswer();
    buildFacts(live.opened.model);
    buildFormula();
    redrawAll();
}

/* Requests what the view needs: the text itself for its candidates and its digest, and the text without its removed
 * terms. */
function askForView() {
    const text = currentText();
    if (!page.live || live.picked || !text.words || live.running?.text === text && live.running.removed === state.removed) return;
    if (text.digest === undefined) ask({text, words: text.words, removed: ''});
    if (state.removed && text.ablated?.removed !== state.removed) ask({text, words: text.words, removed: state.removed});
    const {milliseconds} = state.removed ? text.ablated ?? {} : text;
    if (text.digest !== undefined && (milliseconds ?? Infinity) * text.heads.length < LENS_MS) askForLayers();
}

/* Requests the answers by layer, which take as many encodes as there are layers: at once where that is quick, else on
 * request. */
function askForLayers() {
    const text = currentText(), isAsked = live.running && kindOf(live.running) === 'layers' && live.running.text === text && live.running.removed === state.removed;
    if (!isAsked && questionsOf(text).length && !layersNow(text)) ask({text, words: text.words, removed: state.removed, byLayer: true});
}

/* ------------------------------------------------------------------------------------------------- what is typed */

const typedWords = () => [byId('words').value, ...byId('pair').value ? [byId('pair').value] : []];

function computeTyped() {
    clearTimeout(live.timer);
    const words = typedWords(), known = page.texts.findIndex((text) => text.words && text.words.join('\0') === words.join('\0'));
    if (!words[0].trim()) return;
    if (live.message === NOTHING_TYPED) tell('');
    live.queue = live.queue.filter((request) => live.picked && kindOf(request) === 'again'); // this answer shows whether it is another model
    if (known >= 0) {
        chooseText(known);
        return next();
    }
    ask({text: null, words, removed: ''});
}

/* Computes the typed text. An empty box is reported to a reader who asked for it, and ignored while typing. */
function computeAsked() {
    computeTyped();
    if (byId('words').value.trim()) return;
    tell(NOTHING_TYPED);
    byId('words').focus();
    drawLive();
}

function typed() {
    clearTimeout(live.timer);
    growBox();
    if (!live.slow) live.timer = setTimeout(computeTyped, WAIT_MS);
}

/* Sizes the box to its text, from one line up to a third of the screen. */
function growBox() {
    const box = byId('words');
    box.style.height = 'auto';
    box.style.height = `${Math.min(box.scrollHeight + 2, window.innerHeight / 3)}px`;
}

function showWords() {
    const text = currentText();
    if (!text.words || document.activeElement === byId('words')) return;
    [byId('words').value, byId('pair').value = ''] = text.words;
    growBox();
}

/* Returns why no model can be read from files of these names, or nothing. */
function lackOf(names) {
    const elsewhere = names.filter((name) => /\.(bin|pt|pth|ckpt|h5|msgpack|gguf|onnx)$/.test(name));
    if (names.some((name) => name.endsWith('.safetensors')) && names.includes('config.json')) return '';
    return names.includes('config.json') && elsewhere.length ? `weights are read from .safetensors, and here they are in ${elsewhere.slice(0, 3).join(', ')}`
        : `a model folder has a config.json and weights in .safetensors; found ${names.slice(0, 6).join(', ') || 'nothing'}`;
}

/* Opens the files of a folder, without those of folders in it. */
function openFolder(list) {
    const inside = [...list].filter((file) => file.webkitRelativePath.split('/').length <= 2);
    const files = inside.filter(({name, size}) => size && !/^training\.safetensors$|^adapter_/.test(name) && /\.(json|safetensors|model)$|^merges\.txt$|^bpe_encoder\.bin$/.test(name));
    const name = list[0]?.webkitRelativePath.split('/')[0] || 'The folder';
    const lack = lackOf(inside.filter(({name, size}) => size || !/\.safetensors$|^config\.json$/.test(name)).map((file) => file.name));
    if (lack) {
        tell(`${name}: ${lack}.`, true);
        return drawLive();
    }
    const isWeights = ({name}) => name.endsWith('.safetensors');
    files.sort((a, b) => isWeights(a) - isWeights(b));
    live.files = files.map((file) => ({name: file.name, bytes: file.size, blob: file}));
    live.picked = name;
    const known = page.texts.find((text) => text.words && text.sha256), words = known?.words ?? typedWords();
    const waiting = typedRequests([live.running, ...live.queue]).filter((request) => request.words.join('\0') !== words.join('\0'));
    // The first request shows whether it is another model; what was typed before is then computed with the open one.
    live.queue = [{text: known ?? {words, n: -1}, words, removed: ''}, ...waiting.slice(-1)];
    startWorker();
}

/* --------------------------------------------------------------------------------------------------------- the note */

function drawProgress({number, done, of}) {
    if (number !== live.running?.number) return;
    byId('live-progress').max = of;
    byId('live-progress').value = done;
}

const inTime = (ms) => ms < 1000 ? `${formatNumber(ms, 2)} ms` : `${formatNumber(ms / 1000, 2)} s`;

/* Says where the numbers on the screen come from, and whether they equal the program's. */
function wordsOfDigest(text) {
    const shown = text.ablated?.removed === state.removed ? text.ablated : text, digest = shown.digest;
    if (!digest) return [];
    const code = make('code', {class: 'digest', title: digest}, digest), equal = shown === text && text.sha256;
    if (!equal) return [' · SHA-256 of its hidden states ', code];
    return text.sha256 === digest ? [' · ', make('span', {class: 'same'}, 'identical to the program:'), ' SHA-256 ', code]
        : [' · ', make('span', {class: 'bad'}, 'not what the program computed:'), ' SHA-256 ', code];
}

/* Says that another spelling of [MASK] is read as text, where the model fills masks and the text has none. */
function wordsOfMask(text) {
    const words = text.words?.join(' ') ?? '', [other] = words.match(/<mask>|\[mask\]|___+/i) ?? words.match(/\bMASK\b/) ?? [];
    return other && answersOf(text)?.full?.masks?.length === 0 ? [` · ‘${other}’ is read as text: a mask is [MASK]`] : [];
}

function drawLive() {
    if (!page.live || !document.documentElement.dataset.ready) return;
    const text = currentText(), waits = !live.worker, shown = text.ablated?.removed === state.removed ? text.ablated : text;
    byId('stop').hidden = byId('live-progress').hidden = !live.running;
    byId('compute').disabled = !live.opened;
    byId('live-note').classList.toggle('bad', live.wrong);
    const cut = text.dropped ? [` · the first ${text.n} tokens, ${text.dropped} more are left out`] : [];
    byId('live-note').replaceChildren(...live.message ? [live.message] : waits ? [`This page holds no model. Open the folder of ${page.model} to compute sentences of your own.`]
        : live.running ? ['Computing …'] : shown.milliseconds ? [`${text.n} tokens, computed here in ${inTime(shown.milliseconds)}`, ...cut, ...wordsOfMask(text), ...wordsOfDigest(text)] : []);
}

function bindLive() {
    byId('live').hidden = !page.live;
    if (!page.live) return;
    const words = new URLSearchParams(location.hash.slice(1)).get('words');
    byId('live-choices').prepend(byId('text-choice'));
    showWords();
    byId('words').addEventListener('input', typed);
    byId('pair').addEventListener('input', typed);
    byId('words').addEventListener('keydown', (event) => {
        if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
        event.preventDefault();
        computeAsked();
    });
    byId('live').addEventListener('submit', (event) => {
        event.preventDefault();
        computeAsked();
    });
    byId('stop').addEventListener('click', stop);
    byId('tier').addEventListener('change', ({target}) => {
        live.tier = target.value;
        for (const text of page.texts) Object.assign(text, {ablated: undefined, digest: undefined});
        startWorker();
        askForView();
    });
    byId('folder').addEventListener('change', ({target}) => target.files.length && openFolder(target.files));
    byId('folder-button').addEventListener('click', () => byId('folder').click());
    if (words) {
        byId('words').value = words;
        live.queue.push({text: null, words: [words], removed: ''});
    }
    if (!page.live.files.length) byId('live-more').open = true;
    askForView();
}
