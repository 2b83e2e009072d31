// Types of deberta.mjs. SPDX-License-Identifier: MIT
/** How multiply and add are done. All give the same bits; relaxed is the fastest, scalar runs everywhere. */
export type Tier = 'relaxed' | 'exact' | 'scalar';
export type Precision = 'float32' | 'int16' | 'int8';

/** The tiers that this engine can run, the fastest first; none without WebAssembly. */
export function usableTiers(): Promise<Tier[]>;
/** The files of a model's folder (Node only). */
export function readFolder(folder: string): Promise<[string, Uint8Array][]>;

export interface OpenOptions {
    precision?: Precision;
    /** The fastest that is usable, unless given. */
    tier?: Tier;
    /** The module of the tier; else its file next to deberta.mjs is loaded. */
    module?: BufferSource | WebAssembly.Module;
    /** Called by explore(): so many layers are done. */
    onProgress?: (done: number, of: number) => void;
}

export interface About {
    version: number;
    layers: number;
    heads: number;
    head_size: number;
    hidden_size: number;
    vocabulary_size: number;
    parameters: number;
    memory_bytes: number;
    max_tokens: number;
    has_c2p: boolean;
    has_p2c: boolean;
    position_biased_input: boolean;
    has_mlm: boolean;
    precision: Precision;
    isa: string;
    tier: Tier;
}

export interface Tokens {
    n: number;
    /** How many tokens did not fit. */
    dropped: number;
    /** How many lone surrogates of the text and its pair were read as U+FFFD. */
    replaced: number;
    tokens: string[];
    ids: number[];
    types: number[];
    special: (0 | 1)[];
}

export interface Encoded extends Tokens {
    columns: number;
    /** Hidden states of the last layer, token after token. */
    hidden: Float32Array;
    /** Of `hidden`: what `deberta encode` stores for the same text has the same. */
    sha256: string;
}

export interface Explored extends Tokens {
    pool: number;
    cells: number;
    exact: boolean;
    /** Of c2c, c2p, p2c. */
    has: [boolean, boolean, boolean];
    /** Of every layer and head, what a page of `deberta report` says of it. */
    heads: Record<string, unknown>[][];
    head_bytes: number;
    /** The heads' packed matrices, one after the other, as that page holds them. */
    bytes: Uint8Array;
}

export interface Candidates {
    place: number;
    tokens: { token: string; id: number; probability: number }[];
}

export interface TextOptions {
    pair?: string | null;
    /** As `--ablate` writes them: "c2p@3:5,p2c=mean@all". */
    ablations?: string;
}

export interface CandidateOptions {
    /** true (default): by the Enhanced Mask Decoder; false: by the plain head. */
    decoder?: boolean;
}

/** Options of other names, and values of other types, are refused. */
export class Model {
    /** Names and bytes of the files of a model's folder; in Node the folder's path, too. Weights come from safetensors. */
    static open(files: string | Iterable<[string, Uint8Array]> | Record<string, Uint8Array>, options?: OpenOptions): Promise<Model>;
    readonly about: Readonly<About>;
    tokenize(text: string, pair?: string | null): Tokens;
    encode(text: string, options?: TextOptions): Encoded;
    explore(text: string, options?: TextOptions): Explored;
    /** For every [MASK] of the text that was encoded or explored last; tokenize() changes nothing of it. */
    candidates(top?: number, options?: CandidateOptions): Candidates[];
    close(): void;
}
