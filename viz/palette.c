/* Holds the colour tables, RRGGBB in hexadecimal, one after the other.
 *
 * viridis, cividis and magma: the data of matplotlib's maps of these names, rounded to 8 bits. viridis and magma are
 * by Nathaniel J. Smith, Stefan van der Walt and Eric Firing, cividis by Jamie R. Nunez, Christopher R. Anderton and
 * Ryan S. Renslow; all three were put into the public domain by their authors (CC0 1.0).
 *
 * polar: made for this program, from straight lines in CIELAB lightness. Negative: white (L 100) to dark blue (L 16);
 * positive: white to vermilion (L 48). On each side lightness falls steadily, so larger magnitude is darker on paper,
 * and a value is lighter than its negative, so the two extremes stay apart in greyscale. A mid grey alone does not
 * distinguish a moderate negative from a large positive value; for strictly grey print a sequential map on signed
 * data does (dark, grey, light).
 *
 * blues and greys: made for this program, from the white of paper to a dark end.
 *
 * SPDX-License-Identifier: MIT */
#include "viz/palette.h"

#include <math.h>
#include <string.h>

struct palette {
    const char *name, *digits;
    size_t anchors, levels; /* colours in the table; colours of the palette, interpolated between those */
    bool diverging;
};

static const palette palettes[] = {
    {"viridis",
     "44015444025645045745055946075a46085c460a5d460b5e470d60470e6147106347116447136548146748166848176948186a481a6c"
     "481b6d481c6e481d6f481f70482071482173482374482475482576482677482878482979472a7a472c7a472d7b472e7c472f7d46307e"
     "46327e46337f463480453581453781453882443983443a83443b84433d84433e85423f85424086424186414287414487404588404688"
     "3f47883f48893e49893e4a893e4c8a3d4d8a3d4e8a3c4f8a3c508b3b518b3b528b3a538b3a548c39558c39568c38588c38598c375a8c"
     "375b8d365c8d365d8d355e8d355f8d34608d34618d33628d33638d32648e32658e31668e31678e31688e30698e306a8e2f6b8e2f6c8e"
     "2e6d8e2e6e8e2e6f8e2d708e2d718e2c718e2c728e2c738e2b748e2b758e2a768e2a778e2a788e29798e297a8e297b8e287c8e287d8e"
     "277e8e277f8e27808e26818e26828e26828e25838e25848e25858e24868e24878e23888e23898e238a8d228b8d228c8d228d8d218e8d"
     "218f8d21908d21918c20928c20928c20938c1f948c1f958b1f968b1f978b1f988b1f998a1f9a8a1e9b8a1e9c891e9d891f9e891f9f88"
     "1fa0881fa1881fa1871fa28720a38620a48621a58521a68522a78522a88423a98324aa8325ab8225ac8226ad8127ad8128ae8029af7f"
     "2ab07f2cb17e2db27d2eb37c2fb47c31b57b32b67a34b67935b77937b87838b9773aba763bbb753dbc743fbc7340bd7242be7144bf70"
     "46c06f48c16e4ac16d4cc26c4ec36b50c46a52c56954c56856c66758c7655ac8645cc8635ec96260ca6063cb5f65cb5e67cc5c69cd5b"
     "6ccd5a6ece5870cf5773d05675d05477d1537ad1517cd2507fd34e81d34d84d44b86d54989d5488bd6468ed64590d74393d74195d840"
     "98d83e9bd93c9dd93ba0da39a2da37a5db36a8db34aadc32addc30b0dd2fb2dd2db5de2bb8de29bade28bddf26c0df25c2df23c5e021"
     "c8e020cae11fcde11dd0e11cd2e21bd5e21ad8e219dae319dde318dfe318e2e418e5e419e7e419eae51aece51befe51cf1e51df4e61e"
     "f6e620f8e621fbe723fde725",
     256, 256, false},
    {"cividis",
     "00224e00234f00245100255300255400265600275800285900285b00295d002a5f002a61002b62002c64002c66002d68002e6a002e6c"
     "002f6d00306f0030700031700031710132710533710833700c34700f357012357014367016377018376f1a386f1c396f1e3a6f203a6f"
     "213b6e233c6e243c6e263d6e273e6e293f6e2a3f6d2b406d2d416d2e416d2f426d31436d32436d33446d34456c35456c36466c38476c"
     "39486c3a486c3b496c3c4a6c3d4a6c3e4b6c3f4c6c404c6c414d6c424e6c434e6c444f6c45506c46516c47516c48526c49536c4a536c"
     "4b546c4c556c4d556c4e566c4f576c50576c51586d52596d535a6d545a6d555b6d555c6d565c6d575d6d585e6d595e6e5a5f6e5b606e"
     "5c616e5d616e5e626e5e636f5f636f60646f61656f62656f636670646770656870656870666970676a71686a71696b716a6c716b6d72"
     "6c6d726c6e726d6f726e6f736f70737071737172747272747273747374757474757575757676767777767777777878777979777a7a78"
     "7b7a787c7b787d7c787e7c787e7d787f7e78807f78817f788280798381798482798582798683798784788885788985788a86788b8778"
     "8c88788d88788e89788f8a78908b78918b78928c78928d78938e78948e77958f779690779791779892779992779a93769b94769c9576"
     "9d95769e96769f9775a09875a19975a29975a39a74a49b74a59c74a69c74a79d73a89e73a99f73aaa073aba072aca172ada272aea371"
     "afa471b0a571b1a570b3a670b4a76fb5a86fb6a96fb7a96eb8aa6eb9ab6dbaac6dbbad6dbcae6cbdae6cbeaf6bbfb06bc0b16ac1b26a"
     "c2b369c3b369c4b468c5b568c6b667c7b767c8b866c9b965cbb965ccba64cdbb63cebc63cfbd62d0be62d1bf61d2c060d3c05fd4c15f"
     "d5c25ed6c35dd7c45cd9c55cdac65bdbc75adcc859ddc858dec958dfca57e0cb56e1cc55e2cd54e4ce53e5cf52e6d051e7d150e8d24f"
     "e9d34eead34cebd44bedd54aeed649efd748f0d846f1d945f2da44f3db42f5dc41f6dd3ff7de3ef8df3cf9e03afbe138fce236fde334"
     "fee434fee535fee636fee838",
     256, 256, false},
    {"magma",
     "00000401000501010601010802010902020b02020d03030f03031204041405041606051806051a07061c08071e0907200a08220b0924"
     "0c09260d0a290e0b2b100b2d110c2f120d31130d34140e36150e38160f3b180f3d19103f1a10421c10441d11471e114920114b21114e"
     "22115024125325125527125829115a2a115c2c115f2d11612f116331116533106734106936106b38106c390f6e3b0f703d0f713f0f72"
     "400f74420f75440f764510774710784910784a10794c117a4e117b4f127b51127c52137c54137d56147d57157e59157e5a167e5c167f"
     "5d177f5f187f601880621980641a80651a80671b80681c816a1c816b1d816d1d816e1e81701f81721f81732081752181762181782281"
     "7922827b23827c23827e24828025828125818326818426818627818827818928818b29818c29818e2a81902a81912b81932b80942c80"
     "962c80982d80992d809b2e7f9c2e7f9e2f7fa02f7fa1307ea3307ea5317ea6317da8327daa337dab337cad347cae347bb0357bb2357b"
     "b3367ab5367ab73779b83779ba3878bc3978bd3977bf3a77c03a76c23b75c43c75c53c74c73d73c83e73ca3e72cc3f71cd4071cf4070"
     "d0416fd2426fd3436ed5446dd6456cd8456cd9466bdb476adc4869de4968df4a68e04c67e24d66e34e65e44f64e55064e75263e85362"
     "e95462ea5661eb5760ec5860ed5a5fee5b5eef5d5ef05f5ef1605df2625df2645cf3655cf4675cf4695cf56b5cf66c5cf66e5cf7705c"
     "f7725cf8745cf8765cf9785df9795df97b5dfa7d5efa7f5efa815ffb835ffb8560fb8761fc8961fc8a62fc8c63fc8e64fc9065fd9266"
     "fd9467fd9668fd9869fd9a6afd9b6bfe9d6cfe9f6dfea16efea36ffea571fea772fea973feaa74feac76feae77feb078feb27afeb47b"
     "feb67cfeb77efeb97ffebb81febd82febf84fec185fec287fec488fec68afec88cfeca8dfecc8ffecd90fecf92fed194fed395fed597"
     "fed799fed89afdda9cfddc9efddea0fde0a1fde2a3fde3a5fde5a7fde7a9fde9aafdebacfcecaefceeb0fcf0b2fcf2b4fcf4b6fcf6b8"
     "fcf7b9fcf9bbfcfbbdfcfdbf",
     256, 256, false},
    {"blues", "ffffffe3edf8c3d9ee9bc0e26fa3d34684bf2766a5124a8405305f", 9, 256, false},
    {"greys", "ffffff141414", 2, 256, false},
    {"polar",
     "002752003365003f77004c8901599c0166ae1974be3482c94a8fd3609ddc76abe38cb9eaa2c7efb9d5f4d0e3f8e7f1fcfffffffff4ee"
     "ffe8dcffdccbfdd1bbfbc5acf8ba9ef5ae90f2a383ef9776eb8b6ae7805ee37352de6747da5a3dd54c33d03c2a",
     33, 257, true},
};
enum { PALETTE_COUNT = sizeof palettes / sizeof *palettes };

