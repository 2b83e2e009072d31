#include "tests/checkasm/checkasm.h"
int bench(const test_options *o){(void)o;return 0;}
