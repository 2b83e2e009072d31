#!/bin/sh
# The library as others meet it: installed into a folder, found through pkg-config, linked shared and static by the example of docs/.
#
#   test_install.sh BUILD_DIR SOURCE_DIR C_COMPILER [CXX_COMPILER]
#
# SPDX-License-Identifier: MIT
set -u
build=$1 source=$2 cc=$3 cxx=${4:-}
passed=0 failed=0
work=$(mktemp -d "${TMPDIR:-/tmp}/deberta-install.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

# Runs a command as a test that must succeed.
expect() {
    title=$1; shift
    if "$@" >"$work/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $title: $*"
        cat "$work/log"
    fi
}

# The .pc file with the prefix where the library lies now.
find_library() {
    pc=$(find "$work/root" -name deberta.pc) && [ -n "$pc" ] || return 1
    prefix=$work/root$(sed -n 's/^prefix=//p' "$pc")
    mkdir -p "$work/pc"
    sed "s|^prefix=.*|prefix=$prefix|" "$pc" >"$work/pc/deberta.pc"
    libdir=$(PKG_CONFIG_PATH=$work/pc pkg-config --variable=libdir deberta)
    test -e "$libdir/libdeberta.so" -a -e "$libdir/libdeberta.a" -a -e "$prefix/include/deberta.h" -a -e "$prefix/include/deberta_training.h" -a -e "$prefix/include/deberta_unstable.h" -a -x "$prefix/bin/deberta"
}
flags() { PKG_CONFIG_PATH=$work/pc pkg-config "$@" deberta; }

# Warnings would be noise in other people's builds.
header_alone() {
    compiler=$1 language=$2 standard=$3
    printf '#include <%s>\nint nothing_else;\n' "${4:-deberta.h}" >"$work/alone.$language"
    $compiler -x "$language" -std="$standard" -Wall -Wextra -Wpedantic -Werror $(flags --cflags) -fsyntax-only "$work/alone.$language"
}

# The static library by its name, so that the shared one cannot step in, and the shared ones it uses. pkg-config --static would ask
# for what these use in turn, of which Debian does not install all.
link_static() {
    libs="$(pkg-config --libs $(flags --print-requires-private)) $(sed -n 's/^Libs.private://p' "$work/pc/deberta.pc")" &&
        $cc $(flags --cflags) "$source/docs/$1.c" "$libdir/libdeberta.a" $libs -o "$work/$1-static"
}
link_shared() { $cc "$source/docs/$1.c" $(flags --cflags --libs) -o "$work/$1-shared"; }
uses_shared() { LD_LIBRARY_PATH=$libdir ldd "$1" | grep -q "$libdir/libdeberta"; }
uses_none() { ! ldd "$1" | grep -q libdeberta; }
# What the program says through both libraries; it must be the same, and have a line that begins with $2.
same_answers() {
    example=$1 expected=$2; shift 2
    LD_LIBRARY_PATH=$libdir "$work/$example-shared" "$@" >"$work/a" && "$work/$example-static" "$@" >"$work/b" &&
        grep -q "^$expected" "$work/a" && cmp "$work/a" "$work/b"
}
only_public_names() {
    nm -g --defined-only "$libdir/libdeberta.a" >"$work/names" && grep -q ' T deberta_encode$' "$work/names" &&
        ! grep -E ' [A-Z] ' "$work/names" | grep -v ' deberta_[a-z_0-9]*$'
}

expect 'install' meson install -C "$build" --no-rebuild --destdir "$work/root"
expect 'files and pkg-config' find_library
expect 'version' flags --modversion
expect 'header alone, C99' header_alone "$cc" c c99
expect 'header alone, C17' header_alone "$cc" c c17
[ -z "$cxx" ] || expect 'header alone, C++11' header_alone "$cxx" c++ c++11
[ -z "$cxx" ] || expect 'header alone, C++17' header_alone "$cxx" c++ c++17
for header in deberta_training.h deberta_unstable.h; do
    expect "$header alone, C99" header_alone "$cc" c c99 $header
    [ -z "$cxx" ] || expect "$header alone, C++11" header_alone "$cxx" c++ c++11 $header
done
expect 'names of the static library' only_public_names
# Training may change in any version: the shared library does not have it.
lacks_training() { ! link_shared example_training 2>/dev/null && ! nm -D --defined-only "$libdir/libdeberta.so" | grep deberta_trainer_; }
expect 'example_training with the shared library is refused' lacks_training
expect 'example_training with the static library' link_static example_training
expect 'example_training: the static one needs none' uses_none "$work/example_training-static"
for example in example example_text example_attention; do
    expect "$example with the shared library" link_shared "$example"
    expect "$example with the static library" link_static "$example"
    expect "$example: the shared one is used" uses_shared "$work/$example-shared"
    expect "$example: the static one needs none" uses_none "$work/$example-static"
done
expect 'example: both give the same' same_answers example 'token 7: '
expect 'example_text: both give the same' same_answers example_text me "$source/models/demo"
expect 'example_attention: both give the same' same_answers example_attention 'll           \[SEP\]         0.476' "$source/models/demo" 2 0
# Without arguments, where the default model is not.
says_usage() { (cd "$work" && LD_LIBRARY_PATH=$libdir "./$1-shared" 2>&1 | grep "^usage: ./$1-shared MODEL"); }
for example in example_text example_attention; do expect "$example: how it is called" says_usage "$example"; done
train_twice() {
    rm -rf "$work/trained-a" "$work/trained-b"
    "$work/example_training-static" "$source/models/demo" "$source/models/demo/examples.txt" "$work/trained-a" | grep 'done' &&
        "$work/example_training-static" "$source/models/demo" "$source/models/demo/examples.txt" "$work/trained-b" | grep 'step 20 of 20: loss' &&
        cmp "$work/trained-a/model.safetensors" "$work/trained-b/model.safetensors"
}
expect 'example_training: it trains, and the same again' train_twice
# The examples of --help name models/demo: they are typed in the installed folder.
in_share() { cd "$prefix/share/deberta" && LD_LIBRARY_PATH=$libdir "$prefix/bin/deberta" "$@"; }
expect 'the installed model' in_share fill-mask models/demo --text 'the [MASK]'
expect 'the completion of bash' bash -c ". '$prefix/share/bash-completion/completions/deberta' && complete -p deberta"
expect 'the completion of zsh' grep -q '^#compdef deberta' "$prefix/share/zsh/site-functions/_deberta"
expect 'the completion of fish' grep -q 'complete -c deberta' "$prefix/share/fish/vendor_completions.d/deberta.fish"
expect 'the installed examples' cmp "$source/docs/example_text.c" "$prefix/share/doc/deberta/examples/example_text.c"
expect 'the installed program' env LD_LIBRARY_PATH="$libdir" "$prefix/bin/deberta" --version
echo "$passed passed, $failed failed"
[ $failed = 0 ]