const palette *palette_find(const char *name)
{
    for (size_t i = 0; i < PALETTE_COUNT; i++)
        if (strcmp(palettes[i].name, name) == 0) return &palettes[i];
    return NULL;
}

const char *palette_names(void) { return "viridis, cividis, magma, blues, greys, polar"; }
const char *const palette_list[] = {"viridis", "cividis", "magma", "blues", "greys", "polar", NULL};
bool palette_is_diverging(const palette *map) { return map->diverging; }

static unsigned hex_digit(char c) { return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a' + 10); }

static unsigned anchor_channel(const palette *map, size_t anchor, size_t channel)
{
    const char *pair = map->digits + 6 * anchor + 2 * channel;
    return hex_digit(pair[0]) * 16 + hex_digit(pair[1]);
}

/* Returns a channel of a level, in integer arithmetic, so that a level is the same byte everywhere. */
static uint8_t level_channel(const palette *map, size_t level, size_t channel)
{
    size_t scaled = level * (map->anchors - 1), spaces = map->levels - 1;
    size_t anchor = scaled / spaces, rest = scaled % spaces;
    unsigned from = anchor_channel(map, anchor, channel);
    unsigned to = rest ? anchor_channel(map, anchor + 1, channel) : from;
    return (uint8_t)((from * (spaces - rest) + to * rest + spaces / 2) / spaces);
}

size_t palette_table(const palette *map, draw_colour table[PALETTE_LEVELS_MAX])
{
    for (size_t i = 0; i < map->levels; i++)
        table[i] = (draw_colour){level_channel(map, i, 0), level_channel(map, i, 1), level_channel(map, i, 2), 255};
    return map->levels;
}

size_t palette_level(size_t levels, double position)
{
    if (!(position > 0)) return 0;
    if (position >= 1) return levels - 1;
    return (size_t)(position * (double)(levels - 1) + 0.5);
}

double palette_grey(draw_colour colour) { return (0.299 * colour.r + 0.587 * colour.g + 0.114 * colour.b) / 255; }

draw_colour palette_ink_on(draw_colour background)
{
    return palette_grey(background) < 0.5 ? (draw_colour){255, 255, 255, 255} : (draw_colour){0, 0, 0, 255};
}

/* Returns a colour of a series, after Okabe and Ito's set for colour-deficient vision (2008), without its yellow,
 * which vanishes on white, and with two more colours for stacks of many parts. Darkness alternates, so that
 * neighbours in a stack stay apart in greyscale. */
draw_colour palette_series(size_t index)
{
    static const draw_colour colours[PALETTE_SERIES_COUNT] = {
        {0, 82, 147, 255},   {235, 145, 25, 255}, {0, 150, 110, 255},   {225, 150, 195, 255}, {145, 45, 10, 255},
        {86, 180, 233, 255}, {50, 50, 50, 255},   {150, 150, 150, 255}, {95, 50, 140, 255},   {190, 185, 40, 255},
    };
    return colours[index % PALETTE_SERIES_COUNT];
}

draw_colour palette_shade(draw_colour colour, double grey)
{
    const double own = palette_grey(colour), end = grey < own ? 0 : 255; /* black or white */
    const double share = grey < own ? 1 - grey / own : own < 1 ? (grey - own) / (1 - own) : 0;
    return (draw_colour){(uint8_t)lround(colour.r + share * (end - colour.r)),
                         (uint8_t)lround(colour.g + share * (end - colour.g)),
                         (uint8_t)lround(colour.b + share * (end - colour.b)), colour.a};
}
