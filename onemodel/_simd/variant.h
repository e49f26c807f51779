/* Every loop once: dispatch.h includes this file for each variant. */

#include "noise.h"
#include "permutation.h"
#include "rgb.h"
#include "rows.h"
#include "values.h"
