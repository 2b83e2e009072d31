/* Implements cluster.h for a program without MPI, which is a single process. SPDX-License-Identifier: MIT */
#include "program/cluster/cluster.h"

bool cluster_has_mpi(void) { return false; }

void cluster_open(cluster **cluster, common_options *options)
{
    (void)options;
    *cluster = NULL;
}

int cluster_close(cluster **cluster, int status)
{
    *cluster = NULL;
    return status;
}
