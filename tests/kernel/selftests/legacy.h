/* SPDX-License-Identifier: GPL-2.0 */
#ifndef LEGACY_H
#define LEGACY_H
/* A legacy memory cgroup of a test's own. Needs root, and CONFIG_MEMCG_V1. */

#include "folio.h"

/* Where the controller is mounted, and a cgroup of our own there. */
static const char *mounted;
static char legacy[96];

/* A file of the cgroup, until the next is asked for. */
static inline const char *of_legacy(const char *name)
{
	static char path[160];

	snprintf(path, sizeof(path), "%s/%s", legacy, name);
	return path;
}

static inline void leave_legacy(void)
{
	char procs[96];

	snprintf(procs, sizeof(procs), "%s/cgroup.procs", mounted);
	write_to(procs, "0");
	if (rmdir(legacy))
		ksft_print_msg("%s is left behind: %s\n", legacy, strerror(errno));
}

/* Whether it is mounted at @where. */
static inline bool has_legacy(const char *where)
{
	mounted = where;
	snprintf(legacy, sizeof(legacy), "%s", mounted);
	return !access(of_legacy("memory.limit_in_bytes"), F_OK);
}

static inline void enter_legacy(void)
{
	snprintf(legacy, sizeof(legacy), "%s/unmap.%d", mounted, getpid());
	if (mkdir(legacy, 0755))
		ksft_exit_fail_msg("%s: %s\n", legacy, strerror(errno));
	write_to(of_legacy("cgroup.procs"), "0");
	atexit(leave_legacy);
}

#endif
