// Runs a program of WebAssembly's system interface with this machine's files: node run_program.mjs PROGRAM.wasm [ARGUMENT ...]
// A trap is said and gives status 134. SPDX-License-Identifier: MIT
import fs from 'node:fs';
import {WASI} from 'node:wasi';

const [program, ...more] = process.argv.slice(2);
if (!program) {
    console.error('usage: node run_program.mjs PROGRAM.wasm [ARGUMENT ...]');
    process.exit(2);
}
const wasi = new WASI({version: 'preview1', args: [program, ...more], env: process.env, preopens: {'/': '/', '.': '.'}});
try {
    const {instance} = await WebAssembly.instantiate(fs.readFileSync(program), {wasi_snapshot_preview1: wasi.wasiImport});
    process.exitCode = wasi.start(instance);
} catch (error) {
    console.error(`${program}: ${error.stack ?? error}`);
    process.exitCode = 134;
}
