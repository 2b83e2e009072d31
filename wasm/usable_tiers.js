/* Finds the tiers whose modules load and give the right bits in this engine, the fastest first. pack.py puts it after
 * deberta.mjs, and the program puts it before the worker of the page of `deberta report --live`.
 * SPDX-License-Identifier: MIT */

const floats = (value) => [...new Uint8Array(new Float32Array([value]).buffer)];
/* Returns a module with one function without parameters, whose result is a float32. */
const smallModule = (...body) => new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 125, 3, 2, 1, 0, 7, 5, 1, 1, 102, 0, 0,
    10, body.length + 4, 1, body.length + 2, 0, ...body, 11]);
const splat = (value) => [67, ...floats(value), 253, 19];
const FIRST_LANE = [253, 31, 0];
const PLAIN = smallModule(...splat(1), ...FIRST_LANE);
/* relaxed_madd may round once or twice; the tier needs once: (1 + 2^-12)^2 - (1 + 2^-11) is then 2^-24, else 0. */
const FUSED = smallModule(...splat(1 + 2 ** -12), ...splat(1 + 2 ** -12), ...splat(-(1 + 2 ** -11)), 253, 133, 2, ...FIRST_LANE);

async function usableTiers() {
    if (typeof WebAssembly === 'undefined') return [];
    const tiers = ['scalar'];
    if (WebAssembly.validate(PLAIN)) tiers.unshift('exact');
    if (WebAssembly.validate(FUSED) && (await WebAssembly.instantiate(FUSED)).instance.exports.f() === 2 ** -24) tiers.unshift('relaxed');
    return tiers;
}
